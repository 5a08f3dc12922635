#include "models/training/plan/gradient_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/exchange_bytes.h"
#include "kernels/layout.h"
#include "models/training/plan/chunked_exchange.h"
#include "models/training/plan/compressed_allreduce.h"
#include "models/training/plan/exchange_kernels.h"
#include "models/training/plan/exchange_parts.h"
#include "models/training/plan/optimizer_state.h"
#include "sim/collectives/compressed_exchange.h"

namespace lambcast {
namespace {

double tensors_of(const ModelShape& model, const AveragedGradients& gradients) {
  double tensors = 0;
  for (const Tensor& tensor : model.tensors)
    if (!tensor.frozen) tensors += gradients.share_of(tensor);
  return tensors;
}

ExchangeParts parts_of(const TrainingPlan& training, const AveragedGradients& gradients,
                       const ExchangeLevels& levels) {
  const Exchange& exchange = training.exchange;
  const AveragedGradients of = exchanged_gradients(exchange, gradients);
  const double gradient = exchange.every > 1 ? 4
                          : training.parallelism
                              ? training.parallelism->gradient_bytes()
                              : bytes_of(accumulation_data_type(training.recipe));
  return {exchange, levels, of, tensors_of(*training.model, of), training.kernels == Kernels::fused,
          gradient};
}

class Writer : ExchangeParts {
 public:
  // `levels` are those of the ranks that hold all of the gradients.
  Writer(const TrainingPlan& training, const AveragedGradients& gradients,
         const ExchangeLevels& levels)
      : ExchangeParts(parts_of(training, gradients, levels)), training_(training) {}

  std::vector<StepPart> write() {
    switch (exchange_.kind) {
      case ExchangeKind::fp16:
      case ExchangeKind::bf16:
        halves();
        break;
      case ExchangeKind::onebit:
        signs();
        break;
      case ExchangeKind::fp8:
      case ExchangeKind::fp8_owed:
        scaled({WireFormat::fp8_e4m3, 0});
        break;
      case ExchangeKind::fp8_e5m2:
        scaled({WireFormat::fp8_e5m2, 0});
        break;
      case ExchangeKind::int8:
      case ExchangeKind::int8_owed:
        scaled({WireFormat::int8, block});
        break;
      case ExchangeKind::int4:
      case ExchangeKind::int4_owed:
        scaled({WireFormat::int4, block});
        break;
      case ExchangeKind::qgz:
      case ExchangeKind::qgz_int8:
      case ExchangeKind::sdp4bit:
      case ExchangeKind::loco:
      case ExchangeKind::loco_int8:
        hierarchical();
        break;
      case ExchangeKind::powersgd:
        factored();
        break;
      case ExchangeKind::topk:
      case ExchangeKind::randomk:
        sparse();
        break;
      case ExchangeKind::chunk_topk:
      case ExchangeKind::dct_sign:
        write_chunked(*this);
        break;
      case ExchangeKind::lossless:
        write_lossless(*this);
        break;
      case ExchangeKind::local:
      case ExchangeKind::local_sgd:
        meet();
        break;
      case ExchangeKind::neighbour_ring:
      case ExchangeKind::neighbour_exponential:
        with_neighbours();
        break;
      case ExchangeKind::all_reduce:
        break;
    }
    return std::move(parts_);
  }

 private:
  // Adds the gather of the codes of all shares, `bytes` for each share.
  void gather_codes(double bytes) {
    if (levels_.is_sharded()) parts_.push_back(hand_out_in_node(levels_, levels_.shards * bytes));
  }

  void halves() {
    kernels("gradients to half", Category::compress, fused_ ? fused::narrow : unfused::to_half,
            elements_, 1);
    send("all_reduce halves", Op::all_reduce, 2 * elements_);
    kernels("gradients to fp32", Category::decompress, fused_ ? fused::widen : unfused::widen,
            elements_, 1);
  }

