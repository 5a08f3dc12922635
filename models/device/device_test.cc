#include "models/device/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/profile/document.h"
#include "models/device/compute.h"
#include "models/shape/load.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

double ms(const MicroBatchTime& time) { return time.forward.ms() + time.backward.ms(); }

TEST_CASE("devices: an error names all missing keys") {
  CHECK_THROWS_WITH(decode_device(Table::parse("[device]\nname = 'x'\n", "mine.toml")),
                    "mine.toml:1: 3 keys are missing: device.memory_capacity, "
                    "device.memory_bandwidth, device.copy_bandwidth; lambcast presets show "
                    "a100-80g prints a description that has them");
}

TEST_CASE("devices: every preset loads, with copies slower than its nominal memory rate") {
  CHECK(device_names().size() == 14);
  for (const std::string& name : device_names()) {
    const Device device = load_device(name);
    CHECK(device.name == name);
    CHECK(device.copy_bandwidth.value < device.memory_bandwidth.value);
  }
  CHECK_THROWS_WITH(load_device("v100"), Contains("did you mean one of 'v100-16g', 'v100-32g'"));
  // nvidia-smi reports 97,871 MiB for a GPU sold with 96 GB.
  CHECK(load_device("gh200").memory_capacity.value() == 95 * 1024. * 1024 * 1024);
}

