#include "models/training/pass_price.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace lambcast {
namespace {

using parallel::ChunkContent;

// What collectives of one micro batch put on the wire, and how far their times may be off.
struct Wire {
  Bytes per_gpu, per_node;
  std::int64_t collectives = 0;
  Duration communication, shorter, longer;

  Wire& operator+=(const Wire& other) {
    per_gpu += other.per_gpu;
    per_node += other.per_node;
    collectives += other.collectives;
    communication += other.communication;
    shorter += other.shorter;
    longer += other.longer;
    return *this;
  }
};

// One pass through a block, as pieces of time.
struct BlockPass {
  Duration compute;
  Duration exposed;
};

class PipelinePricer {
 public:
  PipelinePricer(const PipelinePlan& plan, const Training& training, CollectiveCosts& costs)
      : plan_(plan), training_(training), costs_(costs), rates_(rates_of(training)) {
    forward_ = block_forward(plan.block, rates_);
    backward_ = block_backward(plan.block, rates_);
  }

  PipelinePrice price(double compute_width) {
    PipelinePrice result;
    std::vector<parallel::ChunkTimes> times;
    std::vector<Wire> wires;
    for (const ChunkContent& content : plan_.chunks) {
      wire_ = {};
      const ChunkPrice chunk = price_chunk(content);
      times.push_back({chunk.forward.time(),
                       chunk.input_gradient.time() + chunk.weight_gradient.time(),
                       chunk.input_gradient.time(), chunk.weight_gradient.time(),
                       chunk.send_forward, chunk.send_backward});
      result.chunks.push_back(chunk);
      wires.push_back(wire_);
    }
    result.time = parallel::pipeline_time(plan_.pipeline, times, plan_.transfers);
    sum_up(result, wires, compute_width);
    result.calibrated = calibrated_;
    result.covered = covered_;
    return result;
  }

 private:
  static GpuRates rates_of(const Training& training) {
    LAMBCAST_CHECK(training.device->rates, "{} has no rates of kernels", training.device->name);
    return slowed(*training.device->rates, training.cluster->stack.compute_scale.value);
  }

  // --- collectives ---

  Duration cost_of(const Call& call, std::int64_t times = 1) {
    const CollectiveCost& cost =
        costs_.cost({training_.cluster, call.group, training_.network, training_.expand},
                    call.channel, call.op, call.bytes, call.algorithm);
    const auto count = static_cast<double>(times);
    wire_.per_gpu += cost.traffic.sent_per_rank * count;
    wire_.per_node += cost.traffic.network_sent_per_node * count;
    wire_.collectives += times;
    wire_.communication += cost.time * times;
    wire_.shorter += (cost.time - cost.interval.low) * times;
    wire_.longer += (cost.interval.high - cost.time) * times;
    calibrated_ &= cost.interval.calibrated;
    covered_ &= training_.cluster->calibration.has_value();
    return cost.time * times;
  }

  Duration cost_of(const std::optional<Call>& call, std::int64_t times = 1) {
    return call ? cost_of(*call, times) : Duration();
  }

  // All pieces of one block, of so many.
  Duration cost_of_block(const std::optional<Call>& call, int blocks) {
    return cost_of(call, std::int64_t{blocks} * plan_.weight_pieces).scaled(1.0 / blocks);
  }

  // Of a collective that runs chunk by chunk behind a product.
  Duration beyond_chunks(Duration collective, Duration product) const {
    const double t = plan_.block.tensor_parallel;
    const Duration behind = product.scaled(1 - 1 / t);
    const Duration rest = collective > behind ? collective - behind : Duration();
    return std::max(collective.scaled(1 / t), rest);
  }

  static Duration beyond(Duration collective, Duration cover) {
    return collective > cover ? collective - cover : Duration();
  }

  Duration piece(const std::vector<Piece>& pieces, std::string_view name, Pass pass) const {
    Duration sum;
    for (const Piece& piece : pieces)
      if (piece.name == name && piece.pass == pass) sum += piece.duration;
    return sum;
  }

  Duration attention_core(const std::vector<Piece>& pieces, Pass pass) const {
    Duration sum;
    for (const Piece& piece : pieces)
      if (piece.kind == PieceKind::attention && piece.pass == pass) sum += piece.duration;
    return sum;
  }

  // --- one block, one micro batch ---

  // A forward pass, in its own place or repeated before the backward pass (`pass`).
  Duration exposed_forward(const std::vector<Piece>& pieces, Pass pass) {
    Duration exposed;
    const bool chunked = plan_.tensor_overlap == TensorOverlap::all;
    for (const auto& [first, last] :
         {std::pair{"query-key-value", "projection"}, std::pair{"up", "down"}}) {
      const auto after = [&](const std::optional<Call>& call, const char* product) {
        const Duration collective = cost_of(call);
        exposed += chunked ? beyond_chunks(collective, piece(pieces, product, pass)) : collective;
      };
      after(plan_.activations_gather, first);
      after(plan_.activations_scatter, last);
      exposed += cost_of(plan_.activations_sum);
    }
    exposed +=
        beyond_ring(cost_of(plan_.keys_values, plan_.context_rounds), attention_core(pieces, pass));
    return exposed;
  }

