#include "experiments/scenario/deepspeed_choice.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "experiments/scenario/invalid_value.h"
#include "experiments/scenario/layout_choice.h"
#include "experiments/scenario/precision_word.h"
#include "models/deepspeed/precision.h"
#include "models/deepspeed/rules.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

// Limit of the micro batches in a step, since pipelines simulate each of them.
constexpr std::int64_t most_accumulated = std::int64_t{1} << 20;

// Rejects GaLore with ZeRO. Colossal-AI itself only logs a line and continues
// (booster/plugin/{hybrid_parallel,low_level_zero}_plugin.py). The second plugin leaves gradients
// whole but shards the states flat.
[[noreturn]] void refuse_galore_with_zero(const Words& words) {
  const std::string* const found = words.find("plugin");
  const std::string plugin = found != nullptr ? *found : "";
  std::string_view instead;
  if (plugin == "hybrid_parallel")
    instead = "; the HybridParallel plugin logs so and trains at stage 0";
  if (plugin == "low_level_zero")
    instead = "; the LowLevelZero plugin logs so and leaves gradients whole, but not states";
  fail_input(flag("zero_stage"),
             fmt::format("GaLore does not run with ZeRO: it projects whole matrices{}", instead),
             "0");
}

// Returns whether the framework overlaps gradient sums with the backward pass by default: without a
// layout all do except DeepSpeed and NVIDIA's recipes, and those that wait for the sums of several
// micro batches.
bool overlaps_as_ddp(const Words& words, std::int64_t micro_batches) {
  const auto name = words.chosen<FrameworkName>("framework");
  return name && *name != FrameworkName::nvidia && *name != FrameworkName::deepspeed &&
         !(framework_of(*name).reduces_sums && micro_batches > 1);
}

}  // namespace

void choose_optimizer(const Words& words, deepspeed::DeepSpeedConfig& config) {
  if (const auto type = words.chosen<OptimizerType>("optimizer")) {
    if (!config.optimizer) config.optimizer.emplace();
    config.optimizer->type = *type;
  }
  if (!config.optimizer)
    of_key("optimizer", [&] {
      fail_input(flag("optimizer"), "is missing: give it here or in the DeepSpeed file",
                 fmt::format("{}", fmt::join(words_of("optimizer"), ", ")));
    });
  if (const auto decay = words.number("weight_decay", 0, 1))
    config.optimizer->weight_decay = {*decay, true, 0};
  if (const auto stage = words.whole("zero_stage", 0, 3)) config.zero.stage = {*stage, true, 0};
  // This check precedes that of the layout, whose error would name a flag that the user did not
  // give.
  if (is_onebit(config.optimizer->type) && config.zero.stage.value > 0 &&
      config.zero.stage.line > 0)
    refuse_errors(deepspeed::check_config(config));
  if (config.optimizer->type == OptimizerType::galore_adamw8bit && config.zero.stage.value > 0)
    refuse_galore_with_zero(words);
}

DataType usual_weights(const ModelShape& model, const Device& device, OptimizerType optimizer) {
  const bool has_bf16 = device.rates && device.rates->compute_capability >= generation::ampere;
  const bool trained_in_bf16 = model.family == "llama" || model.family.starts_with("moe");
  return has_bf16 && trained_in_bf16 && !is_onebit(optimizer) ? DataType::bf16 : DataType::fp16;
}

bool states_precision(const Words& words) {
  return words.find("precision") != nullptr || words.find("config") != nullptr;
}

void choose_precision(const Words& words, const TrainingPlan& training,
                      deepspeed::DeepSpeedConfig& config, std::vector<Finding>& findings) {
  const auto precision = words.choice("precision");
  if (!precision && states_precision(words)) {
    const auto settled = deepspeed::settle_auto_precision(config);
    findings.insert(findings.end(), settled.begin(), settled.end());
    return;
  }
  const DataType weights =
      precision ? precisions()[*precision].weights
                : usual_weights(*training.model, *training.device, config.optimizer->type);
  config.fp16.enabled = {weights == DataType::fp16, precision.has_value(), 0};
  config.bf16_enabled = {weights == DataType::bf16, precision.has_value(), 0};
}

