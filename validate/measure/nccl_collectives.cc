#include "validate/measure/nccl_collectives.h"

#include <algorithm>

#include "kernels/nccl/group.h"
#include "sim/base/check.h"
#include "validate/measure/expected_result.h"

namespace lambcast::validate {
namespace {

class NcclCollective final : public TimedCollective {
 public:
  NcclCollective(const MeasureOptions& options, const Gpus& gpus, std::uint64_t size,
                 Placement placement)
      : operation_(options.operation),
        type_(options.type),
        placement_(placement),
        root_(options.root),
        gpus_(gpus),
        nccl_(gpus.front()->nccl) {
    const std::uint64_t elements = size / bytes_of(type_);
    const std::uint64_t block = elements / static_cast<std::uint64_t>(gpus.front()->ranks);
    const bool gathers = operation_ == Operation::all_gather;
    const bool scatters = operation_ == Operation::reduce_scatter;
    count_ = gathers || scatters || operation_ == Operation::all_to_all ? block : elements;
    sent_ = gathers ? block : elements;
    received_ = scatters ? block : elements;
  }

  void fill() override {
    std::vector<char> values(sent_ * bytes_of(type_)),
        unset(std::max(sent_, received_) * bytes_of(type_));
    for (std::uint64_t i = 0; i < std::max(sent_, received_); ++i)
      store(type_, unset.data(), i, unset_value(type_));
    for (const auto& gpu : gpus_) {
      for (std::uint64_t i = 0; i < sent_; ++i)
        store(type_, values.data(), i, pattern_element(type_, operation_, gpu->rank, i));
      gpu->copy(gpu->receive.data(), unset.data(), unset.size());
      gpu->copy(input(*gpu), values.data(), values.size());
    }
  }

  void run() override {
    cuda::Group group(nccl_);
    check(group.started(), "ncclGroupStart");
    for (const auto& gpu : gpus_) enqueue(*gpu);
    check(group.end(), "ncclGroupEnd");
  }

  std::uint64_t count_wrong() const override {
    const ExpectedResult expected{operation_, gpus_.front()->ranks, root_, count_, type_};
    std::vector<char> values(received_ * bytes_of(type_));
    std::uint64_t wrong = 0;
    for (const auto& gpu : gpus_) {
      gpu->copy(values.data(), output(*gpu), values.size());
      for (std::uint64_t i = 0; i < received_; ++i) {
        wrong += load(type_, values.data(), i) == expected.at(gpu->rank, i) ? 0 : 1;
      }
    }
    return wrong;
  }

 private:
  // In place, the smaller of the two buffers is this rank's block of the larger.
  char* input(const Gpu& gpu) const {
    return placement_ == Placement::out_of_place ? gpu.send.data() : block_of(gpu, sent_);
  }
  char* output(const Gpu& gpu) const {
    return placement_ == Placement::out_of_place ? gpu.receive.data() : block_of(gpu, received_);
  }
  char* block_of(const Gpu& gpu, std::uint64_t elements) const {
    const bool whole = elements == std::max(sent_, received_);
    const std::uint64_t at = whole ? 0 : static_cast<std::uint64_t>(gpu.rank) * elements;
    return gpu.receive.data() + at * bytes_of(type_);
  }

  void enqueue(const Gpu& gpu) const {
    const char* const from = input(gpu);
    char* const to = output(gpu);
    const ncclDataType_t type = nccl_type();
    const ncclComm_t comm = gpu.communicator;
    switch (operation_) {
      case Operation::all_reduce:
        return check(nccl_.ncclAllReduce(from, to, count_, type, ncclSum, comm, gpu.stream),
                     "ncclAllReduce");
      case Operation::all_gather:
        return check(nccl_.ncclAllGather(from, to, count_, type, comm, gpu.stream),
                     "ncclAllGather");
      case Operation::reduce_scatter:
        return check(nccl_.ncclReduceScatter(from, to, count_, type, ncclSum, comm, gpu.stream),
                     "ncclReduceScatter");
      case Operation::broadcast:
        return check(nccl_.ncclBroadcast(from, to, count_, type, root_, comm, gpu.stream),
                     "ncclBroadcast");
      case Operation::reduce:
        return check(nccl_.ncclReduce(from, to, count_, type, ncclSum, root_, comm, gpu.stream),
                     "ncclReduce");
      case Operation::all_to_all:
        for (int peer = 0; peer < gpu.ranks; ++peer) {
          const std::uint64_t at = static_cast<std::uint64_t>(peer) * count_ * bytes_of(type_);
          send_and_receive(gpu, from + at, peer, to + at, peer);
        }
        return;
      case Operation::send_recv:
        return send_and_receive(gpu, from, (gpu.rank + 1) % gpu.ranks, to,
                                (gpu.rank + gpu.ranks - 1) % gpu.ranks);
      case Operation::compressed_allreduce:
      case Operation::ping_pong:
      case Operation::stream:
        LAMBCAST_CHECK(false, "{} is not a collective of NCCL", name_of(operation_));
    }
  }

  void send_and_receive(const Gpu& gpu, const char* from, int to_rank, char* to,
                        int from_rank) const {
    check(nccl_.ncclSend(from, count_, nccl_type(), to_rank, gpu.communicator, gpu.stream),
          "ncclSend");
    check(nccl_.ncclRecv(to, count_, nccl_type(), from_rank, gpu.communicator, gpu.stream),
          "ncclRecv");
  }

  ncclDataType_t nccl_type() const {
    switch (type_) {
      case DataType::half:
        return ncclFloat16;
      case DataType::bfloat16:
        return ncclBfloat16;
      case DataType::uint8:
        return ncclUint8;
      case DataType::float32:
        break;
    }
    return ncclFloat32;
  }

  void check(ncclResult_t status, const char* call) const { cuda::require(nccl_, status, call); }

  Operation operation_;
  DataType type_;
  Placement placement_;
  int root_;
  const Gpus& gpus_;
  const cuda::NcclApi& nccl_;
  std::uint64_t count_ = 0;     // elements per rank or per peer, as passed to NCCL
  std::uint64_t sent_ = 0;      // elements of the input
  std::uint64_t received_ = 0;  // elements of the result
};

}  // namespace

std::unique_ptr<TimedCollective> nccl_collective(const MeasureOptions& options, const Gpus& gpus,
                                                 std::uint64_t size, Placement placement) {
  return std::make_unique<NcclCollective>(options, gpus, size, placement);
}

}  // namespace lambcast::validate
