#include "experiments/properties/stated_defaults.h"

#include <fmt/format.h>

#include <tuple>

#include "experiments/scenario/precision_word.h"
#include "models/training/price/measured_program.h"
#include "models/training/price/passage.h"

namespace lambcast {
namespace {

std::string truth(bool value) { return value ? "true" : "false"; }

template <typename Value>
std::string number_word(Value value) {
  return fmt::format("{}", value);
}

// Returns the default of a key that only layouts read. Without a layout it is `otherwise` if given,
// else the value of the layout that divides nothing, if there is one.
Default of_layout(Stated otherwise, std::function<Stated(const Parallelism&)> resolved_value) {
  return [=](const Scenario& scenario) {
    const auto& how = scenario.training.parallelism;
    if (!how && otherwise) return otherwise;
    const auto resolved = how ? how : undivided(scenario.training);
    return resolved ? resolved_value(*resolved) : std::nullopt;
  };
}

Default fixed(const char* value) {
  return [value](const Scenario&) { return Stated(value); };
}

Default of_experts(std::function<Stated(const Parallelism&)> resolved_value) {
  return [=](const Scenario& scenario) -> Stated {
    const auto& [model, how] = std::tie(scenario.training.model, scenario.training.parallelism);
    return model->experts > 0 && how ? resolved_value(*how) : std::nullopt;
  };
}

Default of_optimizer(bool (*has)(OptimizerType), std::function<Stated(const Scenario&)> value) {
  return [=](const Scenario& scenario) {
    return has(scenario.training.optimizer()) ? value(scenario) : std::nullopt;
  };
}

bool is_zero_one(OptimizerType type) { return type == OptimizerType::zero_one_adam; }
bool is_galore(OptimizerType type) { return type == OptimizerType::galore_adamw8bit; }

void add_run(Defaults& of) {
  const auto plan = [](auto member) {
    return [=](const Scenario& scenario) -> Stated {
      return number_word(std::invoke(member, scenario.training));
    };
  };
  of["device"] = [](const Scenario& s) -> Stated { return s.training.cluster->device; };
  of["gpus"] = plan(&TrainingPlan::gpus);
  of["nodes"] = [](const Scenario& s) -> Stated {
    return s.training.gpus % s.training.gpus_per_node == 0 ? Stated(number_word(s.training.nodes()))
                                                           : std::nullopt;
  };
  of["dp"] = plan(&TrainingPlan::data_parallel);
  of["gpus_per_node"] = plan(&TrainingPlan::gpus_per_node);
  of["micro_batch"] = [](const Scenario& s) -> Stated {
    return number_word(s.training.batch.micro);
  };
  of["grad_accum"] = [](const Scenario& s) -> Stated { return number_word(s.training.batch.gas); };
  of["global_batch"] = [](const Scenario& s) -> Stated {
    return number_word(s.training.batch.train);
  };
  of["seq_len"] = [](const Scenario& s) -> Stated {
    return s.training.seq_len > 0 ? Stated(number_word(s.training.seq_len)) : std::nullopt;
  };
  of["steps"] = plan(&TrainingPlan::steps);
  of["samples"] = [](const Scenario& s) -> Stated {
    return number_word(s.training.steps * s.training.batch.train);
  };
  of["tokens"] = [](const Scenario& s) -> Stated {
    return s.training.seq_len > 0
               ? Stated(number_word(s.training.steps * s.training.batch.train * s.training.seq_len))
               : std::nullopt;
  };
  of["freeze_step"] = of_optimizer(is_onebit, [](const Scenario& s) -> Stated {
    return number_word(*freeze_step_of(s.training.recipe));
  });
  of["steps_done"] = fixed("0");
  of["network"] = [](const Scenario& s) -> Stated {
    return std::string(name_of(s.training.network));
  };
  of["symmetry"] = fixed("auto");
}

void add_optimizer(Defaults& of) {
  of["optimizer"] = [](const Scenario& s) -> Stated {
    return std::string(name_of(s.training.optimizer()));
  };
  of["backend"] = [](const Scenario& s) -> Stated {
    return s.config.optimizer->comm_backend_name.value;
  };
  of["cuda_aware"] = [](const Scenario& s) -> Stated {
    return truth(s.config.optimizer->cuda_aware.value);
  };
  of["kernels"] = [](const Scenario& s) -> Stated {
    const std::string word(name_of(s.training.kernels));
    return word == "deepspeed" || word == "fused" ? Stated(word) : std::nullopt;
  };
  of["exchange"] = fixed("all_reduce");
  of["var_update_scaler"] = of_optimizer(is_zero_one, [](const Scenario& s) -> Stated {
    return number_word(s.training.recipe.onebit.var_update_scaler);
  });
  of["local_step_scaler"] = of_optimizer(is_zero_one, [](const Scenario& s) -> Stated {
    return number_word(s.training.recipe.onebit.local_step_scaler);
  });
  of["local_step_clipper"] = of_optimizer(is_zero_one, [](const Scenario& s) -> Stated {
    return number_word(s.training.recipe.onebit.local_step_clipper);
  });
  of["galore_rank"] = of_optimizer(is_galore, [](const Scenario& s) -> Stated {
    return number_word(s.training.recipe.projection.rank);
  });
  of["galore_update_gap"] = of_optimizer(is_galore, [](const Scenario& s) -> Stated {
    return number_word(s.training.recipe.projection.update_proj_gap);
  });
  of["galore_min_8bit_size"] = of_optimizer(is_galore, [](const Scenario& s) -> Stated {
    return number_word(s.training.recipe.projection.min_8bit_size);
  });
  of["precondition_frequency"] = [](const Scenario& s) -> Stated {
    const auto& work = model_of(s.training.optimizer()).matrix_work;
    return work && work->every > 0 ? Stated(number_word(work->every)) : std::nullopt;
  };
  of["precision"] = [](const Scenario& s) -> Stated {
    const auto& how = s.training.parallelism;
    const DataType weights = s.training.recipe.precision.weights;
    return PrecisionWord{weights, how                         ? how->format
                                  : weights == DataType::fp32 ? MatrixFormat::single
                                                              : MatrixFormat::half}
        .word();
  };
  of["gradient_clipping"] = [](const Scenario& s) -> Stated {
    return number_word(s.training.recipe.gradient_clipping);
  };
  of["weight_decay"] = [](const Scenario& s) -> Stated {
    return number_word(s.training.recipe.weight_decay);
  };
  of["zero_stage"] = [](const Scenario& s) -> Stated {
    return number_word(s.training.recipe.zero.stage);
  };
  of["overlap"] = [](const Scenario& s) -> Stated {
    return std::string(name_of(overlap_of(s.training)));
  };
  of["deepspeed_version"] = [](const Scenario& s) -> Stated {
    return text_of(s.config.release.value);
  };
}

void add_layout(Defaults& of) {
  for (const char* key : {"tp", "cp", "pp", "ep", "interleave"}) of[key] = fixed("1");
  of["tp"] = of_layout("1", [](const auto& how) { return number_word(how.layout.tp); });
  of["cp"] = of_layout("1", [](const auto& how) { return number_word(how.layout.cp); });
  of["pp"] = of_layout("1", [](const auto& how) { return number_word(how.layout.pp); });
  of["ep"] = of_layout("1", [](const auto& how) { return number_word(how.layout.ep); });
  of["interleave"] =
      of_layout("1", [](const auto& how) { return number_word(how.layout.virtual_stages); });
  of["order"] =
      of_layout(std::nullopt, [](const auto& how) { return parallel::to_text(how.layout.order); });
  of["sequence_parallel"] =
      of_layout("false", [](const auto& how) { return truth(how.sequence_parallel); });
  of["pipeline_schedule"] = of_layout(
      "1f1b", [](const auto& how) { return std::string(parallel::name_of(how.schedule)); });
  of["recompute"] = of_layout(
      "none", [](const auto& how) { return std::string(parallel::name_of(how.recompute)); });
  of["framework"] = [](const Scenario& s) -> Stated {
    return std::string(framework_of_run(s.training));
  };
  of["attention"] = [](const Scenario& s) -> Stated {
    if (const auto& how = s.training.parallelism) return std::string(name_of(how->attention));
    const auto options = s.training.passes ? s.training.passes : usual_pass_options(s.training);
    return options ? Stated(std::string(name_of(options->attention))) : std::nullopt;
  };
  of["fp8_attention"] = fixed("false");
  of["fp8_activation_input"] = fixed("false");
  of["cuda_graphs"] = of_layout(std::nullopt, [](const auto& how) { return truth(how.captured); });
  of["state_types"] = fixed("fp32:fp32:fp32");
  of["fp8_weight_gather"] =
      of_layout(std::nullopt, [](const auto& how) { return truth(how.fp8_gather); });
  of["context_exchange"] = of_layout(std::nullopt, [](const auto& how) {
    return context_exchange_names()[static_cast<std::size_t>(how.framework.context_exchange)];
  });
  of["tensor_overlap"] = of_layout(std::nullopt, [](const auto& how) {
    return tensor_overlap_names()[static_cast<std::size_t>(how.framework.tensor_overlap)];
  });
  of["send_overlap"] =
      of_layout(std::nullopt, [](const auto& how) { return truth(how.framework.overlaps_sends); });
  of["fp32_gradients"] =
      of_layout(std::nullopt, [](const auto& how) { return truth(how.framework.fp32_gradients); });
  of["fusion"] = of_layout(
      std::nullopt, [](const auto& how) { return std::string(name_of(how.framework.fusion)); });
  of["eager_loss"] = fixed("false");
  of["partition_activations"] = fixed("false");
  of["split"] = of_layout(std::nullopt, [](const auto& how) {
    return std::string(parallel::name_of(how.framework.split));
  });
}

void add_sharing(Defaults& of) {
  const auto sharded = [](std::function<Stated(const Parallelism&)> value) {
    return of_layout(std::nullopt, [=](const auto& how) {
      return how.sharding == parallel::Sharding::none ? std::nullopt : value(how);
    });
  };
  of["shard_ranks"] = sharded([](const auto& how) { return number_word(how.shard_ranks); });
  of["shard_groups"] =
      sharded([](const auto& how) { return number_word(how.replicas() / how.shard_ranks); });
  of["gradient_bucket"] = of_layout(std::nullopt, [](const auto& how) -> Stated {
    const double elements = how.framework.least_bucket;
    const double of_ranks = how.framework.bucket_per_rank * how.replicas();
    return elements < 1 ? std::nullopt
                        : Stated(fmt::format("{:.0f}", std::max(elements, of_ranks)));
  });
  of["shard_handling_us"] = of_layout(
      std::nullopt, [](const auto& how) { return number_word(how.framework.shard_handling_us); });
  of["full_all_reduce"] = fixed("false");
  of["offload_optimizer"] = fixed("none");
  of["offload_activations"] = fixed("none");
  of["secondary_ranks"] = fixed("1");
  of["quantized_weights"] = fixed("false");
  of["quantized_gradients"] = fixed("false");
}

void add_expert_keys(Defaults& of) {
  of["etp"] = of_experts([](const auto& how) { return number_word(how.layout.expert_tp()); });
  of["expert_dispatch"] = of_experts([](const auto& how) {
    return dispatch_names()[static_cast<std::size_t>(how.experts.dispatch)];
  });
  of["capacity_factor"] =
      of_experts([](const auto& how) { return number_word(how.experts.capacity_factor); });
  of["imbalance"] = of_experts([](const auto& how) -> Stated {
    return how.experts.capacity_factor > 0 || how.layout.ep == 1
               ? std::nullopt
               : Stated(number_word(how.experts.imbalance.value));
  });
  of["expert_kernels"] = of_experts([](const auto& how) {
    return expert_kernels_names()[static_cast<std::size_t>(how.experts.kernels)];
  });
  of["expert_routing"] = of_experts([](const auto& how) {
    return routing_names()[static_cast<std::size_t>(how.experts.routing)];
  });
  of["expert_overlap"] = of_experts([](const auto& how) { return truth(how.experts.overlapped); });
}

}  // namespace

const Defaults& what_if_defaults() {
  static const Defaults all = [] {
    Defaults of;
    add_run(of);
    add_optimizer(of);
    add_layout(of);
    add_sharing(of);
    add_expert_keys(of);
    return of;
  }();
  return all;
}

const std::set<std::string_view>& keys_without_default() {
  static const std::set<std::string_view> keys{
      "config",           "megatron_args", "set_var",  "torchtitan", "model",     "cluster",
      "topology",         "hosts",         "versions", "plugin",     "lora_rank", "lora_targets",
      "rampup_batch_size"};
  return keys;
}

}  // namespace lambcast
