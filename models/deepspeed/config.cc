#include "models/deepspeed/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "models/deepspeed/known_keys.h"
#include "models/deepspeed/parallelism.h"
#include "sim/base/file.h"

namespace lambcast::deepspeed {
namespace {

using hjson::Kind;
using hjson::Value;

// Returns whether a block is present but disabled: "enabled" is false or an empty value.
bool switched_off(const Value& value) {
  if (value.kind == Kind::null || (value.kind == Kind::boolean && !value.boolean)) return true;
  if (value.kind != Kind::object) return false;
  const Value* enabled = value.find("enabled");
  return value.members.empty() ||
         (enabled != nullptr && enabled->kind == Kind::boolean && !enabled->boolean);
}

std::vector<std::string> names_of(std::span<const KnownKey> known) {
  std::vector<std::string> names;
  for (const KnownKey& key : known) names.emplace_back(key.name);
  return names;
}

// Reports unknown keys and keys that are not modelled. `stage` is the file's ZeRO stage, which
// decides about ZeRO's own keys.
void check_keys(const Section& section, std::span<const KnownKey> known, std::int64_t stage = 0) {
  for (const KnownKey& key : known) {
    const Value* value = section.object.find(key.name);
    if (value == nullptr) continue;
    const bool modelled_at_3 = key.bearing == Bearing::stage_3;
    const bool unmodelled_at_3 = key.bearing == Bearing::stage_3_unmodelled;
    const bool unmodelled = key.bearing == Bearing::unmodelled || (unmodelled_at_3 && stage == 3);
    if (unmodelled && !switched_off(*value))
      add(section, Severity::note, "not-modelled", key.name, value->line,
          "lambcast has no model of this; the forecast is of a run without it");
    if (key.bearing == Bearing::precision_unmodelled && !switched_off(*value))
      add(section, Severity::warning, "not-modelled", key.name, value->line,
          "is not modelled and computes in 16 bits: the forecast is in the precision of fp16 and "
          "bf16, fp32 if neither is enabled; try: --precision fp16");
    if ((modelled_at_3 || unmodelled_at_3) && stage != 3)
      add(section, Severity::note, "no-effect", key.name, value->line,
          "has no effect: only ZeRO stage 3 uses it");
  }
}

void check_top_level_keys(const Section& root) {
  const std::vector<hjson::Member>& members = root.object.members;
  const bool foreign = std::none_of(members.begin(), members.end(), [](const auto& member) {
    const auto keys = top_level_keys();
    return std::any_of(keys.begin(), keys.end(),
                       [&](const KnownKey& key) { return member.key == key.name; });
  });
  if (foreign && !members.empty())
    fail_input({root.file, 0, {}}, "has no key of a DeepSpeed configuration");
  find_unknown_keys(root, names_of(top_level_keys()));
  check_keys(root, top_level_keys());
}

void read_batch(const Section& root, DeepSpeedConfig& config) {
  const auto one = [&](std::string_view key) {
    Setting<std::optional<Whole>> number;
    read(root, key, number);
    const Value* value = root.object.find(key);
    if (value != nullptr && value->text == "auto" && !config.auto_batch)
      config.auto_batch = where_of(root, key, value->line);
    return number.value;
  };
  config.batch.train = one("train_batch_size");
  config.batch.micro = one("train_micro_batch_size_per_gpu");
  config.batch.gas = one("gradient_accumulation_steps");
}

// Reads `enabled` of a precision: true, false, or "auto", whose place is kept for
// settle_auto_precision().
void read_enabled(const Section& block, Setting<bool>& enabled, std::optional<Where>& is_auto) {
  const Value* value = block.object.find("enabled");
  if (value != nullptr && value->kind == Kind::string && value->text == "auto")
    is_auto = where_of(block, "enabled", value->line);
  else
    read(block, "enabled", enabled);
}

Fp16Config read_fp16(const Section& root, std::optional<Where>& is_auto) {
  Fp16Config fp16;
  const std::optional<Section> block = subsection(root, "fp16");
  if (!block) return fp16;
  find_unknown_keys(*block, fp16_keys());
  read_enabled(*block, fp16.enabled, is_auto);
  read(*block, "loss_scale", fp16.loss_scale, 0.0);
  read(*block, "initial_scale_power", fp16.initial_scale_power, 0, 1000);
  read(*block, "loss_scale_window", fp16.loss_scale_window, 1);
  read(*block, "hysteresis", fp16.hysteresis, 0);
  read(*block, "consecutive_hysteresis", fp16.consecutive_hysteresis);
  read(*block, "min_loss_scale", fp16.min_loss_scale, 0.0);
  read(*block, "auto_cast", fp16.auto_cast);
  read(*block, "fp16_master_weights_and_grads", fp16.fp16_master_weights_and_grads);
  return fp16;
}

// "bfloat16" is the old name; if both are present, "bf16" counts.
Setting<bool> read_bf16(const Section& root, std::optional<Where>& is_auto) {
  Setting<bool> enabled{false};
  for (const char* key : {"bf16", "bfloat16"}) {
    const std::optional<Section> block = subsection(root, key);
    if (!block) continue;
    find_unknown_keys(*block, names_of(bf16_keys()));
    check_keys(*block, bf16_keys());
    read_enabled(*block, enabled, is_auto);
    break;
  }
  return enabled;
}

ZeroConfig read_zero(const Section& root) {
  ZeroConfig zero;
  const Value* value = root.object.find("zero_optimization");
  if (value != nullptr && value->kind == Kind::boolean) {  // the form before stages existed
    zero.stage = {value->boolean ? 1 : 0, true, value->line};
    return zero;
  }
  const std::optional<Section> block = subsection(root, "zero_optimization");
  if (!block) return zero;
  refuse_unknown_keys(*block, names_of(zero_keys()));
  for (const auto& [key, known] : {std::pair{"offload_param", offload_param_keys()},
                                   {"offload_optimizer", offload_optimizer_keys()}})
    if (const Value* offload = block->object.find(key);
        offload != nullptr && offload->kind == Kind::object)
      refuse_unknown_keys(*subsection(*block, key), known);
  read(*block, "stage", zero.stage, 0, 3);
  check_keys(*block, zero_keys(), zero.stage.value);
  read(*block, "overlap_comm", zero.overlap_comm);
  read(*block, "reduce_bucket_size", zero.reduce_bucket_size, 0);
  read(*block, "allgather_bucket_size", zero.allgather_bucket_size, 0);
  read(*block, "reduce_scatter", zero.reduce_scatter);
  read(*block, "contiguous_gradients", zero.contiguous_gradients);
  read(*block, "use_multi_rank_bucket_allreduce", zero.use_multi_rank_bucket_allreduce);
  read(*block, "round_robin_gradients", zero.round_robin_gradients);
  for (const std::string prefix : {"", "stage3_"}) {
    read(*block, prefix + "prefetch_bucket_size", zero.prefetch_bucket_size, 0);
    read(*block, prefix + "param_persistence_threshold", zero.param_persistence_threshold, 0);
    read(*block, prefix + "max_live_parameters", zero.max_live_parameters, 0);
    read(*block, prefix + "max_reuse_distance", zero.max_reuse_distance, 0);
  }
  // Offloading to a modelled device is read in parallelism.cc.
  const auto find_unmodelled = [&](const char* key, std::string_view modelled) {
    const Value* offload = block->object.find(key);
    if (offload == nullptr || switched_off(*offload)) return;
    const Value* device = offload->find("device");
    if (device == nullptr || (device->text != "none" && device->text != modelled))
      zero.offload_line = offload->line;
  };
  find_unmodelled("offload_optimizer", "cpu");
  find_unmodelled("offload_param", "none");
  return zero;
}

Setting<std::optional<DataType>> read_data_type(const Section& root) {
  Setting<std::optional<std::string>> name;
  read(root, "communication_data_type", name);
  if (!name.given) return {};
  std::string lower = *name.value;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const DataType type : {DataType::fp16, DataType::bf16, DataType::fp32})
    if (lower == name_of(type)) return {type, true, name.line};
  fail_input(where_of(root, "communication_data_type", name.line),
             fmt::format("Invalid communication_data_type. Supported data types: ['fp16', 'bf16', "
                         "'fp32']. Got: {}",
                         lower));
}

Setting<std::optional<DataType>> read_grad_accum_dtype(const Section& root) {
  const std::optional<Section> block = subsection(root, "data_types");
  if (!block) return {};
  find_unknown_keys(*block, data_types_keys());
  Setting<std::optional<std::string>> name;
  read(*block, "grad_accum_dtype", name);
  if (!name.given) return {};
  constexpr std::pair<std::string_view, DataType> names[] = {
      {"fp16", DataType::fp16},           {"float16", DataType::fp16},
      {"torch.float16", DataType::fp16},  {"half", DataType::fp16},
      {"bf16", DataType::bf16},           {"bfloat16", DataType::bf16},
      {"torch.bfloat16", DataType::bf16}, {"fp32", DataType::fp32},
      {"float32", DataType::fp32},        {"torch.float32", DataType::fp32},
      {"float", DataType::fp32}};
  for (const auto& [spelling, type] : names)
    if (*name.value == spelling) return {type, true, name.line};
  fail_input(where_of(*block, "grad_accum_dtype", name.line),
             fmt::format("'{}' is not a valid DtypeEnum", *name.value), "fp16, bf16, fp32");
}

// Throws Error with DeepSpeed's text if a key of the curriculum is absent.
void require(const Section& section, std::string_view key, std::string_view sentence) {
  if (section.object.find(key) == nullptr)
    fail_input({section.file, section.object.line, section.path},
               fmt::format("{} '{}'", sentence, key));
}

Whole read_required(const Section& section, std::string_view key, std::string_view sentence,
                    Whole high) {
  require(section, key, sentence);
  Setting<Whole> number;
  read(section, key, number, 1, high);
  return number.value;
}

void read_discrete(const Section& schedule, const std::string& sentence, Curriculum& curriculum) {
  require(schedule, "difficulty", sentence);
  require(schedule, "max_step", sentence);
  Setting<std::vector<Whole>> difficulty;
  Setting<std::vector<Whole>> max_step;
  read(schedule, "difficulty", difficulty, 1);
  read(schedule, "max_step", max_step, 0);
  const Where where = where_of(schedule, "difficulty", difficulty.line);
  if (max_step.value.empty() || difficulty.value.size() != max_step.value.size() + 1) {
    fail_input(where,
               fmt::format("{} difficulties and {} entries of max_step", difficulty.value.size(),
                           max_step.value.size()),
               "one difficulty more than max_step has entries");
  }
  for (const Whole length : difficulty.value)
    if (length > max_seq_len)
      fail_input(where, fmt::format("{} tokens are too long", length),
                 fmt::format("up to {}", max_seq_len));
  curriculum.difficulty = std::move(difficulty.value);
  curriculum.max_step = std::move(max_step.value);
}

void read_schedule(const Section& block, const std::string& type, Curriculum& curriculum) {
  const std::string sentence =
      fmt::format("Curriculum learning with {} schedule requires the schedule_config", type);
  require(block, "schedule_config", "Curriculum learning requires the config");
  const std::optional<Section> schedule = subsection(block, "schedule_config");
  if (!schedule)
    fail_input(where_of(block, "schedule_config", block.object.line), "null is not an object");
  find_unknown_keys(*schedule, schedule_keys());
  if (curriculum.schedule == CurriculumSchedule::fixed_discrete) {
    read_discrete(*schedule, sentence, curriculum);
    return;
  }
  curriculum.total_step =
      read_required(*schedule, "total_curriculum_step", sentence, Whole{1} << 53);
  curriculum.difficulty_step = read_required(*schedule, "difficulty_step", sentence, max_seq_len);
  if (curriculum.schedule == CurriculumSchedule::fixed_root) {
    require(*schedule, "root_degree", sentence);
    Setting<double> degree{1};
    read(*schedule, "root_degree", degree, 1e-3, 1e3);
    curriculum.root_degree = degree.value;
  }
}

std::optional<Curriculum> read_curriculum(const Section& root) {
  const std::optional<Section> block = subsection(root, "curriculum_learning");
  Setting<bool> enabled{false};
  if (block) read(*block, "enabled", enabled);
  if (!enabled.value) return std::nullopt;
  find_unknown_keys(*block, curriculum_keys());
  Setting<std::optional<std::string>> kind;
  read(*block, "curriculum_type", kind);
  if (kind.value != "seqlen") {
    add(*block, Severity::warning, "curriculum-not-seqlen", "curriculum_type", kind.line,
        "DeepSpeed shortens sequences only for the curriculum_type 'seqlen'");
    return std::nullopt;
  }
  Curriculum curriculum;
  const std::string_view sentence = "Curriculum learning requires the config";
  curriculum.min_difficulty = read_required(*block, "min_difficulty", sentence, max_seq_len);
  curriculum.max_difficulty = read_required(*block, "max_difficulty", sentence, max_seq_len);
  require(*block, "schedule_type", sentence);
  Setting<std::optional<std::string>> type;
  read(*block, "schedule_type", type);
  const std::string name = type.value.value_or("");
  const Where where = where_of(*block, "schedule_type", type.line);
  constexpr std::string_view allowed = "fixed_linear, fixed_root, fixed_discrete";
  if (name == "custom")
    fail_input(where, "a custom schedule is a Python function, which is not read", allowed);
  if (name == "fixed_linear") {
    curriculum.schedule = CurriculumSchedule::fixed_linear;
  } else if (name == "fixed_root") {
    curriculum.schedule = CurriculumSchedule::fixed_root;
  } else if (name == "fixed_discrete") {
    curriculum.schedule = CurriculumSchedule::fixed_discrete;
  } else {
    fail_input(where, "Unsupported curriculum schedule type", allowed);
  }
  read_schedule(*block, name, curriculum);
  return curriculum;
}

}  // namespace

DeepSpeedConfig parse_config(std::string_view text, const std::string& file) {
  const Value tree = hjson::parse(text, file);
  DeepSpeedConfig config;
  config.file = file;
  const Section root{tree, "", file, config.findings};
  check_top_level_keys(root);
  read_batch(root, config);
  config.optimizer = read_optimizer(root);
  config.fp16 = read_fp16(root, config.auto_fp16);
  config.bf16_enabled = read_bf16(root, config.auto_bf16);
  config.zero = read_zero(root);
  read(root, "zero_allow_untested_optimizer", config.zero_allow_untested_optimizer);
  read(root, "gradient_clipping", config.gradient_clipping, 0.0);
  read(root, "prescale_gradients", config.prescale_gradients);
  read(root, "gradient_predivide_factor", config.gradient_predivide_factor);
  config.communication_data_type = read_data_type(root);
  config.grad_accum_dtype = read_grad_accum_dtype(root);
  config.curriculum = read_curriculum(root);
  config.elasticity = read_elasticity(root);
  config.layout = read_parallelism(root);
  return config;
}

DeepSpeedConfig load_config(const std::string& path) {
  return parse_config(read_file(path, 16), path);
}

}  // namespace lambcast::deepspeed
