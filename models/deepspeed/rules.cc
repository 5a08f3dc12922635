#include "models/deepspeed/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "models/deepspeed/recipe.h"
#include "models/recipe/wrapper.h"
#include "sim/base/check.h"

namespace lambcast::deepspeed {
namespace {

// Collects findings about keys of one configuration.
struct Findings {
  const DeepSpeedConfig& config;
  std::vector<Finding> list;

  void add(Severity severity, std::string code, std::string_view key, int line,
           std::string_view sentence) {
    list.push_back(
        {severity, std::move(code), describe({config.file, line, std::string(key)}, sentence)});
  }
  void no_effect(std::string_view key, int line, std::string_view why) {
    add(Severity::note, "no-effect", key, line, fmt::format("has no effect: {}", why));
  }
};

void check_precision(Findings& out) {
  const Fp16Config& fp16 = out.config.fp16;
  if (fp16.enabled.value && out.config.bf16_enabled.value) {
    out.add(Severity::error, "fp16-with-bf16", "bf16.enabled", out.config.bf16_enabled.line,
            "bfloat16 and fp16 modes cannot be simultaneously enabled");
  }
  if (fp16.enabled.value && fp16.fp16_master_weights_and_grads.value &&
      out.config.zero.stage.value != 2) {
    out.add(Severity::error, "fp16-master-weights", "fp16.fp16_master_weights_and_grads",
            fp16.fp16_master_weights_and_grads.line,
            "Fp16_master_weights_and_grads is only supported with ZeRO Stage 2 for now.");
  }
}

std::string_view torch_name_of(DataType type) {
  return type == DataType::fp16   ? "torch.float16"
         : type == DataType::bf16 ? "torch.bfloat16"
                                  : "torch.float32";
}

void check_accumulation(Findings& out) {
  const DataType weights = recipe_of(out.config).precision.weights;
  const DataType sums = accumulation_data_type(recipe_of(out.config));
  if (out.config.zero.stage.value > 0) return;
  const bool is_bf16 = weights == DataType::bf16;
  const Version& release = out.config.release.value;
  const bool in_bf16 = release >= release::wraps_bf16_as_fp16;
  const bool in_fp32 = release < release::refuses_fp32_sums;
  if (is_bf16 && ((sums == DataType::bf16 && in_bf16) || (sums == DataType::fp32 && in_fp32)))
    return;
  if (!is_bf16 && sums == weights) return;
  const auto refuse = [&](std::string_view sentence) {
    out.add(Severity::error, "grad-accum-dtype", "data_types.grad_accum_dtype",
            out.config.grad_accum_dtype.line, sentence);
  };
  if (is_bf16 && sums == DataType::bf16)
    refuse(
        "Bfloat16 wrapper must use a gradient accumulation type of fp32, enable ZeRO to use "
        "Bfloat16 gradient accumulation");
  else if (in_bf16)
    refuse(fmt::format("unsupported mix of model_dtype={} and grad_accum_dtype={}{}",
                       torch_name_of(weights), torch_name_of(sums),
                       is_bf16 && sums == DataType::fp32
                           ? ": DeepSpeed from 0.18.5 on sums bf16 gradients in fp32 with ZeRO "
                             "stage 1 alone"
                           : ""));
  else
    refuse("unsupported mix of model dtype and gradient accumulation type");
}

void check_loss_scale(Findings& out, OptimizerType type) {
  const Fp16Config& fp16 = out.config.fp16;
  // Later releases read only fp16.loss_scale, for any precision.
  const bool whatever = out.config.release.value >= release::takes_lamb_in_bf16;
  const bool is_static = (fp16.enabled.value || whatever) && fp16.loss_scale.value != 0;
  const bool is_bf16 = !fp16.enabled.value && out.config.bf16_enabled.value && !whatever;
  if (!is_lamb(type) || !(is_static || is_bf16)) return;
  const std::string_view name = type == OptimizerType::lamb ? "lamb" : "onebitlamb";
  out.add(Severity::error, "static-loss-scale", is_static ? "fp16.loss_scale" : "bf16.enabled",
          is_static ? fp16.loss_scale.line : out.config.bf16_enabled.line,
          fmt::format("DeepSpeed {} optimizer requires dynamic loss scaling", name));
}

void check_zero(Findings& out) {
  const ZeroConfig& zero = out.config.zero;
  if (zero.offload_line > 0) {
    out.add(
        Severity::warning, "not-modelled", "zero_optimization", zero.offload_line,
        "lambcast has no model of weights on the host, or of states on disks; the forecast is of a "
        "run without");
  }
  const bool is_zero = wrapper_of(recipe_of(out.config)) == Wrapper::zero;
  const std::string_view why =
      zero.stage.value == 0 ? "it belongs to ZeRO, which is off at stage 0"
                            : "with fp32 gradient accumulation BF16_Optimizer takes ZeRO's place";
  const auto only_of_zero = [&](std::string_view key, const auto& setting) {
    if (setting.given && !is_zero)
      out.no_effect(fmt::format("zero_optimization.{}", key), setting.line, why);
  };
  only_of_zero("overlap_comm", zero.overlap_comm);
  only_of_zero("reduce_bucket_size", zero.reduce_bucket_size);
  only_of_zero("reduce_scatter", zero.reduce_scatter);
  only_of_zero("contiguous_gradients", zero.contiguous_gradients);
  only_of_zero("use_multi_rank_bucket_allreduce", zero.use_multi_rank_bucket_allreduce);
  if (zero.round_robin_gradients.value)
    out.no_effect("zero_optimization.round_robin_gradients", zero.round_robin_gradients.line,
                  "it spreads copies of gradients to the host over the ranks, and where there are "
                  "any (offload_optimizer) they count as spread");
  if (zero.allgather_bucket_size.given)
    out.no_effect("zero_optimization.allgather_bucket_size", zero.allgather_bucket_size.line,
                  zero.stage.value == 0 ? why
                                        : "where PyTorch has all_gather_into_tensor, DeepSpeed "
                                          "gathers every parameter group at once");
  if (!is_zero) return;
  if (zero.stage.value == 3 && zero.overlap_comm.value == false)
    out.no_effect(
        "zero_optimization.overlap_comm", zero.overlap_comm.line,
        "of what stage 3 gathers and reduces nothing is taken to hide beside computation, "
        "whatever it says (128 to 1,024 A100s show none of it)");
  const auto unmodelled = [&](std::string_view key, const Setting<bool>& setting,
                              std::string_view instead) {
    if (!setting.value)
      out.add(Severity::note, "not-modelled", fmt::format("zero_optimization.{}", key),
              setting.line,
              fmt::format("false is not modelled: the forecast is of a run {}", instead));
  };
  unmodelled("contiguous_gradients", zero.contiguous_gradients,
             "that copies gradients into buckets");
  if (zero.reduce_scatter.value)
    unmodelled("use_multi_rank_bucket_allreduce", zero.use_multi_rank_bucket_allreduce,
               "that all_reduces whole buckets, not one that reduces to every rank in turn");
}

void check_predivide(Findings& out) {
  const Setting<double>& factor = out.config.gradient_predivide_factor;
  if (factor.given && factor.value != 1 && out.config.prescale_gradients.value) {
    out.no_effect("gradient_predivide_factor", factor.line,
                  "with prescale_gradients the gradients are divided by the world size alone");
  }
}

void check_freeze_given(Findings& out, const OptimizerConfig& optimizer) {
  const bool zero_one = optimizer.type == OptimizerType::zero_one_adam;
  if (zero_one ? optimizer.var_freeze_step.given : optimizer.freeze_step.given) return;
  out.add(Severity::warning, zero_one ? "var-freeze-step-missing" : "freeze-step-missing",
          zero_one ? "optimizer.params.var_freeze_step" : "optimizer.params.freeze_step",
          optimizer.line,
          zero_one ? "not given: the variance keeps being updated until DeepSpeed's default, step "
                     "100000, and no step is silent before it"
                   : "not given: nothing is compressed before DeepSpeed's default, step 100000");
}

void check_onebit(Findings& out, const OptimizerConfig& optimizer) {
  const OptimizerType type = optimizer.type;
  if (!is_onebit(type)) return;
  const std::string_view name = model_of(type).label;
  if (out.config.zero.stage.value > 0) {
    const std::string_view subject = type == OptimizerType::onebit_adam   ? "1bit-Adam"
                                     : type == OptimizerType::onebit_lamb ? "1bit-Lamb"
                                                                          : "0/1 Adam";
    const int line = out.config.zero.stage.line;  // 0: set by a flag
    out.add(Severity::error, "onebit-with-zero",
            line > 0 ? "zero_optimization.stage" : "--zero-stage", line,
            fmt::format("{} is not compatible with ZeRO{}", subject,
                        line > 0 ? "" : "; try: stage 0, or a plain optimizer"));
  }
  if (wrapper_of(recipe_of(out.config)) == Wrapper::bf16 && !is_lamb(type)) {
    out.add(Severity::warning, "onebit-with-bf16", "bf16.enabled", out.config.bf16_enabled.line,
            fmt::format("under bf16 DeepSpeed partitions the optimizer state, so {} averages "
                        "different parameters of different ranks, and every step gathers the "
                        "weights uncompressed",
                        name));
  }
  if (!out.config.fp16.enabled.value) {
    out.add(Severity::warning, "onebit-without-fp16", "optimizer.type", optimizer.line,
            fmt::format("Currently the convergence of {} is only verified under FP16", name));
  }
  if (optimizer.cuda_aware.value && optimizer.comm_backend_name.value != "mpi")
    out.no_effect("optimizer.params.cuda_aware", optimizer.cuda_aware.line,
                  "only the mpi backend uses it");
  if (optimizer.bias_correction.given && optimizer.bias_correction.value)
    out.no_effect("optimizer.params.bias_correction", optimizer.bias_correction.line,
                  fmt::format("{} has no bias correction", name));
  check_freeze_given(out, optimizer);
}

// ZeRO accepts the Adam optimizers (runtime/zero/utils.py, ZERO_SUPPORTED_OPTIMIZERS), needs
// zero_allow_untested_optimizer for others, and refuses 1-bit ones.
void check_tested_with_zero(Findings& out, const OptimizerConfig& optimizer) {
  const OptimizerModel& model = model_of(optimizer.type);
  const bool tested = model.of_deepspeed && !model.is_lamb;
  if (tested || model.onebit || out.config.zero.stage.value == 0 ||
      out.config.zero_allow_untested_optimizer.value)
    return;
  constexpr std::string_view refusal =
      "You are using an untested ZeRO Optimizer. Please add "
      "<\"zero_allow_untested_optimizer\": true> in the configuration file to use it.";
  out.add(Severity::error, "untested-zero-optimizer", "zero_optimization.stage",
          out.config.zero.stage.line,
          model.of_deepspeed ? std::string(refusal)
                             : fmt::format("{} {} is not in DeepSpeed: --framework names one that "
                                           "brings it, such as colossalai",
                                           refusal, model.name));
}

void check_lamb(Findings& out, const OptimizerConfig& optimizer) {
  if (!is_lamb(optimizer.type)) return;
  if (optimizer.min_coeff.value > optimizer.max_coeff.value) {
    out.add(Severity::warning, "coeff-bounds", "optimizer.params.min_coeff",
            optimizer.min_coeff.line, "above max_coeff: the LAMB coefficient has no room");
  }
  if (optimizer.type != OptimizerType::onebit_lamb) return;
  if (optimizer.factor_min.value > optimizer.factor_max.value) {
    out.add(Severity::warning, "factor-bounds", "optimizer.params.factor_min",
            optimizer.factor_min.line, "above factor_max: the scaling factor has no room");
  }
  if (optimizer.freeze_step.value <= 1) {
    out.add(Severity::warning, "freeze-step-tiny", "optimizer.params.freeze_step",
            optimizer.freeze_step.line,
            "below 2 the fresh variance starts at zero, and the scaling factor at its bounds");
  }
}

void check_curriculum(Findings& out) {
  if (!out.config.curriculum) return;
  const Curriculum& c = *out.config.curriculum;
  constexpr std::string_view key = "curriculum_learning";
  if (c.schedule == CurriculumSchedule::fixed_discrete) return;
  if (seq_len_at(c, 1) == 0) {
    out.add(Severity::error, "curriculum-zero-length", key, 0,
            fmt::format("starts with sequences of 0 tokens: min_difficulty {} is rounded down to a "
                        "multiple of difficulty_step {}",
                        c.min_difficulty, c.difficulty_step));
  } else if (c.min_difficulty % c.difficulty_step != 0) {
    out.add(
        Severity::note, "curriculum-below-min", key, 0,
        fmt::format("min_difficulty {} is not a multiple of difficulty_step {}: sequences start "
                    "shorter than it",
                    c.min_difficulty, c.difficulty_step));
  }
  if (c.difficulty_step % 8 != 0) {
    out.add(Severity::note, "curriculum-not-multiple-of-8", key, 0,
            fmt::format("difficulty_step {} is not a multiple of 8, as Tensor Cores need",
                        c.difficulty_step));
  }
  if (c.max_difficulty % c.difficulty_step != 0) {
    out.add(Severity::note, "curriculum-late-max", key, 0,
            fmt::format("max_difficulty {} is not a multiple of difficulty_step {}: it is reached "
                        "only after total_curriculum_step",
                        c.max_difficulty, c.difficulty_step));
  }
}

void check_elasticity(Findings& out) {
  if (!out.config.elasticity || !out.config.elasticity->other_batch) return;
  const Where& other = *out.config.elasticity->other_batch;
  if (out.config.elasticity->ignore_other_batch) {
    out.no_effect(other.key, other.line, "elasticity takes control of the batch");
    return;
  }
  out.add(Severity::error, "batch-beside-elasticity", other.key, other.line,
          "One or more batch related parameters were found in your ds_config (train_batch_size, "
          "train_micro_batch_size_per_gpu, and/or gradient_accumulation_steps). These parameters "
          "*will not be used* since elastic training is enabled, which takes control of these "
          "parameters. If you want to suppress this error (the parameters will be silently "
          "ignored) please set ignore_non_elastic_batch_info':true in your elasticity config.");
}

void check_freeze(Findings& out, const OptimizerConfig& optimizer, std::int64_t total_steps) {
  constexpr std::string_view key = "optimizer.params.freeze_step";
  const Setting<Whole>& freeze = optimizer.freeze_step;
  const std::int64_t warmup = warmup_steps(recipe_of(out.config));
  if (warmup >= total_steps) {
    out.add(Severity::warning, "never-compressed", key, freeze.line,
            fmt::format("{} warm-up steps in a run of {}: compression never starts", warmup,
                        total_steps));
  } else if (warmup < total_steps / 10) {
    out.add(Severity::warning, "freeze-early", key, freeze.line,
            fmt::format("{} warm-up steps are less than a tenth of {}; the published recipes use "
                        "13 % (1-bit LAMB) and 15 to 25 % (1-bit Adam)",
                        warmup, total_steps));
  }
  const double beta = optimizer.coeff_beta.value;
  if (optimizer.type == OptimizerType::onebit_lamb &&
      (1 - beta) * static_cast<double>(warmup) < 1 - 1e-9) {
    out.add(Severity::warning, "coeff-beta-slow", "optimizer.params.coeff_beta",
            optimizer.coeff_beta.line,
            fmt::format("an average over 1 / (1 - {}) steps does not settle in {} warm-up steps: "
                        "it starts at zero, and the frozen LAMB coefficients stay too small",
                        beta, warmup));
  }
}

// The interval between exchanges stays one step until local_step_scaler steps after the freeze.
void check_silent_steps(Findings& out, const OptimizerConfig& optimizer, std::int64_t total) {
  const Setting<Whole>&freeze = optimizer.var_freeze_step, &lasts = optimizer.local_step_scaler;
  if (freeze.value >= total) {
    out.add(Severity::warning, "never-frozen", "optimizer.params.var_freeze_step", freeze.line,
            fmt::format("step {} in a run of {}: the variance is never frozen, and no step skips "
                        "communication",
                        freeze.value, total));
  } else if (lasts.value >= total - std::max<Whole>(1, freeze.value)) {
    out.add(Severity::note, "no-silent-step", "optimizer.params.local_step_scaler", lasts.line,
            fmt::format("{}: the first step without communication would come so many steps after "
                        "the freeze at {}, in a run of {}: every step communicates",
                        lasts.value, freeze.value, total));
  }
}

}  // namespace

std::vector<Finding> check_config(const DeepSpeedConfig& config) {
  Findings out{config, config.findings};
  check_precision(out);
  check_accumulation(out);
  check_zero(out);
  check_predivide(out);
  if (config.optimizer) {
    check_loss_scale(out, config.optimizer->type);
    check_onebit(out, *config.optimizer);
    check_tested_with_zero(out, *config.optimizer);
    check_lamb(out, *config.optimizer);
  } else {
    out.add(Severity::note, "no-optimizer", "optimizer", 0,
            "not given: DeepSpeed takes the one the training script brings");
  }
  check_curriculum(out);
  check_elasticity(out);
  return std::move(out.list);
}

std::vector<Finding> check_run(const DeepSpeedConfig& config, std::int64_t total_steps) {
  LAMBCAST_CHECK(total_steps > 0, "a run of {} steps", total_steps);
  Findings out{config, {}};
  if (!config.optimizer || !is_onebit(config.optimizer->type)) return {};
  if (config.optimizer->type != OptimizerType::zero_one_adam) {
    check_freeze(out, *config.optimizer, total_steps);
  } else {
    check_silent_steps(out, *config.optimizer, total_steps);
  }
  return std::move(out.list);
}

}  // namespace lambcast::deepspeed
