#include "models/training/gradient_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/exchange_bytes.h"
#include "models/training/gradient_reduction.h"
#include "models/training/optimizer_state.h"
#include "models/training/training_plan.h"

namespace lambcast {
namespace {

using Kind = Exchange::Kind;

// Bytes per element and launches of the kernels around the wire, on 16-bit gradients. Not timed:
// counted from what each reads and writes.
//   scaled     greatest 2, cast 2 + q; sum of n chunks 1 + 4, cast 4 + q; gathered q + 2
constexpr Passes scale_and_cast{2 + 3, 0, 2, 0, 0};
constexpr Passes sum_and_cast{1 + 4 + 5, 0, 3, 0, 0};
constexpr Passes back_to_half{3, 0, 1, 0, 0};
// Gradient 2 and owed 4 read, their sum written 4; later what was sent is taken from it, 8.
constexpr Passes add_owed{2 + 4 + 4, 0, 2, 0, 0};
constexpr Passes keep_owed{8, 0, 2, 0, 0};
// Magnitudes sorted. Agarwal et al. 2021 (arXiv:2103.00543) took 240 ms for 1 % of ResNet-50's 25.6
// M on a V100 of some 800 GB/s: 7,500 bytes per element.
constexpr Passes select_largest{7500, 0, 4, 0, 0};
constexpr Passes pick{6, 0, 2, 0, 0};
// Two factors, each with some 8 launches and 10 for each column that Gram-Schmidt makes orthogonal:
// 31, 57 and 109 ms at ranks 4, 8 and 16 for the 54 matrices of ResNet-50; measured 45, 64, 130
// (ibid.).
Passes factors(double rank) { return {0, 0, 2 * (8 + 10 * rank), 0, 0}; }

class Writer {
 public:
  explicit Writer(const TrainingPlan& training)
      : training_(training),
        exchange_(training.exchange),
        group_(all_ranks(training)),
        elements_(static_cast<double>(parameters(*training.model))),
        tensors_(static_cast<double>(tensor_count(*training.model))) {}

  std::vector<ExchangePart> write() {
    switch (exchange_.kind) {
      case Kind::fp8:
        scaled({WireFormat::fp8_e4m3, 0});
        break;
      case Kind::int8:
        scaled({WireFormat::int8, 2048});
        break;
      case Kind::int4:
        scaled({WireFormat::int4, 2048});
        break;
      case Kind::powersgd:
        factored();
        break;
      case Kind::topk:
      case Kind::randomk:
        sparse();
        break;
      case Kind::local:
        send("all_reduce weights", Op::all_reduce, 4 * elements_);
        kernels("outer optimizer", Category::optimizer, {4 * 6, 1, 0, 0, 0}, elements_, tensors_);
        break;
      case Kind::all_reduce:
        break;
    }
    return std::move(parts_);
  }

 private:
  void kernels(const char* name, Category part, const Passes& passes, double elements,
               double tensors) {
    parts_.push_back({name, part, KernelWork{passes, elements, tensors}});
  }

  void send(const char* name, Op op, double bytes) {
    if (bytes > 0)
      parts_.push_back(
          {name, Category::gradient_comm, Call{group_, Channel::nccl, op, Bytes(bytes)}});
  }

  void scaled(const Quantiser& quantiser) {
    const auto ranks = static_cast<std::size_t>(group_.ranks);
    const std::size_t chunk = (static_cast<std::size_t>(elements_) + ranks - 1) / ranks;
    const auto payload = static_cast<double>(ranks * payload_bytes(quantiser.format, chunk));
    const auto scales = static_cast<double>(4 * ranks * scale_count(quantiser, chunk));
    kernels("scale and cast", Category::compress, scale_and_cast, elements_, 1);
    send("all_to_all chunks", Op::all_to_all, payload);
    send("all_to_all scales", Op::all_to_all, scales);
    kernels("sum and cast", Category::compress, sum_and_cast, elements_, 1);
    send("all_gather sums", Op::all_gather, payload);
    send("all_gather scales", Op::all_gather, scales);
    kernels("cast back", Category::decompress, back_to_half, elements_, 1);
  }

  // Matrices that a factorisation makes smaller; the others are all-reduced as they are.
  void factored() {
    const double rank = exchange_.parameter;
    double rows = 0, columns = 0, matrices = 0, in_matrices = 0;
    for (const Tensor& tensor : training_.model->tensors) {
      const StateTensor of = state_tensor(*training_.model, tensor);
      if (rank * (of.rows + of.columns) >= of.elements / 2 || of.rows == 0) continue;
      rows += of.rows;
      columns += of.columns;
      matrices += 1;
      in_matrices += of.elements;
    }
    kernels("add owed errors", Category::compress, add_owed, in_matrices, matrices);
    kernels("factors", Category::compress, factors(rank), in_matrices, matrices);
    static const Sourced<double> thin{
        0.3, {lambcast::Kind::assumed, "products of low rank at 30 % of the peak"}};
    parts_.push_back(
        {"products of factors", Category::compress, ProductWork{4 * in_matrices * rank, thin}});
    send("all_reduce left factors", Op::all_reduce, 4 * rank * rows);
    send("all_reduce right factors", Op::all_reduce, 4 * rank * columns);
    send("all_reduce other tensors", Op::all_reduce,
         (elements_ - in_matrices) * gradient_bytes(training_));
    parts_.push_back(
        {"product of averages", Category::decompress, ProductWork{2 * in_matrices * rank, thin}});
    kernels("keep owed errors", Category::decompress, keep_owed, in_matrices, matrices);
  }

  void sparse() {
    const double kept = std::ceil(exchange_.parameter * elements_);
    const bool largest = exchange_.kind == Kind::topk;
    kernels("add owed errors", Category::compress, add_owed, elements_, tensors_);
    kernels(largest ? "select the largest" : "pick", Category::compress,
            largest ? select_largest : pick, elements_, tensors_);
    if (largest)
      send("all_gather values and indices", Op::all_gather, 8 * kept * group_.ranks);
    else
      send("all_reduce values", Op::all_reduce, 4 * kept);
    const double arriving = largest ? kept * group_.ranks : kept;
    kernels("add up what arrived", Category::decompress, {16, 0, 1, 0, 0}, arriving, tensors_);
    kernels("keep owed errors", Category::decompress, keep_owed, elements_, tensors_);
  }

  const TrainingPlan& training_;
  const Exchange& exchange_;
  ProcessGroup group_;
  double elements_, tensors_;
  std::vector<ExchangePart> parts_;
};

}  // namespace

std::vector<ExchangePart> gradient_exchange(const TrainingPlan& training) {
  return Writer(training).write();
}

}  // namespace lambcast
