// The kernels on more elements than a 32-bit integer can count. Buffers repeat a period of values
// with a prime length, so that a wrapped index reads wrong values. Expected results are the
// reference's on one period.
#include "kernels/cuda/adam.h"
#include "kernels/cuda/compression.h"
#include "kernels/cuda/gpu_test.h"
#include "kernels/cuda/lamb_tensors.h"
#include "kernels/layout.h"
#include "kernels/reference/adam.h"
#include "kernels/reference/lamb.h"

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

constexpr std::size_t period = emulated_device ? 1009 : 1'000'003;
constexpr std::size_t elements = emulated_device ? 100'003 : (std::size_t{1} << 31) + 1003;

template <typename F>
void for_each_period(std::size_t count, F f) {
  for (std::size_t begin = 0; begin < count; begin += period)
    f(begin, std::min(period, count - begin));
}

DeviceBuffer<float> repeated(const std::vector<float>& one, std::size_t count) {
  DeviceBuffer<float> x(count);
  for_each_period(count, [&](std::size_t begin, std::size_t size) {
    require(cudaMemcpy(x.data() + begin, one.data(), 4 * size, cudaMemcpyHostToDevice),
            "cudaMemcpy");
  });
  return x;
}

// Returns the first element that differs from the repeated `one`; `elements` if none does.
std::size_t first_other(const DeviceBuffer<float>& x, const std::vector<float>& one) {
  std::size_t other = elements;
  std::vector<float> host(period);
  require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  for_each_period(elements, [&](std::size_t begin, std::size_t size) {
    require(cudaMemcpy(host.data(), x.data() + begin, 4 * size, cudaMemcpyDeviceToHost),
            "cudaMemcpy");
    for (std::size_t e = 0; e < size && other == elements; ++e) {
      if (host[e] != one[e]) other = begin + e;
    }
  });
  return other;
}

// Returns the sum of squares over the whole buffer.
double square_sum(const std::vector<float>& one) {
  double sum = 0;
  for (std::size_t e = 0; e < period; ++e) {
    sum += double(one[e]) * one[e] * double((elements - e - 1) / period + 1);
  }
  return sum;
}

}  // namespace

TEST_CASE("compression of more than 2^31 elements", "[large]") {
  NEED_GPUS(1);
  const ChunkLayout layout = chunk_layout(elements, 1);
  NEED_BYTES(9 * layout.padded);
  const auto one = random_values(period, 1);
  auto x = repeated(one, layout.padded);
  DeviceBuffer<float> c(layout.padded), worker_scale(1), server_scale(1);
  DeviceBuffer<std::uint8_t> signs(layout.packed_bytes()), served(layout.packed_bytes());
  DeviceBuffer<double> workspace(reduction_slots);
  WorkerPhase worker;
  worker.x = x.data();
  worker.elements = worker.counted = elements;
  worker.padded = layout.padded;
  worker.error = {c.data(), worker_scale.data()};
  worker.signs = signs.data();
  worker.workspace = workspace.data();
  require(worker_phase(worker, nullptr), "worker_phase");
  CHECK(first_other(c, one) == elements);  // the error feedback is zero
  const float scale = worker_scale.to_host()[0];
  CHECK(scale == Approx(std::sqrt(square_sum(one) / double(elements))).epsilon(1e-6));

  // One rank serves the whole buffer; its error feedback uses the memory of the input.
  require(cudaMemset(x.data(), 0, 4 * layout.padded), "cudaMemset");
  ServerPhase server;
  server.received = signs.data();
  server.worker_scales = worker_scale.data();
  server.ranks = 1;
  server.chunk = layout.padded;
  server.counted = elements;
  server.error = {x.data(), server_scale.data()};
  server.signs = served.data();
  server.workspace = workspace.data();
  require(server_phase(server, nullptr), "server_phase");
  CHECK(server_scale.to_host()[0] == Approx(scale).epsilon(1e-6));
  require(decode({served.data(), worker_scale.data(), layout.chunk, elements, nullptr, c.data()},
                 nullptr),
          "decode");
  std::vector<float> decoded;
  for (const float value : one) decoded.push_back(value < 0 ? -scale : scale);
  CHECK(first_other(c, decoded) == elements);
}

TEST_CASE("Adam and LAMB over more than 2^31 elements", "[large]") {
  NEED_GPUS(1);
  NEED_BYTES(17 * elements);
  auto p = random_values(period, 1), m = random_values(period, 2);
  auto v = random_values(period, 3, 0.6);
  const auto g = random_values(period, 4);
  const auto dp = repeated(p, elements), dm = repeated(m, elements), dv = repeated(v, elements);
  const auto dg = repeated(g, elements);
  const auto check = [&] {
    CHECK(first_other(dp, p) == elements);
    CHECK(first_other(dm, m) == elements);
    CHECK(first_other(dv, v) == elements);
  };
  AdamOptions adam;
  adam.weight_decay = 0.1;
  reference::adam_step(p, m, v, g, adam, 1);
  require(adam_step({dp.data(), dm.data(), dv.data(), nullptr, {}, elements}, dg.data(), adam, 1,
                    nullptr),
          "adam_step");
  check();

  // If the limits of a ratio coincide, the ratio is the same for the period and the whole buffer.
  LambOptions lamb;
  lamb.weight_decay = 0.1;
  lamb.min_coeff = lamb.max_coeff = 0.5;
  const std::vector<std::size_t> sizes{elements};
  const LambTensors per_tensor(tensor_layout(sizes));
  const LambState state = per_tensor.state(dp.data(), dm.data(), dv.data());
  const double weights = square_sum(p);
  reference::lamb_step(p, m, v, g, lamb);
  require(lamb_step(state, dg.data(), lamb, {}, nullptr), "lamb_step");
  check();
  const auto sums = per_tensor.workspace.to_host();
  double sum = 0;
  for (std::size_t k = 0; k < per_tensor.table.pieces.size(); ++k) sum += sums[3 * k];
  CHECK(sum == Approx(weights).epsilon(1.8e-7));
}
