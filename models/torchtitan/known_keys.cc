#include "models/torchtitan/known_keys.h"

namespace lambcast::torchtitan {
namespace {

constexpr std::string_view of_files_and_values =
    " tokenizer_path hf_assets_path tokenizer_name dataset dataset_path seed warmup_steps max_norm "
    "gc_freq gc_debug print_after_conversion lr eps beta1 beta2 weight_decay early_stop "
    "memory_budget ";

constexpr NamedKey not_applied[] = {
    {"model", "norm_type", "rmsnorm", "norms are assumed to be those of the preset"},
    {"optimizer", "fused", "true", "the update is assumed to be fused"},
    {"training", "dtype", "float32", "weights are assumed to be kept in fp32"},
    {"training", "deterministic", "false", "kernels are assumed to be the fastest"},
    {"training", "data_parallel_degree", "-1", "an older release's key: not applied"},
    {"training", "tensor_parallel_degree", "1", "an older release's key: not applied"},
    {"training", "pipeline_parallel_degree", "1", "an older release's key: not applied"},
    {"training", "sequence_parallel_degree", "1", "an older release's key: not applied"},
    {"training", "data_parallel_replicate_degree", "1", "an older release's key: not applied"},
    {"training", "data_parallel_shard_degree", "-1", "an older release's key: not applied"},
    {"training", "context_parallel_degree", "1", "an older release's key: not applied"},
    {"training", "fp8_linear", "false", "an older release's key: not applied"},
    {"parallelism", "disable_loss_parallel", "false",
     "the loss is assumed to be divided over tensor parallelism"},
    {"parallelism", "pipeline_parallel_layers_per_stage", "false",
     "layers are assumed to be spread evenly over the stages"},
    {"parallelism", "pipeline_parallel_first_stage_less_layers", "false",
     "layers are assumed to be spread evenly over the stages"},
    {"parallelism", "pipeline_parallel_last_stage_less_layers", "false",
     "layers are assumed to be spread evenly over the stages"},
    {"parallelism", "pipeline_parallel_schedule_csv", "false",
     "the schedule's name alone is applied"},
    {"parallelism", "context_parallel_rotate_method", "allgather",
     "keys and values are assumed to be gathered or passed as by default"},
    {"parallelism", "enable_compiled_autograd", "false",
     "the backward pass is assumed to be as without"},
    {"activation_checkpoint", "per_op_sac_force_recompute_mm_shapes_by_fqns", "false",
     "every second product is assumed to be repeated"},
    {"optimizer", "implementation", "fused", "the update is assumed to be fused"},
    {"optimizer", "early_step_in_backward", "false",
     "the update is taken to follow the backward pass"}};

}  // namespace

const std::map<std::string, Names>& known_keys() {
  static const std::map<std::string, Names> sections{
      {"model",
       {"name", "flavor", "converters", "tokenizer_path", "hf_assets_path", "norm_type",
        "print_after_conversion", "tokenizer_name"}},
      {"training",
       {"local_batch_size",
        "batch_size",
        "global_batch_size",
        "seq_len",
        "steps",
        "compile",
        "mixed_precision_param",
        "mixed_precision_reduce",
        "dataset",
        "dataset_path",
        "max_norm",
        "warmup_steps",
        "dtype",
        "enable_cpu_offload",
        "gc_freq",
        "gc_debug",
        "seed",
        "deterministic",
        "data_parallel_degree",
        "tensor_parallel_degree",
        "pipeline_parallel_degree",
        "sequence_parallel_degree",
        "data_parallel_replicate_degree",
        "data_parallel_shard_degree",
        "context_parallel_degree",
        "fp8_linear"}},
      {"parallelism",
       {"tensor_parallel_degree",
        "enable_async_tensor_parallel",
        "disable_loss_parallel",
        "pipeline_parallel_degree",
        "pipeline_parallel_schedule",
        "pipeline_parallel_microbatch_size",
        "pipeline_parallel_split_points",
        "pipeline_parallel_layers_per_stage",
        "pipeline_parallel_first_stage_less_layers",
        "pipeline_parallel_last_stage_less_layers",
        "module_fqns_per_model_part",
        "context_parallel_degree",
        "context_parallel_rotate_method",
        "expert_parallel_degree",
        "expert_tensor_parallel_degree",
        "data_parallel_shard_degree",
        "data_parallel_replicate_degree",
        "fsdp_reshard_after_forward",
        "enable_compiled_autograd",
        "pipeline_parallel_schedule_csv"}},
      {"activation_checkpoint",
       {"mode", "selective_ac_option", "early_stop", "memory_budget",
        "per_op_sac_force_recompute_mm_shapes_by_fqns"}},
      {"compile", {"enable", "components", "backend"}},
      {"optimizer",
       {"name", "lr", "eps", "beta1", "beta2", "weight_decay", "implementation", "fused",
        "early_step_in_backward"}}};
  return sections;
}

const Names& silent_sections() {
  static const Names names{
      "job",        "profiling",       "metrics",      "lr_scheduler",     "checkpoint",
      "comm",       "float8",          "mx",           "quantize",         "debug",
      "validation", "fault_tolerance", "experimental", "memory_estimation"};
  return names;
}

std::string_view files_and_values() { return of_files_and_values; }

std::span<const NamedKey> named_keys() { return not_applied; }

}  // namespace lambcast::torchtitan
