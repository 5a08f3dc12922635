#include "kernels/cuda/compression.h"

#include <bit>

#include "kernels/cuda/gpu_test.h"
#include "kernels/cuda/one_device_world.h"
#include "kernels/emulated_world/compressed_allreduce.h"

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

std::vector<float> allreduce(OneDeviceWorld& world,
                             const std::vector<std::vector<float>>& buffers) {
  std::vector<DeviceBuffer<float>> on_device;
  std::vector<WorkerPhase> inputs;
  for (const auto& buffer : buffers) {
    on_device.push_back(upload(buffer));
    inputs.emplace_back().x = on_device.back().data();
  }
  const auto packed = world.average(inputs);
  const ChunkLayout& layout = world.layout;
  DeviceBuffer<float> x(layout.elements);
  require(decode({packed.signs.data(), packed.scales.data(), layout.chunk, layout.elements, nullptr,
                  x.data()},
                 nullptr),
          "decode");
  return x.to_host();
}

}  // namespace

namespace {

void agrees_with_emulated_world(std::size_t elements, int n, Padding padding) {
  OneDeviceWorld gpu(chunk_layout(elements, n), padding);
  emulated::ErrorFeedback cpu = emulated::error_feedback(elements, n);
  for (unsigned step = 0; step < 3; ++step) {
    std::vector<std::vector<float>> buffers;
    for (int r = 0; r < n; ++r) {
      buffers.push_back(random_values(elements, 100 * step + unsigned(r), 0.01 * r));
    }
    const auto decoded = allreduce(gpu, buffers);
    const std::vector<std::span<float>> spans(buffers.begin(), buffers.end());
    const emulated::Scales scales = emulated::compressed_allreduce(spans, cpu, padding);
    for (int r = 0; r < n; ++r) {
      CHECK(gpu.ranks[std::size_t(r)].worker_scale.to_host()[0] ==
            Approx(scales.worker[std::size_t(r)]).epsilon(1e-6));
      CHECK(gpu.ranks[std::size_t(r)].server_scale.to_host()[0] ==
            Approx(scales.server[std::size_t(r)]).epsilon(1e-6).margin(1e-30));
    }
    // A sign may differ only if the compensated value is within rounding of zero, which almost
    // never happens with random values.
    std::size_t flipped = 0;
    for (std::size_t e = 0; e < elements; ++e) {
      flipped += std::signbit(decoded[e]) != std::signbit(buffers[0][e]);
    }
    CHECK(flipped <= elements / 100000 * step);
  }
}

}  // namespace

TEST_CASE("compressed_allreduce on the GPU agrees with the emulated world over several steps") {
  NEED_GPUS(1);
  for (const int n : {1, 3, 8}) {
    for (const std::size_t elements :
         {std::size_t{70}, std::size_t{emulated_device ? 9003 : 100003}}) {
      for (const Padding padding : {Padding::excluded, Padding::counted}) {
        agrees_with_emulated_world(elements, n, padding);
      }
    }
  }
}

TEST_CASE("compressed_allreduce over many passes agrees with the emulated world", "[large]") {
  NEED_GPUS(1);
  agrees_with_emulated_world(many_passes, 3, Padding::excluded);
}

TEST_CASE("the server phase of 1 to 64 ranks, on chunks of odd sizes, equals the reference's") {
  NEED_GPUS(1);
  for (int n = 1; n <= 64; ++n) {
    const std::size_t chunk = n % 3 == 0 ? 8 : n % 3 == 1 ? 264 : 1304;
    const std::size_t real = chunk - std::size_t(n) % 8, bytes = chunk / 8;
    std::vector<std::uint8_t> received;
    for (const float x : random_values(std::size_t(n) * bytes, unsigned(n), 0.5)) {
      received.push_back(std::uint8_t(256 * x));
    }
    const auto scales = random_values(std::size_t(n), unsigned(n) + 100, 1.0);
    const auto on_device = upload(received);
    const auto scales_on_device = upload(scales);
    const DeviceBuffer<float> c(chunk), scale(1);
    const DeviceBuffer<std::uint8_t> served(bytes);
    const DeviceBuffer<double> workspace(reduction_slots);
    std::vector<float> error(chunk);
    std::vector<std::uint8_t> signs(bytes);
    for (int call = 0; call < 2; ++call) {
      require(server_phase({on_device.data(),
                            scales_on_device.data(),
                            n,
                            chunk,
                            real,
                            {c.data(), scale.data()},
                            served.data(),
                            workspace.data()},
                           nullptr),
              "server_phase");
      const float expected =
          reference::server_phase(received, scales, error, signs, real, Padding::excluded);
      CHECK(scale.to_host()[0] == Approx(expected).epsilon(1.6e-7));
      CHECK(served.to_host() == signs);
    }
  }
}

