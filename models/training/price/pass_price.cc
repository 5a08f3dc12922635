#include "models/training/price/pass_price.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/device/image_time.h"
#include "models/training/price/activation_copies.h"
#include "models/training/price/beside_collectives.h"
#include "models/training/price/block_kernels.h"
#include "models/training/price/host_pace.h"
#include "models/training/price/meeting_stages.h"
#include "models/training/price/pipeline_sums.h"
#include "models/training/price/slowest_rank.h"
#include "models/training/price/weight_stream.h"
#include "sim/base/check.h"

namespace lambcast {
namespace {

using parallel::ChunkContent;

class PipelinePricer {
 public:
  PipelinePricer(const PipelinePlan& plan, const TrainingPlan& training, CollectiveCosts& costs,
                 End end, double compute_width, double meeting, std::optional<CallKind> only)
      : plan_(plan),
        training_(training),
        stages_(plan, {training.cluster, {}, training.network, training.expand}, costs, end,
                meeting, only),
        copies_(copy_rates(training.parallelism->offload,
                           host_copies(*training.cluster, *training.device))),
        off_(end == End::compute_low    ? std::exp(-compute_width)
             : end == End::compute_high ? std::exp(compute_width)
                                        : 1),
        rates_(rates_of_slowest(training, off_)),
        launch_(training.device->framework_launch.value.scaled(off_)),
        unpaired_(plan.experts && plan.experts->overlapped ? parallel::unpaired_share(plan.pipeline)
                                                           : 0),
        kinds_(kinds_of(plan, rates_)) {}

  PipelinePrice price() {
    PipelinePrice result;
    std::vector<parallel::ChunkTimes> times;
    std::vector<Wire> wires;
    for (const ChunkContent& content : plan_.chunks) {
      wire_ = {};
      calls_.clear();
      reads_ = {};
      ChunkPrice& chunk = result.chunks.emplace_back(price_chunk(content));
      const std::size_t position = result.chunks.size() - 1;
      if (!training_.parallelism->captured) pace_by_host(chunk, reads_, rates_, launch_);
      if (!plan_.copied_activations.empty())
        wait_for_copies(chunk, reads_, plan_.copied_activations[position], copies_, off_);
      add_sends(position, chunk);
      times.push_back(chunk.times());
      chunk.reads = reads_;
      wires.push_back(wire_);
      result.calls.push_back(calls_);
    }
    result.time = parallel::pipeline_time(plan_.pipeline, times, plan_.transfers);
    sum_up(plan_.pipeline, wires, result);
    result.calibrated = calibrated_;
    result.covered = covered_;
    return result;
  }

 private:
  // --- collectives ---

  Duration cost_of(const Call& call, std::int64_t times = 1) {
    const CollectiveCost& cost = stages_.cost(call);
    const auto count = static_cast<double>(times);
    wire_.per_gpu += cost.traffic.sent_per_rank * count;
    wire_.per_node += cost.traffic.network_sent_per_node * (count / stages_.priced_with(call));
    wire_.collectives += times;
    calibrated_ &= cost.interval.calibrated;
    const Duration time = stages_.time(call) * times;  // may invalidate `cost`
    wire_.communication += time;
    if (stages_.priced_with(call) > 1) wire_.meeting += time;
    add(calls_, call, times * repeats_);
    covered_ &= is_calibrated(*training_.cluster, call.backend, call.group.nodes());
    return time;
  }

  Duration cost_of(const std::optional<Call>& call, std::int64_t times = 1) {
    return call ? cost_of(*call, times) : Duration();
  }

  // Returns a block's share of a call that is issued once for every `pieces` pieces of all blocks.
  Duration cost_of_block(const Call& call, int blocks, int pieces = 1) {
    const std::int64_t all = std::int64_t{blocks} * plan_.weight_pieces;
    return cost_of(call, (all + pieces - 1) / pieces).scaled(1.0 / blocks);
  }

  // Returns a block's share of a collective that only blocks with experts issue.
  Duration cost_of_experts(const std::optional<Call>& call, const ChunkContent& content) {
    return cost_of(call, layers_with_experts(content)).scaled(1.0 / content.layers);
  }

  Duration beyond_chunks(const std::optional<Call>& call, Duration product) {
    const bool gathers = call && call->op == Op::all_gather;
    return lambcast::beyond_chunks(cost_of(call), product, plan_.block.tensor_parallel, gathers);
  }

