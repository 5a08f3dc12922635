#include "kernels/cuda/lion.h"

#include "kernels/cuda/gpu_test.h"
#include "kernels/reference/half.h"

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

constexpr std::size_t few_weights = emulated_device ? 9003 : 100003;  // not a multiple of 4

void follows_the_reference(std::size_t elements, HalfFormat format) {
  const reference::LionOptions options{.lr = 0.01, .weight_decay = 0.1};
  auto p = random_values(elements, 1), m = random_values(elements, 2);
  const DeviceBuffer<float> dp = upload(p), dm = upload(m);
  const DeviceBuffer<std::uint16_t> half(elements);
  for (unsigned step = 0; step < 3; ++step) {
    auto g = random_values(elements, 3 + step);
    // An element without momentum and gradient does not move.
    if (step == 0) m[7] = g[7] = 0;
    if (step == 0)
      require(cudaMemcpy(dm.data(), m.data(), 4 * elements, cudaMemcpyHostToDevice), "cudaMemcpy");
    const auto dg = upload(g);
    reference::lion_step(p, m, g, options);
    require(lion_step({dp.data(), dm.data(), {half.data(), format}, elements}, dg.data(), options,
                      nullptr),
            "lion_step");
    CHECK((dp.to_host() == p));
    CHECK((dm.to_host() == m));
  }
  const auto copy = half.to_host();
  std::size_t other = 0;
  for (std::size_t e = 0; e < elements; ++e) {
    other += copy[e] != reference::to_half(p[e], format);
  }
  CHECK(other == 0);
}

}  // namespace

TEST_CASE("Lion on the GPU has the reference's bits, and writes the copy in 16 bits") {
  NEED_GPUS(1);
  follows_the_reference(few_weights, HalfFormat::fp16);
  follows_the_reference(few_weights, HalfFormat::bf16);
}

TEST_CASE("Lion over many passes equals the reference's", "[large]") {
  NEED_GPUS(1);
  follows_the_reference(many_passes, HalfFormat::fp16);
}

TEST_CASE(
    "Lion's groups in one launch equal the reference's tensor by tensor, with the device's rate") {
  NEED_GPUS(1);
  // Runs that end inside a quad, and a tensor without elements.
  const std::vector<std::size_t> sizes{5, 1, 0, 4000, few_weights - 4006};
  const std::vector<ParameterGroup> group_of{{1, 0.1}, {2, 0}, {2, 0}, {0.5, 0}, {1, 0.1}};
  const TensorLayout tensors = tensor_layout(sizes);
  const auto runs = upload(group_runs(tensors, group_of));
  auto p = random_values(few_weights, 1), m = random_values(few_weights, 2);
  const auto g = random_values(few_weights, 3);
  const DeviceBuffer<float> dp = upload(p), dm = upload(m), dg = upload(g);
  const double rate = 0.03;
  const DeviceBuffer<double> lr = upload(std::vector<double>{rate});
  for (std::size_t t = 0, begin = 0; t < sizes.size(); begin += sizes[t++]) {
    const reference::LionOptions own{.lr = rate * group_of[t].lr_scale,
                                     .weight_decay = group_of[t].weight_decay};
    reference::lion_step(std::span(p).subspan(begin, sizes[t]),
                         std::span(m).subspan(begin, sizes[t]),
                         std::span(g).subspan(begin, sizes[t]), own);
  }
  require(lion_step({dp.data(), dm.data(), {}, few_weights, runs.data(), lr.data()}, dg.data(),
                    {.lr = 1e9, .weight_decay = 1e9}, nullptr),
          "lion_step");
  CHECK((dp.to_host() == p));
  CHECK((dm.to_host() == m));
}
