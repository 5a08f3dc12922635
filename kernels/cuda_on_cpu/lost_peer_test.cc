// Peers that die, and bytes on the wire, as simulated and counted by the fake NCCL in host memory.
#include "kernels/cuda_on_cpu/fake_nccl.h"
#include "kernels/nccl/node_test.h"
#include "kernels/nccl/onebit_adam.h"
#include "kernels/nccl/onebit_lamb.h"

using namespace lambcast;
using namespace lambcast::cuda;
using namespace lambcast::cuda_on_cpu;

namespace {

OnebitLambOptions short_warm_up() {
  OnebitLambOptions options;
  options.freeze_step = 2;
  return options;
}

// Returns the error of a step of rank 0 whose peer has `fault`, and checks that its state is
// unchanged.
std::string said_of(FakeFault fault, unsigned steps_before) {
  const emulated::World two = aligned_world(2);
  fake_nccl();
  Node<OnebitLamb> node(two, short_warm_up());
  for (unsigned k = 0; k < steps_before; ++k) node.step(random_gradients(two, k));
  const auto before = node.optimizers[0].save();
  fake_nccl(fault);
  const auto gradient = upload(random_gradients(two, 9)[0]);
  const std::vector<OnebitLambRank> alone{node.rank(0, gradient.data())};
  std::string said;
  try {
    onebit_lamb_step(load_nccl(), alone, {.timeout_s = 0.05});
  } catch (const Error& error) {
    CHECK(error.code() == Exit::failure);
    said = error.what();
  }
  CHECK(fake_counts().aborted == 1);
  CHECK(*node.gpus.comm_of(0) == nullptr);
  CHECK(*node.gpus.comm_of(1) != nullptr);
  CHECK((node.optimizers[0].save() == before));
  CHECK_THROWS_WITH(onebit_lamb_step(load_nccl(), alone), "rank 0: its communicator was aborted");
  fake_nccl();
  return said;
}

}  // namespace

TEST_CASE("a step whose peer is silent ends after the timeout, with its communicator aborted") {
  for (const unsigned steps_before : {0u, 3u}) {  // in warm-up and in the compression stage
    CHECK(said_of(FakeFault::silent_peer, steps_before) ==
          "rank 0: no answer from its peers for 0.05 seconds; its communicator is aborted");
  }
}

TEST_CASE("a step whose peer is lost ends when the network reports it") {
  for (const unsigned steps_before : {0u, 3u}) {
    CHECK(said_of(FakeFault::lost_peer, steps_before) ==
          "rank 0: an error of the fake; its communicator is aborted");
  }
}

TEST_CASE("waiting for a step without the overflow check also detects the silent peer") {
  const emulated::World two = aligned_world(2);
  fake_nccl();
  Node<OnebitLamb> node(two, short_warm_up());
  fake_nccl(FakeFault::silent_peer);
  const auto gradient = upload(random_gradients(two, 9)[0]);
  const std::vector<OnebitLambRank> alone{node.rank(0, gradient.data())};
  onebit_lamb_step(load_nccl(), alone, {.check_overflow = false});
  CHECK_THROWS_WITH(await(load_nccl(), watched(std::span<const OnebitLambRank>(alone)), 0.02),
                    "rank 0: no answer from its peers for 0.02 seconds; its communicator is "
                    "aborted");
  fake_nccl();
}

TEST_CASE("fp16 gradients halve the bytes of warm-up") {
  const emulated::World two = aligned_world(2);
  const std::size_t elements = two.tensors.elements();
  OnebitAdamOptions options;
  options.freeze_step = 2;
  fake_nccl();
  Node<OnebitAdam> node(two, options);
  fake_nccl();
  node.step(random_gradients(two, 0), {.check_overflow = false});
  CHECK(fake_counts().all_reduced_bytes == 2 * 4 * elements);
  fake_nccl();
  const std::vector<std::vector<std::uint16_t>> half(2, std::vector<std::uint16_t>(elements, 1));
  node.step_half(half, {});
  CHECK(fake_counts().all_reduced_bytes ==
        2 * (2 * elements + sizeof(double)));  // the 8 bytes are the norm
  fake_nccl();
  CHECK(node.step_half(half, {}) == Step::onebit);
  CHECK(fake_counts().all_reduced_bytes == 2 * sizeof(double));
}