TEST_CASE("devices: implausible values are refused with their line and the allowed range") {
  const auto refusal = [](const std::string& key, const std::string& value) {
    std::string text =
        "[device]\nname = \"mine\"\nmemory_capacity = \"80 GB\"\n"
        "memory_bandwidth = \"2 TB/s\"\ncopy_bandwidth = \"1.8 TB/s\"\n";
    const auto given = text.find(key);
    if (given != std::string::npos) text.erase(given, text.find('\n', given) + 1 - given);
    text += key + " = " + value + "\n";
    try {
      decode_device(Table::parse(text, "mine.toml"));
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  struct Row {
    const char *key, *value, *allowed;
  };
  const Row rows[] = {
      {"matrix_efficiency", "-0.5", "-0.5 is out of range (allowed: 0.001 to 1)"},
      {"matrix_efficiency", "50", "50 is out of range (allowed: 0.001 to 1)"},
      {"forward_share", "0", "0 is out of range (allowed: 0.01 to 0.99)"},
      {"forward_share", "1.7", "1.7 is out of range (allowed: 0.01 to 0.99)"},
      {"pageable_d2h", "\"99999 TB/s\"",
       "99999 TB/s is out of range (allowed: 1 kB/s to 100 TB/s)"},
      {"pinned_h2d", "\"99999 TB/s\"", "99999 TB/s is out of range"},
      {"peak_half", "\"1e9 PFLOP/s\"", "is out of range"},
      {"launch_overhead", "\"1 h\"", "is out of range (allowed: 0 s to 10 s)"},
      {"memory_capacity", "\"1 B\"", "1 B is out of range (allowed: 1 MB to 1000 TB)"},
      {"copy_bandwidth", "\"30 TB/s\"", "30 TB/s is out of range (allowed: 1 kB/s to 2.2 TB/s)"},
  };
  for (const Row& row : rows) {
    INFO(row.key << " = " << row.value);
    const std::string line =
        std::string(row.key) == "memory_capacity" || std::string(row.key) == "copy_bandwidth" ? "5"
                                                                                              : "6";
    CHECK_THAT(refusal(row.key, row.value),
               Catch::StartsWith("mine.toml:" + line + ": device." + row.key + ": ") &&
                   Contains(row.allowed));
  }
  CHECK(refusal("matrix_efficiency", "0.5").empty());
}

TEST_CASE("devices: implausible times of kernels are refused with their line") {
  const auto refusal = [](const std::string& elements, const std::string& time_us) {
    try {
      decode_device(Table::parse(
          "[device]\nname = \"mine\"\nmemory_capacity = \"80 GB\"\n"
          "memory_bandwidth = \"2 TB/s\"\n"
          "copy_bandwidth = \"1.8 TB/s\"\n"
          "[[kernel]]\nname = \"lamb\"\nelements = " +
              elements + "\ntime_us = " + time_us + "\nkind = \"assumed\"\nsource = \"here\"\n",
          "mine.toml"));
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  CHECK(refusal("[1e3, 2e3]", "[5.0, 6.0]").empty());
  CHECK_THAT(refusal("[1e3, 2e3]", "[5.0, 1e300]"),
             Catch::StartsWith("mine.toml:9: ") && Contains("time_us: 1e+300 is out of range"));
  CHECK_THAT(refusal("[1e3, 2e3]", "[1e-300, 5.0]"), Contains("1e-300 is out of range"));
  CHECK_THAT(refusal("[1e3, 1e300]", "[5.0, 6.0]"), Contains("elements") && Contains("up to"));
}

TEST_CASE("devices: a curve with a length that its model cannot have is refused with its line") {
  const auto curve = [](const char* model, int seq_len) {
    return Table::parse(fmt::format("[device]\nname = \"mine\"\nmemory_capacity = \"80 GB\"\n"
                                    "memory_bandwidth = \"2 TB/s\"\ncopy_bandwidth = \"1.8 TB/s\"\n"
                                    "[[training_curve]]\nmodel = \"{}\"\n"
                                    "implementation = \"deepspeed\"\nseq_len = {}\n"
                                    "micro_batch = [8.0, 16.0]\nsamples_per_s = [100.0, 120.0]\n",
                                    model, seq_len),
                        "mine.toml");
  };
  CHECK_THROWS_WITH(
      decode_device(curve("bert-large", 1024)),
      Catch::Equals("mine.toml:9: training_curve[0].seq_len: 1024 is out of range for "
                    "bert-large (allowed: 1 to 512)"));
  CHECK_THROWS_WITH(decode_device(curve("resnet50", 128)), Contains("(allowed: 0 to 0)"));
  const ModelShape bert = load_model("bert-large"), gpt2 = load_model("gpt2");
  const Device images = decode_device(curve("resnet50", 0));
  CHECK(ms(micro_batch_time(images, load_model("resnet50"), "deepspeed", 8, 0)) ==
        Approx(8 / 100. * 1e3));
  // A curve of a model without a preset does not apply to a preset.
  const Device unknown = decode_device(curve("mine-too", 4096));
  CHECK(micro_batch_time(unknown, bert, "deepspeed", 8, 128).basis == Basis::rate);
  // The maximum length of a sample does not affect its computation.
  const ModelShape shortened = load_model(
      "bert-large",
      std::vector<ModelOverride>{{"model.max_seq_len", "64"}, {"model.default_seq_len", "64"}});
  const Device known = decode_device(curve("bert-large", 512));
  CHECK(ms(micro_batch_time(known, shortened, "deepspeed", 8, 64)) ==
        ms(micro_batch_time(known, bert, "deepspeed", 8, 64)));
  CHECK(micro_batch_time(known, gpt2, "deepspeed", 8, 1024).basis == Basis::other_model);
}

TEST_CASE("devices: a changed key is assumed, the others keep their evidence") {
  const char* text = R"(
[device]
name = "lab"
memory_capacity = "16 GiB"
memory_bandwidth = { value = "900 GB/s", kind = "published", source = "data sheet" }
copy_bandwidth = { value = "800 GB/s", kind = "measured", source = "profile" }
[[kernel]]
name = "adam_step"
elements = [1000.0, 4000.0]
time_us = [4.0, 20.0]
[[layer]]
hidden = 1024
heads = 16
ffn = 4096
seq_len = 128
micro_batch = [8.0, 16.0]
forward_us = [1000.0, 2000.0]
backward_us = [2000.0, 4000.0]
)";
  const Table parsed = Table::parse(text, "lab.toml");
  const auto set = [&](const Overrides& said) { return load_device(parsed, "lab.toml", said); };
  const Provenance measured{Kind::measured, "profile"};

  const Device faster = set({{"copy_bandwidth", "1000 GB/s"}});
  CHECK(faster.copy_bandwidth.value == Bandwidth(1e12));
  CHECK(faster.copy_bandwidth.provenance ==
        Provenance{Kind::assumed, "--set device.copy_bandwidth"});
  CHECK(faster.memory_bandwidth.value == Bandwidth(1e12));  // no lower nominal rate is stated
  CHECK(faster.kernels.front().provenance == measured);
  CHECK_THROWS_WITH(set({{"copy_bandwidth", "1000 GB/s"}, {"memory_bandwidth", "500 GB/s"}}),
                    Contains("--set device.copy_bandwidth") && Contains("out of range"));

  const Device same = set({{"copy_bandwidth", "0.8TB/s"}, {"kernel.adam_step.time_us", "[4, 20]"}});
  CHECK(same.copy_bandwidth.provenance == measured);
  CHECK(same.kernels.front().provenance == measured);

  const Device other = set({{"layer.1024.16.4096.128.backward_us", "[2500.0, 5000.0]"}});
  CHECK(other.layers.front().forward_us == std::vector<double>{1000, 2000});
  CHECK(other.layers.front().backward_us == std::vector<double>{2500, 5000});
  CHECK(other.layers.front().provenance ==
        Provenance{Kind::assumed, "--set device.layer.1024.16.4096.128.backward_us"});
  CHECK(other.kernels.front().provenance == measured);
  CHECK_THROWS_WITH(
      set({{"kernel.adam_step.time_us", "[1, 2, 3]"}}),
      Contains("--set device.kernel.adam_step.time_us: ") && Contains("has 3 values for 2 points"));
  CHECK_THROWS_WITH(set({{"kernel.adam_stop.time_us", "[1, 2]"}}),
                    Contains("did you mean 'kernel.adam_step'?"));
}

TEST_CASE("devices: a file written by the profiler loads as a device") {
  DeviceProfileDocument written;
  written.name = "Some GPU";
  written.source = "lambcast profile, a test";
  written.memory_bandwidth = Bandwidth(4e12);
  written.copy_bandwidth = Bandwidth(3e12);
  written.memory_capacity = Bytes(100e9);
  written.launch_overhead = Duration::microseconds(2.5);
  written.pageable_d2h = written.pageable_h2d = Bandwidth(5e9);
  written.pinned_d2h = written.pinned_h2d = Bandwidth(50e9);
  written.kernels.push_back({"adam_step", 30, {1000, 4000}, {4, 20}, {0.1, 0.2}});
  written.layers.push_back({1024, 16, 4096, 128, {8, 16}, {100, 150}, {200, 300}});
  const Device device = decode_device(Table::parse(to_toml(written), "gpu.toml"));
  CHECK(device.name == "Some GPU");
  CHECK(device.pinned_d2h.value == Bandwidth(50e9));
  REQUIRE(find_kernel(device, "adam_step") != nullptr);
  CHECK(find_kernel(device, "adam_step")->provenance.kind == Kind::measured);
  CHECK(find_kernel(device, "adam_step")->spread_us == std::vector<double>{0.1, 0.2});
  CHECK(find_kernel(device, "lamb_step") == nullptr);
  CHECK(find_kernel(device, "adam_step", 30.5) != nullptr);
  CHECK(find_kernel(device, "adam_step", 28) == nullptr);  // timed in another release
  const ModelShape bert = load_model("bert-large");
  CHECK(micro_batch_time(device, bert, "deepspeed", 8, 128).rests_on.front().provenance.source ==
        "lambcast profile, a test");
  // A shape that was not measured uses the highest measured rate, here that of BERT-Large's block:
  // micro batch 16 in 450 us.
  const ModelShape gpt2 = load_model("gpt2");
  const double block = 2 * 128. * (4 * 1024. * 1024 + 2 * 1024. * 4096) + 4 * 128. * 128 * 1024;
  const double rate = 3 * block * 16 / 450e-6;
  CHECK(ms(micro_batch_time(device, gpt2, "deepspeed", 64, 1024)) ==
        Approx(3 * 64 * forward_flops(gpt2, 1024).value() / rate * 1e3));

  // The rate of fp32 follows from the peaks of both formats. Peaks that were not measured are
  // assumed.
  CHECK(device.peak_half.provenance.kind == Kind::assumed);
  CHECK(device.peak_half.value.value() == Approx(150 * 4e12));
  CHECK(device.peak_single.value.value() == Approx(75 * 4e12));

  // The profile has no layers; once it has a measured product, and once it has none.
  written.layers.clear();
  for (const FlopRate peak : {FlopRate(), FlopRate(700e12)}) {
    written.peak_half = peak;
    const Device bare = decode_device(Table::parse(to_toml(written), "gpu.toml"));
    const double flops = 3 * 64 * forward_flops(gpt2, 1024).value();
    const double rate_known = peak == FlopRate() ? 150 * 4e12 : 700e12;
    CHECK(ms(micro_batch_time(bare, gpt2, "deepspeed", 64, 1024)) ==
          Approx(flops / (0.4 * rate_known) * 1e3));
  }
}

}  // namespace
}  // namespace lambcast
