// Compares rates of profiles (models/device/profiled_rates.h) with the layers that they timed, and
// checks their intervals.
#include "models/device/profiled_rates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "models/device/matrix_product.h"
#include "models/device/rates_interval.h"
#include "sim/base/error.h"
#include "sim/base/file.h"

namespace lambcast {
namespace {

// Returns the H100's profile with another GPU name.
Device profile_named(const std::string& gpu) {
  std::string text = read_file(LAMBCAST_H100_PROFILE);
  const std::string name = "NVIDIA H100 80GB HBM3";
  text.replace(text.find(name), name.size(), gpu);
  return decode_device(Table::parse(text, "profile.toml"));
}

TEST_CASE("profiled rates: a GPU finds its preset by a word of its name") {
  const Bytes small(40e9), large(80e9);
  CHECK(preset_of_gpu("NVIDIA H100 80GB HBM3", large) == "h100");
  CHECK(preset_of_gpu("NVIDIA A100-SXM4-40GB", small) == "a100-40g");
  CHECK(preset_of_gpu("NVIDIA A100-SXM4-80GB", large) == "a100-80g");
  CHECK(preset_of_gpu("Tesla V100-SXM2-32GB", Bytes(32e9)) == "v100-32g");
  CHECK(preset_of_gpu("NVIDIA H200", Bytes(140e9)) == "h200");
  CHECK(preset_of_gpu("NVIDIA GH200 480GB", Bytes(96e9)) == "gh200");
  CHECK(preset_of_gpu("NVIDIA GB200", Bytes(185e9)) == "gb200");
  CHECK_FALSE(preset_of_gpu("NVIDIA GeForce RTX 4090", Bytes(24e9)));
  CHECK_FALSE(preset_of_gpu("emulated device", large));
}

// All six layers are forecast with one level, so the errors of small layers are large: they were
// timed at higher clocks than the largest ones.
TEST_CASE("profiled rates: the timed layers are forecast by their shape") {
  const Device profile = profile_named("NVIDIA H100 80GB HBM3");
  const std::vector<double> errors = errors_of_layers(profile);
  REQUIRE(errors.size() == 6);
  for (const double error : errors) CHECK(std::abs(error) < 0.27);
  CHECK(std::abs(errors[4]) < 0.07);  // Llama 2 7B
  CHECK(std::abs(errors[5]) < 0.05);  // GPT-3
}

TEST_CASE("profiled rates: each number states what was timed") {
  const Device profile = profile_named("NVIDIA H100 80GB HBM3");
  const GpuRates& rates = profile.rates.value();
  const Device preset = load_device("h100");
  const auto half = rates.of(MatrixFormat::half);
  CHECK(half.share.provenance.kind == Kind::fitted);
  CHECK_THAT(half.share.provenance.source, Catch::Matchers::Contains("products of 6 layers"));
  CHECK(half.share.value == Approx(preset.rates->of(MatrixFormat::half).share.value).epsilon(0.1));
  CHECK(rates.kernel_start.provenance.kind == Kind::fitted);
  CHECK(rates.kernel_start.value.us() == Approx(4).epsilon(0.1));
  // Not part of the profile: fp8, single precision, memory as frameworks use it.
  for (const MatrixFormat format : {MatrixFormat::fp8, MatrixFormat::single})
    CHECK(rates.of(format).share == preset.rates->of(format).share);
  CHECK(rates.memory.provenance == preset.rates->memory.provenance);
  CHECK_FALSE(profile_named("NVIDIA GeForce RTX 4090").rates);
}

// Returns a profile of products only, each taking the time of its shape at `share` of the H100's
// peak. If `spoilt`, the first of every three takes twice as long.
std::string profile_of_products(double share, const std::string& format, const std::string& gpu,
                                bool spoilt = false) {
  GpuRates rates = load_device("h100").rates.value();
  const MatrixFormat as = format == "fp16" ? MatrixFormat::half : MatrixFormat::single;
  rates.matrix[static_cast<std::size_t>(as)].share.value = share;
  rates.kernel_start.value = Duration::microseconds(4);
  std::vector<double> m, n, k, time_us;
  for (const double rows : {512, 2048, 8192})
    for (const double columns : {1024, 4096, 12288}) {
      m.push_back(rows), n.push_back(columns), k.push_back(4096);
      Product product{static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), 4096};
      product.format = as;
      product.output_bytes = as == MatrixFormat::single ? 4 : 2;
      const bool longer = spoilt && is_held_back(time_us.size());
      time_us.push_back((longer ? 2 : 1) * product_cost(product, rates).duration.us());
    }
  // The copy of one element sets the start time of a kernel, 4 us.
  return fmt::format(R"([device]
name = {{ value = "{}", kind = "measured", source = "a profile" }}
memory_capacity = "80 GB"
memory_bandwidth = {{ value = "3041 GB/s", kind = "measured", source = "a profile" }}
copy_bandwidth = {{ value = "3065 GB/s", kind = "measured", source = "a profile" }}
peak_half = {{ value = "989 TFLOP/s", kind = "measured", source = "a profile" }}
peak_single = {{ value = "494 TFLOP/s", kind = "measured", source = "a profile" }}
compute_capability = 9.0
multiprocessors = 132
clock_mhz = 1980
[[kernel]]
name = "copy"
elements = [1]
bytes_per_element = 8
time_us = [4]
[[product]]
format = "{}"
m = [{}]
n = [{}]
k = [{}]
time_us = [{}]
)",
                     gpu, format, fmt::join(m, ", "), fmt::join(n, ", "), fmt::join(k, ", "),
                     fmt::join(time_us, ", "));
}

