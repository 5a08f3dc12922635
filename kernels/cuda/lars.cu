#include "kernels/cuda/lars.h"

#include "kernels/cuda/gradient.cuh"
#include "kernels/cuda/pieces.cuh"

namespace lambcast::cuda {
namespace {

__device__ double decay_of(const LambState& s, const reference::LarsOptions& o, int t) {
  return s.groups ? s.groups[t].weight_decay : o.weight_decay;
}

template <typename T>
__global__ void __launch_bounds__(threads) lars_norms_kernel(LambState s, TypedGradient<T> g) {
  const GradientReader<T> reader(g);
  for (int k = blockIdx.x; k < s.piece_count; k += gridDim.x) {
    RunningSum weights, gradients;
    for_each(s.pieces[k], [&](std::size_t e, int width) {
      const Quad p = read(s.p, e, width), gradient = reader.read(e, e + width);
      add_squares(weights, p);
      add_squares(gradients, gradient);
    });
    const double of_weights = block_sum(weights.total());
    const double of_gradients = block_sum(gradients.total());
    if (threadIdx.x == 0) {
      s.workspace[3 * k] = of_weights;
      s.workspace[3 * k + 1] = of_gradients;
    }
  }
}

__global__ void __launch_bounds__(tensor_threads) lars_finish_norms(LambState s, double* squares) {
  const int t = blockIdx.x;
  const double weights = tensor_sum(s.first_piece, s.workspace, t, 0);
  const double gradients = tensor_sum(s.first_piece, s.workspace, t, 1);
  if (threadIdx.x != 0) return;
  squares[2 * t] = weights;
  squares[2 * t + 1] = gradients;
}

__global__ void __launch_bounds__(threads)
    lars_ratio_kernel(LambState s, const double* squares, reference::LarsOptions o) {
  for (int t = blockIdx.x * threads + threadIdx.x; t < s.tensors; t += gridDim.x * threads) {
    const double p = sqrt(squares[2 * t]), g = sqrt(squares[2 * t + 1]);
    const double below = g + decay_of(s, o, t) * p + o.eps;
    const double ratio = p == 0 || g == 0 ? 1.0 : o.trust_coefficient * p / below;
    const double base = s.lr ? *s.lr : o.lr;
    const double lr = s.groups ? base * s.groups[t].lr_scale : base;
    s.step_length[t] = static_cast<float>(lr * ratio);
  }
}

template <typename T>
__global__ void __launch_bounds__(threads)
    lars_apply_kernel(LambState s, TypedGradient<T> g, reference::LarsOptions o) {
  const GradientReader<T> reader(g);
  const float momentum = static_cast<float>(o.momentum);
  for (int k = blockIdx.x; k < s.piece_count; k += gridDim.x) {
    const Piece piece = s.pieces[k];
    const float rate = s.step_length[piece.tensor];
    const float wd = static_cast<float>(decay_of(s, o, piece.tensor));
    for_each(piece, [&](std::size_t e, int width) {
      Quad p = read(s.p, e, width), v = read(s.m, e, width);
      const Quad gradient = reader.read(e, e + width);
      for (int i = 0; i < width; ++i) {
        v.at[i] = momentum * v.at[i] + rate * (gradient.at[i] + wd * p.at[i]);
        p.at[i] -= v.at[i];
      }
      store_quad(s.m, e, e + width, v);
      store_quad(s.p, e, e + width, p);
      store_quad(s.half_p, e, e + width, p);
    });
  }
}

}  // namespace

cudaError_t lars_norms(const LambState& s, const Gradient& g, double* squares,
                       cudaStream_t stream) {
  if (s.tensors == 0) return cudaSuccess;
  return with_type(g, [&]<typename T>(const TypedGradient<T>& typed) {
    if (const auto e = check_aligned(s.p, typed)) return e;
    unsigned blocks = 0;
    if (const auto e = grid_size(lars_norms_kernel<T>, s.piece_count, blocks)) return e;
    launch(lars_norms_kernel<T>, blocks, threads, stream, s, typed);
    launch(lars_finish_norms, s.tensors, tensor_threads, stream, s, squares);
    return cudaGetLastError();
  });
}

cudaError_t lars_apply(const LambState& s, const Gradient& g, const reference::LarsOptions& options,
                       const double* squares, cudaStream_t stream) {
  if (s.tensors == 0) return cudaSuccess;
  return with_type(g, [&]<typename T>(const TypedGradient<T>& typed) {
    if (const auto e = check_aligned(s.p, s.m, s.half_p, typed)) return e;
    unsigned blocks = 0;
    const std::size_t items = (static_cast<std::size_t>(s.tensors) + threads - 1) / threads;
    if (const auto e = grid_size(lars_ratio_kernel, items, blocks)) return e;
    launch(lars_ratio_kernel, blocks, threads, stream, s, squares, options);
    if (const auto e = grid_size(lars_apply_kernel<T>, s.piece_count, blocks)) return e;
    launch(lars_apply_kernel<T>, blocks, threads, stream, s, typed, options);
    return cudaGetLastError();
  });
}

}  // namespace lambcast::cuda
