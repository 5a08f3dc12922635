#include "models/training/step.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "models/device/compute.h"
#include "models/training/gradient_reduction.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

using deepspeed::CommBackend;
using deepspeed::OptimizerType;

// Tasks of the forward passes of a step that is written out; more take minutes and gigabytes.
constexpr std::int64_t max_unrolled_tasks = 1'000'000;

// Half the interval of memory-bound work, in logarithms, without a figure of the machine.
constexpr double memory_width = held_out::this_device.off;

// Whether a figure of the machine itself set the scale.
bool is_own(const Sourced<double>& scale) {
  return scale.provenance.kind == Kind::measured || scale.provenance.kind == Kind::fitted;
}

class StepBuilder {
 public:
  StepBuilder(const Training& training, const Stage& stage, CollectiveCosts& costs)
      : training_(training),
        stage_(stage),
        costs_(costs),
        group_{training.cluster.get(), training.gpus, training.gpus_per_node, training.network,
               training.expand},
        gpu_(run_.graph.add_resource("compute")),
        wire_(run_.graph.add_resource("communication")) {}

  StepRun build_and_run() {
    micro_batches();
    if (!sums_gradients()) overflow_flag();
    optimizer();
    if (stage_.kind == StepKind::compression && training_.gpus > 1) compress();
    if (training_.shards() > 1) gather_weights();
    // Collectives come with their time, so the graph itself needs no network.
    const Topology none;
    run_.timeline = run(run_.graph, *make_network(NetworkModel::analytic, none));
    account();
    return std::move(run_);
  }

 private:
  // --- durations ---

  Duration memory_time(double bytes, double scale = 1) const {
    return (Bytes(bytes) / training_.device->copy_bandwidth.value).scaled(scale);
  }

  Duration passes_time(const Passes& passes, double elements, double tensors) const {
    const Device& device = *training_.device;
    if (const KernelCurve* measured = find_kernel(device, passes.kernel))
      return Duration::microseconds(interpolate(measured->elements, measured->time_us, elements));
    const double scale = training_.cluster->stack.optimizer_scale.value;
    const Duration launch = training_.kernels == Kernels::fused ? device.launch_overhead.value
                                                                : device.framework_launch.value;
    const double launches = passes.launches + passes.launches_per_tensor * tensors;
    const double syncs = passes.syncs + passes.syncs_per_tensor * tensors;
    return std::max(memory_time(passes.bytes_per_element * elements, scale),
                    launch.scaled(launches)) +
           device.sync_overhead.value.scaled(syncs);
  }

  // Half the interval, in logarithms.
  double passes_width(const Passes& passes, double elements, bool own_scale) const {
    if (const KernelCurve* measured = find_kernel(*training_.device, passes.kernel))
      return measured_kernel_width(*measured, elements);
    return own_scale ? held_out::this_machine.off : memory_width;
  }

  // --- tasks, each after the one before ---

  // `width` is half the interval of the duration, in logarithms.
  void compute(std::string name, Category category, Duration duration, double width) {
    widen(duration, width);
    last_ = run_.graph.add_compute(std::move(name), category, gpu_, duration, after_last());
    has_last_ = true;
  }

  void widen(Duration duration, double width) {
    compute_shorter_ += duration - duration.scaled(std::exp(-width));
    compute_longer_ += duration.scaled(std::exp(width)) - duration;
  }

  void on_wire(std::string name, Duration duration) {
    last_ = run_.graph.add_compute(std::move(name), Category::gradient_comm, wire_, duration,
                                   after_last());
    has_last_ = true;
  }

  std::vector<TaskId> after_last() const {
    return has_last_ ? std::vector<TaskId>{last_} : std::vector<TaskId>{};
  }

  // Counts so many equal collectives and returns their time.
  Duration collective(Channel channel, Op op, double bytes, std::int64_t times = 1,
                      const std::string& algorithm = {}) {
    const CollectiveCost& cost = costs_.cost(group_, channel, op, Bytes(bytes), algorithm);
    const auto count = static_cast<double>(times);
    run_.metrics.wire_bytes_per_gpu += cost.traffic.sent_per_rank * count;
    run_.metrics.network_bytes_per_node += cost.traffic.network_sent_per_node * count;
    run_.metrics.num_collectives += times;
    run_.metrics.calibrated &= cost.interval.calibrated;
    const auto& calibration = training_.cluster->calibration;
    if (!calibration || calibration->mpi != (channel != Channel::nccl))
      run_.metrics.coverage.reset();
    shorter_ += (cost.time - cost.interval.low) * times;
    longer_ += (cost.interval.high - cost.time) * times;
    return cost.time * times;
  }

