#include "kernels/cuda/factored.h"

#include <algorithm>

#include "kernels/cuda/factored.cuh"
#include "kernels/cuda/tensor_pieces.cuh"

namespace lambcast::cuda {
namespace {

__device__ Quad product(const Quad& a, const Quad& b) {
  Quad x;
  for (int i = 0; i < 4; ++i) x.at[i] = a.at[i] * b.at[i];
  return x;
}

struct GradientAndWeights {
  Quad g, p;
};
__global__ void __launch_bounds__(threads, 3)  // otherwise the compiler spills for a fourth block
    norms_kernel(const FactoredBatch batch, const RootsOfVector of_vectors, bool weights) {
  for (int k = blockIdx.x; k < batch.stretches.count; k += gridDim.x) {
    const TensorPiece piece = batch.stretches.at[k];
    const FactoredTensor a = batch.tensors[piece.tensor];
    const FactoredRectangle r = batch.rectangles[piece.tensor];
    const bool reads = weights && !a.kept;
    RunningSum updates, squares;
    const auto add = [&](auto roots) {
      const auto add_update = [&](const auto& access, std::size_t e, const Quad& g) {
        add_squares(updates, product(g, roots.next(access, e, g)));
      };
      const auto load = [&](const auto& access, std::size_t e) {
        return GradientAndWeights{access.load(a.g, e), access.load(a.p, e)};
      };
      const auto add_both = [&](const auto& access, std::size_t e, const GradientAndWeights& x) {
        add_update(access, e, x.g);
        add_squares(squares, x.p);
      };
      const auto load_g = [&](const auto& access, std::size_t e) { return access.load(a.g, e); };
      if (reads)
        for_each_quad_of<2>(a, r, piece, load, add_both);
      else
        for_each_quad_of<4>(a, r, piece, load_g, add_update);
    };
    if (matrix(a))
      add(RootsOfMatrix(a, r, a.moment, piece));
    else
      add(RootsOfVector{a.v, of_vectors.beta, of_vectors.one_minus_beta, of_vectors.eps1});
    const double of_updates = block_sum(updates.total());
    const double of_weights = reads ? block_sum(squares.total()) : 0.0;
    if (threadIdx.x == 0) {
      a.workspace[2 * piece.index] = of_updates;
      a.workspace[2 * piece.index + 1] = of_weights;
    }
  }
}
// Keeps |p|^2 of a segment for later steps, summed in the order of norms_kernel.
__device__ void keep(const FactoredTensor& a, const TensorPiece& piece, const RunningSum& squares) {
  const double sum = block_sum(squares.total());
  if (threadIdx.x == 0) a.kept[piece.index] = sum;
}
__global__ void __launch_bounds__(threads) keep_kernel(const FactoredBatch batch) {
  for (int k = blockIdx.x; k < batch.stretches.count; k += gridDim.x) {
    const TensorPiece piece = batch.stretches.at[k];
    const FactoredTensor a = batch.tensors[piece.tensor];
    if (!a.kept) continue;
    RunningSum squares;
    for_each_quad_of<4>(
        a, batch.rectangles[piece.tensor], piece,
        [&](const auto& access, std::size_t e) { return access.load(a.p, e); },
        [&](const auto&, std::size_t, const Quad& p) { add_squares(squares, p); });
    keep(a, piece, squares);
  }
}
// Uses a block for each tensor.
__global__ void __launch_bounds__(finish_threads) finish_norms(const FactoredBatch batch) {
  const FactoredTensor& a = batch.tensors[blockIdx.x];
  const std::size_t size = a.part.end - a.part.begin;
  double updates = 0, squares = 0;
  for (std::size_t b = threadIdx.x; b * stretch_elements < size; b += blockDim.x) {
    updates += a.workspace[2 * b];
    squares += a.kept ? a.kept[b] : a.workspace[2 * b + 1];
  }
  updates = block_sum(updates);
  squares = block_sum(squares);
  if (threadIdx.x == 0) {
    a.sums[0] = updates;
    a.sums[1] = squares;
  }
}

// Learning rate as a function of the weights' root mean square, which is only in device memory.
struct AdafactorRate {
  double base, eps2, decay, clip_threshold;
  bool scaled, rms_stays_zero;
  float b1, one_minus_b1;

