#include "models/training/price/price.h"
#include "models/training/price/call_sources.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "models/training/plan/buffers.h"
#include "models/training/price/activation_copies.h"
#include "models/training/price/beside_collectives.h"
#include "models/training/price/measured_program.h"
#include "models/training/price/nic_sharing.h"
#include "models/training/price/own_scale.h"
#include "models/training/price/passage.h"
#include "models/training/price/rate_sources.h"
#include "models/training/price/stretches.h"
#include "topologies/common_error.h"
#include "topologies/nic_limit.h"

namespace lambcast {
namespace {

// Half-width of memory-bound work without a figure of the machine, in logarithms.
constexpr double memory_width = held_out::this_device.off;

// Half-widths in logarithms, for a factor of two. Updates on the host were compared with only two
// runs, on one kind of machine; an optimizer's products were not timed here.
constexpr double host_update_width = 0.7, products_width = 0.7;

Price of(Duration time) {
  Price price;
  price.time = time;
  price.wires = price.compute = {time, time};
  return price;
}

// Returns the price of a computation; `width` is its half-width, in logarithms.
Price computation(Duration time, double width) {
  Price price = of(time);
  price.compute = {time.scaled(std::exp(-width)), time.scaled(std::exp(width))};
  return price;
}

class Pricer {
 public:
  Pricer(const StepPlan& plan, const TrainingPlan& training, CollectiveCosts& costs,
         Intervals intervals, CostSources* sources)
      : training_(training),
        cluster_(*training.cluster),
        device_(*training.device),
        costs_(costs),
        intervals_(intervals),
        sources_(sources) {
    if (!plan.pipeline) {
      passage_ = passage(training, plan.seq_len, costs);
      return;
    }
    plan_ = &*plan.pipeline;
    passage_.basis = training.program ? Basis::this_machine : Basis::kernels;
    passage_.width = width_of_passes(training);
    passes_ = PassesAtEnds(
        *plan_, intervals,
        [&](End end, std::optional<CallKind> only) {
          return price_pipeline(*plan_, training, costs, end, passage_.width.log, only);
        },
        [&](const Call& call) -> PassesAtEnds::CallError {
          const CalibratedInterval& ends = cost_of(call).interval;
          return {ends.high - ends.low, common_error(cluster_, call.backend, call.op, call.group)};
        });
  }

  Price price(const PlanOp& op) {
    Price price = std::visit([&](const auto& work) { return this->price(op, work); }, op.work);
    price.least_on_nics = least_time_on_nics(cluster_, price.network_bytes_per_node);
    if (sources_ != nullptr) sources_->spend(price.time);
    return price;
  }

 private:
  // --- sources of prices ---

  void note(std::string_view cost, const Provenance& from) const {
    if (sources_ != nullptr) sources_->read(cost, from);
  }

  void note_for(Duration part, std::string_view cost, const Provenance& from) const {
    if (sources_ != nullptr) sources_->read_for(part, cost, from);
  }

  template <typename T>
  const T& read(std::string_view cost, const Sourced<T>& number) const {
    note(cost, number.provenance);
    return number.value;
  }

  // Notes the scales of the stack that differ from their defaults.
  void note_scales() const {
    const StackSpec& stack = cluster_.stack;
    if (stack.compute_scale.value != 1) note("compute_scale", stack.compute_scale.provenance);
    if (training_.program) note("program_level", training_.program->level.provenance);
    if (stack.compute_spread.value > 0) note("compute_spread", stack.compute_spread.provenance);
    if (stack.gpu_spread.value > 0) note("gpu_spread", stack.gpu_spread.provenance);
  }

  // Notes the sources of experts' times. `shared`: experts are distributed over ranks, so that the
  // rank with the most rows determines the time.
  void note_experts(const ExpertUse& use, bool shared) const {
    if (shared || use.capacity_factor > 0) note("expert_imbalance", use.imbalance.provenance);
    note("grouped_products",
         {Kind::assumed, "80 % of one large product's rate, from one published rate of a GB200"});
  }