  // --- one block, one micro batch ---

  // Returns the exposed time of a forward pass, also if it is repeated before the backward pass
  // (`pass`).
  Duration exposed_forward(const BlockKernels& block, Pass pass) {
    Duration exposed;
    const bool chunked = plan_.tensor_overlap >= TensorOverlap::all;
    for (const BlockKernels::Pair& pair : block.pairs()) {
      const auto after = [&](const std::optional<Call>& call, const auto& products) {
        exposed += chunked ? beyond_chunks(call, block.products(products, pass))
                           : cost_of(call) + copy_of(call, pair.calls);
      };
      after(pair.calls.gather, pair.first);
      if (pair.last.empty()) continue;
      if (!(plan_.dtensor && block.ends_before(pair.last, pass)))
        after(pair.calls.scatter, pair.last);
      exposed += cost_of(pair.calls.sum);
    }
    exposed += exposed_adapters(block) + exposed_keys(block.attention_core(pass));
    exposed += cost_of(plan_.queries_exchange, 2) + cost_of(plan_.keys_exchange, 2);
    return exposed + exposed_exchanges(block, total_time(block.backward));
  }

  Duration exposed_input_gradient(const BlockKernels& block) {
    Duration exposed;
    const TensorOverlap overlap = plan_.tensor_overlap;
    for (const BlockKernels::Pair& pair : block.pairs()) {
      const ActivationCalls& calls = pair.calls;
      const Duration weight = block.products(pair.first, Pass::weight_gradient);
      const Duration input = block.products(pair.first, Pass::input_gradient);
      const auto hidden = [&](const std::optional<Call>& call, Duration product) {
        const Duration collective = cost_of(call) + copy_of(call, calls);
        if (overlap == TensorOverlap::none || plan_.dtensor) return collective;
        return beyond(collective, product);
      };
      exposed += hidden(calls.sum, weight);
      exposed += overlap == TensorOverlap::chunks && !plan_.dtensor
                     ? beyond_chunks(calls.scatter, input)
                     : hidden(calls.scatter, weight);
      if (gathers_inputs_again(block)) exposed += hidden(calls.gather, input);
      if (pair.last.empty()) continue;
      // The gradient of the last product's output is gathered before anything can start.
      exposed += overlap >= TensorOverlap::all
                     ? beyond_chunks(calls.gather, block.products(pair.last, Pass::input_gradient))
                     : cost_of(calls.gather) + copy_of(calls.gather, calls);
    }
    exposed += exposed_adapters(block);
    exposed += exposed_keys_backward(block.attention_core(Pass::input_gradient));
    exposed += cost_of(plan_.queries_exchange, 2) + cost_of(plan_.keys_exchange, 2);
    return exposed + exposed_exchanges(block, total_time(block.forward));
  }

  // Returns the exposed collectives of the pairs of products with adapters, in one pass.
  Duration exposed_adapters(const BlockKernels& block) {
    if (!block.work.adapters) return {};
    const std::int64_t pairs = block.work.adapters->feed_forward() ? 2 : 1;
    return cost_of(plan_.adapters_gather, 3 * pairs) + cost_of(plan_.adapters_exchange, pairs);
  }

  // Returns the exposed time of sending tokens to their experts and back in one pass. `other` is
  // the pass of another micro batch that overlaps the exchanges.
  Duration exposed_exchanges(const BlockKernels& block, Duration other) {
    if (!block.experts) return {};
    const ExpertPlan& plan = *block.experts;
    const Duration rows = cost_of(plan.rows_gather) + cost_of(plan.rows_scatter) +
                          cost_of(plan.rows_sum) + cost_of(plan.shares_gather);
    const Duration inside = cost_of(plan.inside, 2), between = cost_of(plan.between, 2);
    const Duration exchanges = plan.at_once ? std::max(inside, between) : inside + between;
    if (!plan.overlapped) return rows + exchanges;
    const Duration kept = exchanges.scaled(exchange_share);
    if (kept > beyond(exchanges, other)) reads_.kept += kept * repeats_;
    const Duration beside = std::max(beyond(exchanges, other), kept);
    return rows + beside + (exchanges - beside).scaled(unpaired_);
  }

