#include "experiments/output/explain.h"

#include <fmt/format.h>

#include <utility>

#include "experiments/output/step_plan_text.h"
#include "models/training/run/step.h"
#include "sim/base/error.h"
#include "sim/network/effort.h"

namespace lambcast {
namespace {

// Lists the sources of an operation's price, each with its kind: "nic_bandwidth (published)".
std::string rests_on(const StepPlan& plan, const PlanOp& op, const TrainingPlan& training,
                     CollectiveCosts& costs) {
  StepPlan alone{{op}, plan.seq_len, plan.rank_classes, plan.pipeline};
  CostSources sources;
  price(alone, training, costs, Intervals::left_out, &sources);
  std::string text;
  for (const CostSource& source : RunSources(std::move(sources)).shares())
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", source.cost,
                        name_of(source.provenance.kind));
  return text;
}

// Returns " by ring/Simple": the algorithm and protocol that the library chooses for a collective.
// Near a switching point of NCCL's rule it adds the alternative.
std::string chosen_for(const PlanOp& op, const TrainingPlan& training, CollectiveCosts& costs) {
  const Call* call = std::get_if<Call>(&op.work);
  if (call == nullptr) return "";
  const CollectiveCost& cost = costs.cost(
      {training.cluster, call->group, training.network, training.expand, call->place.node},
      call->backend, call->op, call->bytes, call->algorithm);
  std::string text = fmt::format(" by {}/{}", cost.algorithm, cost.protocol);
  if (const auto& rival = cost.tip.rival)
    text += fmt::format(" (or {}/{}, {:.3f} us each)", rival->algorithm, rival->protocol,
                        rival->time.us());
  return text;
}

// Returns the price of one call inside a pass: its time, its interval, and the source of both.
std::string price_of(const Call& call, const StepPlan& plan, const TrainingPlan& training,
                     CollectiveCosts& costs) {
  PlanOp op;
  op.work = call;
  const CollectiveCost& cost =
      costs.cost({training.cluster, call.group, training.network, training.expand, call.place.node},
                 call.backend, call.op, call.bytes, call.algorithm);
  return fmt::format(": {:.3f} us ({:.3f} to {:.3f}) each{}: {}", cost.time.us(),
                     cost.interval.low.us(), cost.interval.high.us(),
                     chosen_for(op, training, costs), rests_on(plan, op, training, costs));
}

std::string price_table(const StepRun& step, const TrainingPlan& training, CollectiveCosts& costs) {
  std::string out =
      fmt::format("{:>4} {:>14} {:>14} {:>14} {:>14} {:>14}\n{:>6}{}\n", "op", "time_us", "low_us",
                  "high_us", "begin_us", "wire_bytes", "", "name: what its price rests on");
  for (std::size_t i = 0; i < step.plan.ops.size(); ++i) {
    const Price& price = step.prices[i];
    const Interval interval = interval_of(price.time, price.wires, price.compute);
    out += fmt::format("{:>4} {:>14.3f} {:>14.3f} {:>14.3f} {:>14.3f} {:>14.0f}\n{:>6}{}{}: {}\n",
                       i, price.time.us(), interval.low.us(), interval.high.us(),
                       step.execution.timeline.spans[i].begin.since_start().us(),
                       price.wire_bytes_per_gpu.value(), "", step.plan.ops[i].name,
                       chosen_for(step.plan.ops[i], training, costs),
                       rests_on(step.plan, step.plan.ops[i], training, costs));
  }
  if (step.plan.pipeline)
    out += inside_passes(*step.plan.pipeline, [&](const Call& call) {
      return price_of(call, step.plan, training, costs);
    });
  return out + fmt::format("step {:.3f} us, interval {:.3f} to {:.3f} us\n",
                           step.metrics.step_time.us(), step.metrics.step_time_low.us(),
                           step.metrics.step_time_high.us());
}

// Formats the counts of cost queries and simulation events, and the time spent in each part.
std::string stats(const StepRun& step, const CollectiveCosts::Counts& prices, const Effort& done) {
  const auto us = [](std::chrono::nanoseconds time) {
    return std::chrono::duration<double, std::micro>(time).count();
  };
  const StepRun::Spent& spent = step.spent;
  return fmt::format(
      "operations {}, collectives {}; prices asked {}, found in the cache {}\n"
      "events {}, flows started {}, max-min solves {}\n"
      "took: plan {:.0f} us, price {:.0f} us, execute {:.0f} us, account {:.0f} us\n"
      "of which: routes of {} flows {:.0f} us, lowering of {} schedules {:.0f} us\n",
      step.plan.ops.size(), step.metrics.num_collectives, prices.asked,
      prices.asked - prices.planned, done.events, done.flows, done.solves, us(spent.plan),
      us(spent.price), us(spent.execute), us(spent.account), done.routes, us(done.routing),
      done.lowered, us(done.lowering));
}

}  // namespace

const std::vector<std::string>& explanation_names() {
  static const std::vector<std::string> names{"sources", "parts", "notes", "plan",
                                              "prices",  "stats", "inputs"};
  return names;
}

std::string explain(const TrainingPlan& of, std::string_view what) {
  if (what != "plan" && what != "prices" && what != "stats")
    fail_unknown({"", 0, "--explain"}, "value", std::string(what), explanation_names());
  std::string out;
  CollectiveCosts costs;
  for (const DistinctStep& distinct : distinct_steps(of)) {
    if (distinct.steps == 0) continue;
    const TrainingPlan training = in_step(of, distinct);
    const CollectiveCosts::Counts before = costs.counts();
    const Effort done_before = effort();
    const StepRun step = run_step(training, distinct, costs);
    const Effort done = effort() - done_before;
    out +=
        fmt::format("{}{} step, {} times{}{}\n", out.empty() ? "" : "\n", name_of(distinct.kind),
                    distinct.steps,
                    distinct.seq_len > 0 ? fmt::format(", sequences of {}", distinct.seq_len) : "",
                    of.ramp ? fmt::format(", batch {}", training.batch.train) : "");
    if (what == "plan") {
      out += step_plan_text(step.plan);
    } else if (what == "prices") {
      out += price_table(step, training, costs);
    } else {
      const CollectiveCosts::Counts& now = costs.counts();
      out += stats(step, {now.asked - before.asked, now.planned - before.planned}, done);
    }
  }
  return out;
}

}  // namespace lambcast
