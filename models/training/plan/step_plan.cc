#include "models/training/plan/step_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "models/training/plan/buffers.h"
#include "models/training/plan/compressed_allreduce.h"
#include "models/training/plan/gradient_exchange.h"
#include "models/training/plan/gradient_owners.h"
#include "models/training/plan/gradient_reduction.h"
#include "models/training/plan/layout_plan.h"
#include "models/training/plan/optimizer_state.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

// Most tasks in the forward passes of an unrolled step; more would take minutes and gigabytes.
constexpr std::int64_t max_unrolled_tasks = 1'000'000;

constexpr std::size_t usual_ops = 16;

// Appends operations, by default each after the previous one.
class StepWriter {
 public:
  StepWriter(const TrainingPlan& training, const DistinctStep& step)
      : training_(training),
        step_(step),
        levels_(levels_of(training.exchange, all_ranks(training))) {
    plan_.seq_len = step.seq_len;
    plan_.ops.reserve(usual_ops);
  }

  StepPlan write() {
    micro_batches();
    overflow_flag();
    if (step_.kind != StepKind::dry_run) optimizer();
    if (compresses(step_.kind) && training_.gpus > 1 && !hooks_momenta()) compress();
    if (training_.shards() > 1) gather_weights();
    return std::move(plan_);
  }

 private:
  OpId add(std::string name, Category part, Stream stream, Work work, std::int64_t times,
           std::vector<OpId> after) {
    plan_.ops.push_back({std::move(name), part, stream, std::move(work), times, std::move(after)});
    return static_cast<OpId>(plan_.ops.size() - 1);
  }

  void then(std::string name, Category part, Stream stream, Work work, std::int64_t times = 1) {
    const bool first = plan_.ops.empty();
    last_ = add(std::move(name), part, stream, std::move(work), times,
                first ? std::vector<OpId>{} : std::vector<OpId>{last_});
  }

  void then(StepPart part, std::int64_t times) {
    const bool call = std::holds_alternative<Call>(part.work);
    then(std::move(part.name), part.part, call ? Stream::communication : Stream::compute,
         std::move(part.work), times);
  }

  void on_wire(std::string name, Call call, std::int64_t times = 1) {
    then(std::move(name), Category::gradient_comm, Stream::communication, std::move(call), times);
  }

  // Full-precision steps sum gradients; the others exchange momenta, or nothing.
  bool sums_gradients() const { return step_.sums_gradients(); }

  bool hooks_momenta() const { return exchanges_momenta_in_hooks(training_, step_.kind); }

  // Whether sites of local steps sum gradients internally, in every step.
  bool in_sites() const { return site_ranks(training_.exchange) > 1; }
  ProcessGroup gradient_ranks() const {
    return in_sites() ? shard_groups(all_ranks(training_), site_ranks(training_.exchange)).shard
                      : all_ranks(training_);
  }

  void micro_batches() {
    const GradientReduction reduction = gradient_reduction(training_);
    const std::int64_t gas = training_.batch.gas;
    const bool exchanged = sums_gradients() && exchanges_gradients(training_);
    const bool hooked = (exchanged && training_.exchange.is_overlapped()) || hooks_momenta();
    const bool sums = hooked || (sums_gradients() && !exchanged);
    const bool none = gradient_ranks().ranks == 1 || (!sums && !in_sites());
    const std::int64_t reducing = none ? 0 : reduction.each_micro_batch ? gas : 1;
    const auto plain = [&](std::int64_t times) {
      pass(false, times);
      pass(true, times);
    };
    const auto reduced = [&](std::int64_t times) {
      plain(times);
      reduce_gradients(reduction, times);
    };
    const auto overlapped = [&](std::int64_t times) {
      overlap_reduction(reduction, hooked, times);
    };
    const bool beside = exchanged && travels_beside(training_.exchange);
    const auto passes = [&] {
      if (beside && !in_sites()) {
        repeat(gas, plain);
      } else if (exchanged && reduction.each_micro_batch) {  // ZeRO's, which has no sites here
        repeat(gas, [&](std::int64_t times) {
          plain(times);
          exchange(times);
        });
      } else if (exchanged && !in_sites() && !hooked) {
        repeat(gas, plain);
        exchange(1);
      } else if (reduction.overlapped) {
        repeat(gas - reducing, plain);
        repeat(reducing, overlapped);
      } else if (reducing == gas) {
        repeat(gas, reduced);
      } else {
        repeat(gas, plain);
        if (reducing > 0) reduce_gradients(reduction, reducing);
      }
    };
    if (beside)
      weights_beside(passes);
    else
      passes();
    if (exchanged && in_sites() && !beside) exchange(1);
    if (training_.wrapper() == Wrapper::bf16)
      optimizer_pass("add up gradients in fp32", bf16_accumulation_passes(),
                     static_cast<double>(optimized_parameters(*training_.model)),
                     static_cast<double>(optimized_tensor_count(*training_.model)), gas);
  }

