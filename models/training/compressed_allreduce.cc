#include "models/training/compressed_allreduce.h"

#include "sim/collectives/compressed_exchange.h"

namespace lambcast {
namespace {

class ExchangeWriter {
 public:
  ExchangeWriter(const TrainingPlan& training, const ProcessGroup& group, double padded)
      : backend_(traits_of(training.backend()).carrier), group_(group), padded_(padded) {}

  std::vector<ExchangePart> write(const CompressionPasses& passes) {
    const double n = group_.ranks, signs = padded_ / 8;
    const CompressedExchange exchange = compressed_exchange(padded_, group_.ranks, backend_);
    kernels("compress", Category::compress, passes.worker);
    stage_through_host(signs, 2 * signs, 2 * n + 5);
    send(exchange.scatter);
    kernels("average and compress", Category::compress, passes.server);
    stage_through_host(signs + signs / n, signs + signs / n, 8);
    send(exchange.gather);
    if (backend_ == Backend::mpi_host) barrier();
    kernels("decompress", Category::decompress, passes.decode);
    return std::move(parts_);
  }

 private:
  void kernels(const char* name, Category category, const Passes& passes) {
    parts_.push_back({name, category, KernelWork{passes, padded_, 1}});
  }

  void send(const ExchangePhase& phase) {
    for (const ExchangeMessage& message : {phase.signs, phase.scales})
      parts_.push_back(
          {std::string(message.name), Category::gradient_comm,
           Call{group_, backend_, message.op, message.bytes, std::string(message.algorithm)}});
  }

  // Nobody's bytes; all_reduces of so few take as many rounds.
  void barrier() {
    parts_.push_back(
        {"barrier", Category::gradient_comm, Call{group_, backend_, Op::all_reduce, Bytes(0)}});
  }

  // numpy arrays when not cuda_aware (`down` and `up` bytes in so many copies, each waited for), or
  // MPI's own staging of what every rank sends in a phase, down and up again.
  void stage_through_host(double down, double up, double copies) {
    if (!is_mpi(backend_)) return;
    const double sent = padded_ / 8 * (group_.ranks - 1) / group_.ranks;
    parts_.push_back({"copy through host", Category::gradient_comm,
                      backend_ == Backend::mpi_device ? HostCopy{sent, sent, 0, true}
                                                      : HostCopy{down, up, copies, false}});
  }

  Backend backend_;
  ProcessGroup group_;
  double padded_;
  std::vector<ExchangePart> parts_;
};

}  // namespace

std::vector<ExchangePart> compressed_allreduce(const TrainingPlan& training,
                                               const ProcessGroup& group, std::int64_t padded) {
  return ExchangeWriter(training, group, static_cast<double>(padded))
      .write(compression_passes(training.optimizer(), training.backend(), training.kernels,
                                group.ranks));
}

}  // namespace lambcast