  // Returns the time to copy a gathered or scattered tensor into its own order of dimensions.
  Duration copy_of(const std::optional<Call>& call, const ActivationCalls& calls) const {
    return call ? memory_cost(calls.copied, 1, rates_).duration : Duration();
  }

  bool gathers_inputs_again(const BlockKernels& block) const {
    return !block.work.adapters &&
           (!plan_.dtensor || block.work.repeated == Repeated::alternate_products);
  }

  // Returns the exposed time of exchanging keys and values in a forward pass.
  Duration exposed_keys(Duration attention) {
    const Ring ring = plan_.block.ring;
    const double c = plan_.context_rounds + 1;
    if (ring == Ring::fused)
      return beyond(cost_of(plan_.keys_values, plan_.context_rounds),
                    attention.scaled((c - 1) / c));
    const Duration gathered = cost_of(plan_.keys_values);
    return ring == Ring::traced ? gathered : beyond(gathered, attention.scaled(1 / c));
  }

  Duration exposed_keys_backward(Duration attention) {
    const double c = plan_.context_rounds + 1;
    const Duration beside = attention.scaled((c - 1) / c);
    if (plan_.block.ring == Ring::fused)
      return beyond(cost_of(plan_.keys_values, 2 * plan_.context_rounds), beside);
    const Duration gathered = exposed_keys(attention);
    const Duration sent = cost_of(plan_.keys_gradients, plan_.context_rounds);
    return gathered + cost_of(plan_.keys_gradients) +
           (plan_.block.ring == Ring::traced ? sent : beyond(sent, beside));
  }

  // --- a chunk ---

  int layers_with_experts(const ChunkContent& content) const {
    if (!plan_.experts) return 0;
    const auto first = plan_.experts->layers.begin() + content.first_layer;
    const auto with = std::count(first, first + content.layers, true);
    return static_cast<int>(with) + (content.head ? plan_.experts->predicted_layers : 0);
  }

  ChunkPrice price_chunk(const ChunkContent& content) {
    ChunkPrice chunk;
    const int predicted = content.head && plan_.experts ? plan_.experts->predicted_layers : 0;
    add_blocks(chunk, content, predicted);
    chunk.blocks_forward = chunk.forward.time();
    chunk.blocks_backward = chunk.input_gradient.time() + chunk.weight_gradient.time();
    if (plan_.weights_gather || !plan_.gradients_reduce.empty()) share_weights(content, chunk);
    if (content.embedding) add_embedding(chunk, kinds_.front().dense);
    if (content.head)
      for (int head = 0; head <= predicted; ++head) add_head(chunk);
    return chunk;
  }

  // Adds the stacks in order, or all blocks of the chunk if there are no stacks.
  void add_blocks(ChunkPrice& chunk, const ChunkContent& content, int predicted) {
    for (std::size_t s = 0; s < kinds_.size(); ++s) {
      const ChunkContent alike = part_of(content, plan_, s);
      if (s > 0 && begins(alike, plan_.stacks[s])) enter(chunk, kinds_[s].dense);
      const int with_experts = layers_with_experts(alike);
      add_blocks(chunk, kinds_[s].dense, alike.layers + predicted - with_experts);
      if (with_experts > 0) add_blocks(chunk, *kinds_[s].experts, with_experts);
    }
  }

  void add_blocks(ChunkPrice& chunk, const BlockKernels& block, int layers) {
    reads_.kernels += (rests_on(block.forward) + rests_on(block.backward)) * layers;
    const Duration weight = total_time(block.backward, {}, Pass::weight_gradient);
    const Duration input = total_time(block.backward) - weight;
    const HostIdle idle = idle_for(block, launch_);
    add_blocks(chunk.forward, layers, total_time(block.forward) + idle.forward,
               [&] { return exposed_forward(block, Pass::forward); });
    add_blocks(chunk.input_gradient, layers, input, [&] {
      Duration exposed = exposed_input_gradient(block) + cost_of(block.activations.checkpoint);
      if (block.repeats_collectives()) exposed += exposed_forward(block, Pass::recompute);
      if (block.work.repeated == Repeated::experts)
        exposed += exposed_exchanges(block, total_time(block.forward));
      return exposed;
    });
    chunk.weight_gradient.compute += weight * layers;
    chunk.input_gradient.compute += idle.backward * layers;
    reads_.launches += (idle.forward + idle.backward) * layers;
  }