  Duration exposed_input_gradient() {
    Duration exposed;
    const TensorOverlap overlap = plan_.tensor_overlap;
    for (const auto& [first, last] :
         {std::pair{"query-key-value", "projection"}, std::pair{"up", "down"}}) {
      const Duration weight = piece(backward_, first, Pass::weight_gradient);
      const Duration input = piece(backward_, first, Pass::input_gradient);
      const auto hidden = [&](Duration collective, Duration product) {
        return overlap == TensorOverlap::none ? collective : beyond(collective, product);
      };
      exposed += hidden(cost_of(plan_.activations_sum), weight);
      exposed += hidden(cost_of(plan_.activations_scatter), weight);
      exposed += hidden(cost_of(plan_.activations_gather), input);
      // The gradient of the last product's output is gathered before anything can start.
      const Duration gathered = cost_of(plan_.activations_gather);
      exposed += overlap == TensorOverlap::all
                     ? beyond_chunks(gathered, piece(backward_, last, Pass::input_gradient))
                     : gathered;
    }
    exposed += beyond_ring(cost_of(plan_.keys_values, 2 * plan_.context_rounds),
                           attention_core(backward_, Pass::input_gradient));
    return exposed;
  }

  // Repeating a block up to its last product repeats the collectives between its products too.
  bool repeats_collectives() const {
    return plan_.block.repeated == Repeated::block ||
           plan_.block.repeated == Repeated::until_last_product;
  }

  Duration beyond_ring(Duration ring, Duration attention) const {
    const double c = plan_.context_rounds + 1;
    return beyond(ring, attention.scaled((c - 1) / c));
  }

  // --- a chunk ---

  ChunkPrice price_chunk(const ChunkContent& content) {
    ChunkPrice chunk;
    const BlockPass forward{total_time(forward_), {}};
    const Duration recompute = total_time(backward_, {}, Pass::recompute);
    const BlockPass input{total_time(backward_, {}, Pass::input_gradient) + recompute, {}};
    const BlockPass weight{total_time(backward_, {}, Pass::weight_gradient), {}};
    chunk.forward = blocks(content.layers, forward.compute,
                           [&] { return exposed_forward(forward_, Pass::forward); });
    chunk.input_gradient = blocks(content.layers, input.compute, [&] {
      Duration exposed = exposed_input_gradient();
      if (repeats_collectives()) exposed += exposed_forward(forward_, Pass::forward);
      return exposed;
    });
    chunk.weight_gradient = {weight.compute * content.layers, {}, {}};
    if (plan_.weights_gather || plan_.gradients_scatter) share_weights(content, chunk);
    if (content.embedding) add_embedding(chunk);
    if (content.head) add_head(chunk);
    add_sends(chunk);
    return chunk;
  }

  template <typename Exposed>
  PassPrice blocks(int layers, Duration compute, Exposed exposed_of_one) {
    if (layers == 0) return {};
    const Wire before = wire_;
    wire_ = {};
    const Duration exposed = exposed_of_one();
    Wire one = wire_;
    wire_ = before;
    for (int i = 0; i < layers; ++i) wire_ += one;
    return {compute * layers, exposed * layers, one.communication * layers};
  }

  void add_embedding(ChunkPrice& chunk) {
    chunk.forward.compute += total_time(embedding_forward(plan_.block, rates_));
    chunk.weight_gradient.compute += total_time(embedding_backward(plan_.block, rates_));
    add_exposed(chunk.forward, plan_.activations_sum);
    add_exposed(chunk.forward, plan_.activations_scatter);
    add_exposed(chunk.input_gradient, plan_.activations_gather);
  }

  void add_head(ChunkPrice& chunk) {
    const std::vector<Piece> backward = head_backward(plan_.block, rates_);
    chunk.forward.compute += total_time(head_forward(plan_.block, rates_));
    const Duration weight = total_time(backward, {}, Pass::weight_gradient);
    chunk.weight_gradient.compute += weight;
    chunk.input_gradient.compute += total_time(backward) - weight;
    add_exposed(chunk.forward, plan_.activations_gather);
    add_exposed(chunk.forward, plan_.loss_sum, 3);
    add_exposed(chunk.input_gradient, plan_.activations_sum);
    add_exposed(chunk.input_gradient, plan_.activations_scatter);
  }

  void add_exposed(PassPrice& pass, const std::optional<Call>& call, std::int64_t times = 1) {
    const Duration time = cost_of(call, times);
    pass.exposed += time;
    pass.communication += time;
  }

  void add_sends(ChunkPrice& chunk) {
    if (plan_.pipeline.positions() == 1) return;
    chunk.send_forward = chunk.send_backward = cost_of(plan_.send);
    if (plan_.sends_gather) {
      const Duration gathered = cost_of(plan_.sends_gather);
      chunk.send_forward += gathered;
      chunk.send_backward += gathered;
    }
  }

