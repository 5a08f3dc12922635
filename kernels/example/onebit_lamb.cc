// Trains with 1-bit LAMB on all GPUs of this machine.
//
//   onebit_lamb [STEPS [FREEZE_STEP]]        default: 600 steps, 200 of them warm-up
//
// Instead of a model, weights of three tensors approach a target, L = mean (p - target)^2 / 2, and
// every rank's gradient has noise of its own, as with its own data. The gradients come from the
// host; in your program they come from the backward pass.
#include <fmt/format.h>

#include <cstdlib>
#include <random>
#include <vector>

#include "kernels/cuda/gpu.h"
#include "kernels/nccl/local_gpus.h"
#include "kernels/nccl/onebit_lamb.h"

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

std::vector<float> to_host(const OnebitLamb& optimizer) {
  std::vector<float> p(optimizer.elements());
  require(
      cudaMemcpy(p.data(), optimizer.weights(), p.size() * sizeof(float), cudaMemcpyDeviceToHost),
      "cudaMemcpy");
  return p;
}

double loss(const std::vector<float>& p, const std::vector<float>& target) {
  double sum = 0;
  for (std::size_t e = 0; e < p.size(); ++e) sum += 0.5 * (p[e] - target[e]) * (p[e] - target[e]);
  return sum / static_cast<double>(p.size());
}

std::vector<float> noisy_gradient(const std::vector<float>& p, const std::vector<float>& target,
                                  std::mt19937& random) {
  std::normal_distribution<float> noise(0, 0.1f);
  std::vector<float> g(p.size());
  for (std::size_t e = 0; e < g.size(); ++e) g[e] = p[e] - target[e] + noise(random);
  return g;
}

// Trains and returns the exit code.
int train(int steps, int freeze_step) {
  int count = 0;
  cudaGetDeviceCount(&count);
  const NcclApi& nccl = load_nccl();
  LocalGpus gpus(nccl, count);

  const TensorLayout tensors = tensor_layout(std::vector<std::size_t>{4096, 64, 8000});
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> initial(tensors.elements()), target(tensors.elements());
  for (float& x : initial) x = normal(random);
  for (float& x : target) x = normal(random);

  constexpr double peak_lr = 0.02;
  OnebitLambOptions options;
  options.freeze_step = freeze_step;
  std::vector<OnebitLamb> optimizers;
  optimizers.reserve(static_cast<std::size_t>(count));
  gpus.on_each([&](int r) { optimizers.emplace_back(tensors, initial, count, r, options); });

  for (int step = 0; step < steps; ++step) {
    std::vector<DeviceBuffer<float>> gradients;
    std::vector<OnebitLambRank> ranks;
    gpus.on_each([&](int r) {
      OnebitLamb& optimizer = optimizers[static_cast<std::size_t>(r)];
      require(optimizer.set_lr(peak_lr * (1 - static_cast<double>(step) / steps), nullptr),
              "set_lr");
      const auto g = noisy_gradient(to_host(optimizer), target, random);
      gradients.emplace_back(std::span<const float>(g));
      ranks.push_back({r, &optimizer, gradients.back().data(), gpus.comm_of(r), nullptr});
    });
    if (step % 100 == 0) {
      fmt::print("step {:4}  {:9}  loss {:.6f}\n", step,
                 optimizers[0].compresses() ? "one bit" : "warm-up",
                 loss(to_host(optimizers[0]), target));
    }
    onebit_lamb_step(nccl, ranks);
    await(nccl, watched(std::span<const OnebitLambRank>(ranks)), 60);
  }

  const auto trained = to_host(optimizers[0]);
  fmt::print("after {} steps on {} GPUs   loss {:.6f}\n", steps, count, loss(trained, target));
  for (const OnebitLamb& optimizer : optimizers) {
    if (to_host(optimizer) != trained) {
      fmt::print(stderr, "onebit_lamb: the replicas have parted\n");
      return 1;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 600;
  const int freeze_step = argc > 2 ? std::atoi(argv[2]) : 200;
  if (const std::string why = gpus_missing(1); !why.empty()) {
    fmt::print(stderr, "onebit_lamb: {}\n", why);
    return 4;
  }
  try {
    return train(steps, freeze_step);
  } catch (const Error& error) {
    fmt::print(stderr, "onebit_lamb: {}\n", error.what());
    return static_cast<int>(error.code());
  }
}
