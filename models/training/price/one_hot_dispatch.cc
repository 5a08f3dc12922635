#include "models/training/price/one_hot_dispatch.h"

#include <fmt/format.h>

namespace lambcast {

std::optional<Finding> find_one_hot_dispatch(const TrainingPlan& training) {
  const ModelShape& model = *training.model;
  const ExpertUse use = training.parallelism ? training.parallelism->experts
                        : training.passes    ? training.passes->experts
                                             : deepspeed_experts;
  if (model.experts == 0 || use.routing != Routing::one_hot) return std::nullopt;
  const parallel::ParallelLayout layout =
      training.parallelism ? training.parallelism->layout : parallel::ParallelLayout{};
  const double tokens = static_cast<double>(training.batch.micro * training.seq_len) / layout.cp;
  const double columns = static_cast<double>(model.ffn) / layout.expert_tp();
  const double over = 2 * tokens / ((model.gated ? 3 : 2) * columns);
  if (over <= 1) return std::nullopt;
  return Finding{
      Severity::warning, "one-hot-dispatch",
      fmt::format(
          "DeepSpeed sends {:.0f} tokens of a micro batch to their experts by products with "
          "one-hot tensors, {:.1f} times the arithmetic of the experts: --expert-routing "
          "sparse (MoE(use_tutel=True)), or a smaller --micro-batch",
          tokens, over)};
}

}  // namespace lambcast
