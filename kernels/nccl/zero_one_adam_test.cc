#include "kernels/nccl/zero_one_adam.h"

#include "kernels/emulated_world/zero_one_adam.h"
#include "kernels/nccl/node_test.h"

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

using ZeroOneNode = Node<ZeroOneAdam>;

// Options with every kind of step within sixteen: the variance moves at 1, 2, 4, 6, 8 and is frozen
// from 9 on; then come synchronisations, first in every step, at last in every fourth.
ZeroOneAdamOptions short_options() {
  ZeroOneAdamOptions options;
  options.adam.lr = 0.01;
  options.adam.weight_decay = 0.01;
  options.var_freeze_step = 8;
  options.var_update_scaler = 2;
  options.local_step_scaler = 3;
  options.local_step_clipper = 4;
  return options;
}

void zero_one_adam_agrees(const emulated::World& world, auto gradients) {
  const ZeroOneAdamOptions options = short_options();
  emulated::ZeroOneAdam cpu = emulated::zero_one_adam(world, options);
  ZeroOneNode node(world, options);
  int seen[3] = {};
  for (unsigned k = 0; k < 16 + test_steps; ++k) {
    if (k == 11) {
      node.set_lr(0.02);
      cpu.options.adam.lr = 0.02;
    }
    const Step did = node.step(gradients(world, k));
    CHECK(did == emulated::step(cpu, gradients(world, k)));
    CHECK(node.optimizers[0].variance_is_frozen() == cpu.policy.frozen);
    seen[did == Step::full ? 0 : did == Step::onebit ? 1 : 2]++;
    for (int r = 0; r < world.ranks; ++r) {
      REQUIRE(relative_distance(node.weights(r), cpu.ranks[std::size_t(r)].p) < 1e-5);
    }
  }
  CHECK(*std::min_element(seen, seen + 3) > 2);
}
void zero_one_adam_agrees(const emulated::World& world) {
  zero_one_adam_agrees(world, random_gradients);
}

}  // namespace

TEST_CASE("0/1 Adam through NCCL on two GPUs agrees with the emulated world") {
  NEED_RANKS(2);
  for (const Padding padding : {Padding::excluded, Padding::counted}) {
    emulated::World two = aligned_world(2);
    two.quirks.padding = padding;
    zero_one_adam_agrees(two);
  }
}

TEST_CASE("0/1 Adam through NCCL on four GPUs agrees with the emulated world") {
  NEED_RANKS(4);
  zero_one_adam_agrees(aligned_world(3));
  zero_one_adam_agrees(aligned_world(4));
}

TEST_CASE("weights without a gradient stay in 0/1 Adam through NCCL, or move by eps") {
  NEED_RANKS(2);
  for (const Unseen unseen : {Unseen::stay, Unseen::move}) {
    emulated::World two = aligned_world(2);
    two.quirks.unseen = unseen;
    zero_one_adam_agrees(two, [](const emulated::World& world, unsigned k) {
      return sparse_gradients(world, k, 10);
    });
  }
}

TEST_CASE("0/1 Adam's groups and mask agree with the emulated world") {
  NEED_RANKS(2);
  emulated::World two = aligned_world(2);
  two.group_of = {{1, 0.01}, {2, 0}, {1, 0}, {1, 0.01}, {0.5, 0}};
  two.mask.assign(two.tensors.elements(), 1.0f);
  two.mask[5] = two.mask[1000] = 0;
  zero_one_adam_agrees(two);
}

TEST_CASE("0/1 Adam with a learning rate of 0 has nothing to synchronise") {
  NEED_RANKS(2);
  const emulated::World two = aligned_world(2);
  ZeroOneAdamOptions options = short_options();
  options.var_freeze_step = 1;
  ZeroOneNode node(two, options);
  CHECK(node.step(random_gradients(two, 0)) == Step::full);
  node.set_lr(0);
  const auto before = node.weights(0);
  CHECK(node.step(random_gradients(two, 1)) == Step::silent);
  CHECK((node.weights(0) == before));
  node.set_lr(0.01);
  CHECK(node.step(random_gradients(two, 2)) == Step::onebit);
}

TEST_CASE(
    "0/1 Adam rejects stages without steps, and tensors that never freeze or begin inside a quad") {
  NEED_GPUS(1);
  const emulated::World one = aligned_world(1);
  ZeroOneAdamOptions options = short_options();
  CHECK_THROWS_WITH(ZeroOneAdam(one.tensors, one.initial, 1, 0, options, {}, {{}, {}, 1}),
                    "0/1 Adam has no tensors that never freeze");
  options.local_step_clipper = 0;
  CHECK_THROWS_WITH(ZeroOneAdam(one.tensors, one.initial, 1, 0, options),
                    "local_step_clipper: 0 (allowed: 1 and more)");
  options.var_freeze_step = 0;
  CHECK_THROWS_WITH(ZeroOneAdam(one.tensors, one.initial, 1, 0, options),
                    "var_freeze_step: 0 (allowed: 1 and more)");
  const TensorLayout odd = tensor_layout(std::vector<std::size_t>{7, 8});
  CHECK_THROWS_WITH(ZeroOneAdam(odd, random_values(15, 1), 1, 0, short_options()),
                    "tensor 1 begins at element 7 (allowed: multiples of 4)");
}
