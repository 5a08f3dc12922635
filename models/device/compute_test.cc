#include "models/device/compute.h"
#include "models/device/convolution_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "models/device/convolution_time.h"
#include "models/shape/load.h"

namespace lambcast {
namespace {

double total_ms(const MicroBatchTime& time) { return time.forward.ms() + time.backward.ms(); }

TEST_CASE("compute: published points are reproduced exactly, and time grows between them") {
  const Device v100 = load_device("v100-16g");
  const ModelShape bert = load_model("bert-large");
  const auto point = micro_batch_time(v100, bert, "deepspeed", 16, 128);
  CHECK(total_ms(point) == Approx(16 / 203. * 1e3));
  CHECK(point.forward.ms() == Approx(0.36 * 16 / 203. * 1e3));
  CHECK(point.rests_on.front().provenance.kind == Kind::published);
  CHECK_FALSE(point.extrapolated);
  CHECK(total_ms(micro_batch_time(v100, bert, "deepspeed", 8, 512)) == Approx(8 / 48. * 1e3));
  CHECK(total_ms(micro_batch_time(v100, bert, "nvidia", 64, 128)) == Approx(64 / 215. * 1e3));
  for (const std::int64_t seq_len : {128, 384, 512}) {
    double last = 0;
    for (std::int64_t batch = 1; batch <= 256; ++batch) {
      const double now = total_ms(micro_batch_time(v100, bert, "deepspeed", batch, seq_len));
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
  CHECK(total_ms(renamed) == total_ms(bert));
  CHECK(renamed.basis == Basis::this_device);
  // BERT-Large is 24 blocks and a head, whose FLOPs do not change if blocks are added.
  const Flops block = block_forward_flops(load_model("bert-large"), 0, 128);
  const double share = 24 * (block / forward_flops(load_model("bert-large"), 128));
  const MicroBatchTime deeper = changed({{"model.layers", "48"}});
  CHECK(total_ms(deeper) == Approx((1 + share) * total_ms(bert)));
  CHECK(deeper.basis == Basis::blocks);
  CHECK(deeper.measured);
  CHECK(deeper.extrapolated);
  const MicroBatchTime wider = changed({{"model.hidden", "2048"}});
  CHECK(wider.basis == Basis::other_model);
  CHECK_FALSE(wider.measured);
  CHECK(total_ms(wider) > 2 * total_ms(bert));
}

TEST_CASE("compute: the lower bound of launches follows the layers of a curve's model") {
  // The curve's 8 samples in 47.9 ms lie above the bound of 24 x 120 launches of 5 us (14.4 ms),
  // and below that of 17 us (49 ms). With 17 us the program must start fewer kernels, so the bound
  // does not apply, with 25 layers as with 24.
  Device v100 = load_device("v100-16g");
  v100.framework_launch.value = Duration::microseconds(17);
  double last = 0;
  for (int layers = 20; layers <= 30; ++layers) {
    const ModelShape model = load_model(
        "bert-large", std::vector<ModelOverride>{{"model.layers", fmt::format("{}", layers)}});
    const double now = total_ms(micro_batch_time(v100, model, "deepspeed", 1, 128));
    CHECK(now > last);
    last = now;
  }
}

TEST_CASE("compute: a net timed with another program scales with the times of its kernels") {
  const Device v100 = load_device("v100-16g");
  const ModelShape resnet = load_model("resnet50");
  const auto kernels = [&](const char* program, MatrixFormat format) {
    return convolution_times(resnet, 208, convolution_run(program, format), *v100.rates).both();
  };
  const double fused = 208 / 1436. * 1e3;
  const Duration timed = kernels("nvidia", MatrixFormat::half);
  CHECK(total_ms(micro_batch_time(v100, resnet, "nvidia", 208, 0)) == Approx(fused));
  for (const MatrixFormat format : {MatrixFormat::half, MatrixFormat::single}) {
    const auto apart = micro_batch_time(v100, resnet, "deepspeed", 208, 0, format);
    CHECK(total_ms(apart) == Approx(fused * (kernels("deepspeed", format) / timed)));
    CHECK(apart.basis == Basis::kernels);
    CHECK_FALSE(apart.measured);  // measured only with another program
  }
}

TEST_CASE("compute: a curve without a known shape matches a model by its name only") {
  Device device = load_device("v100-16g");
  for (TrainingCurve& curve : device.training_curves) curve.model = "mine";
  const std::vector<ModelOverride> mine{{"model.name", "mine"}};
  const auto time = micro_batch_time(device, load_model("bert-large", mine), "deepspeed", 16, 128);
  CHECK(total_ms(time) == Approx(16 / 203. * 1e3));
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
    return total_ms(micro_batch_time(device, bert, "deepspeed", 16, seq_len));
  };
  for (const std::int64_t length : {224, 320, 416}) {
    const double share = static_cast<double>(length - 128) / (512 - 128);
    CHECK(ms_of({128, 512}, length) ==
          Approx((1 - share) * ms_of({128}, length) + share * ms_of({512}, length)));
  }
}

TEST_CASE("compute: the lower bound of launches does not apply if a measured point lies below it") {
  const ModelShape resnet = load_model("resnet50");
  Device h100 = load_device("h100");
  h100.framework_launch.value = Duration::microseconds(30);
  const auto total_ms_of = [&](const Device& device, std::int64_t images) {
    const MicroBatchTime time = micro_batch_time(device, resnet, "nvidia", images, 0);
    return (time.forward + time.backward).us() * 1e-3;
  };
  CHECK(total_ms_of(h100, 50) ==
        Approx(50 / 5525.0 * 1e3));  // below 54 weights of 9 launches, 14.6 ms
  CHECK(total_ms_of(h100, 16) < total_ms_of(h100, 50));
  Device bare = h100;
  bare.training_curves.clear();
  CHECK(total_ms_of(bare, 16) == Approx(total_ms_of(bare, 8)));  // both equal the bound
  CHECK(total_ms_of(bare, 8) > total_ms_of(h100, 50));
}

TEST_CASE("compute: the host starts nine kernels for each weight of a convolutional net") {
  Device device = load_device("h100");
  device.training_curves.clear();
  device.layers.clear();
  const auto floor_ms = [&](const char* model) {
    const MicroBatchTime time = micro_batch_time(device, load_model(model), "other", 1, 0);
    return (time.forward + time.backward).us() * 1e-3;
  };
  const double launch_ms = device.framework_launch.value.us() * 1e-3;
  CHECK(floor_ms("resnet50") == Approx(54 * 9 * launch_ms));  // 53 convolutions, one linear layer
  CHECK(floor_ms("resnet18") == Approx(21 * 9 * launch_ms));
}

// Compares with NVIDIA's MLPerf results for ResNet-50, after removing their curves. No constant was
// fitted to them.
TEST_CASE("compute: without a curve, kernels of a convolutional net are within a factor of 1.4") {
  const ModelShape resnet = load_model("resnet50");
  for (const auto& [name, images_per_s] : {std::pair("l40s", 1935.0),
                                           {"a30", 1615.0},
                                           {"v100-16g", 1436.0},
                                           {"a100-80g", 3415.0},
                                           {"h100", 7147.0}}) {
    INFO(name);
    Device device = load_device(name);
    device.training_curves.clear();
    const MicroBatchTime fused = micro_batch_time(device, resnet, "nvidia", 256, 0);
    const double forecast = 256 / (fused.forward + fused.backward).s();
    UNSCOPED_INFO(forecast << " of " << images_per_s);
    CHECK(forecast < 1.1 * images_per_s);
    CHECK(forecast > images_per_s / 1.4);
    CHECK(fused.basis == Basis::kernels);
    // Without the GPU's rates the net takes at least the time of its memory traffic.
    device.rates.reset();
    const MicroBatchTime bounded = micro_batch_time(device, resnet, "nvidia", 256, 0);
    CHECK(256 / (bounded.forward + bounded.backward).s() < 1.6 * images_per_s);
    CHECK(bounded.basis == Basis::rate);
  }
}

TEST_CASE("compute: a time without a curve states it") {
  const ModelShape bert = load_model("bert-large");
  CHECK(micro_batch_time(load_device("v100-16g"), bert, "deepspeed", 3, 384).extrapolated);
  const auto h100 = micro_batch_time(load_device("h100"), bert, "deepspeed", 256, 128);
  CHECK(h100.rests_on.front().provenance.kind == Kind::assumed);
  // 256 samples take 3 * 256 * 80.16 GFLOP at 40 % of 989 TFLOP/s.
  CHECK(total_ms(h100) ==
        Approx(3 * 256 * forward_flops(bert, 128).value() / (0.4 * 989e12) * 1e3));
}

TEST_CASE("compute: basis of a time, and distance to the nearest measured point") {
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
  // If the host launches too slowly, the basis is the launch rate and no curve.
  Device slow_host = v100;
  slow_host.framework_launch.value = Duration::microseconds(12);
  CHECK(micro_batch_time(v100, bert, "deepspeed", 1, 128).basis == Basis::this_device);
  CHECK(micro_batch_time(slow_host, bert, "deepspeed", 1, 128).basis == Basis::rate);
  // The nearer measured length is 512. At that length, 16 sequences of 257 tokens are equivalent to
  // 8.03.
  check(micro_batch_time(v100, bert, "deepspeed", 16, 257), Basis::this_device,
        std::log2(16 * 257 / 512. / 8), std::log2(512 / 257.));
  check(micro_batch_time(v100, load_model("gpt2"), "deepspeed", 8, 1024), Basis::other_model, 0, 1);
  check(micro_batch_time(load_device("h200"), bert, "deepspeed", 8, 128), Basis::rate, 0, 0);
}

TEST_CASE("compute interval: parts add as squares, and the coverage is the lowest of the parts") {
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

TEST_CASE("compute interval: a measured kernel is as certain as its repeats agree") {
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
  // A block with a gated feed-forward of the same width is another block.
  const ModelShape gated =
      load_model("llama2-7b", std::vector<ModelOverride>{{"model.hidden", "1024"},
                                                         {"model.heads", "16"},
                                                         {"model.kv_heads", "16"},
                                                         {"model.ffn", "4096"}});
  CHECK(micro_batch_time(device, gated, "deepspeed", 12, 128).basis == Basis::rate);
  // Rates that the description leaves out have defaults, which are marked as assumed.
  CHECK(device.pageable_d2h.value == Bandwidth(3e9));
  CHECK(device.pageable_h2d.value == Bandwidth(3e9));
  CHECK(device.pinned_d2h.value == Bandwidth(6e9));
  CHECK(device.pinned_h2d.value == Bandwidth(6e9));
  CHECK(device.framework_launch.value == Duration::microseconds(6));
  CHECK(device.sync_overhead.value == Duration::microseconds(20));
  CHECK(device.sync_overhead.provenance.kind == Kind::assumed);
  std::string broken = text;
  broken.replace(broken.find("[8.0, 16.0]"), 11, "[16.0, 8.0]");
  CHECK_THROWS_WITH(decode_device(Table::parse(broken, "lab.toml")), Catch::Contains("ascending"));
}

TEST_CASE("compute: interpolation is linear, extends its ends and stays above zero") {
  CHECK(interpolate({2}, {10}, 4) == 20);
  CHECK(interpolate({1, 3}, {2, 4}, 2) == 3);
  CHECK(interpolate({1, 3}, {2, 4}, 5) == 6);
  CHECK(interpolate({10, 20}, {1, 11}, 5) == 0);
}

// Regression: a net of images with one more class was once priced by a curve of text, at half the
// time.
TEST_CASE("compute: nets of images scale the time of a measured one by their kernels") {
  const auto us = [](const Device& device, const ModelShape& model, std::int64_t images) {
    const MicroBatchTime time = micro_batch_time(device, model, "nvidia", images, 0);
    return (time.forward + time.backward).us();
  };
  const ModelShape& measured = model_preset("resnet50");
  const ConvolutionRun run = convolution_run("nvidia", MatrixFormat::half);
  int devices = 0;
  for (const std::string& name : device_names()) {
    const Device device = load_device(name);
    if (std::ranges::none_of(device.training_curves,
                             [](const TrainingCurve& curve) { return curve.seq_len == 0; }))
      continue;
    ++devices;
    const auto kernels = [&](const ModelShape& model, std::int64_t images) {
      return convolution_times(model, images, run, *device.rates).both();
    };
    for (const std::string net : {"resnet18", "resnet101", "resnet152", "vgg16", "vgg19"}) {
      INFO(name << ", " << net);
      const ModelShape& model = model_preset(net);
      CHECK(us(device, model, 4096) / us(device, measured, 4096) ==
            Approx(kernels(model, 4096) / kernels(measured, 4096)).epsilon(0.15));
    }
    const std::vector<ModelOverride> one_more{{"model.classes", "1001"}};
    CHECK(us(device, load_model("resnet50", one_more), 4096) ==
          Approx(us(device, measured, 4096)).epsilon(0.001));
  }
  CHECK(devices >= 6);
}

TEST_CASE("compute: a net of larger images takes no less time, with any timed net as its basis") {
  for (const char* name : {"v100-16g", "a100-80g", "b200"}) {
    const Device device = load_device(name);
    for (const MatrixFormat format : {MatrixFormat::half, MatrixFormat::single})
      for (const char* program : {"nvidia", "pytorch"}) {
        double last = 0;
        for (const char* pixels : {"1", "8", "32", "100", "224", "512"}) {
          INFO(name << ", " << program << ", " << pixels);
          const ModelShape net =
              load_model("vgg16", std::vector<ModelOverride>{{"model.image_size", pixels}});
          const double now = total_ms(micro_batch_time(device, net, program, 4, 0, format));
          CHECK(now >= last);
          last = now;
        }
      }
  }
}

}  // namespace
}  // namespace lambcast
