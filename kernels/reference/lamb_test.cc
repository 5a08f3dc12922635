#include "kernels/reference/lamb.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "sim/base/error.h"

using namespace lambcast;
using namespace lambcast::reference;
using Values = std::vector<float>;

namespace {
// With b1 = b2 = 0 and eps = 0, m = g and v = g^2, so the update is sgn(g).
constexpr LambOptions sign_lamb{.lr = 0.5, .beta1 = 0, .beta2 = 0, .eps = 0};
}  // namespace

TEST_CASE("the trust ratio is ||p|| / ||upd||, clamped") {
  // p = (3, 4): norm 5; upd = (1, -1): norm sqrt(2). The step length is lr * 5 / sqrt(2).
  Values p{3, 4}, m{0, 0}, v{0, 0};
  const TrustRatio ratio = lamb_step(p, m, v, Values{7, -9}, sign_lamb);
  CHECK(ratio.defined);
  CHECK(ratio.value == Approx(5 / std::sqrt(2.0)).epsilon(1e-7));
  CHECK(p[0] == Approx(3 - 0.5 * 5 / std::sqrt(2.0)).epsilon(1e-6));
  CHECK(p[1] == Approx(4 + 0.5 * 5 / std::sqrt(2.0)).epsilon(1e-6));

  LambOptions clamped = sign_lamb;
  clamped.max_coeff = 0.3;
  Values q{3, 4};
  CHECK(lamb_step(q, m, v, Values{7, -9}, clamped).value == 0.3f);
  clamped = sign_lamb;
  clamped.min_coeff = 8;
  CHECK(lamb_step(q, m, v, Values{7, -9}, clamped).value == 8.0f);
}

TEST_CASE("a zero norm leaves the trust ratio at 1, undefined") {
  Values p{0, 0}, m{0, 0}, v{0, 0};
  const TrustRatio ratio = lamb_step(p, m, v, Values{1, -1}, sign_lamb);
  CHECK_FALSE(ratio.defined);
  CHECK(p == Values{-0.5f, 0.5f});
}

TEST_CASE("the running coefficient starts from zero in DeepSpeed and at the mean by default") {
  // After k ratios of value c the average from zero is (1 - beta^k) c.
  for (const int k : {1, 5, 22}) {
    RunningCoefficient running;
    for (int i = 0; i < k; ++i) {
      add(running, {2.0f, true}, 0.9, CoefficientAverage::bias_corrected);
    }
    CHECK(frozen_coefficient(running, CoefficientAverage::from_zero) ==
          Approx(2 * (1 - std::pow(0.9, k))).epsilon(1e-5));
    CHECK(frozen_coefficient(running, CoefficientAverage::bias_corrected) ==
          Approx(2).epsilon(1e-6));
  }
}

TEST_CASE("1-bit LAMB keeps weights without a gradient unchanged; DeepSpeed moves them") {
  OnebitLambOptions options;
  options.lamb = {.lr = 0.5, .beta1 = 0.5, .beta2 = 0.5};
  const Values v{4, 0}, decoded{8, 8};
  for (const Unseen unseen : {Unseen::stay, Unseen::move}) {
    Values p{3, 3}, m{0, 0}, fresh{4, 0};
    float last = 1;
    onebit_lamb_step(p, m, v, fresh, decoded, {}, 4, 1, last, options, unseen);
    CHECK(m[0] == 2);
    CHECK(p[0] < 3);
    if (unseen == Unseen::stay) {
      CHECK(p[1] == 3);
      CHECK(m[1] == 0);
      CHECK(fresh[1] == 0);
    } else {
      CHECK(m[1] == 2);
      CHECK(p[1] < -1e7f);
    }
  }
}

TEST_CASE("a tensor whose ratio is always 1 never moves again in DeepSpeed") {
  RunningCoefficient theirs, ours;
  for (int i = 0; i < 10; ++i) {
    add(theirs, {1.0f, true}, 0.9, CoefficientAverage::from_zero);
    add(ours, {1.0f, true}, 0.9, CoefficientAverage::bias_corrected);
  }
  CHECK(frozen_coefficient(theirs, CoefficientAverage::from_zero) == 0.0f);
  CHECK(frozen_coefficient(ours, CoefficientAverage::bias_corrected) == Approx(1).epsilon(1e-6));
  // Without a defined ratio the coefficient stays 1.
  CHECK(frozen_coefficient({}, CoefficientAverage::bias_corrected) == 1.0f);
}