  // Notes each source of kernel times with the time that it determines, in `passes` passes forward
  // and backward.
  void note_kernels(const ChunkReads& reads, double passes) const {
    RateTimes kernels = reads.kernels;
    for (Duration& time : kernels.of) time = time.scaled(passes);
    read_rates(kernels, *device_.rates, *sources_);
    const auto note = [&](Duration each, std::string_view cost, const Provenance& from) {
      if (each > Duration()) note_for(each.scaled(passes), cost, from);
    };
    note(reads.launches + reads.paced, "framework_launch", device_.framework_launch.provenance);
    note(reads.launches, "expert_launches", expert_launches_from());
    note(reads.lost, "lost_to_collectives", lost_to_collectives_from());
    note(reads.kept, "token_exchange_share", exchange_share_from());
    read_copies(reads, passes, *sources_);
  }

  // Notes the kernels of a segment that makes up `part` of the stage's passes.
  void note_kernels(int stage, double part) const {
    const std::vector<ChunkPrice>& chunks = passes_.expected().chunks;
    for (std::size_t position = 0; position < chunks.size(); ++position)
      if (plan_->pipeline.stage_at(static_cast<int>(position)) == stage)
        note_kernels(chunks[position].reads, part * plan_->pipeline.micro_batches);
  }

  // Records the sources of `times` calls; the operation waits for the share `waited` of their time.
  void note(const Call& call, double times, double waited) {
    if (sources_ == nullptr) return;
    const CollectiveCost& cost = cost_of(call);
    read_sources(call, cost, cost.time.scaled(times * waited), cluster_, *sources_);
    sources_->tips({call.op, call.bytes, cost.algorithm, cost.protocol, cost.time, cost.tip},
                   times);
  }

  // --- prices ---

  Price price(const PlanOp& op, const PassWork& work) const {
    for (const NumberRead& number : passage_.rests_on) note(number.name, number.provenance);
    note_scales();
    const Duration whole = (work.backward ? passage_.backward : passage_.forward) * op.times;
    const auto until = [&](double share) { return share == 1 ? whole : whole.scaled(share); };
    Price price = computation(until(work.to) - until(work.from), passage_.width.log);
    if (sources_ != nullptr && passage_.kernels) {
      if (training_.model->experts > 0) note_experts(passage_.experts, false);
      note_kernels(*passage_.kernels, price.time / (passage_.forward + passage_.backward));
    }
    price.coverage = passage_.width.coverage;
    price.basis = passage_.basis;
    return price;
  }

  Price price(const PlanOp&, const StageWork& work) {
    const auto stage = static_cast<std::size_t>(work.stage);
    const int last = plan_->pipeline.chunks + 1;
    const PipelinePrice& expected = passes_.expected();
    Price price = of(stretch_time(*plan_, expected, work));
    note_passes(work.stage, price.time);
    if (intervals_ == Intervals::found) passes_.set_intervals(work, price);
    price.coverage = expected.covered ? passage_.width.coverage : std::nullopt;
    price.calibrated = expected.calibrated;
    price.basis = passage_.basis;
    if (training_.network == NetworkModel::flow) add_loads(work, price);
    if (work.segment < last) return price;
    price.wire_bytes_per_gpu = expected.wire_bytes_per_gpu[stage];
    price.network_bytes_per_node = expected.network_bytes_per_node[stage];
    price.num_collectives = static_cast<double>(expected.num_collectives[stage]);
    const parallel::StageTime& replayed = expected.time.stages[stage];
    StagePasses passes;
    passes.forward = expected.forward[stage];
    passes.backward = expected.backward[stage];
    passes.exposed = expected.exposed[stage] + replayed.sending;
    passes.communication = expected.communication[stage];
    passes.bubble = (plan_->synchronised ? expected.time.makespan : expected.time.longest_stage()) -
                    passes.forward - passes.backward - passes.exposed;
    price.passes = passes;
    return price;
  }

