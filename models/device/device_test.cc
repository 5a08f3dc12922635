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

TEST_CASE("devices: every preset loads and copies below its name plate") {
  CHECK(device_names().size() == 14);
  for (const std::string& name : device_names()) {
    const Device device = load_device(name);
    CHECK(device.name == name);
    CHECK(device.copy_bandwidth.value < device.memory_bandwidth.value);
  }
  CHECK_THROWS_WITH(load_device("v100"), Contains("did you mean 'v100-16g'"));
  // 97,871 MiB in nvidia-smi, of 96 GB: more than the H100's 80.
  CHECK(load_device("gh200").memory_capacity.value() == 95 * 1024. * 1024 * 1024);
}

TEST_CASE("devices: values no device has are refused with their line and what is allowed") {
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

TEST_CASE("devices: times of kernels that no clock has shown are refused with their line") {
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

TEST_CASE("devices: a curve of a length that its model cannot have is refused with its line") {
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
  // A curve of a model that does not ship says nothing of one that does.
  const Device unknown = decode_device(curve("mine-too", 4096));
  CHECK(micro_batch_time(unknown, bert, "deepspeed", 8, 128).basis == Basis::rate);
  // The longest sample that a model may have says nothing of how it computes.
  const ModelShape shortened = load_model(
      "bert-large",
      std::vector<ModelOverride>{{"model.max_seq_len", "64"}, {"model.default_seq_len", "64"}});
  const Device known = decode_device(curve("bert-large", 512));
  CHECK(ms(micro_batch_time(known, shortened, "deepspeed", 8, 64)) ==
        ms(micro_batch_time(known, bert, "deepspeed", 8, 64)));
  CHECK(micro_batch_time(known, gpt2, "deepspeed", 8, 1024).basis == Basis::other_model);
}

TEST_CASE("compute: published points come back exactly, in between time grows") {
  const Device v100 = load_device("v100-16g");
  const ModelShape bert = load_model("bert-large");
  const auto point = micro_batch_time(v100, bert, "deepspeed", 16, 128);
  CHECK(ms(point) == Approx(16 / 203. * 1e3));
  CHECK(point.forward.ms() == Approx(0.36 * 16 / 203. * 1e3));
  CHECK(point.rests_on.front().provenance.kind == Kind::published);
  CHECK_FALSE(point.extrapolated);
  CHECK(ms(micro_batch_time(v100, bert, "deepspeed", 8, 512)) == Approx(8 / 48. * 1e3));
  CHECK(ms(micro_batch_time(v100, bert, "nvidia", 64, 128)) == Approx(64 / 215. * 1e3));
  for (const std::int64_t seq_len : {128, 384, 512}) {
    double last = 0;
    for (std::int64_t batch = 1; batch <= 256; ++batch) {
      const double now = ms(micro_batch_time(v100, bert, "deepspeed", batch, seq_len));
      CHECK(now >= last);
      last = now;
    }
  }
}

TEST_CASE("compute: a curve belongs to a shape, not to a name") {
  const Device v100 = load_device("v100-16g");
  const auto changed = [&](const std::vector<ModelOverride>& changes) {
    return micro_batch_time(v100, load_model("bert-large", changes), "deepspeed", 16, 128);
  };
  const MicroBatchTime bert = changed({});
  CHECK(bert.basis == Basis::this_device);
  const MicroBatchTime renamed = changed({{"model.name", "renamed"}});
  CHECK(ms(renamed) == ms(bert));
  CHECK(renamed.basis == Basis::this_device);
  // Blocks are all but the head, whose share of the FLOPs stays the same per token.
  const Flops block = block_forward_flops(load_model("bert-large"), 0, 128);
  const double share = 24 * (block / forward_flops(load_model("bert-large"), 128));
  const MicroBatchTime deeper = changed({{"model.layers", "48"}});
  CHECK(ms(deeper) == Approx((1 + share) * ms(bert)));
  CHECK(deeper.basis == Basis::blocks);
  CHECK(deeper.measured);
  CHECK(deeper.extrapolated);
  const MicroBatchTime wider = changed({{"model.hidden", "2048"}});
  CHECK(wider.basis == Basis::other_model);
  CHECK_FALSE(wider.measured);
  CHECK(ms(wider) > 2 * ms(bert));
}

TEST_CASE("compute: the floor of launches follows the layers of a curve's model") {
  // 8 samples in 47.9 ms are above 24 x 120 launches of 5 us, 14.4 ms, and below those of 17 us,
  // 49 ms: that program starts fewer kernels, with 25 layers as with 24.
  Device v100 = load_device("v100-16g");
  v100.framework_launch.value = Duration::microseconds(17);
  double last = 0;
  for (int layers = 20; layers <= 30; ++layers) {
    const ModelShape model = load_model(
        "bert-large", std::vector<ModelOverride>{{"model.layers", fmt::format("{}", layers)}});
    const double now = ms(micro_batch_time(v100, model, "deepspeed", 1, 128));
    CHECK(now > last);
    last = now;
  }
}

TEST_CASE("compute: another program's time of the shape comes before another shape's") {
  const Device v100 = load_device("v100-16g");
  const auto resnet = micro_batch_time(v100, load_model("resnet50"), "deepspeed", 208, 0);
  CHECK(ms(resnet) == Approx(208 / 1436. * 1e3));
  CHECK(resnet.basis == Basis::this_device);
  CHECK_FALSE(resnet.measured);  // not of this program
}

TEST_CASE("compute: a model whose curve has no known shape is known by its name alone") {
  Device device = load_device("v100-16g");
  for (TrainingCurve& curve : device.training_curves) curve.model = "mine";
  const std::vector<ModelOverride> mine{{"model.name", "mine"}};
  const auto time = micro_batch_time(device, load_model("bert-large", mine), "deepspeed", 16, 128);
  CHECK(ms(time) == Approx(16 / 203. * 1e3));
  CHECK(time.basis == Basis::other_model);
  CHECK_FALSE(time.measured);
  CHECK(time.rests_on.at(1).name == "curve_by_name");
}

TEST_CASE("compute: between the lengths of two curves time is between theirs, by the length") {
  const ModelShape bert = load_model("bert-large");
  const auto ms_of = [&](const std::vector<std::int64_t>& lengths, std::int64_t seq_len) {
    Device device = load_device("v100-16g");
    std::erase_if(device.training_curves, [&](const TrainingCurve& curve) {
      return std::find(lengths.begin(), lengths.end(), curve.seq_len) == lengths.end() ||
             curve.implementation != "deepspeed" || curve.model != "bert-large";
    });
    REQUIRE(device.training_curves.size() == lengths.size());
    return ms(micro_batch_time(device, bert, "deepspeed", 16, seq_len));
  };
  for (const std::int64_t length : {224, 320, 416}) {
    const double share = static_cast<double>(length - 128) / (512 - 128);
    CHECK(ms_of({128, 512}, length) ==
          Approx((1 - share) * ms_of({128}, length) + share * ms_of({512}, length)));
  }
}

TEST_CASE("compute: a floor of launches that a measured point lies below does not hold") {
  const ModelShape resnet = load_model("resnet50");
  const Device h100 = load_device("h100");
  const auto ms = [&](const Device& device, std::int64_t images) {
    const MicroBatchTime time = micro_batch_time(device, resnet, "nvidia", images, 0);
    return (time.forward + time.backward).us() * 1e-3;
  };
  CHECK(ms(h100, 50) == Approx(50 / 5525.0 * 1e3));  // below 16 blocks of 120 launches
  CHECK(ms(h100, 16) < ms(h100, 50));
  Device bare = h100;
  bare.training_curves.clear();
  CHECK(ms(bare, 16) == Approx(ms(bare, 8)));  // both on the floor
  CHECK(ms(bare, 8) > ms(h100, 50));
}

TEST_CASE("compute: what no curve covers says so") {
  const ModelShape bert = load_model("bert-large");
  CHECK(micro_batch_time(load_device("v100-16g"), bert, "deepspeed", 3, 384).extrapolated);
  const auto h100 = micro_batch_time(load_device("h100"), bert, "deepspeed", 256, 128);
  CHECK(h100.rests_on.front().provenance.kind == Kind::assumed);
  // 3 * 256 * 80.16 GFLOP at 40 % of 989 TFLOP/s.
  CHECK(ms(h100) == Approx(3 * 256 * forward_flops(bert, 128).value() / (0.4 * 989e12) * 1e3));
}

TEST_CASE("compute: what a time rests on, and how far from the nearest measured point") {
  const Device v100 = load_device("v100-16g");
  const ModelShape bert = load_model("bert-large");
  const auto check = [](const MicroBatchTime& time, Basis basis, double micro_batch,
                        double seq_len) {
    CHECK(time.basis == basis);
    CHECK(time.micro_batch_doublings == Approx(micro_batch).margin(1e-12));
    CHECK(time.seq_len_doublings == Approx(seq_len).margin(1e-12));
  };
  check(micro_batch_time(v100, bert, "deepspeed", 16, 128), Basis::this_device, 0, 0);
  check(micro_batch_time(v100, bert, "deepspeed", 512, 128), Basis::this_device, 2, 0);
  check(micro_batch_time(v100, bert, "deepspeed", 24, 128), Basis::this_device, std::log2(4 / 3.),
        0);
  // Where the host cannot launch as fast, a curve says nothing.
  Device slow_host = v100;
  slow_host.framework_launch.value = Duration::microseconds(12);
  CHECK(micro_batch_time(v100, bert, "deepspeed", 1, 128).basis == Basis::this_device);
  CHECK(micro_batch_time(slow_host, bert, "deepspeed", 1, 128).basis == Basis::rate);
  // The nearer length is 512, where 16 sequences of 257 are 8.03.
  check(micro_batch_time(v100, bert, "deepspeed", 16, 257), Basis::this_device,
        std::log2(16 * 257 / 512. / 8), std::log2(512 / 257.));
  check(micro_batch_time(v100, load_model("gpt2"), "deepspeed", 8, 1024), Basis::other_model, 0, 1);
  check(micro_batch_time(load_device("h200"), bert, "deepspeed", 8, 128), Basis::rate, 0, 0);
}

TEST_CASE("compute interval: parts add as squares, and the share is that of the weakest part") {
  CHECK(compute_width(Basis::this_machine).log == held_out::this_machine.off);
  CHECK(compute_width(Basis::this_device, 1, 2).log ==
        Approx(std::sqrt(0.25 * 0.25 + 0.1 * 0.1 + 0.44 * 0.44)));
  CHECK(compute_width(Basis::this_device, 1).coverage.value() == Approx(3 / 4.));
  CHECK(compute_width(Basis::this_device).coverage.value() == Approx(5 / 6.));
  CHECK(compute_width(Basis::this_device, 0, 1).coverage.value() == Approx(4 / 5.));
  for (const Basis claims_none : {Basis::blocks, Basis::other_model, Basis::rate})
    CHECK_FALSE(compute_width(claims_none).coverage.has_value());
  CHECK(compute_width(Basis::rate).log > compute_width(Basis::this_device).log);
}

TEST_CASE("compute interval: a measured kernel is as sure as its repeats agree") {
  KernelCurve kernel;
  kernel.elements = {100, 200};
  kernel.time_us = {10, 20};
  CHECK(measured_kernel_width(kernel, 100) == held_out::this_machine.off);
  kernel.spread_us = {0, 10};
  CHECK(measured_kernel_width(kernel, 50) == held_out::this_machine.off);
  for (const double elements : {200, 400})
    CHECK(measured_kernel_width(kernel, elements) ==
          Approx(std::hypot(held_out::this_machine.off, 1.22 / 2)));
}

TEST_CASE("compute: a measured block decides when there is one") {
  const char* text = R"(
[device]
name = "lab"
memory_capacity = "16 GiB"
memory_bandwidth = "900 GB/s"
copy_bandwidth = "800 GB/s"
peak_half = "100 TFLOP/s"
[[layer]]
hidden = 1024
heads = 16
ffn = 4096
seq_len = 128
micro_batch = [8.0, 16.0]
forward_us = [1000.0, 2000.0]
backward_us = [2000.0, 4000.0]
kind = "measured"
source = "test"
)";
  const Device device = decode_device(Table::parse(text, "lab.toml"));
  const ModelShape bert = load_model("bert-large");
  const double blocks = forward_flops(bert, 128) / block_forward_flops(bert, 0, 128);
  const auto time = micro_batch_time(device, bert, "deepspeed", 12, 128);
  CHECK(time.forward.us() == Approx(blocks * 1500));
  CHECK(time.backward.us() == Approx(blocks * 3000));
  CHECK(time.rests_on.front().provenance.kind == Kind::measured);
  CHECK(time.basis == Basis::blocks);
  CHECK(time.micro_batch_doublings == Approx(std::log2(4 / 3.)));
  for (const auto& [batch, outside] :
       {std::pair{7, true}, std::pair{8, false}, std::pair{16, false}, std::pair{17, true}})
    CHECK(micro_batch_time(device, bert, "deepspeed", batch, 128).extrapolated == outside);
  // Gated feed-forwards of the same width are other blocks.
  const ModelShape gated =
      load_model("llama2-7b", std::vector<ModelOverride>{{"model.hidden", "1024"},
                                                         {"model.heads", "16"},
                                                         {"model.kv_heads", "16"},
                                                         {"model.ffn", "4096"}});
  CHECK(micro_batch_time(device, gated, "deepspeed", 12, 128).basis == Basis::rate);
  // What the description leaves out is assumed, and says so.
  CHECK(device.pageable_d2h.value == Bandwidth(3e9));
  CHECK(device.pageable_h2d.value == Bandwidth(3e9));
  CHECK(device.pinned_d2h.value == Bandwidth(6e9));
  CHECK(device.pinned_h2d.value == Bandwidth(6e9));
  CHECK(device.framework_launch.value == Duration::microseconds(6));
  CHECK(device.sync_overhead.value == Duration::microseconds(20));
  CHECK(device.sync_overhead.provenance.kind == Kind::assumed);
  std::string broken = text;
  broken.replace(broken.find("[8.0, 16.0]"), 11, "[16.0, 8.0]");
  CHECK_THROWS_WITH(decode_device(Table::parse(broken, "lab.toml")), Contains("ascending"));
}

TEST_CASE("devices: a key that is set is assumed, what is left has its evidence") {
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
  CHECK(faster.memory_bandwidth.value == Bandwidth(1e12));  // of which no plate says less
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

TEST_CASE("devices: what the profiler writes is a device at once") {
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
  CHECK(find_kernel(device, "adam_step", 28) == nullptr);  // of another release
  const ModelShape bert = load_model("bert-large");
  CHECK(micro_batch_time(device, bert, "deepspeed", 8, 128).rests_on.front().provenance.source ==
        "lambcast profile, a test");
  // A shape that was not measured runs at the best rate of those that were: BERT-Large's block at
  // micro batch 16 in 450 us.
  const ModelShape gpt2 = load_model("gpt2");
  const double block = 2 * 128. * (4 * 1024. * 1024 + 2 * 1024. * 4096) + 4 * 128. * 128 * 1024;
  const double rate = 3 * block * 16 / 450e-6;
  CHECK(ms(micro_batch_time(device, gpt2, "deepspeed", 64, 1024)) ==
        Approx(3 * 64 * forward_flops(gpt2, 1024).value() / rate * 1e3));

  // Training in fp32 compares two peaks; one that was not measured is assumed.
  CHECK(device.peak_half.provenance.kind == Kind::assumed);
  CHECK(device.peak_half.value.value() == Approx(150 * 4e12));
  CHECK(device.peak_single.value.value() == Approx(75 * 4e12));

  // Without layers, where a product was measured and where not.
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

TEST_CASE("compute: interpolation is linear, extends its ends and stays above zero") {
  CHECK(interpolate({2}, {10}, 4) == 20);
  CHECK(interpolate({1, 3}, {2, 4}, 2) == 3);
  CHECK(interpolate({1, 3}, {2, 4}, 5) == 6);
  CHECK(interpolate({10, 20}, {1, 11}, 5) == 0);
}

}  // namespace
}  // namespace lambcast
