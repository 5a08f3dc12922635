#include "kernels/cuda/lamb.h"

#include "kernels/bias_correction.h"
#include "kernels/cuda/gradient.cuh"
#include "kernels/cuda/pieces.cuh"

namespace lambcast::cuda {
namespace {

struct LambConstants {
  float b1, one_minus_b1, b2, one_minus_b2, eps, wd;
  BiasFactors bias;

  explicit LambConstants(const LambOptions& o, int step = 0)
      : b1(static_cast<float>(o.beta1)),
        one_minus_b1(static_cast<float>(1 - o.beta1)),
        b2(static_cast<float>(o.beta2)),
        one_minus_b2(static_cast<float>(1 - o.beta2)),
        eps(static_cast<float>(o.eps)),
        wd(static_cast<float>(o.weight_decay)),
        bias(bias_factors(o.bias_correction, o.beta1, o.beta2, step)) {}

  // Returns these constants with the weight decay of tensor t.
  __device__ LambConstants of(const LambState& s, int t) const {
    LambConstants c = *this;
    if (s.groups) c.wd = static_cast<float>(s.groups[t].weight_decay);
    return c;
  }
  __device__ float denominator(float v) const { return sqrtf(v) * bias.root + eps; }
  __device__ float update(float p, float m, float v) const {
    const float pre = m * bias.momentum / denominator(v);
    return wd > 0 ? pre + wd * p : pre;
  }
};

template <typename T>
__global__ void __launch_bounds__(threads)
    moments_kernel(LambState s, TypedGradient<T> g, const LambConstants all) {
  const GradientReader<T> reader(g);
  for (int k = blockIdx.x; k < s.piece_count; k += gridDim.x) {
    const Piece piece = s.pieces[k];
    const LambConstants c = all.of(s, piece.tensor);
    RunningSum weights, updates;
    for_each(piece, [&](std::size_t e, int width) {
      const Quad p = read(s.p, e, width);
      Quad m = read(s.m, e, width), v = read(s.v, e, width), upd{};
      const Quad gradient = reader.read(e, e + width);
      for (int i = 0; i < width; ++i) {
        m.at[i] = c.b1 * m.at[i] + c.one_minus_b1 * gradient.at[i];
        v.at[i] = c.b2 * v.at[i] + c.one_minus_b2 * (gradient.at[i] * gradient.at[i]);
        upd.at[i] = c.update(p.at[i], m.at[i], v.at[i]);
      }
      store_quad(s.m, e, e + width, m);
      store_quad(s.v, e, e + width, v);
      add_squares(weights, p);
      add_squares(updates, upd);
    });
    const double of_weights = block_sum(weights.total()), of_updates = block_sum(updates.total());
    if (threadIdx.x == 0) {
      s.workspace[3 * k] = of_weights;
      s.workspace[3 * k + 1] = of_updates;
    }
  }
}

// Applies the upper limit first, as the reference does; a NaN passes through.
__device__ double clamp(double x, double high, double low) {
  if (x > high) x = high;
  return x < low ? low : x;
}

// Returns the learning rate of tensor t.
__device__ double rate_of(const LambState& s, double lr, int t) {
  if (s.lr) lr = *s.lr;
  return s.groups ? lr * s.groups[t].lr_scale : lr;
}

// Sets the trust ratio and the step length of tensor t; returns whether neither norm is 0.
__device__ bool set_step_length(const LambState& s, const LambOptions& o, double bias_rate, int t,
                                double weights, double updates) {
  const bool defined = weights != 0 && updates != 0;
  const float ratio =
      defined ? static_cast<float>(clamp(weights / updates, o.max_coeff, o.min_coeff)) : 1.0f;
  s.trust_ratio[t] = ratio;
  s.step_length[t] =
      static_cast<float>(rate_of(s, o.lr, t) * bias_rate * static_cast<double>(ratio));
  return defined;
}

__global__ void __launch_bounds__(tensor_threads)
    ratio_kernel(LambState s, LambOptions o, double bias_rate, RunningAverage average) {
  const int t = blockIdx.x;
  const double weights = sqrt(tensor_sum(s.first_piece, s.workspace, t, 0)),
               updates = sqrt(tensor_sum(s.first_piece, s.workspace, t, 1));
  if (threadIdx.x != 0) return;
  const bool defined = set_step_length(s, o, bias_rate, t, weights, updates);
  if (s.running_average == nullptr) return;
  const float ratio = s.trust_ratio[t];
  if (average.how == CoefficientAverage::from_zero ? ratio == 1.0f : !defined) return;
  const float beta = static_cast<float>(average.coeff_beta);
  const float rest = static_cast<float>(1 - average.coeff_beta);
  s.running_average[t] = beta * s.running_average[t] + rest * ratio;
  s.running_weight[t] = beta * s.running_weight[t] + rest;
}

__global__ void __launch_bounds__(tensor_threads) squares_kernel(LambState s, double* squares) {
  const int t = blockIdx.x;
  const double weights = tensor_sum(s.first_piece, s.workspace, t, 0);
  const double updates = tensor_sum(s.first_piece, s.workspace, t, 1);
  if (threadIdx.x != 0) return;
  squares[2 * t] = weights;
  squares[2 * t + 1] = updates;
}

__global__ void __launch_bounds__(threads)
    shared_ratio_kernel(LambState s, const double* squares, LambOptions o, double bias_rate) {
  for (int t = blockIdx.x * threads + threadIdx.x; t < s.tensors; t += gridDim.x * threads) {
    set_step_length(s, o, bias_rate, t, sqrt(squares[2 * t]), sqrt(squares[2 * t + 1]));
  }
}

__global__ void __launch_bounds__(threads) apply_kernel(LambState s, const LambConstants all) {
  for (int k = blockIdx.x; k < s.piece_count; k += gridDim.x) {
    const Piece piece = s.pieces[k];
    const LambConstants c = all.of(s, piece.tensor);
    const float step = s.step_length[piece.tensor];
    for_each(piece, [&](std::size_t e, int width) {
      Quad p = read(s.p, e, width);
      const Quad m = read(s.m, e, width), v = read(s.v, e, width);
      for (int i = 0; i < width; ++i) {
        p.at[i] -= step * c.update(p.at[i], m.at[i], v.at[i]);
      }
      store_quad(s.p, e, e + width, p);
      store_quad(s.half_p, e, e + width, p);
    });
  }
}

// Magnitude of the packed momentum at e: its chunk's scale divided by its tensor's scaling. It is
// computed once per piece, and again if the piece continues in another chunk.
struct MagnitudeCursor {
  const float* scales;
  std::size_t chunk, next;
  float scaling, magnitude;

