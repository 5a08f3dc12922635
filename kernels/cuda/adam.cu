#include "kernels/cuda/adam.h"

#include <type_traits>

#include "kernels/bias_correction.h"
#include "kernels/cuda/gradient.cuh"
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

// One element of every state. Each kernel below is one function on it, and accesses only the fields
// that it uses.
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
  static constexpr unsigned reads = P | M | V, writes = P;  // and M if an element stays
  __device__ static void run(Element& x, const AdamConstants& c) {
    if (c.stays(x.v)) x.m = 0;
    x.p -= c.lr * c.update(x.p, x.m, x.v);
  }
};
struct DecodedApply {  // g is the average over all ranks
  static constexpr unsigned reads = P | V | G, writes = P | M;
  __device__ static void run(Element& x, const AdamConstants& c) {
    x.m = x.g;
    Apply::run(x, c);
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
  static constexpr unsigned reads = P | M | V | U | G, writes = P | M | U;
  __device__ static void run(Element& x, const AdamConstants& c) {
    LocalStep::run(x, c);
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
struct DecodedSyncEnd {  // g is the average over all ranks
  static constexpr unsigned reads = P | V | G, writes = P | M | U;
  __device__ static void run(Element& x, const AdamConstants& c) {
    x.u = x.g;
    SyncEnd::run(x, c);
  }
};

// Reads a packed average as g, at increasing elements.
struct Packed {
  PackedRun run;
  const PackedRun* at;
  const float* mask;
  std::size_t begin = 0, chunk_end = 0;  // start of the run; end of the chunk within the run
  float scale = 0;

  __device__ explicit Packed(const PackedAverage& a)
      : run(a.runs ? *a.runs : a.all), at(a.runs), mask(a.mask) {}

  // Chunks begin at multiples of 8 in their run and runs at multiples of 4, so each quad is in one
  // chunk of one run.
  __device__ Quad read(std::size_t e, std::size_t limit) {
    while (at != nullptr && run.end <= e) {
      begin = run.end;
      run = *++at;
      chunk_end = 0;
    }
    const std::size_t own = e - begin;
    const unsigned nibble = nibble_at(run.signs, own);
    if (own >= chunk_end) {
      const std::size_t chunk = own / run.chunk;
      chunk_end = (chunk + 1) * run.chunk;
      scale = run.scales[chunk];
    }
    Quad x;
    for (int i = 0; i < 4; ++i) x.at[i] = with_sign(scale, nibble & (8u >> i));
    if (mask == nullptr) return x;
    const Quad factor = load_quad(mask, e, limit);
    for (int i = 0; i < 4; ++i) x.at[i] *= factor.at[i];
    return x;
  }
};
template <typename T>
__device__ GradientReader<T> reader_of(const TypedGradient<T>& g) {
  return GradientReader<T>(g);
}
__device__ Packed reader_of(const PackedAverage& g) { return Packed(g); }

// Source is a TypedGradient or a PackedAverage.
template <typename Operation, typename Source>
__global__ void __launch_bounds__(threads) elementwise(AdamState s, Source g, AdamConstants c) {
  constexpr unsigned reads = Operation::reads, writes = Operation::writes;
  constexpr bool ends_sync =
      std::is_same_v<Operation, SyncEnd> || std::is_same_v<Operation, DecodedSyncEnd>;
  constexpr bool moves_locally =
      std::is_same_v<Operation, LocalStep> || std::is_same_v<Operation, SyncBegin>;
  c.read_rate(ends_sync ? s.lrs : s.lr);
  if (moves_locally && s.lrs && blockIdx.x == 0 && threadIdx.x == 0) *s.lrs += c.exact_lr;
  GroupCursor cursor{s.runs};
  auto reader = reader_of(g);
  for_each_quad(s.elements, [&](std::size_t e, std::size_t limit) {
    Quad p{}, m{}, v{}, u{}, gradient{};
    if constexpr ((reads & P) != 0) p = load_quad(s.p, e, limit);
    if constexpr ((reads & M) != 0) m = load_quad(s.m, e, limit);
    if constexpr ((reads & V) != 0) v = load_quad(s.v, e, limit);
    if constexpr ((reads & U) != 0) u = load_quad(s.u, e, limit);
    if constexpr ((reads & G) != 0) gradient = reader.read(e, limit);
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

template <typename T>
const TypedGradient<T>& values_of(const TypedGradient<T>& g) {
  return g;
}
const float* values_of(const PackedAverage& g) { return g.mask; }

template <typename Operation, typename Source>
cudaError_t launch_step(const AdamState& s, const Source& g, const AdamConstants& c,
                        cudaStream_t stream) {
  if (const auto e = check_aligned(s.p, s.m, s.v, s.u, s.half_p, values_of(g))) return e;
  const auto kernel = elementwise<Operation, Source>;
  unsigned blocks = 0;
  if (const auto e = grid_size(kernel, quads_of(s.elements), blocks)) return e;
  launch(kernel, blocks, threads, stream, s, g, c);
  return cudaGetLastError();
}
template <typename Operation>
cudaError_t launch_step(const AdamState& s, const Gradient& g, const AdamConstants& c,
                        cudaStream_t stream) {
  return with_type(
      g, [&](const auto& typed) { return launch_step<Operation>(s, typed, c, stream); });
}

template <typename Operation, typename Source>
cudaError_t end_sync(const AdamState& state, const Source& u, double lrs, const AdamOptions& options,
                     cudaStream_t stream) {
  AdamConstants c(state, options);
  c.lr = static_cast<float>(lrs);
  c.exact_lr = lrs;
  const auto e = launch_step<Operation>(state, u, c, stream);
  if (e != cudaSuccess || state.lrs == nullptr) return e;
  return cudaMemsetAsync(state.lrs, 0, sizeof(double), stream);
}

constexpr TypedGradient<float> none;

}  // namespace

cudaError_t adam_step(const AdamState& state, const Gradient& g, const AdamOptions& options,
                      int step, cudaStream_t stream) {
  return launch_step<FullStep>(state, g, AdamConstants(state, options, step), stream);
}
cudaError_t adam_apply(const AdamState& state, const AdamOptions& options, cudaStream_t stream) {
  return launch_step<Apply>(state, none, AdamConstants(state, options), stream);
}
cudaError_t onebit_adam_step(const AdamState& state, const PackedAverage& m,
                             const AdamOptions& options, cudaStream_t stream) {
  return launch_step<DecodedApply>(state, m, AdamConstants(state, options), stream);
}
cudaError_t zero_one_onebit_step(const AdamState& state, const Gradient& averaged_g,
                                 const AdamOptions& options, cudaStream_t stream) {
  return launch_step<OnebitStep>(state, averaged_g, AdamConstants(state, options), stream);
}
cudaError_t zero_one_onebit_step(const AdamState& state, const PackedAverage& g,
                                 const AdamOptions& options, cudaStream_t stream) {
  return launch_step<OnebitStep>(state, g, AdamConstants(state, options), stream);
}
cudaError_t zero_one_local_step(const AdamState& state, const Gradient& g,
                                const AdamOptions& options, cudaStream_t stream) {
  return launch_step<LocalStep>(state, g, AdamConstants(state, options), stream);
}
cudaError_t zero_one_sync_begin(const AdamState& state, const Gradient& g,
                                const AdamOptions& options, cudaStream_t stream) {
  return launch_step<SyncBegin>(state, g, AdamConstants(state, options), stream);
}
cudaError_t zero_one_sync_end(const AdamState& state, double lrs, const AdamOptions& options,
                              cudaStream_t stream) {
  return end_sync<SyncEnd>(state, none, lrs, options, stream);
}
cudaError_t zero_one_sync_end(const AdamState& state, const PackedAverage& u, double lrs,
                              const AdamOptions& options, cudaStream_t stream) {
  return end_sync<DecodedSyncEnd>(state, u, lrs, options, stream);
}

}  // namespace lambcast::cuda