  // Weights gathered ahead of the blocks that compute with them, gradients scattered behind.
  void share_weights(const ChunkContent& content, ChunkPrice& chunk) {
    if (content.layers == 0) return;
    const Duration gather = cost_of_block(plan_.weights_gather, content.layers);
    Duration outer;
    if (content.embedding || content.head) outer = cost_of(plan_.outer_weights_gather);
    stream(chunk.forward, content.layers, gather, Duration(), outer, Duration());
    const Duration again =
        plan_.gathers_again ? cost_of_block(plan_.weights_gather, content.layers) : Duration();
    Duration scatter;
    if (plan_.reduces_each && plan_.gradients_scatter) {
      scatter = cost_of_block(plan_.gradients_scatter, content.layers);
      if (plan_.gradients_sum) scatter += cost_of_block(plan_.gradients_sum, content.layers);
    }
    Duration outer_scatter;
    if (plan_.reduces_each && (content.embedding || content.head))
      outer_scatter = cost_of(plan_.outer_gradients_scatter);
    PassPrice both{chunk.input_gradient.compute + chunk.weight_gradient.compute,
                   chunk.input_gradient.exposed, chunk.input_gradient.communication};
    stream(both, content.layers, again, scatter, Duration(), outer_scatter);
    chunk.input_gradient.exposed = both.exposed;
    chunk.input_gradient.communication = both.communication;
  }

  // Adds to `pass` what its blocks wait for on a stream beside them: a block's weights gathered
  // while the one before computes, gradients scattered after each. `outer` comes first (weights) or
  // last (gradients) and hides behind nothing.
  void stream(PassPrice& pass, int blocks, Duration gather, Duration scatter, Duration outer_gather,
              Duration outer_scatter) const {
    const Duration all = (gather + scatter) * blocks + outer_gather + outer_scatter;
    pass.communication += all;
    if (!plan_.hides_sharding) {
      pass.exposed += all;
      return;
    }
    const Duration block = pass.time().scaled(1.0 / blocks);
    Duration computed, wire = outer_gather + gather, gathered = wire;
    for (int i = 0; i < blocks; ++i) {
      const Duration start = std::max(computed, gathered);
      computed = start + block;
      if (i + 1 < blocks) gathered = wire = std::max(wire, start) + gather;
      if (scatter > Duration()) wire = std::max(wire, computed) + scatter;
    }
    const Duration end =
        (scatter > Duration() ? std::max(computed, wire) : computed) + outer_scatter;
    pass.exposed += end - block * blocks;
  }

  // --- the step ---

  void sum_up(PipelinePrice& result, const std::vector<Wire>& wires, double compute_width) const {
    const parallel::Pipeline& pipeline = plan_.pipeline;
    const std::int64_t m = pipeline.micro_batches;
    const auto stages = static_cast<std::size_t>(pipeline.stages);
    for (auto* durations :
         {&result.forward, &result.backward, &result.communication, &result.exposed})
      durations->resize(stages);
    for (auto* bytes : {&result.wire_bytes_per_gpu, &result.network_bytes_per_node})
      bytes->resize(stages);
    result.num_collectives.resize(stages);
    Duration compute, exposed, communication, shorter, longer;
    for (int position = 0; position < pipeline.positions(); ++position) {
      const auto p = static_cast<std::size_t>(position);
      const auto s = static_cast<std::size_t>(pipeline.stage_at(position));
      const ChunkPrice& chunk = result.chunks[p];
      result.forward[s] += chunk.forward.compute * m;
      result.backward[s] += (chunk.input_gradient.compute + chunk.weight_gradient.compute) * m;
      result.communication[s] += wires[p].communication * m;
      result.exposed[s] += (chunk.forward.exposed + chunk.input_gradient.exposed) * m;
      result.wire_bytes_per_gpu[s] += wires[p].per_gpu * static_cast<double>(m);
      result.network_bytes_per_node[s] += wires[p].per_node * static_cast<double>(m);
      result.num_collectives[s] += wires[p].collectives * m;
      compute +=
          chunk.forward.compute + chunk.input_gradient.compute + chunk.weight_gradient.compute;
      exposed += chunk.forward.exposed + chunk.input_gradient.exposed;
      communication += wires[p].communication;
      shorter += wires[p].shorter;
      longer += wires[p].longer;
    }
    // Hidden communication shortens no step; longer it may show.
    const double total = std::max((compute + exposed).s(), 1e-12);
    const double share = communication > Duration() ? exposed / communication : 0;
    result.shorter =
        std::hypot(compute.s() * -std::expm1(-compute_width), shorter.s() * share) / total;
    result.longer =
        std::hypot(compute.s() * std::expm1(compute_width), longer.s() * std::sqrt(share)) / total;
  }

  const PipelinePlan& plan_;
  const Training& training_;
  CollectiveCosts& costs_;
  GpuRates rates_;
  std::vector<Piece> forward_, backward_;
  Wire wire_;
  bool calibrated_ = true, covered_ = true;
};

}  // namespace

PipelinePrice price_pipeline(const PipelinePlan& plan, const Training& training,
                             CollectiveCosts& costs, double compute_width) {
  return PipelinePricer(plan, training, costs).price(compute_width);
}

}  // namespace lambcast
