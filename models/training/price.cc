#include "models/training/price.h"

#include <algorithm>
#include <cmath>

#include "models/device/compute.h"
#include "models/training/beside_collectives.h"
#include "models/training/buffers.h"
#include "models/training/pass_price.h"
#include "models/training/slowest_rank.h"

namespace lambcast {
namespace {

// Half the interval of memory-bound work, in logarithms, without a figure of the machine.
constexpr double memory_width = held_out::this_device.off;

// The same of an optimizer's products, which nobody has timed here: a factor of two.
constexpr double products_width = 0.7;

// Whether a figure of the machine itself set the scale.
bool is_own(const Sourced<double>& scale) {
  return scale.provenance.kind == Kind::measured || scale.provenance.kind == Kind::fitted;
}

// `width` is half the interval of the time, in logarithms.
Price computation(Duration time, double width) {
  Price price;
  price.time = time;
  price.shorter = time - time.scaled(std::exp(-width));
  price.longer = time.scaled(std::exp(width)) - time;
  return price;
}

// Both passes over one micro batch.
struct Passage {
  Duration forward, backward;
  ComputeWidth width;
  Basis basis = Basis::rate;
};

Passage passage(const TrainingPlan& training, std::int64_t seq_len) {
  const Device& device = *training.device;
  const StackSpec& stack = training.cluster->stack;
  const MicroBatchTime time = micro_batch_time(device, *training.model, stack.implementation,
                                               training.batch.micro, seq_len);
  // Curves are of half-precision training; fp32 products run at their own peak.
  const bool half = training.config.fp16.enabled.value || training.config.bf16_enabled.value;
  const double scale = stack.compute_scale.value * slowest_over_mean(training) *
                       (half ? 1 : device.peak_half.value / device.peak_single.value);
  const Basis basis = !half ? Basis::rate
                      : time.basis == Basis::this_device && is_own(stack.compute_scale)
                          ? Basis::this_machine
                          : time.basis;
  return {time.forward.scaled(scale), time.backward.scaled(scale),
          compute_width(basis, time.micro_batch_doublings, time.seq_len_doublings), basis};
}

class Pricer {
 public:
  Pricer(const StepPlan& plan, const TrainingPlan& training, CollectiveCosts& costs)
      : training_(training), costs_(costs) {
    if (!plan.pipeline) {
      passage_ = passage(training, plan.seq_len);
      return;
    }
    plan_ = &*plan.pipeline;
    const auto& of_device = training.device->rates->held_out;
    passage_.basis = Basis::rate;
    passage_.width.log = of_device ? of_device->off : held_out::rate.off;
    if (of_device) passage_.width.coverage = of_device->coverage();
    pipeline_ = price_pipeline(*plan_, training, costs, passage_.width.log);
  }

  Price price(const PlanOp& op) {
    return std::visit([&](const auto& work) { return price(op, work); }, op.work);
  }

 private:
  Price price(const PlanOp& op, const PassWork& work) const {
    const Duration whole = (work.backward ? passage_.backward : passage_.forward) * op.times;
    const auto until = [&](double share) { return share == 1 ? whole : whole.scaled(share); };
    Price price = computation(until(work.to) - until(work.from), passage_.width.log);
    price.coverage = passage_.width.coverage;
    price.basis = passage_.basis;
    return price;
  }

  Price price(const PlanOp&, const StageWork& work) const {
    const auto stage = static_cast<std::size_t>(work.stage);
    const int last = plan_->pipeline.chunks + 1;
    const Duration time = boundary(work.stage, work.segment) -
                          (work.segment == 0 ? Duration() : boundary(work.stage, work.segment - 1));
    Price price;
    price.time = time;
    price.shorter = time.scaled(pipeline_.shorter);
    price.longer = time.scaled(pipeline_.longer);
    price.coverage = pipeline_.covered ? passage_.width.coverage : std::nullopt;
    price.calibrated = pipeline_.calibrated;
    price.basis = passage_.basis;
    if (work.segment < last) return price;
    price.wire_bytes_per_gpu = pipeline_.wire_bytes_per_gpu[stage];
    price.network_bytes_per_node = pipeline_.network_bytes_per_node[stage];
    price.num_collectives = static_cast<double>(pipeline_.num_collectives[stage]);
    const parallel::StageTime& of = pipeline_.time.stages[stage];
    StagePasses passes;
    passes.forward = pipeline_.forward[stage];
    passes.backward = pipeline_.backward[stage];
    passes.exposed = pipeline_.exposed[stage] + of.sending;
    passes.communication = pipeline_.communication[stage];
    passes.bubble =
        (plan_->synchronised ? pipeline_.time.makespan : pipeline_.time.longest_stage()) -
        passes.forward - passes.backward - passes.exposed;
    price.passes = passes;
    return price;
  }

