#include "models/training/plan/micro_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "models/training/plan/averaged_gradients.h"
#include "models/training/plan/gradient_exchange.h"
#include "models/training/plan/gradient_owners.h"
#include "models/training/plan/gradient_reduction.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

// Most tasks in the forward passes of an unrolled step; more would take minutes and gigabytes.
constexpr std::int64_t max_unrolled_tasks = 1'000'000;

class MicroBatches {
 public:
  explicit MicroBatches(StepDraft& draft)
      : draft_(draft),
        operations_(draft.operations),
        reduction_(gradient_reduction(draft.training)) {}

  void write() {
    const auto passes = [&] {
      if (exchanges_each())
        repeat(gas(), [&](std::int64_t times) {
          passes_of(times);
          exchange(times);
        });
      else
        passes_and_sums();
    };
    if (draft_.exchanges_beside())
      weights_beside(passes);
    else
      passes();
    if (draft_.exchanges() && !draft_.exchanges_beside() && !draft_.exchanges_in_hooks() &&
        !exchanges_each())
      exchange(1);
  }

 private:
  std::int64_t gas() const { return draft_.training.batch.gas; }
  double elements() const {
    return static_cast<double>(optimized_parameters(*draft_.training.model));
  }

  void then(StepPart part, std::int64_t times) { operations_.then(0, std::move(part), times); }

  OpId beside_passes(StepPart part, std::int64_t times, std::vector<OpId> after) {
    return operations_.add(0, std::move(part), Stream::communication, std::move(after), times);
  }

  // --- where gradients go ---

  bool exchanges_each() const { return draft_.exchanges() && reduction_.each_micro_batch; }
  // Sites of local steps sum gradients internally, in every step.
  bool in_sites() const { return site_ranks(draft_.training.exchange) > 1; }
  ProcessGroup gradient_ranks() const {
    return in_sites()
               ? shard_groups(all_ranks(draft_.training), site_ranks(draft_.training.exchange))
                     .shard
               : all_ranks(draft_.training);
  }

  // Returns how often a step reduces gradients: after every micro batch, after the last, or never.
  std::int64_t reductions() const {
    const bool sums = draft_.exchanges_in_hooks() || in_sites() ||
                      (draft_.step.sums_gradients() && !draft_.exchanges());
    if (gradient_ranks().ranks == 1 || !sums) return 0;
    return reduction_.each_micro_batch ? gas() : 1;
  }

  // --- passes ---

  void passes_and_sums() {
    const std::int64_t reductions = this->reductions();
    if (reductions == 0 || reduction_.overlapped) {
      repeat(gas() - reductions, [&](std::int64_t times) { passes_of(times); });
      repeat(reductions, [&](std::int64_t times) { passes_beside_sums(times); });
    } else if (reductions == gas()) {
      repeat(gas(), [&](std::int64_t times) {
        passes_of(times);
        sum_gradients(times);
      });
    } else {
      repeat(gas(), [&](std::int64_t times) { passes_of(times); });
      sum_gradients(reductions);
    }
  }

  // Adds micro batches. They are all equal: one represents all, unless every operation is unrolled.
  void repeat(std::int64_t count, const std::function<void(std::int64_t)>& micro_batches) {
    if (!draft_.training.per_block) {
      if (count > 0) micro_batches(count);
      return;
    }
    const std::int64_t most =
        max_unrolled_tasks / std::max<std::int64_t>(1, draft_.training.model->layers);
    if (count > most)
      fail_input(
          {"", 0, "--symmetry"},
          fmt::format(
              "off: {} micro batches of {} blocks are too many operations to simulate one by one",
              count, draft_.training.model->layers),
          fmt::format("up to {} accumulation steps, or auto", most));
    for (std::int64_t i = 0; i < count; ++i) micro_batches(1);
  }

  void passes_of(std::int64_t times) {
    pass(false, times);
    pass(true, times);
  }

  // Adds a pass as a whole or, if everything is unrolled, block by block; backward starts at the
  // last block.
  void pass(bool backward, std::int64_t times) {
    const Category part = backward ? Category::backward : Category::forward;
    const char* name = backward ? "backward" : "forward";
    if (!draft_.training.per_block) return then({name, part, PassWork{backward}}, times);
    const auto blocks = std::max<std::int64_t>(1, draft_.training.model->layers);
    const auto share = [&](std::int64_t i) {
      return static_cast<double>(i) / static_cast<double>(blocks);
    };
    for (std::int64_t i = 0; i < blocks; ++i)
      then({fmt::format("{} block {}", name, backward ? blocks - 1 - i : i), part,
            PassWork{backward, share(i), share(i + 1)}},
           times);
  }

