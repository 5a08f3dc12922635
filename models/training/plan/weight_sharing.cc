#include "models/training/plan/weight_sharing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lambcast {
namespace {

using parallel::Sharding;

// Bytes read and written per element: int8 widened to 16 bits takes 3. A gradient is quantized,
// summed and quantized again after the exchange within the node, and summed after that between
// nodes. Error feedback within the node adds 10 (gradient_exchange.h).
constexpr double dequantized_bytes = 3;
double quantized_exchange_bytes(const Exchange& exchange, double gradient) {
  return gradient + 3 * coding_of(exchange).inside + (is_loco(exchange) ? 10 : 0);
}

class SharingWriter {
 public:
  SharingWriter(const ModelShape& model, const Parallelism& how,
                const std::vector<parallel::RankParameters>& parameters,
                const std::vector<Owners>& owners, double gradient_bytes)
      : model_(model),
        how_(how),
        parameters_(parameters),
        owners_(owners),
        gradient_bytes_(gradient_bytes),
        replicas_(owners.front().replicas),
        shards_(owners.front().shards) {}

  void write(PipelinePlan& plan) const {
    const double layers = static_cast<double>(model_.layers);
    double all = 0, outer = 0, experts = 0, trained = 0;
    for (const parallel::RankParameters& chunk : parameters_) {
      all += chunk.held() - chunk.experts;
      trained += chunk.total() - chunk.experts;
      outer += chunk.vocabulary;
      experts += chunk.experts;
    }
    const double trained_outer = model_.adapters ? 0 : outer;
    if (experts > 0) share_experts(plan, experts / expert_layers());
    const bool overlap_comm =
        how_.sharding == Sharding::gradients && how_.framework.overlaps_gradients;
    plan.hides_sharding = how_.framework.hides_sharding || overlap_comm;
    const PersistentWeights whole = persistent_weights(model_, how_);
    plan.weight_pieces = pieces_of((all - outer) / layers);
    const double block = (all - outer - whole.inside) / layers / plan.weight_pieces;
    const double gradients = (trained - trained_outer) / layers / plan.weight_pieces;
    plan.reduced_pieces = pieces_in_bucket(gradients);
    plan.gradients_reduce = gradient_calls(gradients * plan.reduced_pieces);
    plan.outer_gradients_reduce = gradient_calls(trained_outer);
    if (how_.quantized_gradients)
      plan.gradients_quantized =
          Bytes(quantized_exchange_bytes(how_.quantized_by, std::max(2.0, how_.weight_bytes)) *
                gradients);
    if (how_.sharding != Sharding::weights) return;
    plan.shard_handling =
        Duration::microseconds(how_.framework.shard_handling_us * shards_.shard.ranks);
    const double bytes = how_.quantized_weights ? 1 : how_.weight_bytes;
    const double of_block = how_.quantized_weights ? 1 : block_weight_bytes(model_, how_);
    const ProcessGroup again = how_.secondary_ranks > 1
                                   ? shard_groups(replicas_, how_.secondary_ranks).shard
                                   : shards_.shard;
    plan.weights_gather = some(call(shards_.shard, Op::all_gather, block * of_block));
    plan.weights_gather_again = some(call(again, Op::all_gather, block * of_block));
    plan.kept_blocks = kept_blocks(model_, how_);
    plan.outer_weights_gather =
        some(call(shards_.shard, Op::all_gather, (outer - whole.vocabulary) * bytes));
    if (how_.quantized_weights) plan.weights_quantized = Bytes(dequantized_bytes * block);
  }

 private:
  int pieces_of(double block) const {
    const double bucket = how_.framework.prefetch_bucket;
    if (bucket == 0) return 1;
    const int most = std::max(1, gathered_matrices(model_, how_));
    return static_cast<int>(std::clamp(std::ceil(block / bucket), 1.0, double(most)));
  }

  // Returns how many pieces of a block fill one gradient bucket. Stage 3 of full training is priced
  // piece by piece, because its host time was fitted that way (Framework::shard_handling_us).
  int pieces_in_bucket(double piece) const {
    const bool buckets = how_.framework.name == FrameworkName::deepspeed &&
                         (how_.sharding == Sharding::gradients || model_.adapters);
    if (!buckets || how_.quantized_gradients || piece == 0) return 1;
    return static_cast<int>(std::clamp(std::floor(how_.framework.least_bucket / piece), 1.0,
                                       static_cast<double>(model_.layers)));
  }

  // Returns the collectives that reduce gradients of `elements` to the ranks that update them.
  std::vector<Call> gradient_calls(double elements) const {
    std::vector<Call> calls;
    const auto add = [&](const ProcessGroup& group, Op op, double bytes) {
      if (const auto one = some(call(group, op, bytes))) calls.push_back(*one);
    };
    if (how_.quantized_gradients) {
      const ShardGroups nodes = shard_groups(replicas_, replicas_.per_node);
      const double coded = coding_of(how_.quantized_by).inside * elements;
      add(nodes.shard, Op::all_to_all, coded);
      if (nodes.copies.ranks > 1) add(nodes.copies, Op::all_to_all, coded / nodes.shard.ranks);
      return calls;
    }
    const double bytes = elements * gradient_bytes_;
    if (keeps_share_of_sum(how_)) {
      add(replicas_, Op::all_reduce, bytes);
      return calls;
    }
    add(shards_.shard, Op::reduce_scatter, bytes);
    add(shards_.copies, Op::all_reduce, bytes / shards_.shard.ranks);
    return calls;
  }