  // Where a stretch of a stage's passes ends (StageWork), from the start of the step. Stages that
  // step on their own start when they are ready.
  Duration boundary(int stage, int segment) const {
    const parallel::Pipeline& pipeline = plan_->pipeline;
    const parallel::StageTime& of = pipeline_.time.stages[static_cast<std::size_t>(stage)];
    const Duration start = plan_->synchronised ? Duration() : of.first_start;
    const Duration end = of.last_end - start;
    Duration first = of.first_start - start;
    for (int chunk = 0; chunk < pipeline.chunks; ++chunk)
      first += pipeline_.chunks[static_cast<std::size_t>(pipeline.position(stage, chunk))]
                   .forward.time();
    Duration at = std::min(first, end);
    for (int i = 0; i < std::min(segment, pipeline.chunks); ++i) {
      const parallel::SlotTime& slot =
          of.last_gradient[static_cast<std::size_t>(pipeline.chunks - 1 - i)];
      const Duration ready =
          slot.start + (slot.end - slot.start).scaled(plan_->first_bucket) - start;
      at = std::max(at, std::min(ready, end));
    }
    return segment > pipeline.chunks ? end : at;
  }

  Price price(const PlanOp& op, const MemoryWork& work) const {
    return computation(memory_time(work.bytes) * op.times, memory_width);
  }

  Price price(const PlanOp& op, const KernelWork& work) const {
    const bool own_scale =
        op.part == Category::optimizer && is_own(training_.cluster->stack.optimizer_scale);
    Price price = computation(kernel_time(work) * op.times, kernel_width(work, own_scale));
    // No compression kernel was held out.
    if (op.part != Category::optimizer) price.coverage.reset();
    return price;
  }

  Price price(const PlanOp& op, const ProductWork& work) const {
    const FlopRate rate = training_.device->peak_half.value * work.share_of_peak.value;
    return computation((Flops(work.flops) / rate) * op.times, products_width);
  }

  Price price(const PlanOp& op, const HostCopy& work) const {
    const HostCopies copies = host_copies(*training_.cluster, *training_.device);
    const auto& down = work.pinned ? copies.staged_to_host : copies.pageable_to_host;
    const auto& up = work.pinned ? copies.staged_to_device : copies.pageable_to_device;
    const Duration time = Bytes(work.down_bytes) / down.value + Bytes(work.up_bytes) / up.value +
                          training_.device->sync_overhead.value.scaled(work.waits);
    return computation(time * op.times, memory_width);
  }

  Price price(const PlanOp& op, const Call& call) {
    const CollectiveCost& cost =
        costs_.cost({training_.cluster, call.group, training_.network, training_.expand},
                    call.channel, call.op, call.bytes, call.algorithm);
    const auto count = static_cast<double>(op.times);
    Price price;
    price.time = cost.time * op.times;
    price.shorter = (cost.time - cost.interval.low) * op.times;
    price.longer = (cost.interval.high - cost.time) * op.times;
    price.calibrated = cost.interval.calibrated;
    const auto& calibration = training_.cluster->calibration;
    if (!calibration || calibration->mpi != (call.channel != Channel::nccl)) price.coverage.reset();
    price.wire_bytes_per_gpu = cost.traffic.sent_per_rank * count;
    price.network_bytes_per_node = cost.traffic.network_sent_per_node * count;
    price.num_collectives = count;
    return price;
  }

  Price price(const PlanOp&, const Wait&) const { return {}; }

  Price price(const PlanOp& op, const Slowdown& work) {
    const CollectiveCost& cost =
        costs_.cost({training_.cluster, work.beside.group, training_.network, training_.expand},
                    work.beside.channel, work.beside.op, work.beside.bytes, work.beside.algorithm);
    const double share = lost_to_collectives(work.beside.group, *training_.device->rates);
    Price price = computation((cost.time * op.times).scaled(share), memory_width);
    price.coverage.reset();
    return price;
  }

  Duration memory_time(double bytes, double scale = 1) const {
    return (Bytes(bytes) / training_.device->copy_bandwidth.value).scaled(scale);
  }

  Duration kernel_time(const KernelWork& work) const {
    const Device& device = *training_.device;
    const Passes& passes = work.passes;
    if (const KernelCurve* measured = find_kernel(device, passes.kernel))
      return Duration::microseconds(
          interpolate(measured->elements, measured->time_us, work.elements));
    const double scale = training_.cluster->stack.optimizer_scale.value;
    const Duration launch = training_.kernels == Kernels::fused ? device.launch_overhead.value
                                                                : device.framework_launch.value;
    const double launches = passes.launches + passes.launches_per_tensor * work.tensors;
    const double syncs = passes.syncs + passes.syncs_per_tensor * work.tensors;
    return std::max(memory_time(passes.bytes_per_element * work.elements, scale),
                    launch.scaled(launches)) +
           device.sync_overhead.value.scaled(syncs);
  }

  double kernel_width(const KernelWork& work, bool own_scale) const {
    if (const KernelCurve* measured = find_kernel(*training_.device, work.passes.kernel))
      return measured_kernel_width(*measured, work.elements);
    return own_scale ? held_out::this_machine.off : memory_width;
  }

  const TrainingPlan& training_;
  CollectiveCosts& costs_;
  Passage passage_;
  const PipelinePlan* plan_ = nullptr;  // under a layout
  PipelinePrice pipeline_;
};

}  // namespace

std::vector<Price> price(const StepPlan& plan, const TrainingPlan& training,
                         CollectiveCosts& costs) {
  Pricer pricer(plan, training, costs);
  std::vector<Price> prices;
  prices.reserve(plan.ops.size());
  for (const PlanOp& op : plan.ops) prices.push_back(pricer.price(op));
  return prices;
}

}  // namespace lambcast
