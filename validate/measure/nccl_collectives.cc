#include "validate/measure/nccl_collectives.h"

#include "sim/base/check.h"
#include "validate/measure/expected_result.h"

namespace lambcast::validate {
namespace {

class NcclCollective final : public TimedCollective {
 public:
  NcclCollective(const MeasureOptions& options, const Gpus& gpus, std::uint64_t size)
      : operation_(options.operation), root_(options.root), gpus_(gpus), nccl_(gpus.front()->nccl) {
    const std::uint64_t elements = size / sizeof(float);
    const std::uint64_t block = elements / static_cast<std::uint64_t>(gpus.front()->ranks);
    const bool gathers = operation_ == Operation::all_gather;
    const bool scatters = operation_ == Operation::reduce_scatter;
    count_ = gathers || scatters || operation_ == Operation::all_to_all ? block : elements;
    sent_ = gathers ? block : elements;
    received_ = scatters ? block : elements;
  }

  void fill() override {
    std::vector<float> values(sent_);
    const std::vector<float> unset(received_, kUnset);
    for (const auto& gpu : gpus_) {
      for (std::uint64_t i = 0; i < sent_; ++i) values[i] = pattern_float(gpu->rank, i);
      gpu->copy(gpu->send.data(), values.data(), sent_ * sizeof(float));
      gpu->copy(gpu->receive.data(), unset.data(), received_ * sizeof(float));
    }
  }

  void run() override {
    check(nccl_.ncclGroupStart(), "ncclGroupStart");
    for (const auto& gpu : gpus_) enqueue(*gpu);
    check(nccl_.ncclGroupEnd(), "ncclGroupEnd");
  }

  std::uint64_t count_wrong() const override {
    const ExpectedResult expected{operation_, gpus_.front()->ranks, root_, count_};
    std::vector<float> values(received_);
    std::uint64_t wrong = 0;
    for (const auto& gpu : gpus_) {
      gpu->copy(values.data(), gpu->receive.data(), received_ * sizeof(float));
      for (std::uint64_t i = 0; i < received_; ++i) {
        wrong += values[i] == expected.at(gpu->rank, i) ? 0 : 1;
      }
    }
    return wrong;
  }

 private:
  void enqueue(const Gpu& gpu) const {
    const ncclDataType_t type = ncclFloat;
    const ncclComm_t comm = gpu.communicator;
    switch (operation_) {
      case Operation::all_reduce:
        return check(nccl_.ncclAllReduce(gpu.send.data(), gpu.receive.data(), count_, type, ncclSum,
                                         comm, gpu.stream),
                     "ncclAllReduce");
      case Operation::all_gather:
        return check(nccl_.ncclAllGather(gpu.send.data(), gpu.receive.data(), count_, type, comm,
                                         gpu.stream),
                     "ncclAllGather");
      case Operation::reduce_scatter:
        return check(nccl_.ncclReduceScatter(gpu.send.data(), gpu.receive.data(), count_, type,
                                             ncclSum, comm, gpu.stream),
                     "ncclReduceScatter");
      case Operation::broadcast:
        return check(nccl_.ncclBroadcast(gpu.send.data(), gpu.receive.data(), count_, type, root_,
                                         comm, gpu.stream),
                     "ncclBroadcast");
      case Operation::all_to_all:
        for (int peer = 0; peer < gpu.ranks; ++peer) {
          const std::uint64_t at = static_cast<std::uint64_t>(peer) * count_ * sizeof(float);
          send_and_receive(gpu, gpu.send.data() + at, peer, gpu.receive.data() + at, peer);
        }
        return;
      case Operation::send_recv:
        return send_and_receive(gpu, gpu.send.data(), (gpu.rank + 1) % gpu.ranks,
                                gpu.receive.data(), (gpu.rank + gpu.ranks - 1) % gpu.ranks);
      case Operation::compressed_allreduce:
      case Operation::ping_pong:
      case Operation::stream:
        LAMBCAST_CHECK(false, "{} is no collective of NCCL", name_of(operation_));
    }
  }

  void send_and_receive(const Gpu& gpu, const char* from, int to_rank, char* to,
                        int from_rank) const {
    check(nccl_.ncclSend(from, count_, ncclFloat, to_rank, gpu.communicator, gpu.stream),
          "ncclSend");
    check(nccl_.ncclRecv(to, count_, ncclFloat, from_rank, gpu.communicator, gpu.stream),
          "ncclRecv");
  }

  void check(ncclResult_t status, const char* call) const { cuda::require(nccl_, status, call); }

  Operation operation_;
  int root_;
  const Gpus& gpus_;
  const cuda::NcclApi& nccl_;
  std::uint64_t count_ = 0;     // elements per rank or per peer, as NCCL takes it
  std::uint64_t sent_ = 0;      // elements of the send buffer
  std::uint64_t received_ = 0;  // elements of the receive buffer
};

}  // namespace

std::unique_ptr<TimedCollective> nccl_collective(const MeasureOptions& options, const Gpus& gpus,
                                                 std::uint64_t size) {
  return std::make_unique<NcclCollective>(options, gpus, size);
}

}  // namespace lambcast::validate