TEST_CASE("the unresolved error gives the error feedback of the reference") {
  NEED_GPUS(1);
  constexpr std::size_t elements = 4096;
  OneDeviceWorld gpu(chunk_layout(elements, 1), Padding::excluded);
  const auto x = random_values(elements, 1);
  allreduce(gpu, {x});
  std::vector<float> error(elements);
  std::vector<std::uint8_t> signs(elements / 8);
  const float scale = reference::worker_phase(x, error, signs, Padding::excluded);
  CHECK(gpu.ranks[0].signs.to_host() == signs);
  DeviceBuffer<float> owed(elements);
  require(resolve_errors({gpu.ranks[0].worker_c.data(), gpu.ranks[0].worker_scale.data()},
                         owed.data(), elements, nullptr),
          "resolve_errors");
  const auto host = owed.to_host();
  for (std::size_t e = 0; e < elements; ++e) {
    REQUIRE(std::fabs(host[e] - error[e]) <= 1e-6f * scale);
  }
}

TEST_CASE("the momentum is updated and scaled per tensor during compression") {
  NEED_GPUS(1);
  // Tensors of irregular sizes, one empty, with persistent_tail.
  const std::vector<std::size_t> sizes{1, 700, 0, 3, 5000, 77};
  const TensorLayout tensors = tensor_layout(sizes);
  const std::vector<float> scaling{2.0f, 0.5f, 9.0f, 1.5f, 1.0f, 0.25f};
  const std::size_t elements = tensors.elements(), padded = chunk_layout(elements, 8).padded;
  const auto m = random_values(padded, 1), g = random_values(elements, 2);
  std::vector<float> x = m;
  for (std::size_t t = 0; t < sizes.size(); ++t) {
    reference::update_momentum(tensors.view(std::span(x), t),
                               tensors.view(std::span<const float>(g), t), 0.9, scaling[t]);
  }
  std::vector<float> error(padded);
  std::vector<std::uint8_t> signs(padded / 8);
  const float scale = reference::worker_phase(x, error, signs, Padding::counted);

  const auto device_m = upload(m), device_g = upload(g), device_scaling = upload(scaling);
  const auto offsets = upload(tensors.offsets);
  WorkerPhase phase;
  phase.x = device_m.data();
  phase.gradient = device_g.data();
  phase.beta1 = 0.9;
  phase.scaling = device_scaling.data();
  phase.tensor_offsets = offsets.data();
  phase.tensors = int(sizes.size());
  phase.x_elements = padded;
  const OneDeviceWorld gpu(chunk_layout(elements, 8), Padding::counted);
  const OneDeviceWorld::Rank& rank = gpu.ranks[0];
  gpu.compress(rank, phase);
  CHECK(rank.worker_scale.to_host()[0] == Approx(scale).epsilon(1e-6));
  CHECK(rank.worker_c.to_host() == x);  // errors were 0, so c equals the momentum bit for bit
  CHECK(rank.signs.to_host() == signs);
  CHECK(device_m.to_host() == m);
}

TEST_CASE("generic packing, unpacking and the mask agree with the reference bit for bit") {
  NEED_GPUS(1);
  for (const std::size_t elements : {1u, 7u, 8u, 255u, 256u, 10001u}) {
    auto x = random_values(elements, 3);
    x[elements / 2] = -0.0f;
    if (elements > 8) x[5] = NAN;
    const auto device_x = upload(x);
    DeviceBuffer<std::uint8_t> packed((elements + 7) / 8);
    for (const SignRule rule : {SignRule::not_negative, SignRule::sign_bit}) {
      std::vector<std::uint8_t> expected((elements + 7) / 8);
      reference::pack_signs(x, expected, rule);
      require(pack_signs(device_x.data(), packed.data(), elements, rule, nullptr), "pack_signs");
      CHECK(packed.to_host() == expected);
    }
    std::vector<float> back(elements);
    reference::unpack_signs(packed.to_host(), back);
    DeviceBuffer<float> device_back(elements);
    require(unpack_signs(packed.data(), device_back.data(), elements, nullptr), "unpack_signs");
    CHECK(device_back.to_host() == back);
    const auto mask = random_values(elements, 4);
    const auto device_mask = upload(mask);
    reference::apply_mask(back, mask);
    require(apply_mask(device_back.data(), device_mask.data(), elements, nullptr), "apply_mask");
    CHECK(device_back.to_host() == back);
  }
}

TEST_CASE("a NaN on one rank makes the scale and every decoded element NaN on the GPU") {
  NEED_GPUS(1);
  OneDeviceWorld gpu(chunk_layout(1000, 2), Padding::excluded);
  auto bad = random_values(1000, 1);
  bad[500] = NAN;
  for (const float value : allreduce(gpu, {random_values(1000, 2), bad})) {
    REQUIRE(std::isnan(value));
  }
}

TEST_CASE("a misaligned pointer is rejected before it is read") {
  NEED_GPUS(1);
  DeviceBuffer<float> x(64), mask(64);
  CHECK(apply_mask(x.data() + 1, mask.data(), 8, nullptr) == cudaErrorMisalignedAddress);
}