  void note_passes(int stage, Duration stretch) {
    if (sources_ == nullptr) return;
    const Parallelism& how = *training_.parallelism;
    if (training_.model->experts > 0) note_experts(how.experts, how.layout.ep > 1);
    if (how.sharding == parallel::Sharding::weights && how.framework.shard_handling_us > 0)
      note("shard_handling",
           {Kind::fitted, "DeepSpeed blog of 2022-07-26, 175B on 128 and 1,024 A100"});
    note_scales();
    const PipelinePrice& expected = passes_.expected();
    const Duration all = stretches_time(*plan_, expected, stage);
    if (all == Duration()) return;
    note_kernels(stage, stretch / all);
    const double times = plan_->pipeline.micro_batches * (stretch / all);
    for (std::size_t position = 0; position < expected.calls.size(); ++position)
      if (plan_->pipeline.stage_at(static_cast<int>(position)) == stage)
        for (const CallsMade& made : expected.calls[position])
          note(*made.call, times * static_cast<double>(made.times), 1 - hidden_share(stage));
  }

  // Returns the share of a stage's collectives that is hidden behind computation.
  double hidden_share(int of_stage) const {
    const PipelinePrice& expected = passes_.expected();
    const auto stage = static_cast<std::size_t>(of_stage);
    const Duration exposed = expected.exposed[stage] + expected.time.stages[stage].sending;
    const Duration all = expected.communication[stage];
    return all > Duration() ? std::clamp(1 - exposed / all, 0.0, 1.0) : 0;
  }

  // Adds the segment's share of the bytes that the stage's passes send. Other stages on the node
  // add their own loads.
  void add_loads(const StageWork& work, Price& price) const {
    const PipelinePrice& expected = passes_.expected();
    const parallel::Pipeline& pipeline = plan_->pipeline;
    const Duration all = stretches_time(*plan_, expected, work.stage);
    if (price.time == Duration() || all == Duration()) return;
    const double times = pipeline.micro_batches * (price.time / all);
    for (std::size_t position = 0; position < expected.calls.size(); ++position) {
      if (pipeline.stage_at(static_cast<int>(position)) != work.stage) continue;
      for (const CallsMade& made : expected.calls[position]) {
        // Each pair of stages exchanges once, at the place of the lower stage.
        const auto sent = std::find_if(plan_->sends.begin(), plan_->sends.end(),
                                       [&](const Call& call) { return &call == made.call; });
        const bool sends = sent != plan_->sends.end();
        const auto from = static_cast<std::size_t>(sent - plan_->sends.begin());
        if (sends && from != position) continue;
        const int low =
            sends ? std::min(work.stage, pipeline.stage_at(static_cast<int>(position) + 1))
                  : work.stage;
        Load load{*made.call, times * static_cast<double>(made.times)};
        load.call.place = plan_->places[static_cast<std::size_t>(low)];
        load.call.group.siblings /= stages_among(*plan_, *made.call);
        price.loads.push_back(std::move(load));
      }
    }
    price.hidden = hidden_share(work.stage);
  }

  Price price(const PlanOp& op, const MemoryWork& work) const {
    note("optimizer_memory_bandwidth", device_.copy_bandwidth.provenance);
    return computation(memory_time(work.bytes) * op.times, memory_width);
  }

  Price price(const PlanOp& op, const KernelWork& work) const {
    const bool update = op.part == Category::optimizer;
    const StackSpec& stack = cluster_.stack;
    const double unmeasured =
        !update ? memory_width
                : width_near_own(
                      held_out::this_machine.off,
                      distance_from_own(stack.optimizer_scale.value, stack.own_optimizer_scale),
                      memory_width);
    Price price = computation(kernel_time(op, work) * op.times, kernel_width(work, unmeasured));
    const Passes& passes = work.passes;
    if (passes.least_bytes_per_element > 0)
      price.compute.low =
          price.compute.low.scaled(passes.least_bytes_per_element / passes.bytes_per_element);
    // Held-out data includes no compression kernel, so no coverage is claimed.
    if (!update) price.coverage.reset();
    return price;
  }

  Price price(const PlanOp& op, const ProductWork& work) const {
    const double share =
        read(work.cost, work.share_of_peak);  // read first: sources are listed in this order
    const FlopRate rate = read("matrix_peak", device_.peak_half) * share;
    return computation((Flops(work.flops) / rate) * op.times, products_width);
  }

