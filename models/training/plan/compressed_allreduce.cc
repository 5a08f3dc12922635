#include "models/training/plan/compressed_allreduce.h"

#include <cmath>

#include "kernels/staging.h"
#include "sim/collectives/compressed_exchange.h"

namespace lambcast {
namespace {

class ExchangeWriter {
 public:
  ExchangeWriter(Backend carrier, const ExchangeLevels& levels, std::int64_t padded)
      : carrier_(carrier), levels_(levels), group_(levels.between), padded_(padded) {}

  // `gradient` is the bytes of one gradient element summed in the node.
  std::vector<StepPart> write(const CompressionPasses& passes, double gradient) {
    const CompressedExchange exchange = compressed_exchange(elements(), group_.ranks, carrier_);
    const Staging staging =
        staging_copies(chunk_layout(static_cast<std::uint64_t>(padded_), group_.ranks));
    const double all = levels_.shards * elements();
    if (levels_.in_node()) parts_.push_back(sum_in_node(levels_, gradient * all));
    kernels("compress", Category::compress, passes.worker);
    stage_through_host(staging.scatter);
    send(exchange.scatter);
    kernels("average and compress", Category::compress, passes.server);
    stage_through_host(staging.gather);
    send(exchange.gather);
    if (levels_.in_node())
      parts_.push_back(hand_out_in_node(levels_, all / 8 + 4. * group_.ranks * levels_.shards));
    parts_.push_back({"decompress", Category::decompress, KernelWork{passes.decode, all, 1}});
    return std::move(parts_);
  }

 private:
  double elements() const { return static_cast<double>(padded_); }

  void kernels(const char* name, Category category, const Passes& passes) {
    parts_.push_back({name, category, KernelWork{passes, elements(), 1}});
  }

  void send(const std::vector<ExchangeMessage>& phase) {
    for (const ExchangeMessage& message : phase)
      parts_.push_back(
          {std::string(message.name), Category::gradient_comm,
           Call{group_, carrier_, message.op, message.bytes, std::string(message.algorithm)}});
  }

  // Without cuda_aware, MPI sends numpy arrays, and the host waits for every copy. Otherwise MPI
  // itself stages the bytes that every rank sends in a phase, to the host and back.
  void stage_through_host(const std::vector<StagingCopy>& copies) {
    if (!is_mpi(carrier_)) return;
    HostCopy work;
    if (carrier_ == Backend::mpi_device) {
      work.down_bytes = work.up_bytes = elements() / 8 * (group_.ranks - 1) / group_.ranks;
      work.pinned = true;
    } else {
      for (const StagingCopy& copy : copies) {
        const double times = copy.times;
        (copy.to_host ? work.down_bytes : work.up_bytes) += times * static_cast<double>(copy.bytes);
        work.waits += times;
      }
    }
    parts_.push_back({"copy through host", Category::gradient_comm, work});
  }

  Backend carrier_;
  const ExchangeLevels& levels_;
  ProcessGroup group_;
  std::int64_t padded_;
  std::vector<StepPart> parts_;
};

}  // namespace

std::int64_t padded_share(const ExchangeLevels& levels, double elements) {
  const auto share = static_cast<std::uint64_t>(std::ceil(elements / levels.shards));
  return static_cast<std::int64_t>(chunk_layout(share, levels.between.ranks).padded);
}

std::vector<StepPart> compressed_allreduce(OptimizerType optimizer, Backend backend,
                                           Kernels kernels, const ExchangeLevels& levels,
                                           std::int64_t padded, double gradient) {
  return ExchangeWriter(traits_of(backend).carrier, levels, padded)
      .write(compression_passes(optimizer, backend, kernels, levels.between.ranks), gradient);
}

}  // namespace lambcast