  // Adds micro batches. They are all equal: one represents all, unless every operation is unrolled.
  void repeat(std::int64_t count, const std::function<void(std::int64_t)>& micro_batches) {
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

  // Adds a pass as a whole or, if everything is unrolled, block by block; backward starts at the
  // last block.
  void pass(bool backward, std::int64_t times) {
    const Category part = backward ? Category::backward : Category::forward;
    const char* name = backward ? "backward" : "forward";
    if (!training_.per_block) return then(name, part, Stream::compute, PassWork{backward}, times);
    const auto blocks = std::max<std::int64_t>(1, training_.model->layers);
    const auto share = [&](std::int64_t i) {
      return static_cast<double>(i) / static_cast<double>(blocks);
    };
    for (std::int64_t i = 0; i < blocks; ++i)
      then(fmt::format("{} block {}", name, backward ? blocks - 1 - i : i), part, Stream::compute,
           PassWork{backward, share(i), share(i + 1)}, times);
  }

  // Adds a backward pass that overlaps the reduction. A bucket is reduced once the backward pass
  // has produced its gradients. With two buckets the pass continues until it needs the bucket that
  // is being reduced.
  void overlap_reduction(const GradientReduction& reduction, bool hooked, std::int64_t times) {
    then("forward", Category::forward, Stream::compute, PassWork{}, times);
    const auto& buckets = reduction.buckets;
    const auto total =
        static_cast<double>(std::accumulate(buckets.begin(), buckets.end(), std::int64_t{0}));
    std::vector<OpId> reduced;
    double seen = 0, done = 0;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      const auto elements = static_cast<double>(buckets[i]);
      seen += elements;
      const double until = i + 1 == buckets.size() ? 1 : std::min(1.0, seen / total);
      then(fmt::format("backward to bucket {}", i), Category::backward, Stream::compute,
           PassWork{true, done, until}, times);
      done = until;
      fill_bucket(reduction, elements, times);
      if (hooked)
        reduced.push_back(exchange_beside(elements / total, times, {last_}));
      else
        reduced.push_back(add(fmt::format("all_reduce bucket {}", i), Category::gradient_comm,
                              Stream::communication, sum_of(elements), times, {last_}));
      if (reduction.scale_bytes > 0)
        reduced.back() = add(fmt::format("scale and copy bucket {}", i), Category::gradient_comm,
                             Stream::communication, MemoryWork{reduction.scale_bytes * elements},
                             times, {reduced.back()});
      if (reduction.double_buffered && i > 0)
        last_ = add(fmt::format("wait for bucket {}", i - 1), Category::gradient_comm,
                    Stream::compute, Wait{}, 1, {last_, reduced[i - 1]});
    }
    last_ =
        add("wait for buckets", Category::gradient_comm, Stream::communication, Wait{}, 1, reduced);
  }

  void reduce_gradients(const GradientReduction& reduction, std::int64_t times) {
    for (const std::int64_t bucket : reduction.buckets) {
      const auto elements = static_cast<double>(bucket);
      fill_bucket(reduction, elements, times);
      on_wire("all_reduce gradients", sum_of(elements), times);
      then("scale and copy back", Category::gradient_comm, Stream::compute,
           MemoryWork{reduction.scale_bytes * elements}, times);
    }
  }

  void fill_bucket(const GradientReduction& reduction, double elements, std::int64_t times) {
    if (reduction.fill_bytes == 0) return;
    then("flatten bucket", Category::gradient_comm, Stream::compute,
         MemoryWork{reduction.fill_bytes * elements}, times);
  }

  Call sum_of(double elements) const {
    return {gradient_ranks(), Backend::nccl, Op::all_reduce,
            Bytes(elements * gradient_bytes(training_))};
  }

  void gather_weights() {
    const double element = bytes_of(training_.recipe.precision.weights);
    for (const std::int64_t elements : flat_groups(training_))
      on_wire("all_gather weights", {all_ranks(training_), Backend::nccl, Op::all_gather,
                                     Bytes(static_cast<double>(elements) * element)});
  }

  // Adds an exchange other than an uncompressed all-reduce.
  void exchange(std::int64_t times) {
    for (StepPart& part : gradient_exchange(training_, averaged_gradients(training_)))
      then(std::move(part), times);
  }

  // Adds a share of the exchange on the communication stream; returns its last operation.
  OpId exchange_beside(double share, std::int64_t times, std::vector<OpId> after) {
    std::vector<StepPart> parts =
        hooks_momenta()
            ? momenta(padded_share(
                  levels_, share * static_cast<double>(optimized_parameters(*training_.model))))
            : gradient_exchange(training_, averaged_gradients(training_).part(share));
    for (StepPart& part : parts)
      after = {add(std::move(part.name), Category::gradient_comm, Stream::communication,
                   std::move(part.work), times, std::move(after))};
    return after.front();
  }

