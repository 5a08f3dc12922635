#include "experiments/output/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "experiments/output/pipeline_trace.h"
#include "experiments/output/trace_args.h"
#include "experiments/output/trace_events.h"
#include "models/training/plan/distinct_steps.h"
#include "models/training/run/step.h"
#include "sim/base/json.h"

namespace lambcast {
namespace {

class StepTrace {
 public:
  StepTrace(TrainingPlan training, const DistinctStep& step, CollectiveCosts& costs, int process,
            Json& events)
      : training_(std::move(training)),
        costs_(costs),
        step_(run_step(training_, step, costs)),
        events_(process,
                fmt::format("{} step ({} of the run)", lambcast::name_of(step.kind), step.steps),
                static_cast<std::size_t>(step_.plan.rank_classes), events),
        has_slots_(has_traced_slots(step_.plan)) {}

  void write() {
    ends_.resize(step_.plan.ops.size(), -1);
    for (std::size_t i = 0; i < step_.plan.ops.size(); ++i) write_op(i);
    if (has_slots_) trace_pipeline(training_, step_, costs_, events_);
    write_micro_batches();
  }

 private:
  // Collects the slices that an operation waits for. Operations that take no time are replaced by
  // their predecessors.
  void add_sources(OpId op, std::vector<int>& sources) const {
    for (const OpId before : step_.plan.ops[op].after) {
      if (ends_[before] >= 0)
        sources.push_back(ends_[before]);
      else
        add_sources(before, sources);
    }
  }

  void write_op(std::size_t index) {
    const PlanOp& op = step_.plan.ops[index];
    const Span& span = step_.execution.timeline.spans[index];
    if (span.begin == span.end || (has_slots_ && std::holds_alternative<StageWork>(op.work)))
      return;
    const Price& price = step_.prices[index];
    Json args = TraceArgs(training_, costs_).of(op.work);
    if (op.times > 1) args["times"] = op.times;
    const Interval ends = interval_of(price.time, price.wires, price.compute);
    args["low_us"] = ends.low.us();
    args["high_us"] = ends.high.us();
    if (price.wire_bytes_per_gpu.value() > 0)
      args["wire_bytes_per_gpu"] = whole_bytes(price.wire_bytes_per_gpu.value());
    const std::size_t thread =
        events_.thread(op.stream == Stream::communication ? Lane::communication : Lane::compute,
                       static_cast<std::size_t>(op.rank_class));
    ends_[index] = events_.add({op.name, std::string(lambcast::name_of(op.part)), thread,
                                span.begin.since_start(), span.end.since_start(), std::move(args)});
    std::vector<int> sources;
    add_sources(static_cast<OpId>(index), sources);
    for (const int source : sources)
      if (events_.thread_of(source) != thread) events_.arrow(source, ends_[index]);
  }

  // Draws each micro batch, from its first forward layer to its last backward layer, if the plan
  // lists its layers.
  void write_micro_batches() {
    std::vector<std::pair<Duration, Duration>> found;
    for (std::size_t i = 0; i < step_.plan.ops.size(); ++i) {
      const auto* pass = std::get_if<PassWork>(&step_.plan.ops[i].work);
      if (!pass) continue;
      const Span& span = step_.execution.timeline.spans[i];
      if (!pass->backward && pass->from == 0)
        found.emplace_back(span.begin.since_start(), span.end.since_start());
      if (!found.empty()) found.back().second = span.end.since_start();
    }
    if (static_cast<std::int64_t>(found.size()) != training_.batch.gas) return;
    for (std::size_t i = 0; i < found.size(); ++i)
      events_.add({fmt::format("micro batch {}", i),
                   "micro batch",
                   events_.thread_of_micro_batches(),
                   found[i].first,
                   found[i].second,
                   {{"samples", training_.batch.micro}}});
  }

  const TrainingPlan training_;
  CollectiveCosts& costs_;
  StepRun step_;
  TraceEvents events_;
  bool has_slots_;
  std::vector<int> ends_;  // slice of each operation; -1: it takes no time, or its slots are drawn
};

}  // namespace

std::string chrome_trace(const TrainingPlan& of) {
  TrainingPlan training = of;
  training.per_block =
      of.batch.gas * std::max<std::int64_t>(1, of.model->layers) <= most_traced_passes;
  Json events = Json::array();
  CollectiveCosts costs;
  int process = 0;
  for (const DistinctStep& step : distinct_steps(training)) {
    if (step.steps == 0) continue;
    StepTrace(in_step(training, step), step, costs, process++, events).write();
  }
  const Json trace = {{"displayTimeUnit", "ms"},
                      {"traceEvents", std::move(events)},
                      {"otherData",
                       {{"model", training.model->name},
                        {"cluster", training.cluster->name},
                        {"gpus", training.gpus},
                        {"global_batch", training.batch.train}}}};
  return json_line(trace) + "\n";
}

}  // namespace lambcast
