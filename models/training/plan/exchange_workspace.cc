#include "models/training/plan/exchange_workspace.h"

#include <algorithm>
#include <cmath>

#include "models/training/plan/chunked_exchange.h"
#include "models/training/plan/exchange_levels.h"
#include "models/training/plan/gradient_owners.h"
#include "models/training/plan/gradient_reduction.h"

namespace lambcast {
namespace {

constexpr double fp32 = 4;

double of_factors(const TrainingPlan& training, const AveragedGradients& gradients) {
  const double rank = training.exchange.parameter;
  const FactoredGradients of = factored_of(*training.model, rank, gradients);
  const double turned = training.exchange.iterations > 0 ? fp32 * rank * of.columns : 0;
  const double sums = training.kernels == Kernels::fused ? 8 * rank * of.most_sums : 0;
  return fp32 * of.elements + fp32 * rank * of.rows + turned + sums;
}

double of_sparse(const Exchange& exchange, Kernels kernels, const AveragedGradients& gradients) {
  const double all = gradients.elements, kept = std::ceil(exchange.parameter * all);
  if (exchange.kind == ExchangeKind::randomk) return fp32 * all + 8 * kept;
  const double messages = 8 * kept * (gradients.ranks.ranks + 1);
  const double search =
      kernels == Kernels::fused ? 16 * kept + all / 64 + 0.27e6 : fp32 * all;  // magnitudes
  return fp32 * all + messages + search;
}

double of_levels(const Exchange& exchange, Kernels kernels, const AveragedGradients& gradients) {
  const double messages = 2 * coding_of(exchange).inside;
  if (kernels != Kernels::fused) return messages * gradients.elements;
  const double n = gradients.ranks.ranks;
  const double g = shard_groups(gradients.ranks, gradients.ranks.per_node).shard.ranks;
  return (fp32 + messages + fp32 / g + fp32 / n) * gradients.elements;
}

// Returns the gradients that are exchanged at once: all, or a bucket if the exchange overlaps the
// backward pass.
AveragedGradients exchanged_at_once(const TrainingPlan& training, const AveragedGradients& of) {
  const AveragedGradients gradients = exchanged_gradients(training.exchange, of);
  if (!training.exchange.is_overlapped() || of.elements == 0) return gradients;
  return gradients.part(std::min(1.0, ddp_bucket_elements(training) / of.elements));
}

}  // namespace

double exchange_workspace_bytes(const TrainingPlan& training, const AveragedGradients& of) {
  if (!exchanges_gradients(training)) return 0;
  const AveragedGradients gradients = exchanged_at_once(training, of);
  const double all = gradients.elements;
  // Number of other shares of the node, whose codes the rank also receives.
  const double others =
      training.exchange.every > 1 ? 0 : levels_of(training.exchange, of.ranks).shards - 1;
  const auto coded = [&](double bytes) {
    return (fp32 + (2 + others) * bytes + fp32 / gradients.ranks.ranks) * all;
  };
  switch (training.exchange.kind) {
    case ExchangeKind::fp16:
    case ExchangeKind::bf16:
      return 2 * all;
    case ExchangeKind::onebit:
      return (fp32 + (training.kernels == Kernels::fused ? 0.25 : 1.25) + others / 8) * all;
    case ExchangeKind::fp8:
    case ExchangeKind::fp8_e5m2:
    case ExchangeKind::fp8_owed:
    case ExchangeKind::int8:
    case ExchangeKind::int8_owed:
      return coded(1);
    case ExchangeKind::int4:
    case ExchangeKind::int4_owed:
      return coded(0.5);
    case ExchangeKind::qgz:
    case ExchangeKind::qgz_int8:
    case ExchangeKind::loco:
    case ExchangeKind::loco_int8:
    case ExchangeKind::sdp4bit:
      return of_levels(training.exchange, training.kernels, gradients);
    case ExchangeKind::powersgd:
      return of_factors(training, gradients);
    case ExchangeKind::topk:
    case ExchangeKind::randomk:
      return of_sparse(training.exchange, training.kernels, gradients);
    case ExchangeKind::chunk_topk:
    case ExchangeKind::dct_sign:
      return fp32 * all +
             (gradients.ranks.ranks + 1) * chunked_message_bytes(training.exchange, all);
    case ExchangeKind::lossless:
      return (2 + others) * training.exchange.parameter * gradients.bytes * all;
    case ExchangeKind::all_reduce:
    case ExchangeKind::local:
    case ExchangeKind::local_sgd:
    case ExchangeKind::neighbour_ring:
    case ExchangeKind::neighbour_exponential:
      return 0;
  }
  return 0;
}

}  // namespace lambcast
