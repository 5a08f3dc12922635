#include "kernels/cuda/gradient.h"

#include <cuda_fp16.h>

#include "kernels/cuda/gpu_test.h"
#include "kernels/reference/gradient.h"
#include "kernels/reference/half.h"

using namespace lambcast;
using namespace lambcast::cuda;

TEST_CASE("norm, overflow, unscale and clip agree with the reference") {
  NEED_GPUS(1);
  for (const std::size_t elements :
       {std::size_t{1}, std::size_t{1003}, std::size_t{emulated_device ? 10001 : 1000001}}) {
    std::vector<std::uint16_t> half_g;
    for (const float x : random_values(elements, 1)) half_g.push_back(reference::to_half(100 * x));
    const auto device_half = upload(half_g);
    const auto* raw = reinterpret_cast<const __half*>(device_half.data());
    DeviceBuffer<float> g(elements);
    DeviceBuffer<GradientSummary> summary(1);
    DeviceBuffer<double> workspace(reduction_slots);
    require(measure_gradient(raw, elements, summary.data(), workspace.data(), nullptr), "measure");
    const float norm = reference::gradient_norm(half_g);
    CHECK(summary.to_host()[0].norm == Approx(norm).epsilon(1e-6));
    CHECK(summary.to_host()[0].overflow == 0);

    for (const double limit : {0.0, 1.0, 1e9}) {
      require(unscale_and_clip(raw, g.data(), elements, summary.data(), 1024, limit, nullptr),
              "unscale_and_clip");
      std::vector<float> expected(elements);
      reference::unscale(half_g, expected, reference::clip_factor(norm, 1024, limit));
      CHECK(relative_distance(g.to_host(), expected) < 1e-6);
    }
    require(measure_gradient(g.data(), elements, summary.data(), workspace.data(), nullptr),
            "measure");
    CHECK(summary.to_host()[0].norm == Approx(norm / 1024).epsilon(1e-6));
    const auto before = g.to_host();
    require(unscale_and_clip(g.data(), elements, summary.data(), 2, 0, nullptr), "unscale");
    CHECK(g.to_host()[elements - 1] == before[elements - 1] / 2);
  }
}

TEST_CASE("an infinity or NaN anywhere is an overflow") {
  NEED_GPUS(1);
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    for (const std::size_t at : {std::size_t{0}, std::size_t{5000}, std::size_t{9998}}) {
      auto g = random_values(9999, 1);
      g[at] = bad;
      const auto device = upload(g);
      DeviceBuffer<GradientSummary> summary(1);
      DeviceBuffer<double> workspace(reduction_slots);
      require(measure_gradient(device.data(), g.size(), summary.data(), workspace.data(), nullptr),
              "measure");
      CHECK(summary.to_host()[0].overflow == 1);
      CHECK_FALSE(std::isfinite(summary.to_host()[0].norm));
    }
  }
}
