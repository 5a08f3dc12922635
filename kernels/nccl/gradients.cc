#include "kernels/nccl/gradients.h"

#include <algorithm>
#include <cmath>

#include "kernels/cuda/gradient.h"
#include "kernels/nccl/group.h"
#include "kernels/nccl/shared_norm.h"

namespace lambcast::cuda {

namespace {

void all_reduce(const NcclApi& nccl, const RankGradient& g, void* data, std::size_t count,
                ncclDataType_t type) {
  require(nccl, nccl.ncclAllReduce(data, data, count, type, ncclAvg, *g.comm, g.stream),
          "mean of the gradients");
}

void average_whole(const NcclApi& nccl, std::span<const RankGradient> ranks) {
  in_group(nccl, ranks, [&](const RankGradient& g) {
    if (g.half)
      all_reduce(nccl, g, g.half.bits, g.elements,
                 g.half.format == HalfFormat::bf16 ? ncclBfloat16 : ncclFloat16);
    else
      all_reduce(nccl, g, g.values, g.elements, ncclFloat32);
  });
}

void measure(const NcclApi& nccl, std::span<const RankGradient> ranks) {
  on_each(ranks, [](const RankGradient& g) {
    double *const squared = g.norm->squared.data(), *const workspace = g.norm->workspace.data();
    require(g.half ? measure_gradient(g.half, g.elements, squared, workspace, g.stream)
                   : measure_gradient(g.values, g.elements, squared, workspace, g.stream),
            "norm of a gradient");
  });
  in_group(nccl, ranks, [&](const RankGradient& g) {
    require(nccl, share_norm(nccl, g.norm->squared.data(), *g.comm, g.stream),
            "norm over the ranks");
  });
}

std::vector<Watched> watched(std::span<const RankGradient> ranks) {
  std::vector<Watched> result;
  for (const RankGradient& g : ranks) result.push_back(g);
  return result;
}

// All ranks have the same norm.
bool overflowed(const NcclApi& nccl, std::span<const RankGradient> ranks, double timeout_s) {
  await(nccl, watched(ranks), timeout_s);
  const RankGradient& g = ranks.front();
  require(cudaSetDevice(g.device), "cudaSetDevice");
  double squared = 0;
  require(cudaMemcpyAsync(&squared, g.norm->squared.data(), sizeof squared, cudaMemcpyDeviceToHost,
                          g.stream),
          "norm of the gradients");
  require(cudaStreamSynchronize(g.stream), "norm of the gradients");
  return !std::isfinite(squared);
}

void unscale(std::span<const RankGradient> ranks, const GradientOptions& options) {
  on_each(ranks, [&](const RankGradient& g) {
    const double* const squared = g.norm->squared.data();
    require(g.half ? unscale_and_clip(g.half, g.values, g.elements, squared, options.loss_scale,
                                      options.max_norm, g.stream)
                   : unscale_and_clip(g.values, g.elements, squared, options.loss_scale,
                                      options.max_norm, g.stream),
            "unscaling of a gradient");
  });
}

}  // namespace

void average(const NcclApi& nccl, std::span<const RankGradient> ranks, std::size_t first) {
  const std::size_t count = ranks.front().elements - first;
  if (count == 0) return;
  in_group(nccl, ranks, [&](const RankGradient& g) {
    all_reduce(nccl, g, g.values + first, count, ncclFloat32);
  });
}

bool reduce(const NcclApi& nccl, std::span<const RankGradient> ranks, bool averaged,
            const GradientOptions& options) {
  check_alive(watched(ranks));
  if (averaged) average_whole(nccl, ranks);
  if (options.check_overflow || options.max_norm > 0) measure(nccl, ranks);
  if (options.check_overflow && overflowed(nccl, ranks, options.timeout_s)) return false;
  const bool any_half =
      std::any_of(ranks.begin(), ranks.end(), [](const auto& g) { return bool(g.half); });
  if (any_half || options.loss_scale != 1 || options.max_norm > 0) unscale(ranks, options);
  return true;
}

}  // namespace lambcast::cuda