  Price price(const PlanOp& op, const HostCopy& work) const {
    const HostCopies copies = host_copies(cluster_, device_);
    const auto &down = copies.to_host(work.pinned), &up = copies.to_device(work.pinned);
    const Duration copying = Bytes(work.down_bytes) / down.value + Bytes(work.up_bytes) / up.value;
    if (work.down_bytes > 0) note("host_copies", down.provenance);
    if (work.up_bytes > 0) note("host_copies_to_gpu", up.provenance);
    const Duration waiting = device_.sync_overhead.value.scaled(work.waits);
    if (work.waits > 0)
      note_for(waiting * op.times, "sync_overhead", device_.sync_overhead.provenance);
    return computation((copying + waiting) * op.times, memory_width);
  }

  Price price(const PlanOp& op, const HostUpdate& work) const {
    const Duration each =
        Bytes(work.bytes * work.ranks) / read("host_memory", cluster_.host_memory);
    Price price = computation(each * op.times, host_update_width);
    price.coverage.reset();
    return price;
  }

  Price price(const PlanOp& op, const Call& call) {
    note(call, static_cast<double>(op.times), 1);
    const CollectiveCost& cost = cost_of(call);
    const auto count = static_cast<double>(op.times);
    Price price = of(cost.time * op.times);
    price.wires = {cost.interval.low * op.times, cost.interval.high * op.times};
    price.calibrated = cost.interval.calibrated;
    if (!is_calibrated(cluster_, call.backend, call.group.nodes())) price.coverage.reset();
    price.wire_bytes_per_gpu = cost.traffic.sent_per_rank * count;
    price.network_bytes_per_node = cost.traffic.network_sent_per_node * count;
    price.num_collectives = count;
    if (plan_ != nullptr)
      price.nics =
          nic_use(*plan_, op.rank_class, call, price.network_bytes_per_node, price.time, training_);
    return price;
  }

  Price price(const PlanOp&, const Wait&) const { return {}; }

  // Returns the share of a stage's passes spent in exposed collectives between nodes. An
  // overlapping collective that leaves the node takes turns on the NICs with these. Zero in the
  // flow model, which shares the network itself.
  double turns_on_nics(const PlanOp& op, const Call& beside) {
    if (!plan_ || beside.group.nodes() == 1 || training_.network == NetworkModel::flow) return 0;
    const PipelinePrice& expected = passes_.expected();
    Duration all, between_nodes;
    for (std::size_t position = 0; position < expected.calls.size(); ++position) {
      if (plan_->pipeline.stage_at(static_cast<int>(position)) != op.rank_class) continue;
      for (const CallsMade& made : expected.calls[position]) {
        const Duration time = cost_of(*made.call).time * made.times;
        all += time;
        if (made.call->group.nodes() > 1) between_nodes += time;
      }
    }
    if (all == Duration()) return 0;
    const auto stage = static_cast<std::size_t>(op.rank_class);
    const Duration exposed = expected.exposed[stage];
    return exposed / (expected.forward[stage] + expected.backward[stage] + exposed) *
           (between_nodes / all);
  }

  Price price(const PlanOp& op, const Slowdown& work) {
    const CollectiveCost& cost = cost_of(work.beside);
    if (sources_ != nullptr) note("lost_to_collectives", lost_to_collectives_from());
    const double share = lost_to_collectives(work.beside.group, *device_.rates);
    const double turns = turns_on_nics(op, work.beside);
    const PassesBeside passes =
        plan_ ? passes_beside(*plan_, passes_.expected(), op.rank_class, work.first_only)
              : PassesBeside{passage_.backward.scaled(work.of_backward) * op.times, {}};
    const auto waited = [&](Duration all) { return lost_beside(all, passes.time, turns); };
    const auto until = [&](Duration all) {
      return waited(all) + lost_beside(all, passes.kernels, share);
    };
    const auto lost = [&](Duration each, Duration& earlier) {
      const Duration before = std::exchange(earlier, earlier + each * op.times);
      return until(earlier) - until(before);
    };
    BesideKernels& before = beside_[{op.rank_class, work.first_only}];
    if (!plan_) before = {};
    const Duration waits = waited(before.expected + cost.time * op.times) - waited(before.expected);
    Price price = computation(lost(cost.time, before.expected), memory_width);
    price.wires = {lost(cost.interval.low, before.low), lost(cost.interval.high, before.high)};
    if (waits > Duration()) price.waits_for_nics = waits / price.time;
    price.coverage.reset();
    return price;
  }

