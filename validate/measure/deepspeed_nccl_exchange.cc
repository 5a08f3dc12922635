#include <algorithm>

#include "validate/measure/nccl_collectives.h"
#include "validate/measure/pattern.h"

namespace lambcast::validate {
namespace {

// Both buffers of a GPU hold, in this order and each part aligned to 512 bytes:
//   send     worker signs (n chunks), server signs (1 chunk), worker scale, server scale
//   receive  worker signs (n chunks), server signs (n chunks), worker scales, server scales (n)
// 2 N / 8 bytes of signs are far below the 4 N bytes of the buffers, which hold whole fp32 vectors.
class DeepSpeedNcclExchange final : public TimedCollective {
 public:
  DeepSpeedNcclExchange(const Gpus& gpus, std::uint64_t size)
      : gpus_(gpus), ranks_(static_cast<std::uint64_t>(gpus.front()->ranks)) {
    chunk_ = size / sizeof(float) / 8 / ranks_;
    second_signs_ = aligned(ranks_ * chunk_);
    scales_ = second_signs_ + aligned(ranks_ * chunk_);
    second_scales_ = scales_ + aligned(ranks_ * sizeof(float));
  }

  void fill() override {
    std::vector<char> bytes(second_scales_ + aligned(ranks_ * sizeof(float)));
    for (const auto& gpu : gpus_) {
      for (std::uint64_t i = 0; i < ranks_ * chunk_; ++i) bytes[i] = worker_sign(gpu->rank, i);
      for (std::uint64_t i = 0; i < chunk_; ++i) {
        bytes[second_signs_ + i] = server_sign(gpu->rank, i);
      }
      *reinterpret_cast<float*>(&bytes[scales_]) = worker_scale(gpu->rank);
      *reinterpret_cast<float*>(&bytes[second_scales_]) = server_scale(gpu->rank);
      check(cudaMemcpy(gpu->send, bytes.data(), bytes.size(), cudaMemcpyDefault),
            "cudaMemcpy of the inputs");
      check(cudaMemset(gpu->receive, 255, bytes.size()), "cudaMemset of the outputs");
    }
  }

  void run() override {
    in_group([&](const Gpu& gpu) {
      for (std::uint64_t peer = 0; peer < ranks_; ++peer) {
        const int rank = static_cast<int>(peer);
        check(ncclSend(gpu.send + peer * chunk_, chunk_, ncclUint8, rank, gpu.communicator,
                       gpu.stream),
              "ncclSend");
        check(ncclRecv(gpu.receive + peer * chunk_, chunk_, ncclUint8, rank, gpu.communicator,
                       gpu.stream),
              "ncclRecv");
      }
    });
    gather(scales_, 1, ncclFloat);
    gather(second_signs_, chunk_, ncclUint8);
    gather(second_scales_, 1, ncclFloat);
  }

  std::uint64_t count_wrong() const override {
    std::uint64_t wrong = 0;
    std::vector<char> bytes(second_scales_ + ranks_ * sizeof(float));
    for (const auto& gpu : gpus_) {
      check(cudaMemcpy(bytes.data(), gpu->receive, bytes.size(), cudaMemcpyDefault),
            "cudaMemcpy of the results");
      const std::uint64_t mine = static_cast<std::uint64_t>(gpu->rank) * chunk_;
      for (std::uint64_t s = 0; s < ranks_; ++s) wrong += wrong_from(s, mine, bytes);
    }
    return wrong;
  }

 private:
  static char worker_sign(int rank, std::uint64_t i) {
    return static_cast<char>(pattern_value(rank, i));
  }
  static char server_sign(int rank, std::uint64_t i) {
    return static_cast<char>(pattern_value(rank + 100, i));
  }
  static float worker_scale(int rank) { return static_cast<float>(1 + rank); }
  static float server_scale(int rank) { return static_cast<float>(100001 + rank); }
  static std::uint64_t aligned(std::uint64_t bytes) { return (bytes + 511) / 512 * 512; }

  template <typename Enqueue>
  void in_group(Enqueue enqueue) const {
    check(ncclGroupStart(), "ncclGroupStart");
    for (const auto& gpu : gpus_) enqueue(*gpu);
    check(ncclGroupEnd(), "ncclGroupEnd");
  }

  void gather(std::uint64_t offset, std::uint64_t count, ncclDataType_t type) const {
    in_group([&](const Gpu& gpu) {
      check(ncclAllGather(gpu.send + offset, gpu.receive + offset, count, type, gpu.communicator,
                          gpu.stream),
            "ncclAllGather");
    });
  }

  // What rank s sent to the server at `mine`, and what it served to all.
  std::uint64_t wrong_from(std::uint64_t s, std::uint64_t mine,
                           const std::vector<char>& bytes) const {
    const int rank = static_cast<int>(s);
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < chunk_; ++i) {
      wrong += bytes[s * chunk_ + i] == worker_sign(rank, mine + i) ? 0 : 1;
      wrong += bytes[second_signs_ + s * chunk_ + i] == server_sign(rank, i) ? 0 : 1;
    }
    const auto* worker_scales = reinterpret_cast<const float*>(&bytes[scales_]);
    const auto* server_scales = reinterpret_cast<const float*>(&bytes[second_scales_]);
    wrong += worker_scales[s] == worker_scale(rank) ? 0 : 1;
    wrong += server_scales[s] == server_scale(rank) ? 0 : 1;
    return wrong;
  }

  const Gpus& gpus_;
  std::uint64_t ranks_;
  std::uint64_t chunk_ = 0;  // bytes of packed signs per server
  std::uint64_t second_signs_ = 0;
  std::uint64_t scales_ = 0;
  std::uint64_t second_scales_ = 0;
};

}  // namespace

std::unique_ptr<TimedCollective> deepspeed_nccl_exchange(const Gpus& gpus, std::uint64_t size) {
  return std::make_unique<DeepSpeedNcclExchange>(gpus, size);
}

}  // namespace lambcast::validate
