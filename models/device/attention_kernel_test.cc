#include "models/device/attention_kernel.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <string_view>

#include "models/device/device.h"
#include "sim/base/check.h"

namespace lambcast {
namespace {

GpuRates rates_of(const std::string& device) { return load_device(device).rates.value(); }

TEST_CASE("attention: a flash kernel computes half of a causal square") {
  const GpuRates h100 = rates_of("h100");
  AttentionWork work{1, 32, 32, 128, 8192, 8192, true};
  for (const AttentionKernel kernel :
       {AttentionKernel::flash1, AttentionKernel::flash2, AttentionKernel::cudnn}) {
    const auto forward = attention_forward(kernel, work, h100);
    const auto backward = attention_backward(kernel, work, h100);
    REQUIRE((forward.size() == 1 && backward.size() == 1));
    const double square = 4 * 32 * 128 * 8192. * 8192;
    CHECK(forward[0].cost.flops.value() == Approx(square * 0.5 * (1 + 128 / 8192.)));
    CHECK(backward[0].cost.flops.value() == Approx(2.5 * forward[0].cost.flops.value()));
    const double rate = (forward[0].cost.flops / forward[0].cost.duration).value();
    CHECK(rate < h100.reached(MatrixFormat::half).value());
    work.causal = false;
    const auto whole = attention_forward(kernel, work, h100);
    CHECK(whole[0].cost.flops.value() == Approx(square));
    CHECK(whole[0].cost.duration > forward[0].cost.duration);
    work.causal = true;
  }
  const auto time = [&](AttentionKernel kernel) {
    Duration sum;
    for (const AttentionPiece& piece : attention_forward(kernel, work, h100))
      sum += piece.cost.duration;
    return sum;
  };
  CHECK(time(AttentionKernel::cudnn) < time(AttentionKernel::flash2));
  CHECK(time(AttentionKernel::flash2) < time(AttentionKernel::flash1));
  CHECK(time(AttentionKernel::flash1) < time(AttentionKernel::unfused));
}

// For each score, the softmax's backward pass reads the score's gradient and the softmax output and
// writes a gradient, 2 bytes each.
TEST_CASE("attention: an unfused softmax moves each score three times in the backward pass") {
  const AttentionWork work{1, 32, 32, 128, 1024, 1024, false};
  double bytes = 0;
  for (const AttentionPiece& piece :
       attention_backward(AttentionKernel::unfused, work, rates_of("h100")))
    if (std::string_view(piece.name) == "softmax") bytes += piece.cost.bytes.value();
  CHECK(bytes == 6 * 32 * 1024. * 1024);
}

TEST_CASE("attention: distances add a product per query and per key, and move each score") {
  AttentionWork work{2, 12, 12, 64, 512, 512, false};
  const auto sums = [&](const auto& pass) {
    double flops = 0, bytes = 0;
    for (const AttentionPiece& piece : pass(AttentionKernel::unfused, work, rates_of("h100"))) {
      flops += piece.cost.flops.value();
      if (!piece.product) bytes += piece.cost.bytes.value();
    }
    return std::pair(flops, bytes);
  };
  const auto forward = sums(attention_forward), backward = sums(attention_backward);
  work.distances = 256;
  const auto more_forward = sums(attention_forward), more_backward = sums(attention_backward);
  const double product = 2. * 2 * 12 * 512 * 256 * 64, scores = 2 * 12 * 512. * 512;
  CHECK(more_forward.first - forward.first == Approx(2 * product));
  CHECK(more_backward.first - backward.first == Approx(4 * product));
  CHECK(more_forward.second - forward.second == Approx(32 * scores));
  CHECK(more_backward.second - backward.second == Approx(28 * scores));
}

TEST_CASE("attention: no size is negative") {
  const GpuRates h100 = rates_of("h100");
  for (int negative = 0; negative < 6; ++negative) {
    std::array<std::int64_t, 6> size{1, 2, 2, 64, 8, 8};
    size[static_cast<std::size_t>(negative)] = -1;
    const AttentionWork work{size[0], size[1], size[2], size[3], size[4], size[5], false};
    CHECK_THROWS_AS(attention_forward(AttentionKernel::unfused, work, h100), InternalError);
  }
}

// The expected number of tiles of 128 x 128 is counted one by one: row i computes tiles max(1, i -
// w) to i.
TEST_CASE("attention: a window leaves whole tiles on and below the diagonal") {
  const GpuRates a100 = rates_of("a100-80g");
  AttentionWork work{1, 3, 3, 128, 2048, 2048, true};
  const auto tiles = [&] {
    const double tile = 4 * 3 * 128 * 128. * 128;
    return attention_forward(AttentionKernel::flash2, work, a100)[0].cost.flops.value() / tile;
  };
  const auto counted = [](int window) {
    int sum = 0;
    for (int row = 1; row <= 16; ++row)
      for (int column = std::max(1, row - window); column <= row; ++column) ++sum;
    return sum;
  };
  CHECK(tiles() == Approx(counted(16)));
  for (const int window : {1, 3, 4, 15, 16, 40}) {
    work.window = 128 * window;
    work.window_every = 1;
    CHECK(tiles() == Approx(counted(window)));
    work.window_every = 3;
    CHECK(tiles() == Approx((2 * counted(16) + counted(window)) / 3.));
    work.window_layers = 2;
    CHECK(tiles() == Approx((counted(16) + 2 * counted(window)) / 3.));
    work.window_layers = 1;
  }
  work.window = 128;
  work.causal = false;
  CHECK(tiles() == Approx(256));
}

TEST_CASE("attention: rates are those published in the papers of its kernels") {
  // Setting of the papers' figures: head 128, 16 x 16 heads, 8192 tokens, no mask, on GPUs whose
  // large products reach 260 of 312 TFLOP/s (A100) and 740 of 989 (H100). arXiv 2307.08691 figures
  // 4 to 6, 2407.08608 figures 5 and 6.
  const AttentionWork work{16, 16, 16, 128, 8192, 8192};
  const auto rates_at = [](const char* device, double share) {
    GpuRates rates = rates_of(device);
    rates.matrix[1].share.value = share;
    return rates;
  };
  const auto tflops = [](const std::vector<AttentionPiece>& pieces) {
    return (pieces[0].cost.flops / pieces[0].cost.duration).value() / 1e12;
  };
  const GpuRates a100 = rates_at("a100-80g", 260 / 312.), h100 = rates_at("h100", 740 / 989.);
  CHECK(tflops(attention_forward(AttentionKernel::flash2, work, a100)) == Approx(225).epsilon(0.1));
  CHECK(tflops(attention_backward(AttentionKernel::flash2, work, a100)) ==
        Approx(190).epsilon(0.1));
  CHECK(tflops(attention_forward(AttentionKernel::flash2, work, h100)) == Approx(370).epsilon(0.1));
  const GpuRates training = rates_of("h100");  // large products reach 613 TFLOP/s
  CHECK(tflops(attention_forward(AttentionKernel::cudnn, work, training)) ==
        Approx(600).epsilon(0.05));
  CHECK(tflops(attention_backward(AttentionKernel::cudnn, work, training)) ==
        Approx(518).epsilon(0.07));
  CHECK(tflops(attention_forward(AttentionKernel::flash3, work, training)) ==
        Approx(646).epsilon(0.05));
  CHECK(tflops(attention_backward(AttentionKernel::flash3, work, training)) ==
        Approx(559).epsilon(0.07));
  const GpuRates b200 = rates_of("b200");
  CHECK(tflops(attention_forward(AttentionKernel::flash4, work, b200)) /
            tflops(attention_forward(AttentionKernel::cudnn, work, b200)) ==
        Approx(1.3).epsilon(0.01));
  CHECK(tflops(attention_forward(AttentionKernel::flash4, work, b200)) < 1605);
  // The times of products and of exponentials are lower by the same factor.
  const auto rests = [&](AttentionKernel kernel, Rate rate) {
    return attention_forward(kernel, work, b200)[0].cost.rests_on[rate];
  };
  for (const Rate rate : {rate_of(MatrixFormat::half), Rate::exponentials})
    CHECK(rests(AttentionKernel::cudnn, rate) / rests(AttentionKernel::flash4, rate) ==
          Approx(1.3).epsilon(0.01));
}

TEST_CASE("attention: kernels run on supported GPUs, and count as a kernel that was timed there") {
  using enum AttentionKernel;
  const std::vector<AttentionKernel> all{unfused, flash1, flash2, cudnn, flash3, flash4};
  struct Case {
    const char* device;
    std::vector<AttentionKernel> run;
    AttentionKernel newest;
  };
  for (const Case& c : {Case{"v100-32g", {unfused, flash1}, unfused},
                        {"t4", {unfused, flash1}, flash1},
                        {"a100-80g", {unfused, flash1, flash2, cudnn}, flash2},
                        {"l40s", {unfused, flash1, flash2, cudnn}, flash2},
                        {"h100", all, cudnn},
                        {"b200", {unfused, flash1, flash2, cudnn, flash4}, cudnn},
                        {"gb300", {unfused, flash1, flash2, cudnn, flash4}, cudnn}}) {
    INFO(c.device);
    const GpuRates rates = rates_of(c.device);
    std::vector<AttentionKernel> run;
    std::ranges::copy_if(all, std::back_inserter(run),
                         [&](AttentionKernel kernel) { return runs_on(kernel, rates); });
    CHECK(run == c.run);
    CHECK(newest_attention(rates) == c.newest);
  }
  const AttentionWork work{16, 16, 16, 128, 8192, 8192};
  const auto time = [&](AttentionKernel kernel, const char* device) {
    return attention_forward(kernel, work, rates_of(device)).front().cost.duration;
  };
  CHECK(time(cudnn, "a100-80g") == time(flash2, "a100-80g"));
  CHECK(time(flash4, "h100") == time(cudnn, "h100"));
  CHECK(timed_as(flash4, rates_of("b200")) == flash4);
  CHECK(timed_as(flash3, rates_of("h200")) == flash3);
}

// With twice the exponentials per second, a GB300's attention comes closer to its products' rate.
TEST_CASE("attention: exposed exponentials explain the shares of Hopper and Blackwell") {
  AttentionWork work;
  work.batch = 1, work.heads = work.kv_heads = 32, work.head_size = 128;
  work.queries = work.keys = 32768;
  const auto share = [&](const char* device) {
    const GpuRates rates = rates_of(device);
    const KernelCost cost = attention_forward(AttentionKernel::cudnn, work, rates).front().cost;
    return cost.flops.value() / cost.duration.s() / rates.reached(MatrixFormat::half).value();
  };
  CHECK(share("h100") == Approx(1).epsilon(0.03));
  CHECK(share("gb200") == Approx(0.8).epsilon(0.03));
  CHECK(share("gb300") == Approx(0.99).epsilon(0.03));
}

}  // namespace
}  // namespace lambcast
