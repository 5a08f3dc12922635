#include "experiments/scenario/adapter_choice.h"

#include <fmt/format.h>

#include "models/shape/adapters.h"

namespace lambcast {
namespace {

constexpr std::int64_t most_rank = 1024;

}  // namespace

std::vector<Finding> choose_adapters(const Words& words, TrainingPlan& training) {
  const auto rank = words.whole("lora_rank", 1, most_rank);
  const auto targets = words.chosen<AdapterTargets>("lora_targets");
  if (!rank) {
    if (targets)
      fail_input(flag("lora_targets"), "says where adapters are, of which there are none",
                 "with --lora-rank");
    return {};
  }
  const Adapters adapters{*rank, targets.value_or(AdapterTargets{})};
  training.model = std::make_shared<ModelShape>(
      with_adapters(*training.model, adapters, flag(targets ? "lora_targets" : "lora_rank")));
  if (!is_onebit(training.optimizer()) && words.find("exchange") == nullptr) return {};
  const ModelShape& model = *training.model;
  return {{Severity::note, "adapters-few-bytes",
           fmt::format("of {}'s {:.1f} million parameters {:.1f} million, the adapters', have "
                       "gradients: an exchange in fewer bits is of these alone",
                       model.name, static_cast<double>(parameters(model)) * 1e-6,
                       static_cast<double>(trained_parameters(model)) * 1e-6)}};
}

}  // namespace lambcast
