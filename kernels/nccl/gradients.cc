#include "kernels/nccl/gradients.h"

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
    require(measure_gradient(g.arrived(), g.elements, squared, workspace, g.stream),
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

// Returns whether any gradient overflowed. All ranks have the same norm.
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

bool rescales(const GradientOptions& options) {
  return options.loss_scale != 1 || options.max_norm > 0;
}

void set_factor(std::span<const RankGradient> ranks, const GradientOptions& options) {
  on_each(ranks, [&](const RankGradient& g) {
    require(gradient_factor(g.norm->squared.data(), options.loss_scale, options.max_norm,
                            g.norm->factor.data(), g.stream),
            "factor of a gradient");
  });
}

}  // namespace

Gradient unscaled(const RankGradient& rank, const GradientOptions& options) {
  Gradient g = rank.arrived();
  if (rescales(options)) g.factor = rank.norm->factor.data();
  return g;
}

void average_unscaled(const NcclApi& nccl, std::span<const RankGradient> ranks, std::size_t first,
                      const GradientOptions& options) {
  const std::size_t count = ranks.front().elements - first;
  if (count == 0) return;
  on_each(ranks, [&](const RankGradient& g) {
    if (g.values == nullptr) {
      throw Error(Exit::usage,
                  "gradients in 16 bits with tensors that never freeze need fp32 memory too");
    }
    if (!g.half && !rescales(options)) return;
    require(unscale(unscaled(g, options).behind(first), g.values + first, count, g.stream),
            "unscaling of a gradient");
  });
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
  if (rescales(options)) set_factor(ranks, options);
  return true;
}

}  // namespace lambcast::cuda
