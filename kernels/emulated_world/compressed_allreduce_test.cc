#include "kernels/emulated_world/compressed_allreduce.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "sim/base/error.h"

using namespace lambcast;
using namespace lambcast::emulated;

namespace {

using Buffers = std::vector<std::vector<float>>;

// DeepSpeed's own test data: uniform(-0.5, 0.5) + 0.01 * rank. The bits of the random engine are
// standard, and the distribution is defined here, so the data are the same everywhere.
Buffers random_buffers(int ranks, std::size_t elements, unsigned seed) {
  std::mt19937 bits(seed);
  Buffers buffers(static_cast<std::size_t>(ranks), std::vector<float>(elements));
  for (std::size_t r = 0; r < buffers.size(); ++r) {
    for (float& x : buffers[r]) {
      x = static_cast<float>(bits() * 0x1p-32 - 0.5 + 0.01 * static_cast<double>(r));
    }
  }
  return buffers;
}

Scales run(Buffers& buffers, ErrorFeedback& errors, Padding padding) {
  const std::vector<std::span<float>> spans(buffers.begin(), buffers.end());
  return compressed_allreduce(spans, errors, padding);
}

}  // namespace

TEST_CASE("all ranks end with the same buffer of at most 2 n values") {
  for (const int n : {1, 2, 3, 6, 8, 12, 64}) {
    for (const std::size_t elements : {std::size_t{1}, std::size_t{1000}, std::size_t{4096}}) {
      for (const Padding padding : {Padding::excluded, Padding::counted}) {
        Buffers buffers = random_buffers(n, elements, 7);
        ErrorFeedback errors = error_feedback(elements, n);
        const Scales scales = run(buffers, errors, padding);
        REQUIRE(scales.server.size() == static_cast<std::size_t>(n));
        std::set<float> values;
        for (const auto& buffer : buffers) {
          REQUIRE(buffer == buffers.front());
          values.insert(buffer.begin(), buffer.end());
        }
        CHECK(values.size() <= 2 * static_cast<std::size_t>(n));
        for (const float value : values) {
          CHECK(std::count(scales.server.begin(), scales.server.end(), std::fabs(value)) > 0);
        }
      }
    }
  }
}

TEST_CASE("error feedback telescopes: sent values plus error feedback equal the inputs") {
  // Each call: mean_i(x_i) + mean_i(e_w,i) + e_s (before) = decoded + mean_i(e_w,i) + e_s (after),
  // exactly in real arithmetic. Over T calls with zero errors at first,
  //   sum_t decoded_t + mean_i(e_w,i) + e_s = sum_t mean_i(x_i,t),
  // up to T roundings of values of magnitude about 1, 6e-8 each.
  constexpr int calls = 50;
  for (const int n : {1, 2, 3, 6, 8, 12, 64}) {
    constexpr std::size_t elements = 1000;
    ErrorFeedback errors = error_feedback(elements, n);
    std::vector<double> meant(elements), sent(elements);
    for (int call = 0; call < calls; ++call) {
      Buffers buffers = random_buffers(n, elements, static_cast<unsigned>(call + 1));
      for (const auto& buffer : buffers) {
        for (std::size_t e = 0; e < elements; ++e) meant[e] += buffer[e] / double(n);
      }
      run(buffers, errors, Padding::excluded);
      for (std::size_t e = 0; e < elements; ++e) sent[e] += buffers[0][e];
    }
    double worst = 0;
    for (std::size_t e = 0; e < elements; ++e) {
      double owed = errors.server[e / errors.layout.chunk][e % errors.layout.chunk];
      for (const auto& worker : errors.worker) owed += worker[e] / double(n);
      worst = std::max(worst, std::fabs(sent[e] + owed - meant[e]));
    }
    CHECK(worst < calls * 4 * 6e-8 * 4);
    CHECK(worst > 0);  // sums are rounded, so equality is not exact
  }
}

TEST_CASE("the compressed average of equal magnitudes is exact") {
  // Every |x| is 1 and all ranks agree: scales are 1, the error feedback is 0, the result is x.
  for (const int n : {2, 3, 8}) {
    std::vector<float> x(96);
    for (std::size_t e = 0; e < x.size(); ++e) x[e] = e % 3 == 0 ? -1.0f : 1.0f;
    Buffers buffers(static_cast<std::size_t>(n), x);
    ErrorFeedback errors = error_feedback(x.size(), n);
    run(buffers, errors, Padding::excluded);
    // 1/n is rounded for n = 3, so the sum of n of them may be one unit off 1.
    for (std::size_t e = 0; e < x.size(); ++e) CHECK(buffers[0][e] == Approx(x[e]).epsilon(1e-6));
  }
}

TEST_CASE("excluded padding has no error feedback, counted padding has") {
  constexpr std::size_t elements =
      70;  // padded to 144 on 6 ranks: ranks 3, 4, 5 serve only padding
  Buffers buffers = random_buffers(6, elements, 3);
  Buffers again = buffers;
  ErrorFeedback excluded = error_feedback(elements, 6), counted = error_feedback(elements, 6);
  const Scales ours = run(buffers, excluded, Padding::excluded);
  const Scales theirs = run(again, counted, Padding::counted);
  CHECK(excluded.worker[0][elements] == 0);
  CHECK(ours.server[5] == 0);
  CHECK(counted.worker[0][elements] == -theirs.worker[0]);
  CHECK(theirs.server[5] > 0);
  // The RMS over 144 instead of 70 elements is smaller by sqrt(70 / 144).
  CHECK(theirs.worker[0] == Approx(ours.worker[0] * std::sqrt(70.0 / 144)).epsilon(1e-6));
}

TEST_CASE("a NaN on one rank makes every element on every rank NaN") {
  for (const int n : {2, 8}) {
    Buffers buffers = random_buffers(n, 500, 5);
    buffers.back()[123] = std::numeric_limits<float>::quiet_NaN();
    ErrorFeedback errors = error_feedback(500, n);
    run(buffers, errors, Padding::excluded);
    for (const auto& buffer : buffers) {
      for (const float value : buffer) REQUIRE(std::isnan(value));
    }
  }
}
