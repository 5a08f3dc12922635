#include "kernels/nccl/onebit_adam.h"

#include "kernels/emulated_world/onebit_adam.h"
#include "kernels/nccl/node_test.h"
#include "kernels/reference/freeze.h"

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

using AdamNode = Node<OnebitAdam>;

OnebitAdamOptions options_frozen_at(int freeze_step) {
  OnebitAdamOptions options;
  options.adam.lr = 0.01;
  options.adam.weight_decay = 0.01;
  options.freeze_step = freeze_step;
  return options;
}

// Compares steps through the freeze and beyond it.
void onebit_adam_agrees(const emulated::World& world, auto gradients) {
  const OnebitAdamOptions options = options_frozen_at(4);
  emulated::OnebitAdam cpu = emulated::onebit_adam(world, options);
  AdamNode node(world, options);
  for (unsigned k = 0; k < 4 + test_steps; ++k) {
    CHECK(node.optimizers[0].compresses() == cpu.frozen);
    const Step did = node.step(gradients(world, k));
    CHECK(did == emulated::step(cpu, gradients(world, k)));
    // The mean of two values has the same bits on both sides.
    if (did == Step::full && world.ranks == 2) CHECK((node.weights(0) == cpu.ranks[0].p));
  }
  const auto weights = node.weights(0);
  CHECK(relative_distance(weights, cpu.ranks[0].p) < 1e-5);
  for (int r = 1; r < world.ranks; ++r) CHECK((node.weights(r) == weights));
}
void onebit_adam_agrees(const emulated::World& world) {
  onebit_adam_agrees(world, random_gradients);
}

}  // namespace

TEST_CASE("1-bit Adam through NCCL on two GPUs agrees with the emulated world") {
  NEED_RANKS(2);
  for (const Padding padding : {Padding::excluded, Padding::counted}) {
    emulated::World two = aligned_world(2);
    two.quirks.padding = padding;
    onebit_adam_agrees(two);
  }
}

TEST_CASE("1-bit Adam through NCCL on four GPUs agrees with the emulated world") {
  NEED_RANKS(4);
  onebit_adam_agrees(aligned_world(3));
  onebit_adam_agrees(aligned_world(4));
}

TEST_CASE("weights without a gradient stay in 1-bit Adam through NCCL, or move by eps") {
  NEED_RANKS(2);
  for (const Unseen unseen : {Unseen::stay, Unseen::move}) {
    emulated::World two = aligned_world(2);
    two.quirks.unseen = unseen;
    onebit_adam_agrees(two, [](const emulated::World& world, unsigned k) {
      return sparse_gradients(world, k, 5);
    });
  }
}

TEST_CASE("1-bit Adam's groups, mask and tensors that never freeze agree with the emulated world") {
  NEED_RANKS(2);
  emulated::World two = aligned_world(2);
  two.group_of = {{1, 0.01}, {2, 0}, {1, 0}, {1, 0.01}, {0.5, 0}};
  two.mask.assign(two.tensors.elements(), 1.0f);
  two.mask[5] = two.mask[1000] = 0;
  onebit_adam_agrees(two);
  two.non_freeze = {false, false, false, true, true};
  onebit_adam_agrees(two);
}

TEST_CASE("a monitor of the variance ends 1-bit Adam's warm-up") {
  NEED_RANKS(2);
  const emulated::World two = aligned_world(2);
  emulated::OnebitAdam cpu = emulated::onebit_adam(two, options_frozen_at(1000));
  AdamNode node(two, options_frozen_at(1000));
  CHECK(node.optimizers[0].begin_compression(nullptr) == cudaErrorInvalidValue);
  for (unsigned k = 0; k < 2 + test_steps; ++k) {
    node.step(random_gradients(two, k));
    emulated::step(cpu, random_gradients(two, k));
    if (k != 1) continue;
    node.gpus.on_each([&](int r) {
      const DeviceBuffer<double> norms(two.tensors.tensors());
      OnebitAdam& optimizer = node.optimizers[std::size_t(r)];
      require(optimizer.variance_norms(norms.data(), nullptr), "variance_norms");
      const auto on_host = norms.to_host();
      for (std::size_t t = 0; t < on_host.size(); ++t) {
        double sum = 0;
        for (const float v : two.tensors.view(std::span(cpu.ranks[0].v), t)) sum += double(v);
        CHECK(on_host[t] == Approx(sum).epsilon(1e-6).margin(0));
      }
      require(optimizer.begin_compression(nullptr), "begin_compression");
    });
    emulated::begin_compression(cpu);
  }
  CHECK(node.optimizers[1].compresses());
  CHECK(relative_distance(node.weights(0), cpu.ranks[0].p) < 1e-5);
}

TEST_CASE("1-bit Adam rejects tensors that begin inside a quad") {
  NEED_GPUS(1);
  const TensorLayout tensors = tensor_layout(std::vector<std::size_t>{8, 3, 8});
  CHECK_THROWS_WITH(OnebitAdam(tensors, random_values(19, 1), 1, 0, options_frozen_at(1)),
                    "tensor 2 begins at element 11 (allowed: multiples of 4)");
  CHECK_THROWS_WITH(OnebitAdam(tensors, random_values(19, 1), 1, 0, options_frozen_at(0)),
                    "freeze_step: 0 (allowed: 1 and more)");
}