  __device__ MagnitudeCursor(const CompressedLambState& x, const Piece& piece)
      : scales(x.scales), chunk(x.chunk), scaling(x.scaling[piece.tensor]) {
    const std::size_t first = piece.begin / chunk;
    next = (first + 1) * chunk;
    magnitude = scales[first] / scaling;
  }
  __device__ float at(std::size_t e) const {
    return e < next ? magnitude : scales[e / chunk] / scaling;
  }
};

// Bit 3 - i is the sign of element e + i.
__device__ unsigned signs_of(const CompressedLambState& x, std::size_t e, int width) {
  return width == 4 ? nibble_at(x.signs, e) : sign_at(x.signs, e) << 3;
}

__global__ void __launch_bounds__(threads)
    reconstruct_kernel(LambState s, CompressedLambState x, const LambConstants all) {
  for (int k = blockIdx.x; k < s.piece_count; k += gridDim.x) {
    const Piece piece = s.pieces[k];
    const LambConstants c = all.of(s, piece.tensor);
    const MagnitudeCursor cursor(x, piece);
    RunningSum momenta, updates;
    float factor = 0;
    for_each(piece, [&](std::size_t e, int width) {
      Quad m = read(s.m, e, width), fresh = read(x.fresh_v, e, width), pre{}, upd{}, p{};
      const Quad v = read(s.v, e, width);
      if (c.wd > 0) p = read(s.p, e, width);
      const unsigned signs = signs_of(x, e, width);
      // Chunks start at multiples of 8, so a quad is in one chunk.
      const float magnitude = cursor.at(e);
      Quad mask{{1, 1, 1, 1}};
      if (x.mask) mask = read(x.mask, e, width);
      for (int i = 0; i < width; ++i) {
        const float last = m.at[i];
        m.at[i] = with_sign(magnitude, signs & (8u >> i));
        if (x.mask) m.at[i] *= mask.at[i];
        if (x.unseen == Unseen::stay && v.at[i] == 0) m.at[i] = 0;
        const float g = (m.at[i] - c.b1 * last) / c.one_minus_b1;
        fresh.at[i] = c.b2 * fresh.at[i] + c.one_minus_b2 * (g * g);
        const float denominator = c.denominator(v.at[i]);
        pre.at[i] = m.at[i] / denominator;
        upd.at[i] = c.wd > 0 ? pre.at[i] + c.wd * p.at[i] : pre.at[i];
        factor = max_or_nan(factor, denominator / c.denominator(fresh.at[i]));
      }
      store_quad(s.m, e, e + width, m);
      store_quad(x.fresh_v, e, e + width, fresh);
      add_squares(momenta, pre);
      add_squares(updates, upd);
    });
    const double of_momenta = block_sum(momenta.total()), of_updates = block_sum(updates.total());
    factor = block_max(factor);
    if (threadIdx.x == 0) {
      s.workspace[3 * k] = of_momenta;
      s.workspace[3 * k + 1] = of_updates;
      s.workspace[3 * k + 2] = factor;
    }
  }
  const std::size_t first = x.elements + blockIdx.x * std::size_t{threads} + threadIdx.x;
  for (std::size_t e = first; e < x.tail_end; e += static_cast<std::size_t>(gridDim.x) * threads) {
    s.m[e] = with_sign(x.scales[e / x.chunk], sign_at(x.signs, e));
  }
}

// Works as apply_kernel, but decodes the momentum again instead of reading it: 1/8 byte instead of
// 4. With a mask, the masked momentum is read.
__global__ void __launch_bounds__(threads)
    decoded_apply_kernel(LambState s, CompressedLambState x, const LambConstants all) {
  for (int k = blockIdx.x; k < s.piece_count; k += gridDim.x) {
    const Piece piece = s.pieces[k];
    const LambConstants c = all.of(s, piece.tensor);
    const float step = s.step_length[piece.tensor];
    const MagnitudeCursor cursor(x, piece);
    for_each(piece, [&](std::size_t e, int width) {
      Quad p = read(s.p, e, width), m{};
      const Quad v = read(s.v, e, width);
      if (x.mask) m = read(s.m, e, width);
      const unsigned signs = signs_of(x, e, width);
      const float magnitude = cursor.at(e);
      for (int i = 0; i < width; ++i) {
        if (!x.mask) m.at[i] = with_sign(magnitude, signs & (8u >> i));
        if (x.unseen == Unseen::stay && v.at[i] == 0) m.at[i] = 0;
        p.at[i] -= step * c.update(p.at[i], m.at[i], v.at[i]);
      }
      store_quad(s.p, e, e + width, p);
      store_quad(s.half_p, e, e + width, p);
    });
  }
}

__global__ void __launch_bounds__(tensor_threads)
    factor_kernel(LambState s, CompressedLambState x, OnebitLambOptions o, CoefficientAverage how) {
  const int t = blockIdx.x;
  float largest = 0;
  for (int k = s.first_piece[t] + threadIdx.x; k < s.first_piece[t + 1]; k += blockDim.x) {
    largest = max_or_nan(largest, static_cast<float>(s.workspace[3 * k + 2]));
  }
  largest = block_max(largest);
  const double momenta = tensor_sum(s.first_piece, s.workspace, t, 0),
               updates = tensor_sum(s.first_piece, s.workspace, t, 1);
  if (threadIdx.x != 0) return;
  double factor = largest;
  const double decay = s.groups ? s.groups[t].weight_decay : o.lamb.weight_decay;
  if (decay > 0) {
    const double share = updates > 0 ? sqrt(momenta) / sqrt(updates) : 1.0;
    const double q = share > 1 ? 1.0 : share;
    factor = factor * q + (1 - q);
  }
  const double last = x.last_factor[t];
  factor = clamp(factor, o.factor_max, o.factor_min);
  factor = clamp(factor, last * (1 + o.factor_threshold), last * (1 - o.factor_threshold));
  x.last_factor[t] = static_cast<float>(factor);
  float coefficient = s.running_average[t];
  if (how == CoefficientAverage::bias_corrected) {
    coefficient = s.running_weight[t] > 0 ? coefficient / s.running_weight[t] : 1.0f;
  }
  s.step_length[t] = static_cast<float>(rate_of(s, o.lamb.lr, t) *
                                        static_cast<double>(coefficient * x.last_factor[t]));
}

// Blocks per multiprocessor. With eight blocks the remaining registers allow only two of four loads
// in flight at once; six blocks leave enough. Turing holds four.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int norm_blocks = 4;
#else
constexpr int norm_blocks = 6;
#endif
__global__ void __launch_bounds__(threads, norm_blocks) momentum_norm_kernel(LambState s) {
  for (int k = blockIdx.x; k < s.piece_count; k += gridDim.x) {
    RunningSum sum;
    for_each(s.pieces[k], [&](std::size_t e, int width) { add_squares(sum, read(s.m, e, width)); });
    const double total = block_sum(sum.total());
    if (threadIdx.x == 0) s.workspace[3 * k] = total;
  }
}

__global__ void __launch_bounds__(threads, norm_blocks) variance_kernel(LambState s) {
  for (int k = blockIdx.x; k < s.piece_count; k += gridDim.x) {
    RunningSum sum;
    for_each(s.pieces[k], [&](std::size_t e, int width) { add_sizes(sum, read(s.v, e, width)); });
    const double total = block_sum(sum.total());
    if (threadIdx.x == 0) s.workspace[3 * k] = total;
  }
}
__global__ void __launch_bounds__(tensor_threads) finish_variance(LambState s, double* norms) {
  const double sum = tensor_sum(s.first_piece, s.workspace, blockIdx.x, 0);
  if (threadIdx.x == 0) norms[blockIdx.x] = sum;
}

// Writes the root mean square r of tensor t into its first slot.
__global__ void __launch_bounds__(tensor_threads) root_mean_square_kernel(LambState s) {
  const int t = blockIdx.x, first = s.first_piece[t], end = s.first_piece[t + 1];
  const double squares = tensor_sum(s.first_piece, s.workspace, t, 0);
  if (threadIdx.x != 0 || first == end) return;
  const std::size_t size = s.pieces[end - 1].end - s.pieces[first].begin;
  s.workspace[3 * first] = sqrt(squares) / sqrt(static_cast<double>(size));
}

// Runs as one block.
__global__ void __launch_bounds__(finish_threads) scaling_kernel(LambState s, float* scaling) {
  double sum = 0, moving = 0;
  for (int t = threadIdx.x; t < s.tensors; t += blockDim.x) {
    if (s.first_piece[t] == s.first_piece[t + 1]) continue;
    const double r = s.workspace[3 * s.first_piece[t]];
    sum += r;
    moving += r != 0;
  }
  __shared__ double mean;
  sum = block_sum(sum);
  moving = block_sum(moving);
  if (threadIdx.x == 0) mean = moving > 0 ? sum / moving : 0;
  __syncthreads();
  for (int t = threadIdx.x; t < s.tensors; t += blockDim.x) {
    const bool empty = s.first_piece[t] == s.first_piece[t + 1];
    const double r = empty ? 0 : s.workspace[3 * s.first_piece[t]];
    scaling[t] = r == 0 ? 1.0f : static_cast<float>(mean / r);
  }
}

cudaError_t moments(const LambState& s, const Gradient& g, const LambConstants& c,
                    cudaStream_t stream) {
  return with_type(g, [&]<typename T>(const TypedGradient<T>& typed) {
    if (const auto e = check_aligned(s.p, s.m, s.v, typed)) return e;
    unsigned blocks = 0;
    if (const auto e = grid_size(moments_kernel<T>, s.piece_count, blocks)) return e;
    launch(moments_kernel<T>, blocks, threads, stream, s, typed, c);
    return cudaGetLastError();
  });
}

cudaError_t apply(const LambState& s, const LambConstants& c, cudaStream_t stream) {
  unsigned blocks = 0;
  if (const auto e = grid_size(apply_kernel, s.piece_count, blocks)) return e;
  launch(apply_kernel, blocks, threads, stream, s, c);
  return cudaGetLastError();
}

}  // namespace

cudaError_t lamb_step(const LambState& s, const Gradient& g, const LambOptions& options,
                      const RunningAverage& average, cudaStream_t stream, int step) {
  if (s.tensors == 0) return cudaSuccess;
  if (const auto e = check_aligned(s.half_p)) return e;
  const LambConstants constants(options, step);
  if (const auto e = moments(s, g, constants, stream)) return e;
  launch(ratio_kernel, s.tensors, tensor_threads, stream, s, options, constants.bias.rate, average);
  return apply(s, constants, stream);
}

cudaError_t lamb_moments(const LambState& s, const Gradient& g, const LambOptions& options,
                         double* squares, cudaStream_t stream, int step) {
  if (s.tensors == 0) return cudaSuccess;
  if (const auto e = moments(s, g, LambConstants(options, step), stream)) return e;
  launch(squares_kernel, s.tensors, tensor_threads, stream, s, squares);
  return cudaGetLastError();
}

cudaError_t lamb_apply(const LambState& s, const LambOptions& options, const double* squares,
                       cudaStream_t stream, int step) {
  if (s.tensors == 0) return cudaSuccess;
  if (const auto e = check_aligned(s.p, s.m, s.v, s.half_p)) return e;
  const LambConstants constants(options, step);
  unsigned blocks = 0;
  const std::size_t items = (static_cast<std::size_t>(s.tensors) + threads - 1) / threads;
  if (const auto e = grid_size(shared_ratio_kernel, items, blocks)) return e;
  launch(shared_ratio_kernel, blocks, threads, stream, s, squares, options, constants.bias.rate);
  return apply(s, constants, stream);
}

cudaError_t onebit_lamb_step(const LambState& s, const CompressedLambState& x,
                             const OnebitLambOptions& options, CoefficientAverage how,
                             cudaStream_t stream) {
  if (s.tensors == 0) return cudaSuccess;
  if (const auto e = check_aligned(s.p, s.m, s.v, s.half_p, x.fresh_v, x.mask)) return e;
  unsigned blocks = 0;
  if (const auto e = grid_size(reconstruct_kernel, s.piece_count, blocks)) return e;
  launch(reconstruct_kernel, blocks, threads, stream, s, x, LambConstants(options.lamb));
  launch(factor_kernel, s.tensors, tensor_threads, stream, s, x, options, how);
  if (const auto e = grid_size(decoded_apply_kernel, s.piece_count, blocks)) return e;
  launch(decoded_apply_kernel, blocks, threads, stream, s, x, LambConstants(options.lamb));
  return cudaGetLastError();
}

cudaError_t scaling_coefficients(const LambState& s, float* scaling, cudaStream_t stream) {
  if (s.tensors == 0) return cudaSuccess;
  if (const auto e = check_aligned(s.m)) return e;
  unsigned blocks = 0;
  if (const auto e = grid_size(momentum_norm_kernel, s.piece_count, blocks)) return e;
  launch(momentum_norm_kernel, blocks, threads, stream, s);
  launch(root_mean_square_kernel, s.tensors, tensor_threads, stream, s);
  launch(scaling_kernel, 1, finish_threads, stream, s, scaling);
  return cudaGetLastError();
}

cudaError_t variance_norms(const LambState& s, double* norms, cudaStream_t stream) {
  if (s.tensors == 0) return cudaSuccess;
  if (const auto e = check_aligned(s.v)) return e;
  unsigned blocks = 0;
  if (const auto e = grid_size(variance_kernel, s.piece_count, blocks)) return e;
  launch(variance_kernel, blocks, threads, stream, s);
  launch(finish_variance, s.tensors, tensor_threads, stream, s, norms);
  return cudaGetLastError();
}

}  // namespace lambcast::cuda