  // Adds compressed_allreduce on fp32 gradients, or its first phase and a sum if states are shared.
  void signs() {
    const double n = group_.ranks;
    const auto padded = static_cast<double>(
        chunk_layout(static_cast<std::uint64_t>(elements_), group_.ranks).padded);
    const CompressionPasses passes =
        compression_passes(training_.optimizer(), Backend::nccl, training_.kernels, group_.ranks);
    const CompressedExchange exchange = compressed_exchange(padded, group_.ranks, Backend::nccl);
    const auto send_phase = [&](const std::vector<ExchangeMessage>& phase) {
      double together = 0;
      for (const ExchangeMessage& message : phase) together += message.bytes.value();
      if (exchange_.is_in_other_form())
        return send(std::string(phase.front().name), phase.front().op, together);
      for (const ExchangeMessage& message : phase)
        send(std::string(message.name), message.op, message.bytes.value());
    };
    widen_gradients();
    kernels("compress", Category::compress, fused_ ? fused::compress_signs : passes.worker, padded,
            1);
    send_phase(exchange.scatter);
    if (of_.shared) {
      const Passes sum = fused_ ? Passes{0.125 + 4 / n, 1, 0, 0, 0} : Passes{34, 20, 0, 1, 0};
      return kernels("average", Category::compress, sum, padded, 1);
    }
    kernels("average and compress", Category::compress, passes.server, padded, 1);
    send_phase(exchange.gather);
    gather_codes(padded / 8 + 4 * n);
    kernels("decompress", Category::decompress, passes.decode, levels_.shards * padded, 1);
    narrow_gradients();
  }

  struct Message {
    double payload, scales;
  };
  // Returns the bytes of `elements` divided into one chunk for each of `ranks` ranks.
  static Message message_of(const Quantiser& quantiser, double elements, int ranks) {
    const auto n = static_cast<std::uint64_t>(ranks);
    const std::uint64_t chunk = (static_cast<std::uint64_t>(elements) + n - 1) / n;
    return {static_cast<double>(n * payload_bytes(quantiser.format, chunk)),
            static_cast<double>(4 * n * scale_count(quantiser, chunk))};
  }

  // Sends coded chunks and their scales: in one message in hooked forms, else in two.
  void send_coded(const char* chunks, const char* scales, Op op, const Message& message) {
    const bool together = exchange_.is_in_other_form();
    send(chunks, op, message.payload + (together ? message.scales : 0));
    if (!together) send(scales, op, message.scales);
  }

  void scaled(const Quantiser& quantiser) {
    const Message message = message_of(quantiser, elements_, group_.ranks);
    send_scaled_and_sum(quantiser, message);
    if (of_.shared) return;
    send_coded("all_gather sums", "all_gather scales", Op::all_gather, message);
    gather_codes(message.payload + message.scales);
    const double all = levels_.shards * elements_;
    if (!fused_)
      return kernels("cast back", Category::decompress, unfused::cast_back(gradient_), all, 1);
    kernels("cast back", Category::decompress, fused::dequantise_sum(quantiser, 1), all, 1);
    narrow_gradients();
  }

  // Sends coded gradients and sums them; coding updates the error feedback of gradients and sums.
  void send_scaled_and_sum(const Quantiser& quantiser, const Message& message) {
    const double n = group_.ranks;
    const bool owes = owes_on_one_level(exchange_);
    const auto compress = [&](const char* name, const Passes& passes, double elements) {
      kernels(name, Category::compress, passes, elements, 1);
    };
    const auto unfused_owed = [&](double elements) {
      if (fused_ || !owes) return;
      compress("add error feedback", unfused::add_owed(gradient_), elements);
      compress("keep error feedback", unfused::keep_owed, elements);
    };
    unfused_owed(elements_);
    if (fused_) widen_gradients();
    compress("scale and cast",
             fused_ ? fused::quantise(quantiser, owes) : unfused::scale_and_cast(gradient_),
             elements_);
    send_coded("all_to_all chunks", "all_to_all scales", Op::all_to_all, message);
    if (fused_)
      compress("sum", fused::dequantise_sum(quantiser, group_.ranks), elements_);
    else if (of_.shared)
      compress("sum", {1 + 4 / n, 0, 2, 0, 0}, elements_);
    if (of_.shared) return;
    unfused_owed(elements_ / n);
    if (fused_)
      compress("cast sums", fused::quantise(quantiser, owes), elements_ / n);
    else
      compress("sum and cast", unfused::sum_and_cast, elements_);
  }

