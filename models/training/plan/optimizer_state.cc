#include "models/training/plan/optimizer_state.h"

#include <cmath>
#include <utility>

#include "models/optimizer/galore.h"
#include "models/parallel/rank_parameters.h"

namespace lambcast {

namespace {

bool is_cut_by_outputs(TensorSplit split) {
  return split != TensorSplit::replicated && split != TensorSplit::inputs;
}

// A tensor of the optimizer, and how tensor parallelism divides it.
struct GivenTensor {
  StateTensor whole;
  TensorSplit split = TensorSplit::replicated;
};

std::vector<GivenTensor> given_tensors(const OptimizerModel& optimizer, const ModelShape& model,
                                       bool flat) {
  std::vector<GivenTensor> given;
  if (flat) {
    for (const GroupSize& group : optimizer_groups(model))
      given.push_back({{static_cast<double>(group.elements)}});
    return given;
  }
  for (const Tensor& tensor : model.tensors) {
    if (!tensor.optimized) continue;
    StateTensor whole = state_tensor(model, tensor);
    if (optimizer.matrix_work && tensor.layer < 0) whole.rows = whole.columns = 0;
    given.push_back({whole, tensor.split});
  }
  return given;
}

StateTensor sliced(StateTensor of, TensorSplit split, const ModelShape& model, int tensor_ranks) {
  const double share = parallel::tensor_share(split, model, tensor_ranks);
  of.elements *= share;
  if (is_cut_by_outputs(split)) of.rows *= share;
  if (split == TensorSplit::inputs) of.columns *= share;
  return of;
}

// Returns the part of a tensor whose blocks a rank works on.
StateTensor own_part(const GivenTensor& tensor, const ModelShape& model,
                     const UpdateDivision& division) {
  StateTensor part = sliced(tensor.whole, tensor.split, model, division.tensor_ranks);
  part.elements /= division.shards;
  part.rows /= division.shards;
  return part;
}

bool has_even_rows(const StateTensor& slice, int shards) {
  return std::llround(slice.rows) % shards == 0;
}

}  // namespace

StateTensor state_tensor(const ModelShape& model, const Tensor& tensor) {
  StateTensor of{static_cast<double>(tensor.elements)};
  if (group_of(model, tensor) == "no_decay" || tensor.elements <= model.hidden) return of;
  const bool has_side = model.hidden > 0 && tensor.elements % model.hidden == 0;
  of.columns = has_side ? static_cast<double>(model.hidden) : std::sqrt(of.elements);
  of.rows = of.elements / of.columns;
  if (tensor.split == TensorSplit::inputs) std::swap(of.rows, of.columns);
  return of;
}

StateTensor slice_of(const ModelShape& model, const Tensor& tensor, int tensor_ranks) {
  return sliced(state_tensor(model, tensor), tensor.split, model, tensor_ranks);
}

WholeMatrices whole_matrices(const Parallelism& how) {
  if (how.sharding != parallel::Sharding::weights) return WholeMatrices::owned;
  return how.framework.name == FrameworkName::deepspeed ? WholeMatrices::gathered
                                                        : WholeMatrices::exchanged;
}

double state_bytes_per_element(OptimizerType type, const ModelShape& model,
                               const UpdateDivision& division, const Projection& projection) {
  const OptimizerModel& optimizer = model_of(type);
  // Early return: a layout search calls this for thousands of layouts, with models of tens of
  // thousands of tensors.
  if (optimizer.same_states) return optimizer.state_bytes({1}, projection);
  double bytes = 0, elements = 0;
  for (const GivenTensor& tensor : given_tensors(optimizer, model, division.flat)) {
    StateTensor held = tensor.whole;
    double copies = 1;
    if (optimizer.matrix_work && optimizer.matrix_work->in_blocks) {
      held = own_part(tensor, model, division);
      if (held.rows > 0) copies = division.copies;
    }
    if (optimizer.factored_statistics > 0) {
      held = sliced(tensor.whole, tensor.split, model, division.tensor_ranks);
      held.elements /= division.shards;
      if (has_even_rows(held, division.shards)) held.rows /= division.shards;
    }
    bytes += optimizer.state_bytes(held, projection) / copies;
    elements += held.elements;
  }
  return elements > 0 ? bytes / elements : 0;
}

std::vector<std::pair<std::string_view, double>> compression_state(OptimizerType type,
                                                                   Kernels kernels, double elements,
                                                                   double padded, int ranks) {
  if (!is_onebit(type)) return {};
  std::vector<std::pair<std::string_view, double>> parts;
  if (type == OptimizerType::onebit_lamb) parts.emplace_back("fresh_variance", elements * 4);
  // Sum of weight changes since the last synchronisation (zoadam.py), kept from the first step on.
  if (type == OptimizerType::zero_one_adam)
    parts.emplace_back("momentum_accumulator", elements * 4);
  parts.emplace_back("worker_error", padded * 4);
  parts.emplace_back("server_error", padded * 4 / ranks);
  parts.emplace_back("temporaries",
                     kernels == Kernels::fused ? padded / 4 : elements * 8 + padded * 1.25);
  return parts;
}

namespace {

using Among = SharedCall::Among;

// Calls of one kind, for the tensors of the model that need them.
struct Calls {
  double count = 0, bytes = 0;  // totals of all calls
  void add(double times, double bytes_each) {
    count += times;
    bytes += times * bytes_each;
  }
};

// Adds the calls for a stage's part of the model.
void write(const char* name, Among among, Op op, const Calls& calls, const UpdateDivision& division,
           std::vector<SharedCall>& to) {
  const auto times = static_cast<std::int64_t>(std::llround(calls.count * division.of_model));
  if (times > 0) to.push_back({name, among, op, Bytes(calls.bytes / calls.count), times});
}

struct StatisticCalls {
  Calls numbers, columns, gathered_parts;             // calls over the shards
  Calls sliced_numbers, sliced_means, gathered_rows;  // calls over tensor-parallel ranks
};

void add_factored(const StateTensor& slice, TensorSplit split, int statistics,
                  const UpdateDivision& division, StatisticCalls& calls) {
  const double h = slice.rows, w = slice.columns, d = division.shards, t = division.tensor_ranks;
  const bool even = has_even_rows(slice, division.shards), cuts = t > 1;
  if (!even) calls.gathered_parts.add(2 * statistics, 4 * slice.elements);
  if (division.sums_columns && d > 1) calls.columns.add(statistics, 4 * w);
  if (!cuts) return;
  if (split == TensorSplit::inputs) {
    if (even) calls.sliced_means.add(statistics, 4 * h / d);
    return;
  }
  const bool cut = split != TensorSplit::replicated;
  if (cut || d > 1) calls.sliced_means.add(statistics, 4 * w);
  if (cut && even) calls.gathered_rows.add(statistics, 4 * t * h / d);
}

StatisticCalls statistic_calls(const OptimizerModel& optimizer, const ModelShape& model,
                               const UpdateDivision& division) {
  StatisticCalls calls;
  const bool shared = division.shards > 1, cuts = division.tensor_ranks > 1;
  for (const GivenTensor& tensor : given_tensors(optimizer, model, false)) {
    const bool cut = tensor.split != TensorSplit::replicated;
    const int numbers = optimizer.numbers_over_slices;
    if (shared) calls.numbers.add(optimizer.sums_per_tensor, 4);
    if (cuts && (cut || (shared && numbers > 1)))
      calls.sliced_numbers.add(optimizer.sums_per_tensor, 4 * numbers);
    if (tensor.whole.rows > 0)
      add_factored(sliced(tensor.whole, tensor.split, model, division.tensor_ranks), tensor.split,
                   optimizer.factored_statistics, division, calls);
  }
  return calls;
}

void add_statistics(const OptimizerModel& optimizer, const ModelShape& model,
                    const UpdateDivision& division, std::vector<SharedCall>& to) {
  if (division.flat || (optimizer.sums_per_tensor == 0 && optimizer.factored_statistics == 0))
    return;
  const StatisticCalls calls = statistic_calls(optimizer, model, division);
  write("all_reduce statistics of tensors", Among::shards, Op::all_reduce, calls.numbers, division,
        to);
  write("all_reduce columns of matrices", Among::shards, Op::all_reduce, calls.columns, division,
        to);
  write("all_gather gradients and squares", Among::shards, Op::all_gather, calls.gathered_parts,
        division, to);
  write("all_reduce statistics of slices", Among::tensor_ranks, Op::all_reduce,
        calls.sliced_numbers, division, to);
  write("all_reduce means of slices", Among::tensor_ranks, Op::all_reduce, calls.sliced_means,
        division, to);
  write("all_gather rows of slices", Among::tensor_ranks, Op::all_gather, calls.gathered_rows,
        division, to);
}

// Elements of a gradient bucket: DeepSpeed's default of reduce_bucket_size.
constexpr double bucket_elements = 5e8;

void add_whole_matrices(const Calls& matrices, double gradient_bytes,
                        const UpdateDivision& division, std::vector<SharedCall>& to) {
  const double ranks = division.shards;
  const double elements = matrices.bytes / 4 * division.of_model;
  if (ranks > 1 && division.matrices == WholeMatrices::exchanged) {
    const Calls batches{2 * matrices.count / ranks,
                        2 * matrices.bytes / 4 * gradient_bytes / ranks};
    write("all_to_all shards of matrices", Among::shards, Op::all_to_all, batches, division, to);
  }
  if (ranks > 1 && division.matrices == WholeMatrices::gathered && elements > 0) {
    const auto buckets = static_cast<std::int64_t>(std::ceil(elements / bucket_elements));
    const Bytes bucket(gradient_bytes * elements / static_cast<double>(buckets));
    // With the reduce_scatter, this makes up an all_reduce.
    to.push_back({"all_gather summed gradients", Among::shards, Op::all_gather, bucket, buckets});
    to.push_back({"all_gather momenta", Among::shards, Op::all_gather, bucket, 2 * buckets});
    to.push_back({"all_gather updates", Among::shards, Op::all_gather, bucket, buckets});
  }
  if (division.tensor_ranks > 1) {
    const Calls owned{matrices.count / ranks, matrices.bytes / ranks};
    write("all_gather momenta of slices", Among::tensor_ranks, Op::all_gather, owned, division, to);
  }
}

const Sourced<double>& decomposition() {
  static const Sourced<double> share{
      svd_share_of_peak,
      {Kind::assumed,
       "singular value decompositions at 3 % of the fp32 peak, a sixteenth of "
       "that of half-precision products (MAGMA on a Titan X, pytorch#1373)"}};
  return share;
}

UpdateExtras matrix_extras(const OptimizerModel& optimizer, const ModelShape& model,
                           const UpdateDivision& division, double gradient_bytes,
                           const Projection& projection) {
  UpdateExtras extras;
  if (division.flat) return extras;
  const MatrixWork& work = *optimizer.matrix_work;
  const auto every = static_cast<double>(projection.precondition_frequency.value_or(work.every));
  double products = 0, decompositions = 0;
  Calls matrices, factors;
  for (const GivenTensor& tensor : given_tensors(optimizer, model, false)) {
    if (tensor.whole.rows == 0) continue;
    const StateTensor matrix = work.in_blocks ? own_part(tensor, model, division) : tensor.whole;
    if (work.factor_elements != nullptr) factors.add(2, 2 * work.factor_elements(matrix));
    products += work.product_flops(matrix, every);
    if (work.decomposition_flops != nullptr)
      decompositions += work.decomposition_flops(matrix, every);
    matrices.add(1, 4 * matrix.elements);
  }
  if (products == 0) return extras;
  const double share = division.of_model / (work.in_blocks ? division.copies : division.shards);
  extras.products.push_back({products * share,
                             {work.share, {Kind::assumed, std::string(work.share_source)}},
                             work.share_name});
  if (decompositions > 0)
    extras.products.push_back({decompositions * share, decomposition(), "svd_share_of_peak"});
  if (work.in_blocks) {
    if (division.copies > 1)
      extras.calls.push_back({"all_gather search directions", Among::copies, Op::all_gather,
                              Bytes(matrices.bytes * division.of_model), 1});
    return extras;
  }
  if (work.factor_elements == nullptr) {
    add_whole_matrices(matrices, gradient_bytes, division, extras.calls);
    return extras;
  }
  if (division.shards > 1)
    write("all_reduce factors", Among::shards, Op::all_reduce, factors, division, extras.calls);
  if (division.tensor_ranks > 1)
    write("all_reduce factors of slices", Among::tensor_ranks, Op::all_reduce, factors, division,
          extras.calls);
  return extras;
}

}  // namespace

UpdateExtras update_extras(OptimizerType type, StepKind step, Kernels kernels,
                           const ModelShape& model, const UpdateDivision& division,
                           double gradient_bytes, const Projection& projection) {
  const OptimizerModel& optimizer = model_of(type);
  if (optimizer.matrix_work)
    return matrix_extras(optimizer, model, division, gradient_bytes, projection);
  UpdateExtras extras;
  add_statistics(optimizer, model, division, extras.calls);
  if (type != OptimizerType::galore_adamw8bit) return extras;
  double small = 0, projecting = 0, decomposing = 0;  // the first two count only the rank's slices
  Calls gathered;
  for (const GivenTensor& tensor : given_tensors(optimizer, model, division.flat)) {
    const double slice = division.flat
                             ? 1.0 / division.tensor_ranks
                             : parallel::tensor_share(tensor.split, model, division.tensor_ranks);
    small += slice * galore_small_elements(tensor.whole, projection);
    if (galore_flops(tensor.whole, projection) == 0) continue;
    projecting += slice * galore_flops(tensor.whole, projection);
    decomposing += galore_refresh_flops(tensor.whole, projection);
    if (tensor.split != TensorSplit::replicated)
      gathered.add(1, gradient_bytes * tensor.whole.elements);
  }
  static const Sourced<double> thin{0.3,
                                    {Kind::assumed, "products of low rank at 30 % of the peak"}};
  const double share = division.of_model / division.shards;
  extras.kernels.push_back({galore_small_passes(kernels), small * share, 0});
  if (projecting > 0) extras.products.push_back({projecting * share, thin});
  if (step != StepKind::refresh) return extras;
  if (decomposing > 0)
    extras.products.push_back(
        {decomposing * division.of_model, decomposition(), "svd_share_of_peak"});
  if (division.tensor_ranks > 1)
    write("all_gather gradients of matrices", Among::tensor_ranks, Op::all_gather, gathered,
          division, extras.calls);
  return extras;
}

}  // namespace lambcast