  // Adds a backward pass that overlaps the reduction. A bucket is reduced once the backward pass
  // has produced its gradients, and slows the next part of the pass down. With two buckets the pass
  // continues until it needs the bucket that is being reduced.
  void passes_beside_sums(std::int64_t times) {
    then({"forward", Category::forward, PassWork{}}, times);
    const auto& buckets = reduction_.buckets;
    const auto total =
        static_cast<double>(std::accumulate(buckets.begin(), buckets.end(), std::int64_t{0}));
    std::vector<OpId>& last = operations_.last(0);
    std::vector<OpId> reduced;
    std::size_t sent = 0;  // index of the first operation on the last bucket
    double seen = 0, done = 0;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      const auto elements = static_cast<double>(buckets[i]);
      seen += elements;
      const double until = i + 1 == buckets.size() ? 1 : std::min(1.0, seen / total);
      then({fmt::format("backward to bucket {}", i), Category::backward,
            PassWork{true, done, until}},
           times);
      if (i > 0) slow_down(sent, until - done, times);
      done = until;
      fill_bucket(elements, times);
      sent = operations_.so_far().size();
      if (draft_.exchanges_in_hooks())
        reduced.push_back(exchange_beside(elements / total, times, last));
      else
        reduced.push_back(beside_passes(
            {fmt::format("all_reduce bucket {}", i), Category::gradient_comm, sum_of(elements)},
            times, last));
      if (reduction_.scale_bytes > 0)
        reduced.back() =
            beside_passes({fmt::format("scale and copy bucket {}", i), Category::gradient_comm,
                           MemoryWork{reduction_.scale_bytes * elements}},
                          times, {reduced.back()});
      if (reduction_.double_buffered && i > 0)
        last = {operations_.add(
            0, {fmt::format("wait for bucket {}", i - 1), Category::gradient_comm, Wait{}},
            Stream::compute, {last.front(), reduced[i - 1]})};
    }
    last = {beside_passes({"wait for buckets", Category::gradient_comm, Wait{}}, 1, reduced)};
  }

  // Adds the time that the last operation, a part of the backward pass, loses to the collectives
  // since operation `first`, which overlap it.
  void slow_down(std::size_t first, double of_backward, std::int64_t times) {
    const std::size_t end = operations_.so_far().size() - 1;
    for (std::size_t i = first; i < end; ++i)
      if (const Call* call = std::get_if<Call>(&operations_.so_far()[i].work))
        then(
            {"kernels beside collectives", Category::backward, Slowdown{*call, false, of_backward}},
            times);
  }

  // --- sums and exchanges ---

  void sum_gradients(std::int64_t times) {
    for (const std::int64_t bucket : reduction_.buckets) {
      const auto elements = static_cast<double>(bucket);
      fill_bucket(elements, times);
      then({"all_reduce gradients", Category::gradient_comm, sum_of(elements)}, times);
      then({"scale and copy back", Category::gradient_comm,
            MemoryWork{reduction_.scale_bytes * elements}},
           times);
    }
  }

  void fill_bucket(double elements, std::int64_t times) {
    if (reduction_.fill_bytes > 0)
      then(
          {"flatten bucket", Category::gradient_comm, MemoryWork{reduction_.fill_bytes * elements}},
          times);
  }

  Call sum_of(double elements) const {
    return call(gradient_ranks(), Op::all_reduce, elements * gradient_bytes(draft_.training));
  }

  // Adds an exchange other than an uncompressed all-reduce.
  void exchange(std::int64_t times) {
    for (StepPart& part : gradient_exchange(draft_.training, averaged_gradients(draft_.training)))
      then(std::move(part), times);
  }

  // Adds a share of the exchange on the communication stream; returns its last operation.
  OpId exchange_beside(double share, std::int64_t times, std::vector<OpId> after) {
    std::vector<StepPart> parts =
        draft_.hooks_momenta()
            ? draft_.momenta(all_ranks(draft_.training), share * elements())
            : gradient_exchange(draft_.training, averaged_gradients(draft_.training).part(share));
    for (StepPart& part : parts)
      after = {beside_passes({std::move(part.name), Category::gradient_comm, std::move(part.work)},
                             times, std::move(after))};
    return after.front();
  }

  void weights_beside(const std::function<void()>& passes) {
    const OpId sent = exchange_beside(1, 1, {});
    passes();
    operations_.last(0) = {beside_passes({"wait for weights", Category::gradient_comm, Wait{}}, 1,
                                         {operations_.last(0).front(), sent})};
  }

  StepDraft& draft_;
  StepOperations& operations_;
  GradientReduction reduction_;
};

}  // namespace

void add_micro_batches(StepDraft& draft) { MicroBatches(draft).write(); }

}  // namespace lambcast