  // Adds an exchange on two levels. DeepSpeed's kernels read 16 bits, and sum and code in one pass.
  void hierarchical() {
    const Coding coding = coding_of(exchange_);
    const auto quantiser_of = [&](double bytes) -> Quantiser {
      return {bytes == 1 ? WireFormat::int8 : WireFormat::int4,
              static_cast<std::uint64_t>(coding.block)};
    };
    const Quantiser inside = quantiser_of(coding.inside), between = quantiser_of(coding.between);
    const ShardGroups nodes = shard_groups(group_, group_.per_node);
    const double g = nodes.shard.ranks;
    const bool owes = is_loco(exchange_);
    const Passes owed = owes ? unfused::loco_owed : Passes{};
    const auto compress = [&](const char* name, const Passes& passes, double elements) {
      kernels(name, Category::compress, passes, elements, 1);
    };
    if (fused_) widen_gradients();
    compress("quantize",
             fused_ ? fused::quantise(inside, owes)
                    : Passes{gradient_ + coding.inside + owed.bytes_per_element, 1 + owed.launches,
                             0, 0, 0},
             elements_);
    const auto level = [&](const ProcessGroup& group, const Quantiser& quantiser, double elements,
                           const char* where) {
      const Message message = message_of(quantiser, elements, group.ranks);
      send(group, fmt::format("all_to_all {}", where), Op::all_to_all, message.payload);
      send(group, fmt::format("all_to_all scales {}", where), Op::all_to_all, message.scales);
    };
    level(nodes.shard, inside, elements_, "in the node");
    if (fused_) {
      compress("sum in the node", fused::dequantise_sum(inside, nodes.shard.ranks), elements_);
      compress("quantize sums", fused::quantise(between, owes), elements_ / g);
    } else {
      compress("sum and quantize",
               {coding.inside + (coding.between + owed.bytes_per_element) / g, 1 + owed.launches, 0,
                0, 0},
               elements_);
    }
    level(nodes.copies, between, elements_ / g, "between nodes");
    const int m = nodes.copies.ranks;
    compress(
        "sum",
        fused_ ? fused::dequantise_sum(between, m) : Passes{coding.between + 4.0 / m, 1, 0, 0, 0},
        elements_ / g);
  }

  // Exchanges factors of the matrices that they make smaller; all-reduces all other tensors.
  void factored() {
    const double rank = exchange_.parameter, turns = std::max(1, exchange_.iterations);
    const FactoredGradients factored = factored_of(*training_.model, rank, of_);
    const double rows = factored.rows, columns = factored.columns, matrices = factored.matrices,
                 in_matrices = factored.elements;
    if (!fused_)
      kernels("add error feedback", Category::compress, unfused::add_owed(gradient_), in_matrices,
              matrices);
    kernels("factors", Category::compress,
            fused_ ? fused::factors(rank, turns, in_half()) : unfused::factors(rank, turns),
            in_matrices, matrices);
    static const Sourced<double> thin{
        0.3, {lambcast::Kind::assumed, "products of low rank at 30 % of the peak"}};
    if (!fused_)
      parts_.push_back({"products of factors", Category::compress,
                        ProductWork{4 * in_matrices * rank * turns, thin}});
    for (int turn = 0; turn < turns; ++turn) {
      send("all_reduce left factors", Op::all_reduce, 4 * rank * rows);
      send("all_reduce right factors", Op::all_reduce, 4 * rank * columns);
    }
    send("all_reduce other tensors", Op::all_reduce, (elements_ - in_matrices) * of_.bytes);
    if (fused_) return;
    const double rebuilt = of_.shared ? in_matrices / group_.ranks : in_matrices;
    parts_.push_back(
        {"product of averages", Category::decompress, ProductWork{2 * rebuilt * rank, thin}});
    kernels("keep error feedback", Category::decompress, unfused::keep_owed, in_matrices, matrices);
  }

