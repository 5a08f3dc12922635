#include "kernels/nccl/compressed_allreduce.h"

#include "kernels/emulated_world/compressed_allreduce.h"
#include "kernels/nccl/ranks_test.h"

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

struct AllreduceNode {
  TestRanks gpus;
  std::vector<CompressedAllreduce> ranks;
  std::vector<DeviceBuffer<float>> buffers;

  AllreduceNode(std::size_t elements, int n) : gpus(n) {
    gpus.on_each([&](int r) {
      ranks.emplace_back(elements, n, r, Padding::excluded);
      buffers.emplace_back(elements);
    });
  }

  void allreduce(const std::vector<std::vector<float>>& host) {
    std::vector<LocalRank> local;
    gpus.on_each([&](int rank) {
      const auto r = std::size_t(rank);
      buffers[r] = upload(host[r]);
      float* const x = buffers[r].data();
      local.push_back({gpus.device(rank), &ranks[r], x, x, *gpus.comm_of(rank), gpus.stream(rank)});
    });
    gpus.drive([&](const NcclApi& nccl, int first, int count) {
      compressed_allreduce(nccl, std::span(local).subspan(std::size_t(first), std::size_t(count)));
    });
  }
};

void allreduce_agrees(int n) {
  for (const std::size_t elements :
       {std::size_t{1000}, emulated_device ? many_passes : 1'000'003}) {
    AllreduceNode node(elements, n);
    emulated::ErrorFeedback errors = emulated::error_feedback(elements, n);
    for (unsigned step = 0; step < 3; ++step) {
      std::vector<std::vector<float>> x;
      for (int r = 0; r < n; ++r) x.push_back(random_values(elements, 10 * step + unsigned(r)));
      node.allreduce(x);
      const std::vector<std::span<float>> spans(x.begin(), x.end());
      emulated::compressed_allreduce(spans, errors, Padding::excluded);
      const auto first = node.buffers[0].to_host();
      CHECK(relative_distance(first, x[0]) < 1e-2);  // one flipped sign in 1e5 changes it by 6e-3
      node.gpus.on_each([&](int r) { CHECK(node.buffers[std::size_t(r)].to_host() == first); });
    }
  }
}

}  // namespace

TEST_CASE("compressed_allreduce through NCCL on one GPU agrees with the emulated world") {
  NEED_GPUS(1);
  allreduce_agrees(1);
}

TEST_CASE("compressed_allreduce through NCCL on two GPUs agrees with the emulated world") {
  NEED_RANKS(2);
  allreduce_agrees(2);
}

TEST_CASE("after the errors are cleared, the average is that of a first call") {
  NEED_GPUS(1);
  AllreduceNode node(4099, 1);
  const auto x = random_values(4099, 1);
  node.allreduce({x});
  const auto first = node.buffers[0].to_host();
  node.allreduce({x});
  CHECK(node.buffers[0].to_host() != first);
  require(node.ranks[0].forget_errors(nullptr), "forget_errors");
  node.allreduce({x});
  CHECK(node.buffers[0].to_host() == first);
}
