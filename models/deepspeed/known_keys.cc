#include "models/deepspeed/known_keys.h"

#include <array>
#include <vector>

namespace lambcast::deepspeed {

std::span<const KnownKey> top_level_keys() {
  using enum Bearing;
  static constexpr auto keys = std::to_array<KnownKey>({
      {"train_batch_size", read},
      {"train_micro_batch_size_per_gpu", read},
      {"gradient_accumulation_steps", read},
      {"optimizer", read},
      {"fp16", read},
      {"bf16", read},
      {"bfloat16", read},
      {"zero_optimization", read},
      {"zero_allow_untested_optimizer", read},
      {"gradient_clipping", read},
      {"prescale_gradients", read},
      {"gradient_predivide_factor", read},
      {"communication_data_type", read},
      {"data_types", read},
      {"curriculum_learning", read},
      {"elasticity", read},
      {"sparse_gradients", unmodelled},
      {"amp", precision_unmodelled},
      {"torch_autocast", precision_unmodelled},
      {"sparse_attention", unmodelled},
      {"activation_checkpointing", read},
      {"pipeline", read},
      {"progressive_layer_drop", unmodelled},
      {"data_efficiency", unmodelled},
      {"compression_training", unmodelled},
      {"quantize_training", unmodelled},
      {"weight_quantization", unmodelled},
      {"eigenvalue", unmodelled},
      {"autotuning", unmodelled},
      {"hybrid_engine", unmodelled},
      {"tensor_parallel", read},
      {"expert_parallel", read},
      {"sequence_parallel_size", read},
      {"seq_parallel_comm_data_type", unmodelled},
      {"seq_parallel_communication_data_type", unmodelled},
      {"compile", unmodelled},
      {"graph_harvesting", unmodelled},
      {"gradient_allreduce_op", silent},
      {"managed_gradient_accumulation", silent},
      {"scheduler", silent},
      {"steps_per_print", silent},
      {"wall_clock_breakdown", silent},
      {"memory_breakdown", silent},
      {"dump_state", silent},
      {"disable_allgather", silent},
      {"allgather_size", silent},
      {"vocabulary_size", silent},
      {"zero_force_ds_cpu_optimizer", silent},
      {"use_data_before_expert_parallelism", read},
      {"dataloader_drop_last", silent},
      {"checkpoint", silent},
      {"nebula", silent},
      {"datastates_ckpt", silent},
      {"aio", silent},
      {"timers", silent},
      {"log_level", silent},
      {"flops_profiler", silent},
      {"comms_logger", unmodelled},  // the logger synchronises each collective
      {"tensorboard", silent},
      {"wandb", silent},
      {"csv_monitor", silent},
      {"comet", silent},
  });
  return keys;
}

std::span<const KnownKey> zero_keys() {
  using enum Bearing;
  static constexpr auto keys = std::to_array<KnownKey>({
      {"stage", read},
      {"overlap_comm", read},
      {"reduce_bucket_size", read},
      {"allgather_bucket_size", read},
      {"contiguous_gradients", read},
      {"reduce_scatter", read},
      {"use_multi_rank_bucket_allreduce", read},
      {"offload_param", read},
      {"offload_optimizer", read},
      {"cpu_offload", read},
      {"cpu_offload_param", unmodelled},
      {"zenflow", unmodelled},
      {"allgather_partitions", silent},
      {"load_from_fp32_weights", silent},
      {"elastic_checkpoint", silent},
      {"cpu_offload_use_pin_memory", silent},
      {"gather_16bit_weights_on_model_save", silent},
      {"stage3_gather_16bit_weights_on_model_save", silent},
      {"stage3_gather_fp16_weights_on_model_save", silent},
      {"ignore_unused_parameters", silent},
      {"legacy_stage1", silent},
      {"round_robin_gradients", read},
      {"pipeline_loading_checkpoint", silent},
      {"override_module_apply", silent},
      {"log_trace_cache_warnings", silent},
      {"enable_sanity_checks", silent},
      {"save_muon_momentum_buffer_in_memory", silent},
      {"partition_stream_chunk_size", silent},
      {"stage3_partition_stream_chunk_size", silent},
      {"sub_group_size", stage_3_unmodelled},
      {"prefetch_bucket_size", stage_3},
      {"stage3_prefetch_bucket_size", stage_3},
      {"param_persistence_threshold", stage_3},
      {"stage3_param_persistence_threshold", stage_3},
      {"model_persistence_threshold", stage_3_unmodelled},
      {"stage3_model_persistence_threshold", stage_3_unmodelled},
      {"max_live_parameters", stage_3},
      {"stage3_max_live_parameters", stage_3},
      {"max_reuse_distance", stage_3},
      {"stage3_max_reuse_distance", stage_3},
      {"module_granularity_threshold", stage_3_unmodelled},
      {"stage3_module_granularity_threshold", stage_3_unmodelled},
      {"use_all_reduce_for_fetch_params", stage_3_unmodelled},
      {"stage3_use_all_reduce_for_fetch_params", stage_3_unmodelled},
      {"allgather_sequential", stage_3_unmodelled},
      {"stage3_allgather_sequential", stage_3_unmodelled},
      {"zero_hpz_partition_size", stage_3},
      {"zero_quantized_weights", stage_3},
      {"zero_quantized_nontrainable_weights", stage_3_unmodelled},
      {"zero_quantized_gradients", stage_3},
      {"zeropp_loco_param", stage_3},
      {"mics_shard_size", stage_3},
      {"mics_hierarchical_params_gather", stage_3_unmodelled},
      {"memory_efficient_linear", stage_3_unmodelled},
      {"leaf_module", stage_3_unmodelled},
  });
  return keys;
}

std::span<const std::string> offload_param_keys() {
  static const std::vector<std::string> keys{"device",      "nvme_path",  "buffer_count",
                                             "buffer_size", "max_in_cpu", "pin_memory"};
  return keys;
}

std::span<const std::string> offload_optimizer_keys() {
  static const std::vector<std::string> keys{
      "device",        "nvme_path",           "buffer_count",      "pin_memory",
      "pipeline_read", "pipeline_write",      "fast_init",         "ratio",
      "super_offload", "convert_grad_on_cpu", "cpuadam_cores_perc"};
  return keys;
}

std::span<const std::string> fp16_keys() {
  static const std::vector<std::string> keys{"enabled",
                                             "loss_scale",
                                             "initial_scale_power",
                                             "loss_scale_window",
                                             "min_loss_scale",
                                             "hysteresis",
                                             "consecutive_hysteresis",
                                             "auto_cast",
                                             "fp16_master_weights_and_grads"};
  return keys;
}

std::span<const KnownKey> bf16_keys() {
  using enum Bearing;
  static constexpr auto keys = std::to_array<KnownKey>({
      {"enabled", read},
      {"immediate_grad_update", silent},
      {"check_grad_overflow", silent},
      {"bf16_master_weights_and_grads", unmodelled},
      {"bf16_optimizer_states", unmodelled},
  });
  return keys;
}

std::span<const std::string> data_types_keys() {
  static const std::vector<std::string> keys{"grad_accum_dtype"};
  return keys;
}

std::span<const std::string> curriculum_keys() {
  static const std::vector<std::string> keys{"enabled",        "curriculum_type",
                                             "min_difficulty", "max_difficulty",
                                             "schedule_type",  "schedule_config"};
  return keys;
}

std::span<const std::string> schedule_keys() {
  static const std::vector<std::string> keys{"total_curriculum_step", "difficulty_step",
                                             "root_degree", "difficulty", "max_step"};
  return keys;
}

std::span<const std::string> elasticity_keys() {
  static const std::vector<std::string> keys{"enabled",
                                             "max_train_batch_size",
                                             "micro_batch_sizes",
                                             "min_gpus",
                                             "max_gpus",
                                             "num_gpus_per_node",
                                             "model_parallel_size",
                                             "min_time",
                                             "prefer_larger_batch",
                                             "ignore_non_elastic_batch_info",
                                             "version"};
  return keys;
}

std::span<const std::string> pipeline_keys() {
  static const std::vector<std::string> keys{
      "stages",           "partition",        "seed_layers",  "activation_checkpoint_interval",
      "pipe_partitioned", "grad_partitioned", "use_reentrant"};
  return keys;
}

std::span<const std::string> tensor_parallel_keys() {
  static const std::vector<std::string> keys{"autotp_size",
                                             "tp_size",
                                             "tensor_parallel",
                                             "tp",
                                             "dtype",
                                             "tp_overlap_comm",
                                             "injection_policy_tuple",
                                             "partition_config",
                                             "preset_model",
                                             "keep_module_on_host",
                                             "replace_with_kernel_inject",
                                             "kernel_inject"};
  return keys;
}

std::span<const std::string> tensor_parallel_group_keys() {
  static const std::vector<std::string> keys{"tp_size", "tp_grain_size", "mpu", "tp_group"};
  return keys;
}

std::span<const std::string> expert_parallel_keys() {
  static const std::vector<std::string> keys{"enabled",
                                             "autoep_size",
                                             "expert_tensor_parallel_size",
                                             "use_grouped_mm",
                                             "disable_triton_grouped_mm",
                                             "grouped_mm_backend",
                                             "validate_folding_routing",
                                             "async_split_plan",
                                             "preset_model",
                                             "moe_layer_pattern",
                                             "expert_pattern",
                                             "router_pattern",
                                             "route_norm",
                                             "route_scale",
                                             "routed_scaling_factor",
                                             "score_apply",
                                             "score_func",
                                             "combine_impl",
                                             "row_weighting_impl",
                                             "gate_up_impl",
                                             "comm_backend",
                                             "comm_num_sm",
                                             "comm_qp_margin",
                                             "comm_max_tokens_per_rank",
                                             "num_expert_groups",
                                             "num_limited_groups",
                                             "top_k",
                                             "top_k_attr",
                                             "num_experts_attr",
                                             "load_balance_coeff",
                                             "expert_w1",
                                             "expert_w2",
                                             "expert_w3",
                                             "expert_activation",
                                             "has_shared_experts",
                                             "shared_experts_pattern",
                                             "shared_experts_gate_pattern"};
  return keys;
}

std::span<const std::string> activation_checkpointing_keys() {
  static const std::vector<std::string> keys{
      "partition_activations",           "number_checkpoints", "contiguous_memory_optimization",
      "synchronize_checkpoint_boundary", "cpu_checkpointing",  "profile"};
  return keys;
}

}  // namespace lambcast::deepspeed
