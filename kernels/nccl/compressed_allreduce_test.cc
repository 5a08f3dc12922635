#include "kernels/nccl/compressed_allreduce.h"

#include "kernels/cuda/gpu_test.h"
#include "kernels/emulated_world/compressed_allreduce.h"

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

// All GPUs of this machine, driven by one thread.
struct Node {
  std::vector<ncclComm_t> comms;
  std::vector<CompressedAllreduce> ranks;
  std::vector<DeviceBuffer<float>> buffers;

  Node(std::size_t elements, int n) : comms(std::size_t(n)) {
    require(ncclCommInitAll(comms.data(), n, nullptr), "ncclCommInitAll");
    for (int r = 0; r < n; ++r) {
      require(cudaSetDevice(r), "cudaSetDevice");
      ranks.emplace_back(elements, n, r, Padding::excluded);
      buffers.emplace_back(elements);
    }
  }
  ~Node() {
    for (const ncclComm_t comm : comms) ncclCommDestroy(comm);
  }

  template <typename F>
  void on_each(F f) {
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      require(cudaSetDevice(int(r)), "cudaSetDevice");
      f(r);
    }
  }
  template <typename F>
  void in_group(F f) {
    require(ncclGroupStart(), "ncclGroupStart");
    on_each(f);
    require(ncclGroupEnd(), "ncclGroupEnd");
  }

  void allreduce(const std::vector<std::vector<float>>& host) {
    on_each([&](std::size_t r) {
      buffers[r] = upload(host[r]);
      WorkerPhase input;
      input.x = buffers[r].data();
      require(ranks[r].compress(input, nullptr), "compress");
    });
    in_group([&](std::size_t r) { require(ranks[r].exchange(comms[r], nullptr), "exchange"); });
    on_each([&](std::size_t r) { require(ranks[r].serve(nullptr), "serve"); });
    in_group([&](std::size_t r) { require(ranks[r].gather(comms[r], nullptr), "gather"); });
    on_each([&](std::size_t r) {
      require(decode(ranks[r].decoding(buffers[r].data()), nullptr), "decode");
    });
  }
};

void agrees_with_emulated_world(int n) {
  for (const std::size_t elements : {std::size_t{1000}, std::size_t{1000003}}) {
    Node node(elements, n);
    emulated::ErrorFeedback errors = emulated::error_feedback(elements, n);
    for (unsigned step = 0; step < 3; ++step) {
      std::vector<std::vector<float>> x;
      for (int r = 0; r < n; ++r) x.push_back(random_values(elements, 10 * step + unsigned(r)));
      node.allreduce(x);
      const std::vector<std::span<float>> spans(x.begin(), x.end());
      emulated::compressed_allreduce(spans, errors, Padding::excluded);
      const auto first = node.buffers[0].to_host();
      CHECK(relative_distance(first, x[0]) < 1e-2);  // one flipped sign in 1e5 is 6e-3
      node.on_each([&](std::size_t r) { CHECK(node.buffers[r].to_host() == first); });
    }
  }
}

}  // namespace

TEST_CASE("compressed_allreduce through NCCL on one GPU agrees with the emulated world") {
  NEED_GPUS(1);
  agrees_with_emulated_world(1);
}

TEST_CASE("compressed_allreduce through NCCL on two GPUs agrees with the emulated world") {
  NEED_GPUS(2);
  agrees_with_emulated_world(2);
}

TEST_CASE("one call per process runs all phases") {
  NEED_GPUS(1);
  Node node(4096, 1);
  const auto x = random_values(4096, 1);
  auto buffer = upload(x);
  node.ranks[0].run(buffer.data(), node.comms[0], nullptr);
  const auto decoded = buffer.to_host();
  for (std::size_t e = 0; e < x.size(); ++e) {
    REQUIRE(std::signbit(decoded[e]) == std::signbit(x[e]));
  }
}
