#include "experiments/scenario/adapter_choice.h"

#include <fmt/format.h>

#include "models/shape/adapters.h"

namespace lambcast {
namespace {

constexpr std::int64_t most_rank = 1024;

// Returns a finding on a quantized model without adapters, which transformers does not train
// (trainer.py, "purely quantized models").
std::vector<Finding> find_untrained(const ModelShape& model) {
  if (model.quantized_bits == 0) return {};
  return {{Severity::warning, "quantized-not-trained",
           fmt::format("{} has weights of {:.4g} bits, which transformers trains with adapters "
                       "alone: the forecast is of all weights, in the run's precision; try: "
                       "--lora-rank 16",
                       model.name, model.quantized_bits)}};
}

// Throws Error (usage) for stage 3: DeepSpeed does not partition quantized weights; FSDP does.
void refuse_quantized_shards(const Words& words, const ModelShape& model, std::int64_t zero_stage) {
  const auto framework = words.chosen<FrameworkName>("framework");
  const bool deepspeed = framework.value_or(FrameworkName::deepspeed) == FrameworkName::deepspeed;
  if (model.quantized_bits > 0 && zero_stage == 3 && deepspeed)
    fail_input(flag("lora_rank"),
               fmt::format("ZeRO stage 3 of DeepSpeed does not shard weights of {:.4g} bits",
                           model.quantized_bits),
               "ZeRO stage 0, 1 or 2, or --framework torchtitan for FSDP");
}

}  // namespace

std::vector<Finding> choose_adapters(const Words& words, TrainingPlan& training) {
  const auto rank = words.whole("lora_rank", 1, most_rank);
  const auto targets = words.chosen<AdapterTargets>("lora_targets");
  if (!rank) {
    if (targets)
      fail_input(flag("lora_targets"), "has no effect without adapters", "with --lora-rank");
    return find_untrained(*training.model);
  }
  const Adapters adapters{*rank, targets.value_or(AdapterTargets{})};
  training.model = std::make_shared<ModelShape>(
      with_adapters(*training.model, adapters, flag(targets ? "lora_targets" : "lora_rank")));
  refuse_quantized_shards(words, *training.model, training.recipe.zero.stage);
  if (!is_onebit(training.optimizer()) && words.find("exchange") == nullptr) return {};
  const ModelShape& model = *training.model;
  return {{Severity::note, "adapters-few-bytes",
           fmt::format("of {}'s {:.1f} million parameters {:.1f} million, the adapters', have "
                       "gradients: an exchange in fewer bits is of these alone",
                       model.name, static_cast<double>(parameters(model)) * 1e-6,
                       static_cast<double>(trained_parameters(model)) * 1e-6)}};
}

}  // namespace lambcast
