#include "models/deepspeed/parallelism.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "models/deepspeed/known_keys.h"

namespace lambcast::deepspeed {
namespace {

using hjson::Kind;
using hjson::Value;

bool is_empty(const Value& value) {
  return value.kind == Kind::null || (value.kind == Kind::boolean && !value.boolean) ||
         (value.kind == Kind::object && value.members.empty());
}

bool is_on(const Value& value) {
  return (value.kind == Kind::boolean && value.boolean) ||
         (value.kind == Kind::number && value.number != 0);
}

// Refuses keys of features that are modelled but not read from the file; `flags` set them.
[[noreturn]] void refuse_for_flags(const Where& where, std::string_view what,
                                   std::string_view flags, std::string_view allowed) {
  fail_input(where,
             fmt::format("{} is not read from the file yet: leave it out and give {}", what, flags),
             allowed);
}

using Said = std::vector<std::pair<std::string, std::string>>;

// Reads a size; a size above 1 sets the what-if key `as`. DeepSpeed's default for the stages of a
// pipeline is "auto".
void read_size(const Section& section, std::string_view key, const char* as, Said& said) {
  const Value* value = section.object.find(key);
  if (value == nullptr || is_empty(*value)) return;
  if (value->text == "auto" && key == "stages") return;
  Setting<Whole> size;
  read(section, key, size, 0);
  if (size.value > 1) said.emplace_back(as, fmt::format("{}", size.value));
}

void read_pipeline(const Section& root, Said& said) {
  const Value* value = root.object.find("pipeline");
  if (value == nullptr || is_empty(*value)) return;
  if (value->kind != Kind::object)
    refuse_for_flags(where_of(root, "pipeline", value->line), "pipeline parallelism", "--pp",
                     "a section with stages, or none");
  const Section section{*value, "pipeline", root.file, root.findings};
  find_unknown_keys(section, pipeline_keys());
  read_size(section, "stages", "pp", said);
  const Value* interval = value->find("activation_checkpoint_interval");
  if (interval == nullptr || is_empty(*interval) || interval->whole == 0) return;
  if (interval->whole != 1)
    refuse_for_flags(where_of(section, "activation_checkpoint_interval", interval->line),
                     "recomputing several layers at once", "--recompute", "0 or 1");
  said.emplace_back("recompute", "full");
}

void read_tensor_parallel(const Section& root, Said& said) {
  const Value* value = root.object.find("tensor_parallel");
  if (value == nullptr || is_empty(*value)) return;
  if (value->kind != Kind::object) return read_size(root, "tensor_parallel", "tp", said);
  const Section section{*value, "tensor_parallel", root.file, root.findings};
  find_unknown_keys(section, tensor_parallel_keys());
  Said sizes;
  const auto read_tp = [&](const Section& at, const char* key) {
    const std::size_t before = sizes.size();
    read_size(at, key, "tp", sizes);
    if (sizes.size() > before && sizes.back() != sizes.front())
      fail_input(where_of(at, key, at.object.find(key)->line),
                 fmt::format("is {}, but another key of tensor_parallel is {}", sizes.back().second,
                             sizes.front().second),
                 "one size");
  };
  for (const char* key : {"autotp_size", "tp_size"}) read_tp(section, key);
  for (const char* name : {"tensor_parallel", "tp"}) {  // the second is an alias
    const Value* inner = value->find(name);
    if (inner == nullptr || inner->kind != Kind::object) continue;
    const Section group{*inner, fmt::format("tensor_parallel.{}", name), root.file, root.findings};
    find_unknown_keys(group, tensor_parallel_group_keys());
    read_tp(group, "tp_size");
  }
  if (!sizes.empty()) said.push_back(sizes.front());
}

// AutoEP sends the actual numbers of tokens, and computes a rank's experts in one grouped product
// by default.
void read_experts(const Section& root, Said& said) {
  const Value* value = root.object.find("expert_parallel");
  const Value* outside = root.object.find("use_data_before_expert_parallelism");
  const bool data_first = outside != nullptr && is_on(*outside);
  if (value != nullptr && value->kind == Kind::object)
    find_unknown_keys({*value, "expert_parallel", root.file, root.findings},
                      expert_parallel_keys());
  const Value* enabled = value == nullptr ? nullptr : value->find("enabled");
  if (enabled == nullptr || !is_on(*enabled)) {
    if (data_first)
      add(root, Severity::note, "not-modelled", "use_data_before_expert_parallelism", outside->line,
          "is not read if the script divides the experts; try: --order tp-cp-dp-ep-pp");
    return;
  }
  const Section section{*value, "expert_parallel", root.file, root.findings};
  read_size(section, "autoep_size", "ep", said);
  read_size(section, "expert_tensor_parallel_size", "etp", said);
  const Value* grouped = value->find("use_grouped_mm");
  said.emplace_back("expert_kernels", grouped == nullptr || is_on(*grouped) ? "grouped" : "each");
  said.emplace_back("capacity_factor", "0");
  if (data_first) said.emplace_back("order", "tp-cp-dp-ep-pp");
}

// ZeRO++ and MiCS keys affect only stage 3 (known_keys.h).
void read_sharding(const Section& root, Said& said) {
  const Value* value = root.object.find("zero_optimization");
  if (value == nullptr || value->kind != Kind::object) return;
  const Value* stage = value->find("stage");
  if (stage == nullptr || stage->kind != Kind::number || stage->whole != 3) return;
  const Section zero{*value, "zero_optimization", root.file, root.findings};
  read_size(zero, "zero_hpz_partition_size", "secondary_ranks", said);
  read_size(zero, "mics_shard_size", "shard_ranks", said);
  const std::pair<const char*, const char*> switches[] = {
      {"zero_quantized_weights", "quantized_weights"},
      {"zero_quantized_gradients", "quantized_gradients"}};
  for (const auto& [key, as] : switches) {
    const Value* on = value->find(key);
    if (on != nullptr && is_on(*on)) said.emplace_back(as, "true");
  }
  // `zeropp_loco_param` has an effect only if gradients are quantized (runtime/zero/stage3.py).
  const Value *quantized = value->find("zero_quantized_gradients"),
              *loco = value->find("zeropp_loco_param");
  if (quantized != nullptr && is_on(*quantized) && loco != nullptr && loco->kind == Kind::object)
    said.emplace_back("exchange", "loco");
}

// The key of earlier releases, cpu_offload, means offloading to host memory only.
void read_offload(const Section& root, Said& said) {
  const Value* value = root.object.find("zero_optimization");
  if (value == nullptr || value->kind != Kind::object) return;
  const Value* stage = value->find("stage");
  if (stage == nullptr || stage->kind != Kind::number || !(stage->number > 0)) return;
  const Value* legacy = value->find("cpu_offload");
  const Value* offload = value->find("offload_optimizer");
  const Value* device = offload == nullptr ? nullptr : offload->find("device");
  if ((legacy != nullptr && is_on(*legacy)) || (device != nullptr && device->text == "cpu"))
    said.emplace_back("offload_optimizer", "cpu");
  const Value* ratio = offload == nullptr ? nullptr : offload->find("ratio");
  if (ratio != nullptr && ratio->kind == Kind::number && ratio->number < 1)
    add({*offload, "zero_optimization.offload_optimizer", root.file, root.findings},
        Severity::warning, "not-modelled", "ratio", ratio->line,
        "lambcast has no model of a share of the states: the forecast is of all on the host");
}

void read_recomputation(const Section& root, Said& said) {
  const Value* value = root.object.find("activation_checkpointing");
  if (value == nullptr || value->kind != Kind::object) return;
  const Section section{*value, "activation_checkpointing", root.file, root.findings};
  find_unknown_keys(section, activation_checkpointing_keys());
  if (const Value* count = value->find("number_checkpoints"); count != nullptr && is_on(*count))
    refuse_for_flags(where_of(section, "number_checkpoints", count->line),
                     "recomputing activations", "--recompute", "null, or no such key");
  for (const auto& [key, as, word] :
       {std::tuple{"partition_activations", "partition_activations", "true"},
        {"cpu_checkpointing", "offload_activations", "checkpoints"}})
    if (const Value* on = value->find(key); on != nullptr && is_on(*on))
      said.emplace_back(as, word);
}

}  // namespace

Said read_parallelism(const Section& root) {
  Said said;
  read_pipeline(root, said);
  read_tensor_parallel(root, said);
  read_sharding(root, said);
  read_offload(root, said);
  read_experts(root, said);
  read_size(root, "sequence_parallel_size", "cp", said);
  read_recomputation(root, said);
  return said;
}

}  // namespace lambcast::deepspeed
