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
      {"gradient_clipping", read},
      {"prescale_gradients", read},
      {"gradient_predivide_factor", read},
      {"communication_data_type", read},
      {"data_types", read},
      {"curriculum_learning", read},
      {"elasticity", read},
      {"sparse_gradients", unmodelled},
      {"amp", unmodelled},
      {"torch_autocast", unmodelled},
      {"sparse_attention", unmodelled},
      {"activation_checkpointing", unmodelled},
      {"pipeline", unmodelled},
      {"progressive_layer_drop", unmodelled},
      {"data_efficiency", unmodelled},
      {"compression_training", unmodelled},
      {"quantize_training", unmodelled},
      {"weight_quantization", unmodelled},
      {"eigenvalue", unmodelled},
      {"autotuning", unmodelled},
      {"hybrid_engine", unmodelled},
      {"tensor_parallel", unmodelled},
      {"expert_parallel", unmodelled},
      {"sequence_parallel_size", unmodelled},
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
      {"zero_allow_untested_optimizer", silent},
      {"zero_force_ds_cpu_optimizer", silent},
      {"use_data_before_expert_parallelism", silent},
      {"dataloader_drop_last", silent},
      {"checkpoint", silent},
      {"nebula", silent},
      {"datastates_ckpt", silent},
      {"aio", silent},
      {"timers", silent},
      {"log_level", silent},
      {"flops_profiler", silent},
      {"comms_logger", silent},
      {"tensorboard", silent},
      {"wandb", silent},
      {"csv_monitor", silent},
      {"comet", silent},
  });
  return keys;
}

std::span<const std::string> zero_keys() {
  static const std::vector<std::string> keys{
      "stage",
      "overlap_comm",
      "reduce_bucket_size",
      "allgather_bucket_size",
      "contiguous_gradients",
      "reduce_scatter",
      "use_multi_rank_bucket_allreduce",
      "allgather_partitions",
      "load_from_fp32_weights",
      "elastic_checkpoint",
      "offload_param",
      "offload_optimizer",
      "zenflow",
      "sub_group_size",
      "cpu_offload",
      "cpu_offload_param",
      "cpu_offload_use_pin_memory",
      "prefetch_bucket_size",
      "stage3_prefetch_bucket_size",
      "param_persistence_threshold",
      "stage3_param_persistence_threshold",
      "model_persistence_threshold",
      "stage3_model_persistence_threshold",
      "max_live_parameters",
      "stage3_max_live_parameters",
      "max_reuse_distance",
      "stage3_max_reuse_distance",
      "gather_16bit_weights_on_model_save",
      "stage3_gather_16bit_weights_on_model_save",
      "stage3_gather_fp16_weights_on_model_save",
      "module_granularity_threshold",
      "stage3_module_granularity_threshold",
      "use_all_reduce_for_fetch_params",
      "stage3_use_all_reduce_for_fetch_params",
      "allgather_sequential",
      "stage3_allgather_sequential",
      "ignore_unused_parameters",
      "legacy_stage1",
      "round_robin_gradients",
      "zero_hpz_partition_size",
      "zero_quantized_weights",
      "zero_quantized_nontrainable_weights",
      "zero_quantized_gradients",
      "zeropp_loco_param",
      "mics_shard_size",
      "mics_hierarchical_params_gather",
      "memory_efficient_linear",
      "pipeline_loading_checkpoint",
      "override_module_apply",
      "log_trace_cache_warnings",
      "enable_sanity_checks",
      "save_muon_momentum_buffer_in_memory",
      "leaf_module",
  };
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

std::span<const std::string> bf16_keys() {
  static const std::vector<std::string> keys{"enabled", "immediate_grad_update",
                                             "check_grad_overflow", "bf16_master_weights_and_grads",
                                             "bf16_optimizer_states"};
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

}  // namespace lambcast::deepspeed
