#include "kernels/cuda/lion.h"

#include "kernels/cuda/gradient.cuh"
#include "kernels/cuda/group_cursor.cuh"

namespace lambcast::cuda {
namespace {

struct LionConstants : GroupRate {
  float b1, b2, new_in_b1, new_in_b2;

  explicit LionConstants(const reference::LionOptions& o)
      : GroupRate(o.lr, o.weight_decay),
        b1(static_cast<float>(o.beta1)),
        b2(static_cast<float>(o.beta2)),
        new_in_b1(static_cast<float>(1 - o.beta1)),
        new_in_b2(static_cast<float>(1 - o.beta2)) {}
};

template <typename T>
__global__ void __launch_bounds__(threads)
    step_kernel(LionState s, TypedGradient<T> g, LionConstants c) {
  const GradientReader<T> reader(g);
  c.read_rate(s.lr);
  GroupCursor cursor{s.runs};
  for_each_quad(s.elements, [&](std::size_t e, std::size_t limit) {
    Quad p = load_quad(s.p, e, limit), m = load_quad(s.m, e, limit);
    const Quad gradient = reader.read(e, limit);
    cursor.move_to(e, c);
    const bool one_group = !cursor.ends_before(limit);
    for (int i = 0; i < 4; ++i) {
      if (!one_group && e + i < limit) cursor.move_to(e + i, c);
      const float mixed = c.b1 * m.at[i] + c.new_in_b1 * gradient.at[i];
      const float sign = mixed > 0 ? 1.0f : mixed < 0 ? -1.0f : 0.0f;
      p.at[i] -= c.lr * (sign + c.wd * p.at[i]);
      m.at[i] = c.b2 * m.at[i] + c.new_in_b2 * gradient.at[i];
    }
    store_quad(s.p, e, limit, p);
    store_quad(s.half_p, e, limit, p);
    store_quad(s.m, e, limit, m);
  });
}

}  // namespace

cudaError_t lion_step(const LionState& s, const Gradient& g, const reference::LionOptions& options,
                      cudaStream_t stream) {
  return with_type(g, [&]<typename T>(const TypedGradient<T>& typed) {
    if (const auto e = check_aligned(s.p, s.m, s.half_p, typed)) return e;
    unsigned blocks = 0;
    if (const auto e = grid_size(step_kernel<T>, quads_of(s.elements), blocks)) return e;
    launch(step_kernel<T>, blocks, threads, stream, s, typed, LionConstants(options));
    return cudaGetLastError();
  });
}

}  // namespace lambcast::cuda
