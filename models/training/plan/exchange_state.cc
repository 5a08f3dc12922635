#include "models/training/plan/exchange_state.h"

#include <algorithm>
#include <cmath>

#include "models/training/plan/gradient_owners.h"
#include "models/training/plan/optimizer_state.h"

namespace lambcast {
namespace {

bool is_factored(const StateTensor& of, double rank) {
  return of.rows > 0 && rank * (of.rows + of.columns) < of.elements / 2;
}

}  // namespace

FactoredGradients factored_of(const ModelShape& model, double rank,
                              const AveragedGradients& gradients) {
  constexpr double part_rows = 256;
  FactoredGradients all;
  for (const Tensor& tensor : model.tensors) {
    const double share = gradients.share_of(tensor);
    const int ranks = tensor.expert ? gradients.expert_tensor_parallel : gradients.tensor_parallel;
    const StateTensor of = slice_of(model, tensor, ranks);
    if (tensor.frozen || share == 0 || !is_factored(of, rank)) continue;
    all.rows += share * of.rows;
    all.columns += share * of.columns;
    all.matrices += share;
    all.elements += share * of.elements;
    all.most_sums = std::max(all.most_sums, std::ceil(of.rows / part_rows) * of.columns);
  }
  all.elements = std::min(all.elements, gradients.elements);
  return all;
}

double factored_elements(const ModelShape& model, double rank) {
  double sum = 0;
  for (const Tensor& tensor : model.tensors)
    if (const StateTensor of = state_tensor(model, tensor); !tensor.frozen && is_factored(of, rank))
      sum += of.elements;
  return sum;
}

double exchange_state_bytes(const TrainingPlan& training, const AveragedGradients& averaged) {
  const Exchange& exchange = training.exchange;
  const AveragedGradients gradients = exchanged_gradients(exchange, averaged);
  const double all = gradients.elements, n = gradients.ranks.ranks;
  if (exchange.kind == Exchange::Kind::powersgd) {
    const FactoredGradients of = factored_of(*training.model, exchange.parameter, gradients);
    const double start = exchange.iterations > 0 ? 0 : 4 * exchange.parameter * of.columns;
    return kept_bytes(exchange) * of.elements + start;
  }
  if (is_loco(exchange)) {
    const double g = shard_groups(gradients.ranks, gradients.ranks.per_node).shard.ranks;
    return (training.kernels == Kernels::fused ? kept_bytes(exchange) : 1) * (1 + 1 / g) * all;
  }
  if (exchange.every == 1 && site_ranks(exchange) > 1)
    return kept_bytes(exchange) * all / site_ranks(exchange);
  const bool sums_owe = exchange.kind == Exchange::Kind::onebit || owes_on_one_level(exchange);
  const double of_server = sums_owe && !gradients.shared ? 4 / n : 0;
  const double outer = exchange.every > 1 ? 8 : 0;  // weights and momentum
  return (outer + kept_bytes(exchange) + of_server +
          4 * neighbours(exchange, gradients.ranks.ranks)) *
         all;
}

}  // namespace lambcast
