#include "kernels/nccl/onebit_lamb.h"

#include "kernels/emulated_world/onebit_lamb.h"
#include "kernels/nccl/node_test.h"
#include "kernels/reference/freeze.h"

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

emulated::World world(int ranks, const Quirks& quirks) {
  emulated::World world;
  world.tensors = tensor_layout(std::vector<std::size_t>{700, 1, 0, 2049, 33});
  world.ranks = ranks;
  world.initial = random_values(world.tensors.elements(), 1);
  world.quirks = quirks;
  return world;
}

OnebitLambOptions lamb_frozen_at(int freeze_step) {
  OnebitLambOptions options;
  options.lamb.lr = 0.01;
  options.lamb.weight_decay = 0.01;
  options.freeze_step = freeze_step;
  return options;
}

using LambNode = Node<OnebitLamb>;

}  // namespace

TEST_CASE("1-bit LAMB through NCCL on two GPUs agrees with the emulated world") {
  NEED_RANKS(2);
  Quirks theirs;
  theirs.padding = Padding::counted;
  theirs.persistent_tail = true;
  theirs.coefficient_average = CoefficientAverage::from_zero;
  for (const Quirks& quirks : {Quirks{}, theirs}) {
    const emulated::World two = world(2, quirks);
    const OnebitLambOptions options = lamb_frozen_at(4);
    emulated::OnebitLamb cpu = emulated::onebit_lamb(two, options);
    LambNode node(two, options);
    for (unsigned k = 0; k < 4 + test_steps; ++k) {
      CHECK(node.optimizers[0].compresses() == cpu.frozen);
      node.step(random_gradients(two, k));
      emulated::step(cpu, random_gradients(two, k));
    }
    const auto weights = node.weights(0);
    CHECK(relative_distance(weights, cpu.ranks[0].p) < 1e-5);
    CHECK((node.weights(1) == weights));
  }
}

TEST_CASE(
    "weights without a gradient at the freeze agree with the emulated world, for both treatments") {
  NEED_RANKS(2);
  for (const Unseen unseen : {Unseen::stay, Unseen::move}) {
    emulated::World two = world(2, {.unseen = unseen});
    two.group_of.assign(two.tensors.tensors(), {1, 0});
    const OnebitLambOptions options = lamb_frozen_at(3);
    emulated::OnebitLamb cpu = emulated::onebit_lamb(two, options);
    LambNode node(two, options);
    for (unsigned k = 0; k < 3 + test_steps; ++k) {
      node.step(sparse_gradients(two, k, 4));
      emulated::step(cpu, sparse_gradients(two, k, 4));
    }
    const auto weights = node.weights(0);
    CHECK(relative_distance(weights, cpu.ranks[0].p) < 1e-5);
    CHECK((node.weights(1) == weights));
    CHECK((weights[20] == two.initial[20]) == (unseen == Unseen::stay));
    CHECK((weights[1020] == two.initial[1020]) == (unseen == Unseen::stay));
  }
}

TEST_CASE("groups, the mask and tensors that never freeze agree with the emulated world") {
  NEED_RANKS(2);
  emulated::World two = world(2, {});
  two.group_of = {{1, 0.01}, {2, 0}, {1, 0}, {1, 0.01}, {0.5, 0}};
  two.mask.assign(two.tensors.elements(), 1.0f);
  two.mask[5] = two.mask[1000] = 0;
  two.non_freeze = {false, false, false, false, true};
  const OnebitLambOptions options = lamb_frozen_at(3);
  emulated::OnebitLamb cpu = emulated::onebit_lamb(two, options);
  LambNode node(two, options);
  CHECK(node.optimizers[0].compressed_elements() == 2750);
  for (unsigned k = 0; k < 3 + test_steps; ++k) {
    node.step(random_gradients(two, k));
    emulated::step(cpu, random_gradients(two, k));
  }
  const auto weights = node.weights(0);
  CHECK(relative_distance(weights, cpu.ranks[0].p) < 1e-5);
  CHECK((node.weights(1) == weights));
}