void choose_backend(const Words& words, const Cluster& cluster, deepspeed::DeepSpeedConfig& config,
                    std::vector<Finding>& findings) {
  auto& backend = config.optimizer->comm_backend_name;
  const auto chosen = words.choice("backend");
  if (chosen) backend = {backend_words()[*chosen], true, 0};
  if ((chosen || !backend.given) && cluster.stack.backend && is_onebit(config.optimizer->type)) {
    const BackendTraits& of_cluster = traits_of(*cluster.stack.backend);
    if (!chosen) {
      backend.value = of_cluster.word;
      findings.push_back(
          {Severity::note, "backend-of-cluster",
           fmt::format("no backend given: {}{}, as 1-bit optimizers ran on {}", of_cluster.word,
                       of_cluster.cuda_aware ? " with cuda_aware" : "", cluster.name)});
    }
    if (backend.value == of_cluster.word && !config.optimizer->cuda_aware.given)
      config.optimizer->cuda_aware.value = of_cluster.cuda_aware;
  }
  if (!backend_of(*config.optimizer))
    fail_input({config.file, backend.line, "comm_backend_name"}, "hccl is not modelled",
               fmt::format("{}", fmt::join(backend_words(), ", ")));
  if (const auto aware = words.choice("cuda_aware"))
    config.optimizer->cuda_aware = {*aware == 1, true, 0};
}

Batch choose_batch(const Words& words, int gpus, int data_parallel,
                   deepspeed::DeepSpeedConfig& config, std::vector<Finding>& findings) {
  deepspeed::BatchNumbers given{words.whole("global_batch", 1, deepspeed::max_batch),
                                words.whole("micro_batch", 1, deepspeed::max_batch),
                                words.whole("grad_accum", 1, deepspeed::max_batch)};
  const auto known = [&] {
    return given.train.has_value() + given.micro.has_value() + given.gas.has_value();
  };
  const bool any_flag = known() > 0;
  deepspeed::BatchNumbers from_file = config.batch;
  const char* first = given.train ? "global_batch" : given.micro ? "micro_batch" : "grad_accum";
  Where where = any_flag ? flag(first) : Where{config.file, 0, {}};
  auto& elasticity = config.elasticity;
  std::optional<Batch> elastic;
  if (elasticity && known() < 2) {
    where = elasticity->where;
    deepspeed::ElasticBatch of_world = deepspeed::elastic_batch(*elasticity, data_parallel);
    elastic = of_world.batch;
    from_file = {elastic->train, elastic->micro, elastic->gas};
    findings.insert(findings.end(), of_world.findings.begin(), of_world.findings.end());
  }
  const auto resolve = [&](const deepspeed::BatchNumbers& numbers) {
    if (!numbers.train && !numbers.micro && config.auto_batch)
      fail_input(
          *config.auto_batch,
          "\"auto\" is filled in by the Trainer of Hugging Face from its own arguments: give "
          "two of --global-batch, --micro-batch and --grad-accum");
    const Batch batch = deepspeed::resolve_batch(numbers, data_parallel, where);
    if (batch.gas > most_accumulated)
      fail_input(where,
                 fmt::format("a step of {} = {} x {} x {} replicas accumulates more micro batches "
                             "than are forecast",
                             batch.train, batch.micro, batch.gas, data_parallel),
                 fmt::format("--grad-accum 1 to {}", most_accumulated));
    return batch;
  };
  if (!any_flag) {
    if (!from_file.train && !from_file.micro && config.file.empty())
      fail_input(flag("global_batch"),
                 "is missing: give it or --micro-batch, or two of them and --grad-accum");
    return resolve(from_file);
  }
  if (!given.train && known() < 2) given.train = from_file.train;
  if (!given.micro && known() < 2) given.micro = from_file.micro;
  if (!given.gas && known() < 2) given.gas = from_file.gas;
  if (!given.train && !given.micro && !config.auto_batch)
    fail_input(flag("global_batch"), "is missing: give it or --micro-batch");
  const Batch batch = resolve(given);
  if (elasticity && batch != elastic)
    findings.push_back(
        {Severity::warning, "elasticity-overridden",
         describe(elasticity->where,
                  fmt::format("overridden by the command line: train_batch_size {} = {} * {} * {} "
                              "GPUs, which DeepSpeed would not run",
                              batch.train, batch.micro, batch.gas, gpus))});
  if (!elastic) elasticity.reset();
  return batch;
}