  void sparse() {
    const double share = exchange_.parameter, kept = std::ceil(share * elements_);
    const bool largest = exchange_.kind == ExchangeKind::topk;
    const auto select = [&](const char* name, const Passes& passes) {
      kernels(name, Category::compress, passes, elements_, tensors_);
    };
    if (fused_) {
      widen_gradients();
      if (!largest) select("add error feedback", fused::add_owed);
      if (largest)
        select("select the largest", fused::top_k(share));
      else
        select("pick", fused::random_k(share));
    } else {
      select("add error feedback", unfused::add_owed(gradient_));
      const Passes& largest_ones =
          exchange_.is_in_other_form() ? unfused::select_by_sample : unfused::select_largest;
      select(largest ? "select the largest" : "pick", largest ? largest_ones : unfused::pick);
    }
    if (largest)
      send("all_gather values and indices", Op::all_gather, 8 * kept * group_.ranks);
    else
      send("all_reduce values", Op::all_reduce, 4 * kept);
    const int messages = largest ? group_.ranks : 1;
    const char* const adding = "add up what arrived";
    if (fused_)
      kernels(adding, Category::decompress, fused::add_at(share, messages), elements_ * messages,
              tensors_);
    else
      kernels(adding, Category::decompress, {16, 0, 1, 0, 0}, kept * messages, tensors_);
    // Fused kernels subtract the sent values from the error feedback as they select them.
    if (!fused_)
      kernels("keep error feedback", Category::decompress, unfused::keep_owed, elements_, tensors_);
  }

  // Averages weights between sites. All ranks of a site have the same weights: each averages a
  // share with the ranks of other sites that have the same share, and the site gathers the results.
  void meet() {
    const ShardGroups sites = shard_groups(group_, site_ranks(exchange_));
    const bool alone = sites.shard.ranks == 1;
    const double share = elements_ / sites.shard.ranks;
    send(sites.copies, alone ? "all_reduce weights" : "all_reduce weights between sites",
         Op::all_reduce, 4 * share);
    // Divide, and cast to 16 bits.
    const Passes average = has_half_weights() ? Passes{8 + 6, 2, 0, 0, 0} : Passes{8, 1, 0, 0, 0};
    const Passes outer = fused_ ? fused::outer_step : unfused::outer_step;
    const bool plain = exchange_.kind == ExchangeKind::local_sgd;
    kernels(plain ? "average weights" : "outer optimizer", Category::optimizer,
            plain ? average : outer, share, tensors_);
    if (!of_.shared)
      send(sites.shard, "all_gather weights in the site", Op::all_gather, 4 * elements_);
  }

  // Sends weights to neighbours. The two directions of a ring follow each other, since ranks of a
  // node may share a NIC. The exponential graph has the mean of its steps: hops of at least a
  // node's g ranks leave the node from every rank, and a shorter hop h from h of its g ranks. The
  // shorter hops 1, 2, ... g / 2 add up to (g - 1) / g of a hop that leaves from every rank.
  void with_neighbours() {
    const double bytes = 4 * elements_, sent = neighbours(exchange_, group_.ranks);
    if (exchange_.kind == ExchangeKind::neighbour_ring || group_.nodes() == 1) {
      send("send weights on", Op::send_recv, bytes);
      if (sent == 2) send("send weights back", Op::send_recv, bytes);
    } else {
      const ShardGroups nodes = shard_groups(group_, group_.per_node);
      const double g = nodes.shard.ranks, hops = std::log2(group_.ranks);
      const double leaving = (std::log2(nodes.copies.ranks) + (g - 1) / g) / hops;
      send(nodes.copies, "send weights to another node", Op::send_recv, leaving * bytes);
      send(nodes.shard, "send weights in the node", Op::send_recv, (1 - leaving) * bytes);
    }
    if (fused_) {
      kernels("average weights", Category::optimizer, fused::average(sent), elements_, tensors_);
      if (has_half_weights())
        kernels("weights to half", Category::optimizer, fused::narrow, elements_, tensors_);
      return;
    }
    // PyTorch adds each neighbour's weights, divides the sum and casts it to 16 bits.
    const double casts = has_half_weights() ? 1 : 0;
    kernels("average weights", Category::optimizer,
            {12 * sent + 8 + 6 * casts, 0, sent + 1 + casts, 0, 0}, elements_, tensors_);
  }