Device decoded(const std::string& profile) {
  return decode_device(Table::parse(profile, "profile.toml"));
}

TEST_CASE("profiled rates: timed products set the share of their format, with a preset or none") {
  for (const char* gpu : {"NVIDIA H100 80GB HBM3", "NVIDIA GeForce RTX 4090"})
    for (const char* name : {"fp16", "tf32"}) {
      INFO(gpu << " " << name);
      const GpuRates rates = decoded(profile_of_products(0.7, name, gpu)).rates.value();
      const bool half = std::string(name) == "fp16";
      const auto& share = rates.of(half ? MatrixFormat::half : MatrixFormat::single).share;
      CHECK(share.value == Approx(kept_in_training * 0.7).epsilon(0.02));
      CHECK(share.provenance.kind == Kind::fitted);
      CHECK_THAT(share.provenance.source, Catch::Matchers::Contains("9 products in "));
      CHECK(rates.held_out.has_value() == (half || std::string(gpu).find("H100") < 20));
    }
}

TEST_CASE(
    "profiled rates: products that were slowed down set no rate, and their error is printed") {
  const std::string gpu = "NVIDIA H100 80GB HBM3";
  const std::string clean = profile_of_products(0.7, "fp16", gpu);
  const std::string spoilt = profile_of_products(0.7, "fp16", gpu, true);
  const auto share = [](const std::string& profile) {
    return decoded(profile).rates->of(MatrixFormat::half).share.value;
  };
  CHECK(share(spoilt) == share(clean));
  REQUIRE(held_back_lines(clean).size() == 1);
  CHECK_THAT(held_back_lines(clean)[0],
             Catch::Matchers::Contains("products in fp16: median error 0.0 %") &&
                 Catch::Matchers::Contains("on 3 shapes that set no rate"));
  // |log(1 / 2)| = 0.693
  CHECK_THAT(held_back_lines(spoilt)[0], Catch::Matchers::Contains("median error 69.3 %"));
}

TEST_CASE("profiled rates: impossible products are refused by their key") {
  const auto refused = [](const std::string& from, const std::string& to) {
    std::string text = profile_of_products(0.7, "fp16", "NVIDIA H100");
    text.replace(text.find(from), from.size(), to);
    try {
      decoded(text);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  using Catch::Matchers::Contains;
  CHECK_THAT(refused("m = [512", "m = [0"), Contains("m: 0 is not a length"));
  CHECK_THAT(refused("m = [512, ", "m = ["), Contains("m: has 8 values for 9 times"));
  CHECK_THAT(refused("\"fp16\"", "\"fp32x\""), Contains("format"));
  CHECK_THAT(refused("clock_mhz = 1980\n", ""), Contains("clock_mhz"));
}

// A profile replaces the share of a GPU whose preset assumes the share of another GPU.
TEST_CASE("profiled rates: a profile narrows the interval if the preset assumes its share") {
  const double of_profile = rates_width(held_out_of_profiles).log;
  int narrowed = 0;
  for (const std::string& name : device_names()) {
    const GpuRates preset = load_device(name).rates.value();
    INFO(name);
    const bool assumed = preset.of(MatrixFormat::half).share.provenance.kind == Kind::assumed;
    const double width = rates_width(preset.held_out, {.share = assumed}).log;
    if (!assumed) continue;
    CHECK(of_profile <= 0.8 * width);
    ++narrowed;
  }
  CHECK(narrowed >= 5);
  // A profile (checked on two programs, profiled_rates.h) may be slightly weaker evidence than the
  // H100 preset: at most 1.1 times as wide.
  CHECK(of_profile < 1.1 * rates_width(load_device("h100").rates->held_out).log);
}

}  // namespace
}  // namespace lambcast
