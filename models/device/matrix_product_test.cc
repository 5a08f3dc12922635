#include "models/device/matrix_product.h"

#include <catch2/catch.hpp>

#include "models/device/device.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

// A GPU with 100 multiprocessors of 1 TFLOP/s in 16 bits, 1 TB/s, and kernels that start in no
// time.
GpuRates round_numbers() {
  GpuRates rates;
  rates.device = "round";
  rates.multiprocessors = 100;
  rates.matrix[1] = {{FlopRate(200e12), {}}, {0.5, {}}};
  rates.peak_vector = {FlopRate(10e12), {}};
  rates.memory = {Bandwidth(1e12), {}};
  rates.exponentials = {FlopRate(1e12), {}};
  return rates;
}

double us(const Product& product, const GpuRates& rates) {
  return product_cost(product, rates).duration.us();
}

GpuRates rates_of(const std::string& device) { return load_device(device).rates.value(); }

TEST_CASE("matrix product: one full wave, and one more column of tiles") {
  // 10 x 10 tiles of 256 x 128 fill the 100 multiprocessors once. k counts as 3840 + 256, since the
  // ramp is 512 bytes. A tile takes 2 * 256 * 128 * 4096 operations at 1 TFLOP/s.
  const Product full{2560, 1280, 3840};
  const double wave_us = 2 * 256 * 128 * 4096 / 1e12 * 1e6;
  CHECK(us(full, round_numbers()) == Approx(wave_us));
  // Another column makes 110 blocks, 2 waves. With tiles of 128 x 128 there are 220, 3 waves of
  // half the work at 0.9 of the rate: 1.67 times as long, the minimum.
  CHECK(us({2560, 1281, 3840}, round_numbers()) == Approx(wave_us * 3 * 0.5 / 0.9));
  CHECK(us({2560, 1408, 3840}, round_numbers()) == Approx(wave_us * 3 * 0.5 / 0.9));
  // A batch of products has the blocks of one product with as many columns in total.
  CHECK(us({2560, 128, 3840, 10}, round_numbers()) == Approx(wave_us));
  CHECK(product_cost(full, round_numbers()).flops.value() == 2. * 2560 * 1280 * 3840);
}

TEST_CASE("matrix product: fp32 outside the matrix units reaches its rate with any tile") {
  GpuRates rates = round_numbers();
  rates.compute_capability = generation::volta;
  rates.matrix[0] = {{FlopRate(10e12), {}}, {1, {}}};
  // 100 tiles of 64 x 64 fill the GPU once, with k plus a ramp of 16, at 0.1 TFLOP/s each.
  const Product small{640, 640, 1024, 1, MatrixFormat::single};
  CHECK(us(small, rates) == Approx(2 * 64 * 64 * (1024 + 16) / 0.1e12 * 1e6));
  // TF32 is ten times as fast. The smallest tile reaches half of that rate, and the ramp is 128.
  rates.compute_capability = generation::ampere;
  rates.matrix[0].peak.value = FlopRate(100e12);
  CHECK(us(small, rates) == Approx(2 * 64 * 64 * (1024 + 128) / 0.5e12 * 1e6));
}

TEST_CASE("matrix product: a thin one takes the time to move its bytes") {
  // With k = 32, a product reads (10240 + 10240) 32 elements and writes 10240^2, 2 bytes each.
  const double bytes = 2 * (2 * 10240. * 32 + 10240. * 10240);
  GpuRates slow_memory = round_numbers();
  slow_memory.memory = {Bandwidth(0.1e12), {}};
  const KernelCost cost = product_cost({10240, 10240, 32}, slow_memory);
  CHECK(cost.bytes.value() == bytes);
  CHECK(cost.duration.us() == Approx(bytes / 0.1e12 * 1e6));
  GpuRates slow_start = slow_memory;
  slow_start.kernel_start = {Duration::microseconds(5), {}};
  CHECK(us({10240, 10240, 32}, slow_start) == Approx(bytes / 0.1e12 * 1e6 + 5));
  Product accumulated{10240, 10240, 32};
  accumulated.output_bytes = 8;
  CHECK(product_cost(accumulated, slow_memory).bytes.value() == bytes + 6 * 10240. * 10240);
}

TEST_CASE("matrix product: the time never decreases as a dimension grows") {
  for (const char* device : {"v100-32g", "a100-80g", "h100", "gb300", "t4"}) {
    const GpuRates rates = rates_of(device);
    for (const std::int64_t other : {1, 63, 512, 5121}) {
      KernelCost m, n, k, batch;
      for (std::int64_t size = 1; size < 3000; size += 37) {
        const KernelCost next[] = {
            product_cost({size, other, 777}, rates), product_cost({other, size, 777}, rates),
            product_cost({777, other, size}, rates), product_cost({100, 72, other, size}, rates)};
        CHECK(next[0].duration >= m.duration);
        CHECK(next[1].duration >= n.duration);
        CHECK(next[2].duration >= k.duration);
        CHECK(next[3].duration >= batch.duration);
        m = next[0], n = next[1], k = next[2], batch = next[3];
      }
    }
  }
}