  const CollectiveCost& cost_of(const Call& call) {
    return costs_.cost(
        {training_.cluster, call.group, training_.network, training_.expand, call.place.node},
        call.backend, call.op, call.bytes, call.algorithm);
  }

  Duration memory_time(double bytes) const { return Bytes(bytes) / device_.copy_bandwidth.value; }

  // The larger of memory and launch time is a source, and so is the other if it is at least half as
  // long: it changes the time if it errs by a factor of 2.
  Duration kernel_time(const PlanOp& op, const KernelWork& work) const {
    const bool update = op.part == Category::optimizer;
    const Passes& passes = work.passes;
    if (const KernelCurve* measured =
            find_kernel(device_, passes.kernel, passes.bytes_per_element)) {
      note(update ? "optimizer_kernels" : "compression_kernels", measured->provenance);
      return Duration::microseconds(
          interpolate(measured->elements, measured->time_us, work.elements));
    }
    if (update && sources_ != nullptr)
      read_update_kernels(training_.kernels, training_.framework, cluster_.stack, *sources_);
    if (!update && sources_ != nullptr)
      note("compression_kernels", compression_kernels_from(training_.kernels, training_.exchange));
    const Sourced<double>& scale = cluster_.stack.optimizer_scale;
    const bool fused = training_.kernels == Kernels::fused &&
                       (!update || model_of(training_.optimizer()).in_kernels);
    const Sourced<Duration>& launch = fused ? device_.launch_overhead : device_.framework_launch;
    const Duration moving =
        memory_time(passes.bytes_per_element * work.elements).scaled(scale.value);
    const Duration launching =
        launch.value.scaled(passes.launches + passes.launches_per_tensor * work.tensors);
    if (2 * moving >= launching) {
      note("optimizer_memory_bandwidth", device_.copy_bandwidth.provenance);
      if (scale.value != 1) note("optimizer_scale", scale.provenance);
    }
    if (2 * launching >= moving)
      note(fused ? "launch_overhead" : "framework_launch", launch.provenance);
    const Duration waiting =
        device_.sync_overhead.value.scaled(passes.syncs + passes.syncs_per_tensor * work.tensors);
    if (waiting > Duration())
      note_for(waiting * op.times, "sync_overhead", device_.sync_overhead.provenance);
    return std::max(moving, launching) + waiting;
  }

  double kernel_width(const KernelWork& work, double unmeasured) const {
    const KernelCurve* measured =
        find_kernel(device_, work.passes.kernel, work.passes.bytes_per_element);
    return measured ? measured_kernel_width(*measured, work.elements) : unmeasured;
  }

  const TrainingPlan& training_;
  const Cluster& cluster_;
  const Device& device_;
  CollectiveCosts& costs_;
  Passage passage_;
  const PipelinePlan* plan_ = nullptr;  // null without a layout
  Intervals intervals_;
  CostSources* sources_;  // or null
  PassesAtEnds passes_;   // with a layout
  // Collectives priced so far, by stage and by whether they overlap its first segment only.
  struct BesideKernels {
    Duration expected, low, high;
  };
  std::map<std::pair<int, bool>, BesideKernels> beside_;
};

}  // namespace

std::vector<Price> price(const StepPlan& plan, const TrainingPlan& training, CollectiveCosts& costs,
                         Intervals intervals, CostSources* sources) {
  Pricer pricer(plan, training, costs, intervals, sources);
  std::vector<Price> prices;
  prices.reserve(plan.ops.size());
  for (const PlanOp& op : plan.ops) prices.push_back(pricer.price(op));
  return prices;
}

Duration Price::at(End end) const {
  const std::array by_end{time, wires.low, wires.high, compute.low, compute.high};
  return by_end[static_cast<std::size_t>(end)];
}

}  // namespace lambcast
