#include "kernels/cuda/adam.h"

#include <type_traits>

#include "kernels/bias_correction.h"
#include "kernels/cuda/group_cursor.cuh"

namespace lambcast::cuda {
namespace {

struct AdamConstants : GroupRate {
  float b1, b2, one_minus_b1, one_minus_b2, eps;
  BiasFactors bias;
  Unseen unseen;

  explicit AdamConstants(const AdamState& s, const AdamOptions& o, int step = 0)
      : GroupRate(o.lr, o.weight_decay),
        b1(static_cast<float>(o.beta1)),
        b2(static_cast<float>(o.beta2)),
        one_minus_b1(static_cast<float>(1 - o.beta1)),
        one_minus_b2(static_cast<float>(1 - o.beta2)),
        eps(static_cast<float>(o.eps)),
        bias(bias_factors(o.bias_correction ? BiasCorrection::in_moments : BiasCorrection::none,
                          o.beta1, o.beta2, step)),
        unseen(s.unseen) {}

  __device__ bool stays(float v) const { return unseen == Unseen::stay && v == 0; }
  __device__ float momentum(float m, float g) const { return b1 * m + one_minus_b1 * g; }
  __device__ float variance(float v, float g) const { return b2 * v + one_minus_b2 * (g * g); }
  __device__ float denominator(float v) const { return sqrtf(v) * bias.root + eps; }
  __device__ float update(float p, float m, float v) const {
    const float upd = m * bias.momentum / denominator(v);
    return wd > 0 ? upd + wd * p : upd;
  }
};

// One element of every state. A kernel below is one function on it; what it does not use is
// neither read nor written.
struct Element {
  float p, m, v, u, g;
};
enum Field : unsigned { P = 1, M = 2, V = 4, U = 8, G = 16 };

struct FullStep {
  static constexpr unsigned reads = P | M | V | G, writes = P | M | V;
  __device__ static void run(Element& x, const AdamConstants& c) {
    x.m = c.momentum(x.m, x.g);
    x.v = c.variance(x.v, x.g);
    x.p -= c.lr * c.update(x.p, x.m, x.v);
  }
};
struct Apply {
  static constexpr unsigned reads = P | M | V, writes = P;  // and M where an element stays
  __device__ static void run(Element& x, const AdamConstants& c) {
    if (c.stays(x.v)) x.m = 0;
    x.p -= c.lr * c.update(x.p, x.m, x.v);
  }
};
struct OnebitStep {
  static constexpr unsigned reads = P | M | V | G, writes = P | M;
  __device__ static void run(Element& x, const AdamConstants& c) {
    x.m = c.momentum(x.m, c.stays(x.v) ? 0 : x.g);
    x.p -= c.lr * c.update(x.p, x.m, x.v);
  }
};
struct LocalStep {
  static constexpr unsigned reads = P | M | V | U | G, writes = P | M | U;
  __device__ static void run(Element& x, const AdamConstants& c) {
    x.m = c.momentum(x.m, c.stays(x.v) ? 0 : x.g);
    const float move = c.lr * c.update(x.p, x.m, x.v);
    x.p -= move;
    x.u -= move;
  }
};
struct SyncBegin {
  static constexpr unsigned reads = P | V | U, writes = P | U;
  __device__ static void run(Element& x, const AdamConstants& c) {
    if (c.stays(x.v)) x.u = 0;
    x.p -= x.u;
    x.u *= c.denominator(x.v);
  }
};
struct SyncEnd {  // c.lr holds the sum of the learning rates
  static constexpr unsigned reads = P | V | U, writes = P | M | U;
  __device__ static void run(Element& x, const AdamConstants& c) {
    if (c.stays(x.v)) x.u = 0;
    x.m = x.u / -c.lr;
    x.p += x.u / c.denominator(x.v);
    x.u = 0;
  }
};

template <typename Operation>
__global__ void __launch_bounds__(threads)
    elementwise(AdamState s, const float* g, AdamConstants c) {
  constexpr unsigned reads = Operation::reads, writes = Operation::writes;
  constexpr bool ends_sync = std::is_same_v<Operation, SyncEnd>;
  c.read_rate(ends_sync ? s.lrs : s.lr);
  if (std::is_same_v<Operation, LocalStep> && s.lrs && blockIdx.x == 0 && threadIdx.x == 0) {
    *s.lrs += c.exact_lr;
  }
  GroupCursor cursor{s.runs};
  for_each_quad(s.elements, [&](std::size_t e, std::size_t limit) {
    Quad p{}, m{}, v{}, u{}, gradient{};
    if constexpr ((reads & P) != 0) p = load_quad(s.p, e, limit);
    if constexpr ((reads & M) != 0) m = load_quad(s.m, e, limit);
    if constexpr ((reads & V) != 0) v = load_quad(s.v, e, limit);
    if constexpr ((reads & U) != 0) u = load_quad(s.u, e, limit);
    if constexpr ((reads & G) != 0) gradient = load_quad(g, e, limit);
    cursor.move_to(e, c);
    const bool one_group = !cursor.ends_before(limit);
    bool forgets = false;
    for (int i = 0; i < 4; ++i) {
      if (!one_group && e + i < limit) cursor.move_to(e + i, c);
      Element x{p.at[i], m.at[i], v.at[i], u.at[i], gradient.at[i]};
      Operation::run(x, c);
      forgets |= c.stays(x.v);
      p.at[i] = x.p;
      m.at[i] = x.m;
      v.at[i] = x.v;
      u.at[i] = x.u;
    }
    if constexpr ((writes & P) != 0) {
      store_quad(s.p, e, limit, p);
      store_quad(s.half_p, e, limit, p);
    }
    if constexpr ((writes & M) != 0) store_quad(s.m, e, limit, m);
    if (std::is_same_v<Operation, Apply> && forgets) store_quad(s.m, e, limit, m);
    if constexpr ((writes & V) != 0) store_quad(s.v, e, limit, v);
    if constexpr ((writes & U) != 0) store_quad(s.u, e, limit, u);
  });
}

template <typename Operation>
cudaError_t launch_step(const AdamState& s, const float* g, const AdamConstants& c,
                        cudaStream_t stream) {
  if (const auto e = check_aligned(s.p, s.m, s.v, s.u, s.half_p, g)) return e;
  unsigned blocks = 0;
  if (const auto e = grid_size(elementwise<Operation>, quads_of(s.elements), blocks)) return e;
  launch(elementwise<Operation>, blocks, threads, stream, s, g, c);
  return cudaGetLastError();
}

}  // namespace

cudaError_t adam_step(const AdamState& state, const float* g, const AdamOptions& options, int step,
                      cudaStream_t stream) {
  return launch_step<FullStep>(state, g, AdamConstants(state, options, step), stream);
}
cudaError_t adam_apply(const AdamState& state, const AdamOptions& options, cudaStream_t stream) {
  return launch_step<Apply>(state, nullptr, AdamConstants(state, options), stream);
}
cudaError_t zero_one_onebit_step(const AdamState& state, const float* averaged_g,
                                 const AdamOptions& options, cudaStream_t stream) {
  return launch_step<OnebitStep>(state, averaged_g, AdamConstants(state, options), stream);
}
cudaError_t zero_one_local_step(const AdamState& state, const float* g, const AdamOptions& options,
                                cudaStream_t stream) {
  return launch_step<LocalStep>(state, g, AdamConstants(state, options), stream);
}
cudaError_t zero_one_sync_begin(const AdamState& state, const AdamOptions& options,
                                cudaStream_t stream) {
  return launch_step<SyncBegin>(state, nullptr, AdamConstants(state, options), stream);
}
cudaError_t zero_one_sync_end(const AdamState& state, double lrs, const AdamOptions& options,
                              cudaStream_t stream) {
  AdamConstants c(state, options);
  c.lr = static_cast<float>(lrs);
  c.exact_lr = lrs;
  const auto e = launch_step<SyncEnd>(state, nullptr, c, stream);
  if (e != cudaSuccess || state.lrs == nullptr) return e;
  return cudaMemsetAsync(state.lrs, 0, sizeof(double), stream);
}

}  // namespace lambcast::cuda