TEST_CASE("matrix product: never faster than the GPU, and large ones are close to its rate") {
  for (const std::string& device : device_names()) {
    const GpuRates rates = rates_of(device);
    for (const MatrixFormat format : {MatrixFormat::single, MatrixFormat::half}) {
      Product product{16384, 16384, 16384, 1, format};
      const KernelCost large = product_cost(product, rates);
      const double share = (large.flops / large.duration).value() / rates.reached(format).value();
      CHECK(share < 1);
      CHECK(share > 0.9);
      product.m = 16;
      const KernelCost thin = product_cost(product, rates);
      // Tiles have at least 64 rows, of which this product fills 16. On the matrix units, small
      // tiles also reach only half the rate.
      const bool outside = outside_matrix_units(format, rates);
      CHECK((thin.flops / thin.duration).value() <
            (outside ? 0.25 : 0.2) * rates.reached(format).value());
    }
  }
}

TEST_CASE("matrix product: rows that are no multiple of 16 bytes") {
  CHECK(rows_aligned(MatrixFormat::half, {112, 2048}));
  CHECK_FALSE(rows_aligned(MatrixFormat::half, {108, 2048}));
  CHECK(rows_aligned(MatrixFormat::single, {108}));
  CHECK_FALSE(rows_aligned(MatrixFormat::fp8, {72}));
  const GpuRates a100 = rates_of("a100-80g");
  // Scores of 64 heads of 108 elements run outside the matrix units: at most 60 % of 19.5 TFLOP/s.
  Product scores{2048, 2048, 108, 64};
  scores.aligned_rows = false;
  const KernelCost unaligned = product_cost(scores, a100);
  CHECK((unaligned.flops / unaligned.duration).value() < 11.7e12);
  CHECK(us({2048, 2048, 112, 64}, a100) < 0.2 * unaligned.duration.us());
  Product head{8192, 50257, 1600};
  head.aligned_rows = false;
  // Unaligned rows halve the rate over k but not over the ramp: (2 * 1600 + 256) / (1600 + 256).
  CHECK(us(head, a100) / us({8192, 50304, 1600}, a100) == Approx(3456 / 1856.).epsilon(0.02));
}

TEST_CASE("matrix product: an empty product costs nothing; formats that a GPU lacks are refused") {
  for (const Product& empty :
       {Product{0, 8, 8}, Product{8, 0, 8}, Product{8, 8, 0}, Product{8, 8, 8, 0}})
    CHECK(product_cost(empty, round_numbers()).duration == Duration());
  CHECK(us({1, 1, 1}, rates_of("h100")) > 0);
  CHECK_THROWS_WITH(product_cost({8, 8, 8, 1, MatrixFormat::fp8}, rates_of("a100-80g")),
                    Contains("a100-80g has no matrix units for fp8"));
}

TEST_CASE("gpu rates: errors in a description are named") {
  const auto decode = [](const std::string& rates) {
    return decode_device(Table::parse(device_text("t4") + rates, "mine.toml"));
  };
  CHECK(decode("").rates->multiprocessors == 40);
  CHECK_THROWS_WITH(
      decode("share_fp8 = 0.5\n"),
      Contains("share_fp8") && Contains("is a share of a peak that is missing: give peak_fp8"));
  CHECK_THROWS_WITH(decode("peak_fp8 = \"130 TFLOP/s\"\nshare_fp8 = 1.5\n"),
                    Contains("mine.toml") && Contains("must be above 0 and at most 1"));
  CHECK_THROWS_WITH(decode("held_out = { off = 0.0, groups = 2 }\n"),
                    Contains("must be above zero"));
  CHECK_THROWS_WITH(decode("share_halves = 1\n"), Contains("share_halves"));
}

// Source errors are combined with 4 typical sources of 0.073 and with 0.050 between programs.
// Student's t for 7 and 6 degrees of freedom is 1.895 and 1.943 in published tables.
TEST_CASE("gpu rates: few sources are combined with typical ones, and widen the interval") {
  const ComputeWidth three = rates_width(HeldOut{0.044, 3});
  CHECK(three.log ==
        Approx(1.895 * std::sqrt((4 * 0.073 * 0.073 + 3 * 0.044 * 0.044) / 7 + 0.050 * 0.050))
            .epsilon(0.002));
  CHECK(three.coverage.value() == 0.9);
  CHECK(rates_width(HeldOut{0.073, 2}).log ==
        Approx(1.943 * std::hypot(0.073, 0.050)).epsilon(0.003));
  CHECK(rates_width(HeldOut{0.073, 2}).log > rates_width(HeldOut{0.073, 3}).log);
  CHECK(rates_width(HeldOut{0.074, 2}).log > rates_width(HeldOut{0.073, 2}).log);
}

TEST_CASE("gpu rates: without a source the width is that of a rate") {
  CHECK(rates_width(rates_of("h100").held_out).log < 0.16);
  CHECK(rates_width(rates_of("t4").held_out).log == held_out::rate.off);
  CHECK_FALSE(rates_width(rates_of("t4").held_out).coverage);
}

TEST_CASE("gpu rates: on a slower machine everything takes longer by one factor") {
  const GpuRates rates = rates_of("h100"), slow = slowed(rates, 1.25);
  for (const Product& product :
       {Product{4096, 4096, 4096}, Product{4096, 4096, 8}, Product{1, 1, 1}})
    CHECK(us(product, slow) == Approx(1.25 * us(product, rates)));
  CHECK(memory_cost(Bytes(1e9), 3, slow).duration.us() ==
        Approx(1.25 * memory_cost(Bytes(1e9), 3, rates).duration.us()));
  CHECK(memory_cost(Bytes(), 3, rates).duration == Duration());
}

}  // namespace
}  // namespace lambcast