  __device__ double of(const FactoredTensor& a) const {
    const double rms = rms_stays_zero ? 0.0 : sqrt(a.sums[1] / elements_of(a));
    return scaled ? base * max(eps2, rms) : base;
  }
  // Returns the clipped length of a step, by which the update is multiplied.
  __device__ double length(const FactoredTensor& a) const {
    return of(a) / max(sqrt(a.sums[0] / elements_of(a)) / clip_threshold, 1.0);
  }
};
__global__ void __launch_bounds__(threads, 3)  // same reason as for norms_kernel
    adafactor_kernel(const FactoredBatch batch, const AdafactorRate rate) {
  struct Loaded {
    Quad g, p, m;
  };
  for (int k = blockIdx.x; k < batch.stretches.count; k += gridDim.x) {
    const TensorPiece piece = batch.stretches.at[k];
    const FactoredTensor a = batch.tensors[piece.tensor];
    const FactoredRectangle r = batch.rectangles[piece.tensor];
    const float length = block_value([&] { return rate.length(a); });
    const float decay = block_value([&] { return rate.of(a) * rate.decay; });
    RunningSum squares;
    const auto load = [&](const auto& access, std::size_t e) {
      return Loaded{access.load(a.g, e), access.load(a.p, e), a.m ? access.load(a.m, e) : Quad{}};
    };
    const auto apply = [&](auto roots) {
      for_each_quad_of<2>(a, r, piece, load,
                          [&](const auto& access, std::size_t e, const Loaded& x) {
                            Quad move = product(x.g, roots.next(access, e, x.g)), p;
                            for (int i = 0; i < 4; ++i) {
                              move.at[i] *= length;
                              if (a.m)
                                move.at[i] = rate.b1 * x.m.at[i] + rate.one_minus_b1 * move.at[i];
                              p.at[i] = x.p.at[i] - decay * x.p.at[i] - move.at[i];
                            }
                            if (a.m) access.store(a.m, e, move);
                            access.store(a.p, e, p);
                            if (a.kept) add_squares(squares, p);
                          });
    };
    if (matrix(a))
      apply(RootsOfMatrix(a, r, a.moment, piece));
    else
      apply(RootsOfVector{a.v});
    if (a.kept) keep(a, piece, squares);
  }
}

__global__ void __launch_bounds__(threads, 4)
    came_kernel(const FactoredBatch batch, float lr, float decay) {
  struct Loaded {
    Quad m, p;
  };
  for (int k = blockIdx.x; k < batch.stretches.count; k += gridDim.x) {
    const TensorPiece piece = batch.stretches.at[k];
    const FactoredTensor a = batch.tensors[piece.tensor];
    const FactoredRectangle r = batch.rectangles[piece.tensor];
    const auto load = [&](const auto& access, std::size_t e) {
      return Loaded{access.load(a.m, e), access.load(a.p, e)};
    };
    const auto apply = [&](auto roots) {
      for_each_quad_of<2>(a, r, piece, load,
                          [&](const auto& access, std::size_t e, const Loaded& x) {
                            const Quad m = product(x.m, roots.next(access, e, x.m));
                            Quad p;
                            for (int i = 0; i < 4; ++i)
                              p.at[i] = x.p.at[i] - decay * x.p.at[i] - lr * m.at[i];
                            access.store(a.p, e, p);
                          });
    };
    if (matrix(a))
      apply(RootsOfMatrix(a, r, a.residual, piece));
    else
      apply(NoRoots{});
  }
}

// Returns the roots of vectors for `norms`, whose kernel sets the address of a vector's moment and
// updates that moment.
RootsOfVector moved_vectors(double beta, double eps1) {
  return {nullptr, static_cast<float>(beta), static_cast<float>(1 - beta),
          static_cast<float>(eps1)};
}

cudaError_t norms(const FactoredBatch& batch, const RootsOfVector& of_vectors, bool weights,
                  cudaStream_t stream) {
  if (batch.count == 0) return cudaSuccess;
  if (const auto e =
          launch_over(batch.stretches, norms_kernel, stream, batch, of_vectors, weights)) {
    return e;
  }
  launch(finish_norms, batch.count, finish_threads, stream, batch);
  return cudaGetLastError();
}

bool is_matrix(const FactoredTensor& a) { return a.part.whole.rows > 1; }

FactoredRectangle rectangle_of(const reference::Part& part) {
  const std::size_t first = part.begin / part.columns;
  const std::size_t end = ceil_div(part.end, part.columns);
  const std::size_t rows = part.size() == 0 ? 0 : end - first;
  return {first, rows, part.columns, ceil_div(rows, part_rows),
          ceil_div(part.columns, tile_columns)};
}

std::size_t slots_of(const FactoredTensor& a) {
  const reference::MatrixShape whole = a.part.whole;
  return is_matrix(a) ? ceil_div(whole.rows, slot_rows) + ceil_div(whole.columns, slot_columns) : 0;
}
std::size_t stretches_of(const FactoredTensor& a) {
  return ceil_div(a.part.size(), stretch_elements);
}
std::size_t vectors_of(const FactoredTensor& a) { return is_matrix(a) ? 0 : stretches_of(a); }
std::size_t tiles_of(const FactoredTensor& a) {
  const FactoredRectangle r = rectangle_of(a.part);
  return is_matrix(a) ? r.parts * r.tiles : 0;
}

// Returns the doubles of a workspace before the roots. Each round's sums take the place of the
// previous ones. The number is even, so that the roots are as aligned as the workspace.
std::size_t summed_workspace(const reference::Part& part) {
  const FactoredRectangle r = rectangle_of(part);
  const std::size_t slots = r.parts * r.columns + r.rows * r.tiles;
  const std::size_t means = ceil_div(part.whole.rows, slot_rows);
  return 2 * ceil_div(std::max({slots, means, 2 * factored_kept(part)}), 2);
}

DeviceBuffer<FactoredRectangle> rectangles_of(std::span<const FactoredTensor> tensors) {
  std::vector<FactoredRectangle> all;
  for (const FactoredTensor& a : tensors) {
    FactoredRectangle r = rectangle_of(a.part);
    r.roots = summed_workspace(a.part);
    r.aligned = is_aligned(a.p) && is_aligned(a.g) && is_aligned(a.m) && is_aligned(a.v);
    r.quads_in_rows = a.part.columns % 4 == 0 && a.part.begin % 4 == 0 &&
                      a.part.first_column % 4 == 0 && is_aligned(a.workspace);
    all.push_back(r);
  }
  return DeviceBuffer<FactoredRectangle>(std::span<const FactoredRectangle>(all));
}

}  // namespace

std::size_t factored_kept(const reference::Part& part) {
  return ceil_div(part.size(), stretch_elements);
}

std::size_t factored_workspace(const reference::Part& part) {
  return summed_workspace(part) + ceil_div(part.whole.rows + part.whole.columns, 2);
}

FactoredTensors::FactoredTensors(std::span<const FactoredTensor> tensors)
    : tensors_(tensors),
      rectangles_(rectangles_of(tensors)),
      tiles_(pieces_of(tensors, tiles_of)),
      slots_(pieces_of(tensors, slots_of)),
      stretches_(pieces_of(tensors, stretches_of)),
      vectors_(pieces_of(tensors, vectors_of)) {}

FactoredBatch FactoredTensors::batch() const {
  return {.tensors = tensors_.data(),
          .rectangles = rectangles_.data(),
          .count = static_cast<int>(tensors_.size()),
          .tiles = list_of(tiles_),
          .slots = list_of(slots_),
          .stretches = list_of(stretches_),
          .vectors = list_of(vectors_)};
}

cudaError_t adafactor_moment(const FactoredBatch& batch, const reference::Adafactor& rule,
                             cudaStream_t stream) {
  return sum_squared_gradient(batch, rule.options.eps1, stream);
}

cudaError_t adafactor_norms(const FactoredBatch& batch, const reference::Adafactor& rule, int step,
                            cudaStream_t stream) {
  const double beta = rule.beta(step);
  if (const auto e = absorb(batch, false, beta, stream)) return e;
  const bool weights = rule.options.scale_parameter && !rule.options.rms_stays_zero;
  return norms(batch, moved_vectors(beta, rule.options.eps1), weights, stream);
}

cudaError_t adafactor_apply(const FactoredBatch& batch, const reference::Adafactor& rule, int step,
                            cudaStream_t stream) {
  const reference::AdafactorOptions& o = rule.options;
  reference::Adafactor unscaled = rule;
  unscaled.options.scale_parameter = false;
  return launch_over(batch.stretches, adafactor_kernel, stream, batch,
                     AdafactorRate{unscaled.rate(0, step), o.eps2, o.weight_decay, o.clip_threshold,
                                   o.scale_parameter, o.rms_stays_zero, static_cast<float>(o.beta1),
                                   static_cast<float>(1 - o.beta1)});
}

cudaError_t adafactor_keep(const FactoredBatch& batch, cudaStream_t stream) {
  return launch_over(batch.stretches, keep_kernel, stream, batch);
}

cudaError_t came_moment(const FactoredBatch& batch, const reference::Came& rule,
                        cudaStream_t stream) {
  return sum_squared_gradient(batch, rule.options.eps1, stream);
}

cudaError_t came_norm(const FactoredBatch& batch, const reference::Came& rule,
                      cudaStream_t stream) {
  const reference::CameOptions& o = rule.options;
  if (const auto e = absorb(batch, false, o.beta2, stream)) return e;
  return norms(batch, moved_vectors(o.beta2, o.eps1), false, stream);
}

cudaError_t came_apply(const FactoredBatch& batch, const reference::Came& rule,
                       cudaStream_t stream) {
  const reference::CameOptions& o = rule.options;
  if (const auto e = absorb(batch, true, o.beta3, stream)) return e;
  return launch_over(batch.stretches, came_kernel, stream, batch, static_cast<float>(o.lr),
                     static_cast<float>(o.lr * o.weight_decay));
}

}  // namespace lambcast::cuda