  // Runs `make` and records the calls that it issues as calls of the pass.
  template <typename Make>
  void of_pass(PassPrice& pass, Make make) {
    std::vector<CallsMade> chunk = std::exchange(calls_, {});
    make();
    for (const CallsMade& made : calls_) {
      add(pass.calls, *made.call, made.times);
      add(chunk, *made.call, made.times);
    }
    calls_ = std::move(chunk);
  }

  template <typename Exposed>
  void add_blocks(PassPrice& pass, int layers, Duration compute, Exposed exposed_of_one) {
    if (layers == 0) return;
    const Wire before = std::exchange(wire_, {});
    repeats_ = layers;
    Duration exposed;
    of_pass(pass, [&] { exposed = exposed_of_one(); });
    repeats_ = 1;
    const Wire one = std::exchange(wire_, before);
    for (int i = 0; i < layers; ++i) wire_ += one;
    pass.compute += compute * layers;
    pass.exposed += exposed * layers;
    pass.communication += one.communication * layers;
  }

  // Adds kernels outside the blocks.
  void add_pieces(ChunkPrice& chunk, const std::vector<Piece>& forward,
                  const std::vector<Piece>& backward) {
    reads_.kernels += rests_on(forward) + rests_on(backward);
    chunk.forward.compute += total_time(forward);
    const Duration weight = total_time(backward, {}, Pass::weight_gradient);
    chunk.weight_gradient.compute += weight;
    chunk.input_gradient.compute += total_time(backward) - weight;
  }

  // Adds the transition from one stage of a pyramid to the next, or into a decoder.
  void enter(ChunkPrice& chunk, const BlockKernels& block) {
    if (block.work.encoder_tokens > 0) return add_embedding(chunk, block);
    add_pieces(chunk, merging_forward(block.work, rates_), merging_backward(block.work, rates_));
  }

  void add_embedding(ChunkPrice& chunk, const BlockKernels& of) {
    add_pieces(chunk, embedding_forward(of.work, rates_), embedding_backward(of.work, rates_));
    add_exposed(chunk.forward, of.activations.sum);
    add_exposed(chunk.forward, of.activations.scatter);
    add_exposed(chunk.input_gradient, of.activations.gather);
  }

  void add_head(ChunkPrice& chunk) {
    add_pieces(chunk, head_forward(plan_.block, rates_), head_backward(plan_.block, rates_));
    add_exposed(chunk.forward, plan_.activations.gather);
    add_exposed(chunk.forward, plan_.loss_sum, 3);
    add_exposed(chunk.input_gradient, plan_.activations.sum);
    add_exposed(chunk.input_gradient, plan_.activations.scatter);
  }

  void add_exposed(PassPrice& pass, const std::optional<Call>& call, std::int64_t times = 1) {
    Duration time;
    of_pass(pass, [&] { time = cost_of(call, times); });
    pass.exposed += time;
    pass.communication += time;
  }

  // Adds the sends of activations to the next position and of gradients to the previous one.
  void add_sends(std::size_t position, ChunkPrice& chunk) {
    const auto sent = [&](const Call& call) {
      return call.group.ranks == 1 ? Duration() : cost_of(call) + cost_of(plan_.sends_gather);
    };
    if (position < plan_.sends.size()) chunk.send_forward = sent(plan_.sends[position]);
    if (position > 0) chunk.send_backward = sent(plan_.sends[position - 1]);
  }

  // Time that the host and quantization kernels add to a collective over sharded pieces.
  Duration handling_of_block(Bytes quantized) const {
    return (plan_.shard_handling + memory_cost(quantized, 1, rates_).duration) *
           plan_.weight_pieces;
  }

  Duration gather_of_block(const std::optional<Call>& call, int blocks) {
    if (!call || blocks == 0) return {};
    return cost_of_block(*call, blocks) + handling_of_block(plan_.weights_quantized);
  }