TEST_CASE("a monitor of the variance ends the warm-up on all ranks at the same step") {
  NEED_RANKS(2);
  const emulated::World two = world(2, {});
  OnebitLambOptions options = lamb_frozen_at(1000);
  options.lamb.beta2 = 0.8;  // D = 5
  emulated::OnebitLamb cpu = emulated::onebit_lamb(two, options);
  LambNode node(two, options);
  CHECK(node.optimizers[0].begin_compression(nullptr) == cudaErrorInvalidValue);
  auto monitor = reference::freeze_monitor(two.tensors, {.threshold = 0.9, .beta2 = 0.8});
  int first = 0;
  for (unsigned k = 0; k < 20 + test_steps; ++k) {
    node.step(random_gradients(two, k));
    emulated::step(cpu, random_gradients(two, k));
    if (!measures(monitor, cpu.step)) continue;
    std::vector<std::vector<double>> norms;
    node.gpus.on_each([&](int r) {
      const DeviceBuffer<double> on_device(two.tensors.tensors());
      require(node.optimizers[std::size_t(r)].variance_norms(on_device.data(), nullptr), "norms");
      norms.push_back(on_device.to_host());
    });
    REQUIRE(norms[0] == norms[1]);
    if (!may_freeze(monitor, cpu.step, norms[0])) continue;
    first = cpu.step;
    emulated::begin_compression(cpu);
    node.gpus.on_each([&](int r) {
      require(node.optimizers[std::size_t(r)].begin_compression(nullptr), "begin_compression");
    });
  }
  CHECK(first >= 10);
  CHECK(first < 20);
  CHECK(node.optimizers[1].compresses());
  CHECK(relative_distance(node.weights(0), cpu.ranks[0].p) < 1e-5);
}

TEST_CASE(
    "1-bit LAMB through NCCL on one GPU runs both stages, with the learning rate that is set") {
  NEED_GPUS(1);
  const emulated::World one = world(1, {});
  LambNode node(one, lamb_frozen_at(2));
  for (unsigned k = 0; k < 4; ++k) {
    const auto before = node.weights(0);
    node.step(random_gradients(one, k));
    CHECK(node.weights(0) != before);
    CHECK(node.optimizers[0].steps() == int(k) + 1);
  }
  CHECK(node.optimizers[0].compresses());
  node.set_lr(0);
  const auto before = node.weights(0);
  node.step(random_gradients(one, 4));
  CHECK((node.weights(0) == before));
}

TEST_CASE("1-bit LAMB rejects a stage without steps, and weights of another model") {
  NEED_GPUS(1);
  const emulated::World one = world(1, {});
  CHECK_THROWS_WITH(OnebitLamb(one.tensors, one.initial, 1, 0, lamb_frozen_at(0)),
                    "freeze_step: 0 (allowed: 1 and more)");
  CHECK_THROWS_WITH(OnebitLamb(one.tensors, {}, 1, 0, lamb_frozen_at(1)),
                    "0 weights for tensors of 2783 elements");
  const auto with = [&](const TensorTraits& traits, const Quirks& quirks) {
    return OnebitLamb(one.tensors, one.initial, 1, 0, lamb_frozen_at(1), quirks, traits);
  };
  CHECK_THROWS_WITH(with({{{1, 0}}, {}, 0}, {}), "1 groups for 5 tensors");
  CHECK_THROWS_WITH(with({{}, {1, 1}, 0}, {}), "a mask of 2 elements for tensors of 2783");
  CHECK_THROWS_WITH(with({{}, {}, 5}, {}), "5 of 5 tensors never freeze");
  CHECK_THROWS_WITH(with({{}, {}, 1}, deepspeed_quirks()),
                    "padding that persists does not go with tensors that never freeze");
}