TEST_CASE("scaling coefficients bring every momentum to the mean magnitude") {
  // r = (1, 3), mean 2: s = (2, 2/3), and s_i r_i = 2 for both.
  const std::vector<std::size_t> sizes{4, 2};
  const TensorLayout tensors = tensor_layout(sizes);
  const Values m{1, -1, 1, 1, 3, -3};
  const auto s = scaling_coefficients(m, tensors, deepspeed_quirks());
  CHECK(s[0] == Approx(2).epsilon(1e-7));
  CHECK(s[1] == Approx(2 / 3.0).epsilon(1e-7));
}

TEST_CASE("a tensor of zero momentum divides by zero in DeepSpeed and is left out by default") {
  const std::vector<std::size_t> sizes{2, 2};
  const Values m{0, 0, 3, -3};
  const auto s = scaling_coefficients(m, tensor_layout(sizes), {});
  CHECK(s == Values{1, 1});
  CHECK_THROWS_WITH(scaling_coefficients(m, tensor_layout(sizes), deepspeed_quirks()),
                    "the momentum of tensor 0 is zero at the freeze, its scaling coefficient "
                    "divides by zero");
  CHECK(scaling_coefficients(Values{0, 0, 0, 0}, tensor_layout(sizes), {}) == Values{1, 1});
}

TEST_CASE("an empty tensor fails the compressed step in DeepSpeed and is left out by default") {
  // In DeepSpeed r = 0/0, and hence the mean is NaN. By default r = (1, 3), as without the tensor.
  const std::vector<std::size_t> sizes{2, 0, 2};
  const Values m{1, -1, 3, -3};
  const auto s = scaling_coefficients(m, tensor_layout(sizes), {});
  CHECK(s[0] == Approx(2));
  CHECK(s[1] == 1);
  CHECK(s[2] == Approx(2 / 3.0));
  CHECK_THROWS_WITH(scaling_coefficients(m, tensor_layout(sizes), deepspeed_quirks()),
                    "tensor 1 has no elements: scaling coefficients are NaN and there is no "
                    "largest factor");
}

TEST_CASE("LAMB's bias correction is in the moments or in the rate, and they differ by eps") {
  // Step 2 with b1 = 0.5, b2 = 0.75 and g = 2 twice: m = 1.5, v = 1.75; bias-corrected 2 and 4.
  // Correction of the moments: upd = 2 / (2 + eps). Correction of the rate: lr sqrt(0.4375) / 0.75.
  const LambOptions none{
      .lr = 0.1, .beta1 = 0.5, .beta2 = 0.75, .eps = 1, .max_coeff = 1, .min_coeff = 1};
  const auto moved = [&](BiasCorrection how) {
    LambOptions options = none;
    options.bias_correction = how;
    Values p{3}, m{1}, v{1};
    lamb_step(p, m, v, Values{2}, options, 2);
    CHECK(m == Values{1.5f});
    return 3 - p[0];
  };
  const double upd = 1.5 / (std::sqrt(1.75) + 1);
  CHECK(moved(BiasCorrection::none) == Approx(0.1 * upd).epsilon(1e-5));
  CHECK(moved(BiasCorrection::in_moments) == Approx(0.1 * 2 / 3.0).epsilon(1e-5));
  CHECK(moved(BiasCorrection::in_rate) ==
        Approx(0.1 * std::sqrt(0.4375) / 0.75 * upd).epsilon(1e-5));
}