  bool has_half_weights() const { return training_.recipe.precision.is_half(); }

  static constexpr std::uint64_t block = 2048;  // elements of a scale

  const TrainingPlan& training_;
};

std::vector<StepPart> between_ranks(const TrainingPlan& training,
                                    const AveragedGradients& gradients,
                                    const ExchangeLevels& levels) {
  std::vector<StepPart> parts = Writer(training, gradients, levels).write();
  return training.exchange.is_star() ? through_hub(parts, levels) : parts;
}

// Returns an exchange in which each rank codes the change of its share of the weights since the
// last exchange, takes the outer step on the average, and the site distributes the new weights in
// fp32. If ranks share states, the weights are gathered after the update anyway.
std::vector<StepPart> meet_in_codes(const TrainingPlan& training, AveragedGradients weights,
                                    const ExchangeLevels& levels) {
  weights.bytes = 4;
  const bool shares_states = std::exchange(weights.shared, false);
  ExchangeLevels between = levels;
  between.shards = 1;
  std::vector<StepPart> parts = between_ranks(training, weights, between);
  const double share = weights.elements / levels.shards;
  const double tensors = tensors_of(*training.model, weights);
  const bool fused = training.kernels == Kernels::fused;
  parts.insert(parts.begin(), {"change of weights", Category::compress,
                               KernelWork{{12, 1, 0, 0, 0}, share, tensors}});
  parts.push_back({"outer optimizer", Category::optimizer,
                   KernelWork{fused ? fused::outer_step : unfused::outer_step, share, tensors}});
  if (levels.in_node() && !shares_states)
    parts.push_back(hand_out_in_node(levels, 4 * weights.elements));
  return parts;
}

}  // namespace

// Within a node, gradients or weights to average are uncompressed, and so are results that are not
// gathered in coded form.
std::vector<StepPart> gradient_exchange(const TrainingPlan& training,
                                        const AveragedGradients& gradients) {
  const Exchange& exchange = training.exchange;
  const ExchangeLevels levels = levels_of(exchange, gradients.ranks);
  if (exchange.every > 1)
    return meet_in_codes(training, gradients.part(1. / parts_of_weights(exchange)), levels);
  std::vector<StepPart> parts =
      between_ranks(training, gradients.part(1. / parts_of_weights(exchange)), levels);
  if (!levels.in_node()) return parts;
  const double bytes = gradients.elements * (averages_weights(exchange) ? 4 : gradients.bytes);
  parts.insert(parts.begin(), sum_in_node(levels, bytes));
  if (!levels.is_sharded() || !hands_out_codes(exchange))
    parts.push_back(hand_out_in_node(levels, bytes));
  return parts;
}

std::vector<StepPart> gradient_exchange(const TrainingPlan& training, const Owners& owners,
                                        const parallel::RankParameters& held, double share) {
  const AveragedGradients gradients =
      averaged_gradients(training, owners.part_of(held), owners.replicas);
  if (owners.replicas.ranks == 1 || gradients.elements == 0) return {};
  return gradient_exchange(training, gradients.part(share));
}

bool exchanges_in_hooks(const TrainingPlan& training) {
  return training.parallelism ? training.parallelism->framework.exchanges_in_hooks
                              : training.overlap == Overlap::ddp;
}

bool exchanges_gradients(const TrainingPlan& training) {
  const bool in_passes = training.parallelism &&
                         training.parallelism->sharding == parallel::Sharding::weights &&
                         steps_per_exchange(training.exchange) == 1;
  return training.exchange.kind != Exchange::Kind::all_reduce && !is_onebit(training.optimizer()) &&
         training.data_parallel() > 1 && !in_passes;
}

}  // namespace lambcast