  // --- phases of the step ---

  void micro_batches() {
    const MicroBatchTime time = micro_batch_time(*training_.device, *training_.model,
                                                 training_.cluster->stack.implementation,
                                                 training_.batch.micro, stage_.seq_len);
    // Curves are of half-precision training; fp32 products run at their own peak.
    const bool half = training_.config.fp16.enabled.value || training_.config.bf16_enabled.value;
    const Device& device = *training_.device;
    const Sourced<double>& of_machine = training_.cluster->stack.compute_scale;
    const double scale =
        of_machine.value * (half ? 1 : device.peak_half.value / device.peak_single.value);
    const Basis basis = !half ? Basis::rate
                        : time.basis == Basis::this_device && is_own(of_machine)
                            ? Basis::this_machine
                            : time.basis;
    const ComputeWidth width =
        compute_width(basis, time.micro_batch_doublings, time.seq_len_doublings);
    run_.metrics.basis = basis;
    run_.metrics.coverage = width.coverage;
    const Duration forward = time.forward.scaled(scale), backward = time.backward.scaled(scale);
    const GradientReduction reduction = gradient_reduction(training_);
    const std::int64_t gas = training_.batch.gas;
    const std::int64_t reducing = !sums_gradients() || training_.gpus == 1 ? 0
                                  : reduction.each_micro_batch             ? gas
                                                                           : 1;
    const auto plain = [&](std::int64_t times) {
      pass("forward", Category::forward, forward * times, width.log);
      pass("backward", Category::backward, backward * times, width.log);
    };
    const auto reduced = [&](std::int64_t times) {
      plain(times);
      reduce_gradients(reduction, times);
    };
    const auto overlapped = [&](std::int64_t times) {
      overlapped_micro_batch(reduction, forward * times, backward * times, width.log, times);
    };
    if (reduction.overlapped) {
      repeat(gas - reducing, plain);
      repeat(reducing, overlapped);
    } else if (reducing == gas) {
      repeat(gas, reduced);
    } else {
      repeat(gas, plain);
      if (reducing > 0) reduce_gradients(reduction, reducing);
    }
    if (training_.wrapper() == deepspeed::Wrapper::bf16)
      optimizer_pass("add up gradients in fp32", bf16_accumulation_passes(),
                     static_cast<double>(optimized_parameters(*training_.model)),
                     static_cast<double>(optimized_tensor_count(*training_.model)),
                     training_.batch.gas);
  }

  // All micro batches are alike: unless everything is written out, one stands for them.
  template <typename MicroBatches>
  void repeat(std::int64_t count, MicroBatches micro_batches) {
    if (!training_.per_block) {
      if (count > 0) micro_batches(count);
      return;
    }
    const std::int64_t most =
        max_unrolled_tasks / std::max<std::int64_t>(1, training_.model->layers);
    if (count > most)
      fail_input({"", 0, "--symmetry"},
                 fmt::format("off: {} micro batches of {} blocks are too many one by one", count,
                             training_.model->layers),
                 fmt::format("up to {} accumulation steps, or auto", most));
    for (std::int64_t i = 0; i < count; ++i) micro_batches(1);
  }