  double expert_layers() const {
    const std::vector<bool>& layers = model_.expert_layers;
    return static_cast<double>(std::count(layers.begin(), layers.end(), true) +
                               model_.predicted_layers);
  }

  // Adds calls for experts; `block` is the number of elements of a block's experts on this rank.
  void share_experts(PipelinePlan& plan, double block) const {
    const ProcessGroup& shard = owners_.back().shards.shard;
    plan.expert_gradients_scatter = some(call(shard, Op::reduce_scatter, block * gradient_bytes_));
    if (how_.sharding == Sharding::weights)
      plan.expert_weights_gather =
          some(call(shard, Op::all_gather, block * block_weight_bytes(model_, how_)));
  }

  const ModelShape& model_;
  const Parallelism& how_;
  const std::vector<parallel::RankParameters>& parameters_;
  const std::vector<Owners>& owners_;
  double gradient_bytes_;  // on the wire
  const ProcessGroup& replicas_;
  const ShardGroups& shards_;
};

}  // namespace

double block_weight_bytes(const ModelShape& model, const Parallelism& how) {
  const bool quantized = model.adapters && model.adapters->frozen_bits > 0;
  if (quantized) return model.adapters->frozen_bits / 8;
  return how.fp8_gather ? 1 : how.weight_bytes;
}

GatheredBytes gathered_bytes(const ModelShape& model, const Parallelism& how) {
  return {block_weight_bytes(model, how), how.weight_bytes};
}

int kept_blocks(const ModelShape& model, const Parallelism& how) {
  const Framework& framework = how.framework;
  if (how.sharding != Sharding::weights || framework.live_elements == 0) return 0;
  double inside = 0, head = 0;
  for (const Tensor& tensor : model.tensors) {
    const auto elements = static_cast<double>(tensor.elements);
    if (tensor.layer >= 0) inside += elements;
    if (tensor.split == TensorSplit::vocabulary) head = std::max(head, elements);
  }
  const auto layers = static_cast<double>(model.layers);
  const double block = inside / layers;
  const double uses = how.recompute == parallel::Recompute::full ? 3 : 2;
  const double reused = std::ceil((framework.reuse_elements - 2 * head) / (uses * block));
  const bool ahead = framework.prefetch_bucket > 1;
  const double found = ahead ? std::floor((framework.live_elements - head) / block) : 0;
  return static_cast<int>(std::clamp(std::max(reused, found), 0.0, layers));
}

int gathered_matrices(const ModelShape& model, const Parallelism& how) {
  return static_cast<int>(std::ranges::count_if(model.tensors, [&](const Tensor& tensor) {
    return tensor.layer == 0 && group_of(model, tensor) == "decay" && !tensor.expert &&
           static_cast<double>(tensor.elements) > how.framework.persistent_tensor;
  }));
}

PersistentWeights persistent_weights(const ModelShape& model, const Parallelism& how) {
  PersistentWeights whole;
  if (how.sharding != Sharding::weights || how.framework.persistent_tensor == 0) return whole;
  for (const Tensor& tensor : model.tensors) {
    const auto elements = static_cast<double>(tensor.elements);
    if (tensor.expert || elements > how.framework.persistent_tensor) continue;
    (tensor.split == TensorSplit::vocabulary ? whole.vocabulary : whole.inside) += elements;
  }
  return whole;
}

void share_weights(PipelinePlan& plan, const ModelShape& model, const Parallelism& how,
                   const std::vector<parallel::RankParameters>& parameters,
                   const std::vector<Owners>& owners, double gradient_bytes) {
  if (how.sharding == Sharding::weights || how.sharding == Sharding::gradients)
    SharingWriter(model, how, parameters, owners, gradient_bytes).write(plan);
}

std::vector<StepPart> gather_weights(const std::vector<Owners>& owners,
                                     const parallel::RankParameters& held,
                                     const GatheredBytes& gathered, const Exchange& exchange,
                                     const char* when) {
  std::vector<StepPart> parts;
  for (const Owners& of : owners) {
    const double elements = of.of(held), own = elements / of.shards.shard.ranks;
    const double outer = of.of_experts ? 0 : std::min(elements, held.vocabulary);
    const double bytes = std::lerp(gathered.blocks, gathered.outer, outer / std::max(1., elements));
    const double sent = gathered_weight_bytes(exchange, bytes);
    const bool coded = sent != bytes;
    const auto gather = some(call(of.shards.shard, Op::all_gather, elements * sent));
    if (!gather) continue;
    if (coded)
      parts.push_back({"code changes of weights", Category::compress,
                       KernelWork{{2 * bytes + 0.5, 1, 0, 0, 0}, own, 1}});
    parts.push_back(
        {fmt::format("all_gather weights{}{}", of.of_experts ? " of experts" : "", when),
         Category::gradient_comm, *gather});
    if (coded)
      parts.push_back({"add changes to weights", Category::decompress,
                       KernelWork{{2 * bytes + 0.5, 1, 0, 0, 0}, elements, 1}});
  }
  return parts;
}

}  // namespace lambcast