  // Adds weights gathered ahead of the blocks that use them, and gradients reduced behind them.
  void share_weights(const ChunkContent& content, ChunkPrice& chunk) {
    if (content.layers == 0) return;
    const bool outside = content.embedding || content.head;
    of_pass(chunk.forward, [&] {
      const Duration outer = outside ? cost_of(plan_.outer_weights_gather) : Duration();
      stream(
          chunk.forward, content.layers,
          {.gather = gather_of_block(plan_.weights_gather, content.layers), .outer_gather = outer},
          {.gather = cost_of_experts(plan_.expert_weights_gather, content)});
    });
    of_pass(chunk.input_gradient, [&] { share_backward(content, chunk, outside); });
  }

  void share_backward(const ChunkContent& content, ChunkPrice& chunk, bool outside) {
    Duration reduce =
        plan_.gradients_reduce.empty() ? Duration() : handling_of_block(plan_.gradients_quantized);
    for (const Call& call : plan_.gradients_reduce)
      reduce += cost_of_block(call, content.layers, plan_.reduced_pieces);
    Duration outer;
    for (const Call& call : plan_.outer_gradients_reduce)
      if (outside) outer += cost_of(call);
    PassPrice both{chunk.input_gradient.compute + chunk.weight_gradient.compute,
                   chunk.input_gradient.exposed, chunk.input_gradient.communication,
                   chunk.input_gradient.calls};
    const int kept = std::min(plan_.kept_blocks, content.layers);
    stream(both, content.layers,
           {.gather = gather_of_block(plan_.weights_gather_again, content.layers - kept),
            .scatter = reduce,
            .outer_scatter = outer,
            .kept = kept},
           {.gather = cost_of_experts(plan_.expert_weights_gather, content),
            .scatter = cost_of_experts(plan_.expert_gradients_scatter, content),
            .kept = kept});
    chunk.input_gradient.exposed = both.exposed;
    chunk.input_gradient.communication = both.communication;
  }

  // Returns the share of computation lost while `dense` and `experts` collectives run, each in its
  // own process group.
  double lost_to(Duration dense, Duration experts) const {
    const auto& first =
        plan_.weights_gather ? *plan_.weights_gather : plan_.gradients_reduce.front();
    const double lost = lost_to_collectives(first.group, rates_);
    if (experts == Duration()) return lost;
    const Call& of_experts = *plan_.expert_gradients_scatter;
    return lost +
           experts / (dense + experts) * (lost_to_collectives(of_experts.group, rates_) - lost);
  }

  Duration between_nodes(const std::vector<CallsMade>& calls) const {
    Duration sum;
    for (const auto& [call, times] : calls)
      if (call->group.nodes() > 1) sum += stages_.time(*call) * times;
    return sum;
  }

  // Adds the time that `pass` waits for the stream of sharded weights, whose calls are `calls_`.
  // The calls of both use the same NICs.
  void stream(PassPrice& pass, int blocks, const WeightStream& dense, const WeightStream& experts) {
    const Duration all = dense.of(blocks) + experts.of(blocks);
    pass.communication += all;
    const Duration on_nics = between_nodes(pass.calls) + between_nodes(calls_);
    const Duration beside = std::max(exposed_on_stream(dense + experts, blocks, pass.time()),
                                     beyond(on_nics, pass.time()));
    const Duration exposed = plan_.hides_sharding ? beside : all;
    pass.exposed += exposed;
    if (all <= exposed) return;
    const Duration lost = (all - exposed).scaled(lost_to(dense.of(blocks), experts.of(blocks)));
    pass.exposed += lost;
    reads_.lost += lost;
  }

  const PipelinePlan& plan_;
  const TrainingPlan& training_;
  MeetingStages stages_;
  CopyRates copies_;
  double off_;  // factor on the times of kernels
  GpuRates rates_;
  Duration launch_;
  double unpaired_;  // share of passes that overlap no pass of the other direction
  std::vector<BlockKinds> kinds_;
  Wire wire_;
  std::vector<CallsMade> calls_;  // calls of the chunk being priced
  ChunkReads reads_;
  std::int64_t repeats_ = 1;  // number of blocks for which the block being priced stands
  bool calibrated_ = true, covered_ = true;
};

}  // namespace

PipelinePrice price_pipeline(const PipelinePlan& plan, const TrainingPlan& training,
                             CollectiveCosts& costs, End end, double compute_width,
                             std::optional<CallKind> only) {
  return with_stages_meeting(plan, [&](double meeting) {
    return PipelinePricer(plan, training, costs, end, compute_width, meeting, only).price();
  });
}

}  // namespace lambcast
