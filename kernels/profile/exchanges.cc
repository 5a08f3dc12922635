#include "kernels/profile/exchanges.h"

#include <algorithm>
#include <array>
#include <memory>

#include "kernels/cuda/lars.h"
#include "kernels/cuda/local_steps.h"
#include "kernels/profile/bert_large.h"
#include "kernels/profile/load.h"
#include "kernels/reference/sparse.h"

namespace lambcast::cuda {
namespace {

constexpr std::size_t width = 1024;             // width of a matrix, as in BERT-Large
constexpr int low_rank = 4, galore_rank = 128;  // directions; half of GaLore's default of 256, so
                                                // that a factor fits if a gradient does
constexpr std::size_t kept_one_in = 100;
constexpr std::size_t block = 2048;
constexpr Quantiser fp8{WireFormat::fp8_e4m3, 0}, int8{WireFormat::int8, block},
    int4{WireFormat::int4, block};

reference::MatrixShape shape_of(std::size_t elements) {
  return elements < width ? reference::MatrixShape{1, elements}
                          : reference::MatrixShape{elements / width, width};
}
std::size_t kept_of(std::size_t elements) {
  return std::max<std::size_t>(1, elements / kept_one_in);
}

}  // namespace

ExchangeBench::ExchangeBench(const Buffers& buffers)
    : of_(buffers),
      shape_(shape_of(buffers.elements)),
      payload_(buffers.elements + 8 * profiled_ranks),
      scales_(buffers.elements / block + 2 * profiled_ranks),
      p_(shape_.rows * low_rank),
      q_(shape_.columns * galore_rank),
      values_(kept_of(buffers.elements)),
      indices_(std::span<const std::uint32_t>(
          reference::random_k_indices(1, kept_of(buffers.elements), buffers.elements))),
      reduction_(reduction_slots),
      search_(top_k_workspace(buffers.elements, kept_of(buffers.elements))),
      products_(low_rank_workspace(shape_, low_rank)),
      squares_(2 * bert_like_tensors(buffers.elements).tensors()) {}

cudaError_t ExchangeBench::refill(cudaStream_t stream) const {
  for (const auto* x : {&scales_, &p_, &q_, &values_})
    if (const auto e = fill_random(x->data(), x->size(), 0.1f, 1.0f, stream)) return e;
  return quantise_to(int8, false, stream);
}

cudaError_t ExchangeBench::quantise_to(const Quantiser& quantiser, bool owed,
                                       cudaStream_t stream) const {
  return quantise({of_.gradient, owed ? of_.owed : nullptr, of_.elements, quantiser,
                   payload_.data(), scales_.data(), reduction_.data()},
                  stream);
}

// Sums messages that together have as many elements as one buffer.
cudaError_t ExchangeBench::sum_from(const Quantiser& quantiser, int messages,
                                    cudaStream_t stream) const {
  const auto n = static_cast<std::size_t>(messages);
  return dequantise_sum(
      {payload_.data(), scales_.data(), messages, std::max<std::size_t>(1, of_.elements / n),
       quantiser, 1.0f / static_cast<float>(messages), of_.out},
      stream);
}

LowRank ExchangeBench::matrix(int rank) const {
  return {.shape = shape_,
          .rank = rank,
          .x = of_.gradient,
          .owed = of_.owed,
          .p = rank == low_rank ? p_.data() : of_.other,
          .q = q_.data(),
          .workspace = products_.data()};
}

// The number of directions is independent of the height, and so are the bytes of the factor per
// element.
GaloreTensors ExchangeBench::projected(const LambState& state) const {
  const bool tall = shape_.rows >= shape_.columns;
  const GaloreTensor matrix{
      .shape = shape_,
      .rank = static_cast<int>(std::min<std::size_t>(galore_rank, shape_.columns)),
      .g = of_.gradient,
      .basis = tall ? q_.data() : of_.other,
      .low = tall ? of_.other : q_.data(),
      .p = state.p,
      .half_p = state.half_p};
  return GaloreTensors(std::array{matrix});
}

std::vector<Workbench::Entry> ExchangeBench::entries() const {
  using Stream = cudaStream_t;
  constexpr double scales = 4.0 / block, ranks = profiled_ranks;
  const auto quantised = [this](const Quantiser& of, bool owed) {
    return [this, of, owed](Stream s) { return quantise_to(of, owed, s); };
  };
  const auto dequantised = [this](const Quantiser& of, int messages) {
    return [this, of, messages](Stream s) { return sum_from(of, messages, s); };
  };
  return {
      {"quantise_fp8", 9, quantised(fp8, false)},
      {"quantise_fp8_owed", 17, quantised(fp8, true)},
      {"quantise_int8", 5 + scales, quantised(int8, false)},
      {"quantise_int8_owed", 13 + scales, quantised(int8, true)},
      {"resolve_errors_fp8", 8,
       [this](Stream s) {
         return resolve_errors({.owed = of_.owed,
                                .elements = of_.elements,
                                .quantiser = fp8,
                                .scales = scales_.data()},
                               of_.out, s);
       }},
      {"quantise_int4", 4.5 + scales, quantised(int4, false)},
      {"quantise_int4_owed", 12.5 + scales, quantised(int4, true)},
      {"dequantise_fp8", 5, dequantised(fp8, 1)},
      {"dequantise_int8", 5 + scales, dequantised(int8, 1)},
      {"dequantise_int4", 4.5 + scales, dequantised(int4, 1)},
      {"dequantise_sum_fp8_n8", 1 + 4 / ranks, dequantised(fp8, profiled_ranks)},
      {"dequantise_sum_int8_n8", 1 + scales + 4 / ranks, dequantised(int8, profiled_ranks)},
      {"dequantise_sum_int4_n8", 0.5 + scales + 4 / ranks, dequantised(int4, profiled_ranks)},
      {"add_owed", 12,
       [this](Stream s) { return cuda::add_owed(of_.gradient, of_.owed, of_.elements, s); }},
      {"top_k_1_percent", 12 + 2 * 8 * 16.0 / 4096 + 3 * 8.0 / 4096 + 40.0 / kept_one_in,
       [this](Stream s) {
         return top_k(of_.gradient, of_.owed, of_.elements, kept(), search_.data(), s);
       }},
      {"add_at_1_percent", 16.0 / kept_one_in,
       [this](Stream s) { return add_at(of_.out, kept(), 0.5f, s); }},
      {"random_k_1_percent", 16.0 / kept_one_in,
       [this](Stream s) { return random_k(of_.owed, of_.elements, 1, kept(), s); }},
      {"powersgd_project", 12, [this](Stream s) { return project(matrix(low_rank), s); }},
      {"powersgd_orthonormalise", 8.0 * low_rank / width,
       [this](Stream s) { return orthonormalise(matrix(low_rank), s); }},
      {"powersgd_back_project", 4, [this](Stream s) { return back_project(matrix(low_rank), s); }},
      {"powersgd_expand", 12, [this](Stream s) { return expand(matrix(low_rank), of_.out, s); }},
      {"outer_step", 24,
       [this](Stream s) {
         return outer_step({of_.out, of_.owed, of_.gradient, of_.other, of_.elements}, {}, s);
       }},
      {"weighted_sum_of_3", 16,
       [this](Stream s) {
         const std::array<const float*, 3> buffers{of_.gradient, of_.owed, of_.other};
         constexpr std::array<float, 3> weights{0.5f, 0.25f, 0.25f};
         return weighted_sum(buffers, weights, of_.out, of_.elements, s);
       }},
  };
}

std::vector<Workbench::Entry> ExchangeBench::halves(const LambState& state,
                                                    const float* gradient) const {
  using Stream = cudaStream_t;
  const LambOptions lamb{.weight_decay = 0.01};
  constexpr double thin = 4.0 * galore_rank / width;
  const auto galore = std::make_shared<GaloreTensors>(projected(state));
  return {
      {"lamb_moments", 24,
       [this, state, gradient, lamb](Stream s) {
         return lamb_moments(state, gradient, lamb, squares_.data(), s);
       }},
      {"lamb_apply", 18,
       [this, state, lamb](Stream s) { return lamb_apply(state, lamb, squares_.data(), s); }},
      {"lars_norms", 8,
       [this, state, gradient](Stream s) {
         return lars_norms(state, gradient, squares_.data(), s);
       }},
      {"lars_apply", 22,
       [this, state, gradient](Stream s) {
         return lars_apply(state, gradient, {}, squares_.data(), s);
       }},
      {"galore_project", 4 + thin,
       [galore](Stream s) { return galore_project(galore->batch(), s); }},
      {"galore_apply", 10 + thin,
       [galore](Stream s) { return galore_apply(galore->batch(), {}, s); }},
      {"variance_norms", 4,
       [this, state](Stream s) { return variance_norms(state, squares_.data(), s); }},
  };
}

std::size_t ExchangeBench::bytes(std::size_t elements) {
  const reference::MatrixShape shape = shape_of(elements);
  return elements + 4 * (elements / block) + 8 * kept_of(elements) +
         4 * (shape.rows * low_rank + shape.columns * galore_rank) +
         8 * (top_k_workspace(elements, kept_of(elements)) + low_rank_workspace(shape, low_rank));
}

}  // namespace lambcast::cuda