TEST_CASE("the clamp around the last factor comes second and wins") {
  const OnebitLambOptions options;  // factor in [0.5, 4], threshold 0.1
  CHECK(clamp_factor(100, 1, 1, options) == Approx(1.1));
  CHECK(clamp_factor(0, 1, 1, options) == Approx(0.9));
  CHECK(clamp_factor(1.05, 1, 1, options) == Approx(1.05));
  // A last factor outside the range returns to it step by step.
  OnebitLambOptions high = options;
  high.factor_min = 2;
  CHECK(clamp_factor(1, 1, 1, high) == Approx(1.1));
  // Starting from 1.0: at least 15 steps up to 4.0 (1.1^14 < 4 <= 1.1^15), 7 down to 0.5.
  float up = 1, down = 1;
  int up_steps = 0, down_steps = 0;
  for (; up < 4; ++up_steps) up = clamp_factor(1e9, 1, up, options);
  for (; down > 0.5f; ++down_steps) down = clamp_factor(0, 1, down, options);
  CHECK(up_steps == 15);
  CHECK(down_steps == 7);
  CHECK(std::isnan(clamp_factor(std::nan(""), 1, 1, options)));
}

TEST_CASE("if the limits of a clamp cross, the lower one wins") {
  // The upper limit is applied first: 5 -> 2 -> 3; likewise a ratio of 5 / sqrt(2) = 3.54 -> 2 ->
  // 3.
  OnebitLambOptions crossed;
  crossed.factor_min = 3;
  crossed.factor_max = 2;
  crossed.factor_threshold = 10;
  CHECK(clamp_factor(5, 1, 1, crossed) == 3);
  CHECK(clamp_factor(1, 1, 1, crossed) == 3);
  LambOptions lamb = sign_lamb;
  lamb.min_coeff = 3;
  lamb.max_coeff = 2;
  Values p{3, 4}, m{0, 0}, v{0, 0};
  CHECK(lamb_step(p, m, v, Values{7, -9}, lamb).value == 3.0f);
}

TEST_CASE("weight decay moves the factor towards 1 by the share of the momentum") {
  OnebitLambOptions options;
  options.lamb.weight_decay = 0.01;
  options.factor_threshold = 10;
  // f q + (1 - q) with f = 3, q = 0.25: 1.5. A share above 1 counts as 1.
  CHECK(clamp_factor(3, 0.25, 1, options) == Approx(1.5));
  CHECK(clamp_factor(3, 2, 1, options) == Approx(3));
}

TEST_CASE("the compression stage reconstructs the gradient from the averaged momentum") {
  // b1 = 0.5, m_last = 2, decoded 12 at scaling 4: m = 3, g' = (3 - 1) / 0.5 = 4.
  // vf = 0.5 * 0 + 0.5 * 16 = 8; f = sqrt(v) / sqrt(vf) with v = 16: 4 / sqrt(8) = sqrt(2).
  OnebitLambOptions options;
  options.lamb = {.lr = 0.1, .beta1 = 0.5, .beta2 = 0.5, .eps = 0};
  options.factor_threshold = 1;
  Values p{1}, m{2}, fresh{0};
  float last_factor = 1;
  const float factor =
      onebit_lamb_step(p, m, Values{16}, fresh, Values{12}, {}, 4, 0.5f, last_factor, options);
  CHECK(m[0] == 3);
  CHECK(fresh[0] == 8);
  CHECK(factor == Approx(std::sqrt(2.0)).epsilon(1e-7));
  CHECK(last_factor == factor);
  CHECK(p[0] == Approx(1 - 0.1 * 0.5 * std::sqrt(2.0) * 3 / 4).epsilon(1e-6));
}

TEST_CASE("the mask is applied after the scaling is undone, and a masked element does not move") {
  OnebitLambOptions options;
  Values p{1, 1}, m{0, 0}, fresh{1, 1};
  float last_factor = 1;
  onebit_lamb_step(p, m, Values{1, 1}, fresh, Values{6, 6}, Values{1, 0}, 2, 1, last_factor,
                   options);
  CHECK(m == Values{3, 0});
  CHECK(p[1] == 1);
}

TEST_CASE("a NaN in any element of the fresh variance makes the tensor NaN") {
  for (const std::size_t at : {std::size_t{0}, std::size_t{2}}) {
    Values p{1, 1, 1}, m{0, 0, 0}, fresh{1, 1, 1};
    fresh[at] = std::numeric_limits<float>::quiet_NaN();
    float last_factor = 1;
    const OnebitLambOptions options;
    CHECK(std::isnan(onebit_lamb_step(p, m, Values{1, 1, 1}, fresh, Values{1, 1, 1}, {}, 1, 1,
                                      last_factor, options)));
  }
}
