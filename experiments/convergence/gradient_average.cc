#include "experiments/convergence/gradient_average.h"

#include "kernels/emulated_world/compressed_allreduce.h"
#include "kernels/emulated_world/exchange/hierarchical_reduce_scatter.h"
#include "kernels/emulated_world/exchange/plain_allreduce.h"
#include "kernels/emulated_world/exchange/power_sgd.h"
#include "kernels/emulated_world/exchange/quantised_allreduce.h"
#include "kernels/emulated_world/exchange/sparse_allreduce.h"
#include "kernels/emulated_world/exchange/two_level.h"

namespace lambcast::convergence {
namespace {

using namespace lambcast::emulated;

template <typename State>
GradientAverage averaging(State state) {
  return [state](Buffers buffers) mutable { average(state, buffers); };
}

GradientAverage onebit(std::size_t elements, int ranks) {
  return [errors = error_feedback(elements, ranks)](Buffers buffers) mutable {
    compressed_allreduce(buffers, errors, Padding::excluded);
  };
}

// Hierarchical int4 reduce-scatter with error feedback; the all-gather is uncompressed.
GradientAverage hierarchical(int per_node) {
  const Quantiser int4{WireFormat::int4, 64};
  return [state = HierarchicalReduceScatter{.per_node = per_node,
                                            .in_node = int4,
                                            .between_nodes = int4,
                                            .error_feedback = true}](Buffers buffers) mutable {
    average(state, buffers);
    const std::size_t elements = buffers[0].size();
    const std::size_t shard = (elements + buffers.size() - 1) / buffers.size();
    std::vector<float> whole(elements);
    for (std::size_t e = 0; e < elements; ++e) whole[e] = buffers[e / shard][e % shard];
    hand_out(whole, buffers);
  };
}

PowerSgd power_sgd(const text::Transformer& model) {
  PowerSgd state;
  for (std::size_t t = 0; t < model.tensors.tensors(); ++t) {
    if (text::decays(model, t))
      state.matrices.push_back(
          {.begin = model.tensors.offsets[t], .shape = text::shape_of(model, t)});
  }
  return state;
}

}  // namespace

GradientAverage gradient_average(const text::Transformer& model, int ranks, Exchange exchange) {
  using Choice = SparseAllreduce::Choice;
  const std::size_t elements = model.tensors.elements(), per_cent = elements / 100;
  switch (exchange) {
    case Exchange::fp8:
      return averaging(QuantisedAllreduce{.quantiser = {WireFormat::fp8_e4m3, 0}});
    case Exchange::int8:
      return averaging(QuantisedAllreduce{.quantiser = {WireFormat::int8, 64}});
    case Exchange::onebit:
      return onebit(elements, ranks);
    case Exchange::onebit_sharded:
      return averaging(
          TwoLevel{.per_node = 2, .nodes = Nodes::shares, .in_node = WireFormat::fp16});
    case Exchange::int4:
      return averaging(
          QuantisedAllreduce{.quantiser = {WireFormat::int4, 64}, .error_feedback = true});
    case Exchange::int4_unowed:
      return averaging(QuantisedAllreduce{.quantiser = {WireFormat::int4, 64}});
    case Exchange::qgz_int4:
      return hierarchical(2);
    case Exchange::power_sgd_4:
      return averaging(power_sgd(model));
    case Exchange::top_k_1:
      return averaging(SparseAllreduce{.kept = per_cent});
    case Exchange::random_k_1:
      return averaging(SparseAllreduce{.choice = Choice::random, .kept = per_cent});
    case Exchange::fp16:
      return [](Buffers buffers) { plain_allreduce(buffers, WireFormat::fp16); };
    case Exchange::chunk_top_k_64:
      return averaging(ChunkedGather{});
    case Exchange::dct_sign_64:
      return averaging(ChunkedGather{.code = ChunkCode::cosines});
    case Exchange::plain:
    case Exchange::local_steps_16:
    case Exchange::diloco_16:
    case Exchange::streamed_16:
    case Exchange::neighbours_ring:
    case Exchange::neighbours_exponential:
      break;
  }
  return {};
}

}  // namespace lambcast::convergence