  // All blocks of a pass; a task each, together exactly `total`, where everything is written out.
  void pass(const char* name, Category category, Duration total, double width) {
    if (!training_.per_block) return compute(name, category, total, width);
    const auto count = std::max<std::int64_t>(1, training_.model->layers);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t from = total.ps() / count * i, to = total.ps() / count * (i + 1);
      compute(fmt::format("{} block {}", name, i), category,
              Duration::picoseconds(i + 1 == count ? total.ps() - from : to - from), width);
    }
  }

  // A bucket is reduced once the backward pass has made its share of the gradients, while the pass
  // goes on; with two buckets it goes on until it would need the one that is on its way.
  void overlapped_micro_batch(const GradientReduction& reduction, Duration forward,
                              Duration backward, double width, std::int64_t times) {
    compute("forward", Category::forward, forward, width);
    const auto& buckets = reduction.buckets;
    const auto total =
        static_cast<double>(std::accumulate(buckets.begin(), buckets.end(), std::int64_t{0}));
    std::vector<TaskId> reduced;
    Duration done;
    double seen = 0;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      const auto elements = static_cast<double>(buckets[i]);
      seen += elements;
      const Duration until =
          i + 1 == buckets.size() ? backward : backward.scaled(std::min(1.0, seen / total));
      compute(fmt::format("backward to bucket {}", i), Category::backward, until - done, width);
      done = until;
      fill_bucket(reduction, elements, times);
      reduced.push_back(run_.graph.add_compute(fmt::format("all_reduce bucket {}", i),
                                               Category::gradient_comm, wire_,
                                               all_reduce(elements, times), {last_}));
      if (const Duration time = memory_time(reduction.scale_bytes * elements) * times;
          time > Duration()) {
        widen(time, memory_width);
        reduced.back() =
            run_.graph.add_compute(fmt::format("scale and copy bucket {}", i),
                                   Category::gradient_comm, wire_, time, {reduced.back()});
      }
      if (reduction.double_buffered && i > 0)
        last_ = run_.graph.add_compute(fmt::format("wait for bucket {}", i - 1),
                                       Category::gradient_comm, gpu_, Duration(),
                                       {last_, reduced[i - 1]});
    }
    last_ = run_.graph.add_compute("wait for buckets", Category::gradient_comm, wire_, Duration(),
                                   reduced);
  }

  void reduce_gradients(const GradientReduction& reduction, std::int64_t times) {
    for (const std::int64_t bucket : reduction.buckets) {
      const auto elements = static_cast<double>(bucket);
      fill_bucket(reduction, elements, times);
      on_wire("all_reduce gradients", all_reduce(elements, times));
      compute("scale and copy back", Category::gradient_comm,
              memory_time(reduction.scale_bytes * elements) * times, memory_width);
    }
  }

  void fill_bucket(const GradientReduction& reduction, double elements, std::int64_t times) {
    if (reduction.fill_bytes == 0) return;
    compute("flatten bucket", Category::gradient_comm,
            memory_time(reduction.fill_bytes * elements) * times, memory_width);
  }

  Duration all_reduce(double elements, std::int64_t times) {
    return collective(Channel::nccl, Op::all_reduce, elements * gradient_bytes(training_), times);
  }

  // Full-precision steps sum gradients; the others exchange momenta, or nothing.
  bool sums_gradients() const {
    return stage_.kind == StepKind::uniform || stage_.kind == StepKind::warmup;
  }

  void gather_weights() {
    const double element = deepspeed::bytes_of(deepspeed::weight_data_type(training_.config));
    for (const std::int64_t elements : flat_groups(training_))
      on_wire("all_gather weights",
              collective(Channel::nccl, Op::all_gather, static_cast<double>(elements) * element));
  }

  void overflow_flag() {
    if (training_.gpus == 1 || !training_.config.fp16.enabled.value) return;
    on_wire("all_reduce overflow flag", collective(Channel::nccl, Op::all_reduce, 1));
  }

  void optimizer() {
    const auto all = static_cast<double>(optimized_parameters(*training_.model));
    const auto tensors = static_cast<double>(optimized_tensor_count(*training_.model));
    const deepspeed::Wrapper wrapper = training_.wrapper();
    const double elements = all / training_.shards();
    const double seen = deepspeed::is_flat(wrapper)
                            ? static_cast<double>(optimizer_groups(*training_.model).size())
                            : tensors;
    const Kernels kernels = training_.kernels;
    if (wrapper == deepspeed::Wrapper::bf16) {
      const bool clips = training_.config.gradient_clipping.value > 0;
      optimizer_pass("norm, clip and clear gradients", bf16_gradient_passes(clips), all, tensors);
      optimizer_pass("copy weights", bf16_weight_passes(), elements, seen);
    } else if (wrapper != deepspeed::Wrapper::none) {
      optimizer_pass("unscale, clip and copy", wrapper_passes(training_.optimizer(), kernels),
                     elements, seen);
    }
    optimizer_pass("optimizer", update_passes(training_.optimizer(), stage_.kind, kernels),
                   elements, seen);
  }

  void optimizer_pass(const char* name, const Passes& passes, double elements, double tensors,
                      std::int64_t times = 1) {
    compute(name, Category::optimizer, passes_time(passes, elements, tensors) * times,
            passes_width(passes, elements, is_own(training_.cluster->stack.optimizer_scale)));
  }

  // compressed_allreduce over all buffers. Equal buffers are one task unless everything is
  // expanded.
  void compress() {
    run_.metrics.coverage.reset();  // no compression kernel was held out
    std::map<std::int64_t, std::int64_t, std::greater<>> calls;
    const std::vector<std::int64_t> buffers = compressed_buffers(training_);
    if (training_.expand) {
      for (const std::int64_t padded : buffers) compress_buffer(padded, 1);
      return;
    }
    for (const std::int64_t padded : buffers) ++calls[padded];
    for (const auto& [padded, times] : calls) compress_buffer(padded, times);
  }

  void compress_buffer(std::int64_t padded, std::int64_t times) {
    const double n = training_.gpus;
    const auto elements = static_cast<double>(padded);
    const double signs = elements / 8;
    const CommBackend backend = training_.config.optimizer->comm_backend_name.value;
    const CompressionPasses passes =
        compression_passes(training_.optimizer(), backend, training_.kernels, training_.gpus);
    const auto kernels = [&](const char* name, Category category, const Passes& of) {
      compute(name, category, passes_time(of, elements, 1) * times,
              passes_width(of, elements, false));
    };
    const auto wire = [&](const char* name, Op op, double bytes,
                          const std::string& algorithm = {}) {
      on_wire(name, collective(channel(), op, bytes, times, algorithm));
    };
    kernels("compress", Category::compress, passes.worker);
    stage_through_host(signs, signs, 2 * signs, 2 * n + 5, times);
    wire("all_to_all signs", Op::all_to_all, signs, is_mpi() ? "deepspeed_gather" : "");
    wire("all_gather scales", Op::all_gather, 4 * n);
    kernels("average and compress", Category::compress, passes.server);
    stage_through_host(signs, signs + signs / n, signs + signs / n, 8, times);
    wire("all_gather signs", Op::all_gather, signs);
    wire("all_gather server scales", Op::all_gather, 4 * n);
    kernels("decompress", Category::decompress, passes.decode);
  }

  bool is_mpi() const {
    return training_.config.optimizer->comm_backend_name.value == CommBackend::mpi;
  }

  Channel channel() const {
    if (!is_mpi()) return Channel::nccl;
    return training_.config.optimizer->cuda_aware.value ? Channel::mpi_device : Channel::mpi_host;
  }

  // What the mpi backend copies around a phase: numpy arrays when not cuda_aware (`down` and `up`
  // bytes in so many copies, each waited for), or MPI's own staging of what every rank sends in a
  // phase, (n-1)/n of the signs, down and up again.
  void stage_through_host(double signs, double down, double up, double copies, std::int64_t times) {
    if (!is_mpi()) return;
    const HostCopies copy = host_copies(*training_.cluster, *training_.device);
    Duration time;
    if (training_.config.optimizer->cuda_aware.value) {
      const Bytes sent(signs * (training_.gpus - 1) / training_.gpus);
      time = sent / copy.staged_to_host.value + sent / copy.staged_to_device.value;
    } else {
      time = Bytes(down) / copy.pageable_to_host.value + Bytes(up) / copy.pageable_to_device.value +
             training_.device->sync_overhead.value.scaled(copies);
    }
    compute("copy through host", Category::gradient_comm, time * times, memory_width);
  }

  // --- account ---

  void account() {
    StepMetrics& metrics = run_.metrics;
    const auto& tasks = run_.graph.tasks();
    for (TaskId task = 0; task < tasks.size(); ++task) {
      const Duration took = run_.timeline.spans[task].end - run_.timeline.spans[task].begin;
      sum_of(tasks[task].category) += took;
    }
    metrics.step_time = run_.timeline.end.since_start();
    metrics.exposed_comm = exposed_time(run_.graph, run_.timeline, {Category::gradient_comm},
                                        {Category::forward, Category::backward, Category::compress,
                                         Category::decompress, Category::optimizer});
    // What hides behind the backward pass shortens no step; longer it may show.
    metrics.step_time_low =
        metrics.step_time - together(std::min(shorter_, metrics.exposed_comm), compute_shorter_);
    metrics.step_time_high = metrics.step_time + together(longer_, compute_longer_);
  }

  static Duration together(Duration communication, Duration compute) {
    return Duration::seconds(std::hypot(communication.s(), compute.s()));
  }

  Duration& sum_of(Category category) {
    StepMetrics& metrics = run_.metrics;
    switch (category) {
      case Category::forward:
        return metrics.forward;
      case Category::backward:
        return metrics.backward;
      case Category::gradient_comm:
        return metrics.gradient_comm;
      case Category::compress:
        return metrics.compress;
      case Category::decompress:
        return metrics.decompress;
      case Category::optimizer:
        return metrics.optimizer;
      case Category::bubble:
        break;
    }
    return metrics.bubble;
  }

  const Training& training_;
  const Stage& stage_;
  CollectiveCosts& costs_;
  CollectiveCosts::Group group_;
  StepRun run_;
  ResourceId gpu_;
  ResourceId wire_;
  // What all collectives, and all computations, may take less or more.
  Duration shorter_, longer_, compute_shorter_, compute_longer_;
  TaskId last_ = 0;
  bool has_last_ = false;
};

}  // namespace

StepRun run_step(const Training& training, const Stage& stage, CollectiveCosts& costs) {
  return StepBuilder(training, stage, costs).build_and_run();
}

}  // namespace lambcast