deepspeed::Versions choose_versions(const Words& words, const Cluster& cluster,
                                    deepspeed::Setting<Version>& release) {
  deepspeed::Versions versions;
  if (const std::string* text = words.find("versions"))
    versions =
        of_key("versions", [&] { return deepspeed::parse_versions(*text, flag("versions")); });
  if (const std::string* text = words.find("deepspeed_version")) {
    const Version asked = of_key("deepspeed_version",
                                 [&] { return parse_version(*text, flag("deepspeed_version")); });
    if (versions.deepspeed.value_or(asked) != asked)
      fail_input(flag("deepspeed_version"),
                 fmt::format("{} is not the {} of --versions", text_of(asked),
                             text_of(*versions.deepspeed)));
    versions.deepspeed = asked;
  }
  if (versions.deepspeed)
    release = {*versions.deepspeed, true, 0};
  else if (cluster.stack.deepspeed)
    release.value = cluster.stack.deepspeed->value;
  return versions;
}

Overlap choose_overlap(const Words& words, std::int64_t micro_batches,
                       deepspeed::DeepSpeedConfig& config) {
  const auto overlap = words.chosen<Overlap>("overlap");
  if (!overlap) return overlaps_as_ddp(words, micro_batches) ? Overlap::ddp : Overlap::none;
  const bool ddp = *overlap == Overlap::ddp, zero = *overlap == Overlap::zero;
  if (config.zero.stage.value == 0) {
    if (zero)
      fail_input(flag("overlap"), "zero is ZeRO's overlap_comm, and ZeRO is off at stage 0",
                 "none, ddp");
    return *overlap;
  }
  if (ddp)
    fail_input(flag("overlap"), "ddp is PyTorch's sum of gradients; ZeRO has its own",
               "none, zero");
  config.zero.overlap_comm = {zero, true, 0};
  return Overlap::none;
}

std::optional<std::int64_t> freeze_step_of_file(const deepspeed::DeepSpeedConfig& config) {
  const auto& optimizer = *config.optimizer;
  const auto& setting = optimizer.type == OptimizerType::zero_one_adam ? optimizer.var_freeze_step
                                                                       : optimizer.freeze_step;
  return setting.given && is_onebit(optimizer.type) ? std::optional(setting.value) : std::nullopt;
}

void set_freeze_step(std::int64_t step, deepspeed::DeepSpeedConfig& config) {
  auto& optimizer = *config.optimizer;
  optimizer.freeze_step = {step, true, 0};
  if (optimizer.type == OptimizerType::zero_one_adam) optimizer.var_freeze_step = {step, true, 0};
}

void choose_zero_one_policy(const Words& words, deepspeed::DeepSpeedConfig& config) {
  auto& optimizer = *config.optimizer;
  for (const auto& [key, setting] :
       {std::pair("var_update_scaler", &optimizer.var_update_scaler),
        std::pair("local_step_scaler", &optimizer.local_step_scaler),
        std::pair("local_step_clipper", &optimizer.local_step_clipper)})
    if (const auto asked = words.whole(key, 1, std::numeric_limits<std::int32_t>::max()))
      *setting = {*asked, true, 0};
}

void add_layout_of_file(WhatIf& asked, Catalog& catalog) {
  const auto path = asked.find("config");
  if (path == asked.end()) return;
  const auto stage = asked.find("zero_stage");
  const bool leaves_zero = stage != asked.end() && stage->second == "0";
  for (const auto& [key, value] : catalog.config(path->second)->layout)
    if (!leaves_zero || !is_of_zero(key)) asked.try_emplace(key, value);
}

}  // namespace lambcast
