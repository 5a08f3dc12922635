#include "kernels/reference/adam.h"

#include <cmath>

#include "kernels/bias_correction.h"
#include "sim/base/check.h"

namespace lambcast::reference {
namespace {

// The options rounded to float once, including the bias corrections of plain Adam.
struct Constants {
  float lr, b1, b2, one_minus_b1, one_minus_b2, eps, wd;
  BiasFactors bias;

  explicit Constants(const AdamOptions& o, int step = 0)
      : lr(static_cast<float>(o.lr)),
        b1(static_cast<float>(o.beta1)),
        b2(static_cast<float>(o.beta2)),
        one_minus_b1(static_cast<float>(1 - o.beta1)),
        one_minus_b2(static_cast<float>(1 - o.beta2)),
        eps(static_cast<float>(o.eps)),
        wd(static_cast<float>(o.weight_decay)),
        bias(bias_factors(o.bias_correction ? BiasCorrection::in_moments : BiasCorrection::none,
                          o.beta1, o.beta2, step)) {}

  float denominator(float v) const { return std::sqrt(v) * bias.root + eps; }
  float update(float p, float m, float v) const {
    const float upd = m * bias.momentum / denominator(v);
    return wd > 0 ? upd + wd * p : upd;
  }
};

bool stays(Unseen unseen, float v) { return unseen == Unseen::stay && v == 0; }

void check_sizes(std::size_t p, std::size_t m, std::size_t v) {
  LAMBCAST_CHECK(p == m && p == v, "{}, {} and {} elements", p, m, v);
}

}  // namespace

void adam_step(std::span<float> p, std::span<float> m, std::span<float> v, std::span<const float> g,
               const AdamOptions& options, int step) {
  check_sizes(p.size(), m.size(), v.size());
  const Constants c(options, step);
  for (std::size_t e = 0; e < p.size(); ++e) {
    m[e] = c.b1 * m[e] + c.one_minus_b1 * g[e];
    v[e] = c.b2 * v[e] + c.one_minus_b2 * (g[e] * g[e]);
    p[e] -= c.lr * c.update(p[e], m[e], v[e]);
  }
}

void adam_apply(std::span<float> p, std::span<float> m, std::span<const float> v,
                const AdamOptions& options, Unseen unseen) {
  check_sizes(p.size(), m.size(), v.size());
  const Constants c(options);
  for (std::size_t e = 0; e < p.size(); ++e) {
    if (stays(unseen, v[e])) m[e] = 0;
    p[e] -= c.lr * c.update(p[e], m[e], v[e]);
  }
}

void zero_one_onebit_step(std::span<float> p, std::span<float> m, std::span<const float> v,
                          std::span<const float> averaged_g, const AdamOptions& options,
                          Unseen unseen) {
  check_sizes(p.size(), m.size(), averaged_g.size());
  const Constants c(options);
  for (std::size_t e = 0; e < p.size(); ++e) {
    const float g = stays(unseen, v[e]) ? 0 : averaged_g[e];
    m[e] = c.b1 * m[e] + c.one_minus_b1 * g;
    p[e] -= c.lr * c.update(p[e], m[e], v[e]);
  }
}

void zero_one_local_step(std::span<float> p, std::span<float> m, std::span<const float> v,
                         std::span<float> u, std::span<const float> g, const AdamOptions& options,
                         Unseen unseen) {
  check_sizes(p.size(), u.size(), g.size());
  const Constants c(options);
  for (std::size_t e = 0; e < p.size(); ++e) {
    m[e] = c.b1 * m[e] + c.one_minus_b1 * (stays(unseen, v[e]) ? 0 : g[e]);
    const float move = c.lr * c.update(p[e], m[e], v[e]);
    p[e] -= move;
    u[e] -= move;
  }
}

void zero_one_sync_begin(std::span<float> p, std::span<const float> v, std::span<float> u,
                         const AdamOptions& options, Unseen unseen) {
  check_sizes(p.size(), v.size(), u.size());
  const Constants c(options);
  for (std::size_t e = 0; e < p.size(); ++e) {
    if (stays(unseen, v[e])) u[e] = 0;
    p[e] -= u[e];
    u[e] *= c.denominator(v[e]);
  }
}

void zero_one_sync_end(std::span<float> p, std::span<float> m, std::span<const float> v,
                       std::span<float> u, double lrs, const AdamOptions& options, Unseen unseen) {
  check_sizes(p.size(), v.size(), u.size());
  const Constants c(options);
  const float minus_lrs = static_cast<float>(-lrs);
  for (std::size_t e = 0; e < p.size(); ++e) {
    if (stays(unseen, v[e])) u[e] = 0;
    m[e] = u[e] / minus_lrs;
    p[e] += u[e] / c.denominator(v[e]);
    u[e] = 0;
  }
}

}  // namespace lambcast::reference
