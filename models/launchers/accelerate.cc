#include "models/launchers/accelerate.h"

#include <fmt/format.h>

namespace lambcast::launchers {
namespace {

constexpr CostlessKeys launch_keys{
    "says how processes start",
    "compute_environment machine_rank main_process_ip main_process_port main_training_function "
    "rdzv_backend rdzv_conf same_network gpu_ids debug enable_cpu_affinity "
    "downcast_bf16 num_cpu_threads_per_process"};

// Builds the DeepSpeed JSON that Accelerate derives from its keys (utils/dataclasses.py,
// DeepSpeedPlugin).
void read_deepspeed(KeyReader keys, LauncherFile& result) {
  result.config_path = keys.text("deepspeed_config_file");
  const auto stage = keys.whole("zero_stage", 0);
  if (stage > 3) keys.refuse("zero_stage", fmt::format("unknown stage {}", *stage), "0, 1, 2, 3");
  const auto accumulation = keys.whole("gradient_accumulation_steps");
  const auto clipping = keys.number("gradient_clipping");
  if (clipping && stage.value_or(2) > 0)
    keys.entry("gradient_clipping", Treatment::costless,
               "gradients are scaled in the pass that unscales them");
  std::string zero = fmt::format("\"stage\": {}", stage.value_or(2));
  for (const char* what : {"optimizer", "param"})
    if (const std::string device = keys.word(fmt::format("offload_{}_device", what), "none");
        device != "none")
      zero += fmt::format(", \"offload_{}\": {{\"device\": \"{}\"}}", what, device);
  keys.finish(
      {{"says how processes start, or how weights are loaded and saved",
        "zero3_* deepspeed_multinode_launcher deepspeed_hostfile deepspeed_inclusion_filter "
        "deepspeed_exclusion_filter deepspeed_moe_layer_cls_names"}});
  if (!result.config_path.empty()) return;
  if (accumulation) keys.set("grad_accum", fmt::format("{}", *accumulation));
  result.config =
      fmt::format("{{\"zero_optimization\": {{{}}}{}}}", zero,
                  clipping ? fmt::format(", \"gradient_clipping\": {}", *clipping) : "");
}

// Returns the ZeRO stage for a name or number of PyTorch's ShardingStrategy.
const char* stage_of_strategy(KeyReader& keys, std::string_view key, std::string_view strategy) {
  constexpr std::pair<std::string_view, const char*> stages[] = {
      {"full_shard", "3"},         {"1", "3"}, {"shard_grad_op", "2"}, {"2", "2"},
      {"no_shard", "0"},           {"3", "0"}, {"hybrid_shard", "3"},  {"4", "3"},
      {"hybrid_shard_zero2", "2"}, {"5", "2"}};
  for (const auto& [word, stage] : stages)
    if (word == strategy) return stage;
  keys.refuse(key, fmt::format("unknown strategy '{}'", strategy),
              "FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD, HYBRID_SHARD_ZERO2");
}

void read_megatron(KeyReader keys) {
  keys.set("framework", "megatron");
  keys.copy("megatron_lm_tp_degree", "tp");
  keys.copy("megatron_lm_pp_degree", "pp");
  keys.copy("megatron_lm_num_micro_batches", "grad_accum");
  if (keys.truth("megatron_lm_sequence_parallelism", false)) keys.set("sequence_parallel", "true");
  if (keys.truth("megatron_lm_recompute_activations", false)) keys.set("recompute", "selective");
  if (keys.truth("megatron_lm_use_distributed_optimizer", false)) keys.set("zero_stage", "1");
  if (const auto norm = keys.number("megatron_lm_gradient_clipping"))
    keys.set("gradient_clipping", fmt::format("{}", *norm));
  keys.finish({});
}

void read_parallelism(KeyReader keys) {
  keys.copy("parallelism_config_tp_size", "tp");
  keys.copy("parallelism_config_cp_size", "cp");
  if (const auto groups = keys.whole("parallelism_config_dp_replicate_size"); groups > 1)
    keys.set("shard_groups", fmt::format("{}", *groups));
  keys.finish({{"follows from the other sizes", "parallelism_config_dp_shard_size"}});
}

}  // namespace

void read_fsdp(KeyReader keys, std::int64_t machines, bool second) {
  keys.set("framework", "torchtitan");
  second |= keys.whole(keys.either("fsdp_version", "version")).value_or(1) == 2;
  const std::string_view named = keys.either("fsdp_sharding_strategy", "sharding_strategy");
  const std::string strategy = keys.word(named, "full_shard");
  // FSDP1 has no such Boolean: in newer files this key contains the sharding strategy.
  const std::string reshard =
      keys.word(keys.either("fsdp_reshard_after_forward", "reshard_after_forward"),
                second ? "true" : strategy);
  const bool is_truth = reshard == "true" || reshard == "false";
  const char* stage =
      is_truth ? (reshard == "true" ? "3" : "2") : stage_of_strategy(keys, named, reshard);
  const std::string_view version = keys.either("fsdp_version", "version");
  if ((is_truth || strategy == "full_shard") && keys.find(version) != nullptr)
    keys.entry(version, Treatment::costless, "both versions share the same here");
  if (is_truth && keys.find(named) != nullptr)
    keys.entry(named, Treatment::costless, "reshard_after_forward says it");
  keys.set("zero_stage", stage);
  if (reshard.starts_with("hybrid") && machines > 1)
    keys.set("shard_groups", fmt::format("{}", machines));
  if (keys.truth(keys.either("fsdp_activation_checkpointing", "activation_checkpointing"), false))
    keys.set("recompute", "full");
  if (const auto offload = keys.either("fsdp_offload_params", "offload_params");
      keys.truth(offload, false))
    keys.leave_out(offload, "weights and states are assumed to be on the GPU");
  keys.finish(
      {{"says which modules are a unit: blocks are assumed to be",
        "fsdp_auto_wrap_policy fsdp_transformer_layer_cls_to_wrap fsdp_min_num_params "
        "fsdp_use_orig_params auto_wrap_policy transformer_layer_cls_to_wrap use_orig_params"},
       {"gathers ahead: gathers are taken to overlap",
        "fsdp_backward_prefetch* fsdp_forward_prefetch fsdp_limit_all_gathers backward_prefetch* "
        "forward_prefetch limit_all_gathers"},
       {"says how weights are loaded and saved",
        "fsdp_state_dict_type fsdp_sync_module_states fsdp_cpu_ram_efficient_loading "
        "state_dict_type final_state_dict_type sync_module_states "
        "cpu_ram_efficient_loading"}});
}

void read_accelerate(KeyReader& keys, LauncherFile& result) {
  const auto processes = keys.whole("num_processes");
  const auto machines = keys.whole("num_machines").value_or(1);
  if (processes) keys.set("gpus", fmt::format("{}", *processes));
  if (processes && machines > 1 && *processes % machines == 0)
    keys.set("gpus_per_node", fmt::format("{}", *processes / machines));
  const std::string precision = keys.word("mixed_precision", "no");
  if (precision != "fp16" && precision != "bf16" && precision != "fp8" && precision != "no" &&
      precision != "false")
    keys.refuse("mixed_precision", fmt::format("unknown precision '{}'", precision),
                "no, fp16, bf16, fp8");
  keys.set("precision", precision == "no" || precision == "false" ? "fp32" : precision);
  if (const auto dynamo = keys.section("dynamo_config"))
    if (KeyReader compile = *dynamo; compile.word("dynamo_backend", "no") != "no")
      compile.set("fusion", "compiled");
  const std::string type = keys.word("distributed_type", "no");
  if (type == "deepspeed") {
    if (const auto section = keys.section("deepspeed_config")) read_deepspeed(*section, result);
  } else if (type == "fsdp") {
    if (const auto section = keys.section("fsdp_config")) read_fsdp(*section, machines, false);
  } else if (type == "megatron_lm") {
    if (const auto section = keys.section("megatron_lm_config")) read_megatron(*section);
  } else if (type == "no" || type == "false" || type == "multi_gpu") {
    keys.set("framework", "pytorch");
  } else {
    keys.refuse("distributed_type", fmt::format("{} is not modelled", type),
                "NO, MULTI_GPU, DEEPSPEED, FSDP, MEGATRON_LM");
  }
  if (const auto section = keys.section("parallelism_config")) read_parallelism(*section);
  keys.finish({launch_keys});
}

}  // namespace lambcast::launchers