  // Exchanges weights during the passes, which do not change them.
  void weights_beside(const std::function<void()>& passes) {
    const OpId sent = exchange_beside(1, 1, {});
    passes();
    last_ = add("wait for weights", Category::gradient_comm, Stream::communication, Wait{}, 1,
                {last_, sent});
  }

  // Adds the overflow flag, if the wrapper always checks all ranks or if ranks sum no gradients.
  void overflow_flag() {
    const Wrapper wrapper = training_.wrapper();
    if (training_.gpus == 1 || !is_fp16(wrapper)) return;
    const auto ask = [&](const char* name, double bytes) {
      on_wire(name, call(all_ranks(training_), Op::all_reduce, bytes));
    };
    if (asks_all_for_overflow(wrapper, training_.optimizer(), training_.kernels,
                              training_.recipe.engine)) {
      ask("all_reduce overflow flag", 4);
      ask("barrier", 0);
    } else if (!sums_gradients() && !in_sites()) {
      ask("all_reduce overflow flag", 1);
    }
  }

  void optimizer() {
    const std::vector<GroupSize> groups = optimizer_groups(*training_.model);
    double all = 0, tensors = 0;
    for (const GroupSize& group : groups) {
      all += static_cast<double>(group.elements);
      tensors += static_cast<double>(group.tensors);
    }
    const Wrapper wrapper = training_.wrapper();
    const double elements = all / training_.shards();
    const double seen = is_flat(wrapper) ? static_cast<double>(groups.size()) : tensors;
    const Kernels kernels = training_.kernels;
    if (wrapper == Wrapper::bf16) {
      const bool clips = training_.recipe.gradient_clipping > 0;
      optimizer_pass("norm, clip and clear gradients", bf16_gradient_passes(clips), all, tensors);
      optimizer_pass("copy weights", bf16_weight_passes(), elements, seen);
    } else if (wrapper != Wrapper::none) {
      const Passes passes =
          wrapper_passes(wrapper, training_.optimizer(), kernels, training_.recipe.engine);
      optimizer_pass("unscale, clip and copy", passes, elements, is_fp16(wrapper) ? tensors : seen);
    }
    optimizer_pass(
        "optimizer",
        update_passes(training_.optimizer(), step_.kind, kernels,
                      decaying_share(groups, training_.recipe.weight_decay > 0, is_flat(wrapper))),
        elements, seen);
    const UpdateDivision division{.shards = training_.shards(), .flat = training_.flattens()};
    const UpdateExtras extras =
        update_extras(training_.optimizer(), step_.kind, kernels, *training_.model, division,
                      gradient_bytes(training_), training_.recipe.projection);
    for (const KernelWork& work : extras.kernels)
      optimizer_pass("kernels of the small space", work.passes, work.elements, work.tensors);
    for (const ProductWork& product : extras.products)
      then("products of the optimizer", Category::optimizer, Stream::compute, product, 1);
    for (const SharedCall& shared : extras.calls)
      on_wire(shared.name, {all_ranks(training_), Backend::nccl, shared.op, shared.bytes},
              shared.times);
  }

  void optimizer_pass(const char* name, const Passes& passes, double elements, double tensors,
                      std::int64_t times = 1) {
    then(name, Category::optimizer, Stream::compute, KernelWork{passes, elements, tensors}, times);
  }

  // Adds compressed_allreduce of all buffers. Equal buffers are one operation unless everything is
  // unrolled.
  void compress() {
    const std::vector<std::int64_t> buffers = compressed_buffers(training_);
    if (training_.expand) {
      for (const std::int64_t padded : buffers) compress_buffer(padded, 1);
      return;
    }
    std::map<std::int64_t, std::int64_t, std::greater<>> calls;
    for (const std::int64_t padded : buffers) ++calls[padded];
    for (const auto& [padded, times] : calls) compress_buffer(padded, times);
  }

  void compress_buffer(std::int64_t padded, std::int64_t times) {
    for (StepPart& part : momenta(padded)) then(std::move(part), times);
  }

  std::vector<StepPart> momenta(std::int64_t padded) const {
    return compressed_allreduce(training_.optimizer(), training_.backend(), training_.kernels,
                                levels_, padded, gradient_bytes(training_));
  }

  const TrainingPlan& training_;
  const DistinctStep& step_;
  ExchangeLevels levels_;
  StepPlan plan_;
  OpId last_ = 0;
};

}  // namespace

std::string_view name_of(Stream stream) {
  return stream == Stream::compute ? "compute" : "communication";
}

StepPlan plan_step(const TrainingPlan& training, const DistinctStep& step) {
  if (training.parallelism) return plan_layout_step(training, step);
  return StepWriter(training, step).write();
}

}  // namespace lambcast
