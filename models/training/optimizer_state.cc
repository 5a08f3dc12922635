#include "models/training/optimizer_state.h"

#include <cmath>

#include "models/optimizer/galore.h"

namespace lambcast {

StateTensor state_tensor(const ModelShape& model, const Tensor& tensor) {
  StateTensor of{static_cast<double>(tensor.elements)};
  if (tensor.group == "no_decay" || tensor.elements <= model.hidden) return of;
  const bool has_side = model.hidden > 0 && tensor.elements % model.hidden == 0;
  of.columns = has_side ? static_cast<double>(model.hidden) : std::sqrt(of.elements);
  of.rows = of.elements / of.columns;
  return of;
}

double state_bytes_per_element(OptimizerType type, const ModelShape& model,
                               const Projection& projection) {
  const OptimizerModel& optimizer = model_of(type);
  double bytes = 0, elements = 0;
  for (const Tensor& tensor : model.tensors) {
    if (!tensor.optimized) continue;
    bytes += optimizer.state_bytes(state_tensor(model, tensor), projection);
    elements += static_cast<double>(tensor.elements);
  }
  return elements > 0 ? bytes / elements : 0;
}

std::vector<std::pair<std::string_view, double>> compression_state(OptimizerType type,
                                                                   Kernels kernels, double elements,
                                                                   double padded, int ranks) {
  if (!is_onebit(type)) return {};
  std::vector<std::pair<std::string_view, double>> parts;
  if (type == OptimizerType::onebit_lamb) parts.emplace_back("fresh_variance", elements * 4);
  parts.emplace_back("worker_error", padded * 4);
  parts.emplace_back("server_error", padded * 4 / ranks);
  parts.emplace_back("temporaries",
                     kernels == Kernels::fused ? padded / 4 : elements * 8 + padded * 1.25);
  return parts;
}

namespace {

using Among = SharedCall::Among;

// Matrices of a model that a call is made for each of.
struct Matrices {
  double count = 0, elements = 0, columns = 0;
  void add(const StateTensor& matrix) {
    count += 1;
    elements += matrix.elements;
    columns += matrix.columns;
  }
};

class CallList {
 public:
  CallList(const UpdateDivision& division, std::vector<SharedCall>& calls)
      : division_(division), calls_(calls) {}

  // `bytes` of all calls together.
  void add(const char* name, Among among, Op op, double count, double bytes) {
    const auto times = static_cast<std::int64_t>(std::llround(count * division_.of_model));
    if (times > 0) calls_.push_back({name, among, op, Bytes(bytes / count), times});
  }

 private:
  const UpdateDivision& division_;
  std::vector<SharedCall>& calls_;
};

void add_sums(const OptimizerModel& optimizer, const ModelShape& model,
              const UpdateDivision& division, Among among, CallList& calls) {
  const int ranks = among == Among::shards ? division.shards : division.tensor_ranks;
  if (ranks == 1) return;
  Matrices even, uneven;
  for (const Tensor& tensor : model.tensors) {
    const StateTensor of = state_tensor(model, tensor);
    if (!tensor.optimized || of.rows == 0) continue;
    const bool divides = among == Among::tensor_ranks || std::llround(of.rows) % ranks == 0;
    (divides ? even : uneven).add(of);
  }
  const double tensors =
      optimizer.sums_per_tensor * static_cast<double>(optimized_tensor_count(model));
  const int numbers = among == Among::shards ? 1 : optimizer.numbers_over_slices;
  calls.add("all_reduce statistics of tensors", among, Op::all_reduce, tensors,
            4 * numbers * tensors);
  const double sums = optimizer.column_sums_per_matrix;
  if (among == Among::tensor_ranks || division.sums_columns)
    calls.add("all_reduce columns of matrices", among, Op::all_reduce, sums * even.count,
              sums * 4 * even.columns);
  calls.add("all_gather gradients and squares", among, Op::all_gather, 2 * sums * uneven.count,
            2 * sums * 4 * uneven.elements / division.tensor_ranks);
}

}  // namespace

UpdateExtras update_extras(OptimizerType type, StepKind step, Kernels kernels,
                           const ModelShape& model, const UpdateDivision& division,
                           double gradient_bytes, const Projection& projection) {
  UpdateExtras extras;
  CallList calls(division, extras.calls);
  for (const Among among : {Among::shards, Among::tensor_ranks})
    add_sums(model_of(type), model, division, among, calls);
  if (type != OptimizerType::galore_adamw8bit) return extras;
  double small = 0, projecting = 0, decomposing = 0;
  Matrices decomposed;
  for (const Tensor& tensor : model.tensors) {
    const StateTensor of = state_tensor(model, tensor);
    if (!tensor.optimized) continue;
    small += galore_small_elements(of, projection);
    if (galore_flops(of, projection) == 0) continue;
    projecting += galore_flops(of, projection);
    decomposing += galore_refresh_flops(of, projection);
    decomposed.add(of);
  }
  static const Sourced<double> thin{0.3,
                                    {Kind::assumed, "products of low rank at 30 % of the peak"}};
  static const Sourced<double> decomposition{
      svd_share_of_peak,
      {Kind::assumed,
       "singular value decompositions at 3 % of the fp32 peak, a sixteenth of "
       "that of half-precision products (MAGMA on a Titan X, pytorch#1373)"}};
  const double share = division.of_model / division.shards / division.tensor_ranks;
  extras.kernels.push_back({galore_small_passes(kernels), small * share, 0});
  if (projecting > 0) extras.products.push_back({projecting * share, thin});
  if (step != StepKind::refresh) return extras;
  if (decomposing > 0)
    extras.products.push_back(
        {decomposing * division.of_model, decomposition, "svd_share_of_peak"});
  if (division.tensor_ranks > 1)
    calls.add("all_gather gradients of matrices", Among::tensor_ranks, Op::all_gather,
              decomposed.count, gradient_bytes * decomposed.elements);
  return extras;
}

}  // namespace lambcast
