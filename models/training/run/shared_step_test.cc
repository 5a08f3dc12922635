#include "models/training/run/shared_step.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "models/training/price/stretches.h"
#include "models/training/run/training_case.h"

namespace lambcast {
namespace {
using parallel::Axis;

// gpt2-xl with the flow model on DGX A100s, by default with eight NICs for eight GPUs.
struct FlowCase {
  int tp = 1, dp = 1, pp = 1;
  int nics = 8;
  // Whether each node has ranks of all stages (tp-cp-ep-pp-dp), instead of whole stages.
  bool stages_in_node = false;
  bool overlaps_gradients = false;
  std::int64_t micro_batches = 8;
  std::string cluster = "dgx-a100-80g";
  int gpus_per_node = 8;
  Overrides fabric = {};
};

TrainingPlan flow_training(const FlowCase& of) {
  TrainingCase on{OptimizerType::adamw, of.tp * of.dp * of.pp, of.cluster};
  on.settings = {{"nic.count", std::to_string(of.nics)}};
  on.settings.insert(on.settings.end(), of.fabric.begin(), of.fabric.end());
  TrainingPlan training = training_of(on);
  training.model = std::make_shared<const ModelShape>(load_model("gpt2-xl", {}));
  training.seq_len = 1024;
  training.batch = {of.micro_batches * of.dp, 1, of.micro_batches};
  training.network = NetworkModel::flow;
  Parallelism how;
  parallel::AxisOrder order = parallel::default_order;
  if (of.stages_in_node) order = {Axis::tp, Axis::cp, Axis::ep, Axis::pp, Axis::dp};
  how.layout = {of.tp, 1, 1, of.dp, of.pp, 1, of.gpus_per_node, order};
  how.framework = framework_of(FrameworkName::megatron);
  how.framework.overlaps_gradients = of.overlaps_gradients;
  training.parallelism = how;
  training.kernels = Kernels::nvidia;
  return training;
}

struct BothForms {
  StepPlan plan;
  std::vector<Price> prices;
  Execution streams, shared;
};

BothForms both_forms(const TrainingPlan& training) {
  CollectiveCosts costs;
  BothForms both;
  both.plan = plan_step(training, {StepKind::uniform, training.seq_len, 1});
  both.prices = price(both.plan, training, costs);
  both.streams = execute(both.plan, both.prices);
  both.shared = execute_shared(both.plan, both.prices, training, costs).value();
  return both;
}

// Returns the time from the start of the first stage's gradient sums to the end of the last
// stage's.
Duration summing(const StepPlan& plan, const Execution& execution) {
  SimTime begin = execution.timeline.end, end;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    if (plan.ops[i].name != "all_reduce gradients") continue;
    begin = std::min(begin, execution.timeline.spans[i].begin);
    end = std::max(end, execution.timeline.spans[i].end);
  }
  return end - begin;
}

TEST_CASE("shared step: without contention, its time and interval equal those in streams") {
  for (const FlowCase& of : {FlowCase{.dp = 16}, FlowCase{.tp = 8, .dp = 4}, FlowCase{.pp = 2},
                             FlowCase{.tp = 4, .dp = 2}}) {
    INFO("tp " << of.tp << " dp " << of.dp << " pp " << of.pp);
    const BothForms both = both_forms(flow_training(of));
    const auto lasts = [](const Execution& execution) {
      return execution.timeline.end.since_start().s();
    };
    CHECK(lasts(both.shared) == Approx(lasts(both.streams)).epsilon(1e-6));
    CHECK(both.shared.interval.low.s() == Approx(both.streams.interval.low.s()).epsilon(1e-6));
    CHECK(both.shared.interval.high.s() == Approx(both.streams.interval.high.s()).epsilon(1e-6));
    for (std::size_t i = 0; i < both.plan.ops.size(); ++i)
      CHECK(both.shared.timeline.spans[i].end.since_start().s() ==
            Approx(both.streams.timeline.spans[i].end.since_start().s()).epsilon(1e-6));
  }
}

TEST_CASE("shared step: contention never makes it shorter") {
  for (const char* const oversubscription : {"1", "4"})
    for (const bool stages_in_node : {false, true})
      for (const int nics : {1, 8})
        for (FlowCase of : {FlowCase{.tp = 2, .dp = 16, .pp = 4}, FlowCase{.dp = 8, .pp = 8},
                            FlowCase{.tp = 4, .dp = 8, .pp = 2, .overlaps_gradients = true}}) {
          of.nics = nics;
          of.stages_in_node = stages_in_node;
          of.fabric = {{"fabric.kind", "fat-tree"},
                       {"fabric.nodes_per_leaf", "2"},
                       {"fabric.oversubscription", oversubscription}};
          INFO("tp " << of.tp << " dp " << of.dp << " pp " << of.pp << ", " << nics << " NICs, "
                     << oversubscription << ":1, stages in a node: " << stages_in_node);
          const BothForms both = both_forms(flow_training(of));
          CHECK(both.shared.timeline.end.since_start().s() >=
                time_without_contention(both.plan, both.prices).s() * (1 - 1e-9));
        }
}

// Each stage exchanges with the next one, and the first of the two counts it: the last stage adds
// no load.
TEST_CASE("shared step: a pair of stages exchanges once") {
  const BothForms both = both_forms(flow_training({.pp = 4}));
  std::vector<double> times(4);
  for (std::size_t i = 0; i < both.plan.ops.size(); ++i) {
    const StageWork* work = std::get_if<StageWork>(&both.plan.ops[i].work);
    if (work == nullptr) continue;
    const auto stage = static_cast<std::size_t>(work->stage);
    for (const Load& load : both.prices[i].loads) {
      CHECK(load.call.group == both.plan.pipeline->sends.at(stage).group);
      CHECK(load.call.place.slot == both.plan.pipeline->places[stage].slot);
      times[stage] += load.times;
    }
  }
  // For each of 8 micro batches: an activation one way, and at the same time its gradient the other
  // way.
  CHECK(times[3] == 0);
  for (const std::size_t stage : {0, 1, 2}) CHECK(times[stage] == Approx(8));
}

// The first operation is included: it is a pass if no gradient buffer is cleared before it.
TEST_CASE("shared step: every pass that sends is on the network") {
  TrainingPlan training = flow_training({.pp = 4});
  training.parallelism->framework.keeps_buffers = false;
  const BothForms both = both_forms(training);
  REQUIRE_FALSE(both.prices.front().loads.empty());
  for (std::size_t i = 0; i < both.plan.ops.size(); ++i) {
    if (!std::holds_alternative<StageWork>(both.plan.ops[i].work)) continue;
    INFO("operation " << i << ", " << both.plan.ops[i].name);
    CHECK((both.shared.programs[i] != nullptr) == !both.prices[i].loads.empty());
  }
}

// Activations arrive over links that the receiving stage uses for its own sums: the effect is small
// but not zero.
TEST_CASE("shared step: stages of one node share its links") {
  const BothForms both = both_forms(flow_training({.tp = 4, .pp = 2}));
  const auto lasts = [](const Execution& execution) {
    return execution.timeline.end.since_start();
  };
  const double ratio = lasts(both.shared) / lasts(both.streams);
  CHECK(ratio > 1);
  CHECK(ratio < 1.001);
}

// Each of n nodes holds all eight stages of one copy of the model, one on each GPU, so that eight
// data-parallel groups of n ranks reduce their gradients at the same time. Without contention, a
// ring of a group lasts t_i and keeps its NIC busy for w_i <= t_i (nic_sharing.h). If each group
// has a NIC of its own, the last one ends max t_i after the last one began. Gradients take much
// longer than the differences between the stages' ends, so a common NIC is never idle. Then all
// groups have ended between
//
//   max(sum w_i, max t_i)   and   sum w_i + max t_i - w_of_that_group
//
// after the first began, in both forms.
TEST_CASE("shared step: eight data-parallel groups that share a NIC take turns on it") {
  FlowCase of{.dp = 2, .pp = 8, .nics = 1, .stages_in_node = true};
  const BothForms one = both_forms(flow_training(of));
  Duration busy, longest;
  int groups = 0;
  for (std::size_t i = 0; i < one.plan.ops.size(); ++i) {
    if (one.plan.ops[i].name != "all_reduce gradients") continue;
    ++groups;
    busy += one.prices[i].time.scaled(one.prices[i].nics.share);
    longest = std::max(longest, one.prices[i].time);
  }
  REQUIRE(groups == 8);
  for (const Execution* form : {&one.streams, &one.shared}) {
    CHECK(summing(one.plan, *form) >= std::max(busy, longest));
    CHECK(summing(one.plan, *form) <= busy + longest - busy.scaled(1. / groups));
  }
  CHECK(summing(one.plan, one.shared).s() ==
        Approx(summing(one.plan, one.streams).s()).epsilon(0.005));
  CHECK(one.shared.interval.low < one.shared.timeline.end.since_start());
  CHECK(one.shared.interval.high > one.shared.timeline.end.since_start());

  // Activations of neighbouring stages share a GPU's link, with a small effect.
  of.nics = 8;
  const BothForms eight = both_forms(flow_training(of));
  CHECK(summing(eight.plan, eight.shared).s() ==
        Approx(summing(eight.plan, eight.streams).s()).epsilon(1e-4));
}

// With tp 8, the eight groups are siblings: groups of one rank per node make the same call at the
// same time, which is one program in either form. If bytes dominate, a ring over one NIC takes
// eight times as long as over eight NICs.
TEST_CASE("shared step: siblings that share a NIC share it in either form") {
  const auto sum = [](int nics, bool shared) {
    const BothForms both = both_forms(flow_training({.tp = 8, .dp = 4, .nics = nics}));
    return summing(both.plan, shared ? both.shared : both.streams).s();
  };
  for (const bool shared : {false, true}) {
    const double ratio = sum(1, shared) / sum(8, shared);
    CHECK(ratio > 4);
    CHECK(ratio < 8.5);
  }
}

// Buckets leave the node while the next stage's activations arrive over the same NIC.
TEST_CASE("shared step: gradients slow passes that communicate, and never make them faster") {
  FlowCase of{.dp = 2, .pp = 8, .nics = 1, .stages_in_node = true, .overlaps_gradients = true};
  of.micro_batches = 32;
  const BothForms both = both_forms(flow_training(of));
  CHECK(both.shared.timeline.end > both.streams.timeline.end);
}

// If contention prolongs the passes of stages, the pipeline also fills and empties more slowly: the
// waits equal those of its replay.
TEST_CASE("shared step: other stages wait for passes that contention makes longer") {
  FlowCase of{.dp = 2, .pp = 8, .nics = 1, .stages_in_node = true, .overlaps_gradients = true};
  of.micro_batches = 32;
  const TrainingPlan training = flow_training(of);
  const BothForms both = both_forms(training);
  CollectiveCosts costs;
  const PipelinePlan& pipeline = *both.plan.pipeline;
  const PipelinePrice alone = price_pipeline(pipeline, training, costs, End::expected, 0);
  std::vector<Duration> longer(8), ends(8);
  bool waited = false;
  for (OpId op = 0; op < both.plan.ops.size(); ++op) {
    const StageWork* work = std::get_if<StageWork>(&both.plan.ops[op].work);
    if (work == nullptr) continue;
    const auto stage = static_cast<std::size_t>(work->stage);
    const Duration lasts =
        both.shared.timeline.spans[op].end - both.shared.timeline.spans[op].begin;
    longer[stage] += lasts - both.prices[op].time - both.shared.waits[op];
    ends[stage] += lasts;
    waited |= both.shared.waits[op] != Duration();
  }
  CHECK(waited);
  for (Duration& stage : longer) stage = std::max(Duration(), stage);
  const PipelinePrice met = replayed(pipeline, alone, longer);
  for (int stage = 0; stage < 8; ++stage) {
    const auto s = static_cast<std::size_t>(stage);
    const double grew = (ends[s] - stretches_time(pipeline, alone, stage)).s();
    const double replay =
        (stretches_time(pipeline, met, stage) - stretches_time(pipeline, alone, stage)).s();
    INFO("stage " << stage << " longer " << longer[s].s());
    CHECK(grew == Approx(replay).epsilon(0.05).margin(1e-8));
  }
}

// On a slow network too, where one round of finding waits may take away the whole time of a pass.
TEST_CASE("shared step: stages may wait less than their prices include, down to no wait") {
  for (const FlowCase& of : {FlowCase{.dp = 8, .pp = 4}, FlowCase{.dp = 4, .pp = 8}}) {
    FlowCase slow = of;
    slow.nics = 1;
    slow.micro_batches = 16;
    slow.cluster = "commodity-25gbe";
    slow.gpus_per_node = 4;
    TrainingPlan training = flow_training(slow);
    training.batch = {slow.micro_batches * slow.dp * 2, 2, slow.micro_batches};
    training.parallelism->framework = framework_of(FrameworkName::deepspeed);
    INFO("pp " << of.pp);
    const BothForms both = both_forms(training);
    CHECK(both.shared.timeline.end > both.streams.timeline.end);
  }
}

// Stages of 6 ranks on nodes of 8: the six pairs of ranks that pass activations from the first
// stage to the second are not all on the first node.
TEST_CASE("shared step: stages that straddle nodes are simulated in full") {
  const BothForms both = both_forms(flow_training({.dp = 6, .pp = 8}));
  const Duration shared = both.shared.timeline.end.since_start();
  const Duration streams = both.streams.timeline.end.since_start();
  CHECK(shared.s() == Approx(streams.s()).epsilon(0.05));
}

// Two stages of 8 nodes under leaves of 8: each activation crosses from one leaf to the other, at
// the same time as those of the 7 other nodes, over uplinks for 2 of them. A single pair would use
// the uplinks alone.
TEST_CASE("shared step: pairs of stages on other nodes share the uplinks of a leaf") {
  const auto training_over = [](const std::string& oversubscription) {
    FlowCase of{.tp = 8, .dp = 8, .pp = 2, .micro_batches = 32};
    of.fabric = {{"fabric.kind", "fat-tree"},
                 {"fabric.nodes_per_leaf", "8"},
                 {"fabric.oversubscription", oversubscription}};
    return flow_training(of);
  };
  const auto lasts = [](const Execution& execution) {
    return execution.timeline.end.since_start();
  };
  const BothForms full = both_forms(training_over("1"));
  CHECK(lasts(full.shared).s() == Approx(lasts(full.streams).s()).epsilon(1e-3));
  TrainingPlan training = training_over("4");
  const BothForms quarter = both_forms(training);
  CHECK(lasts(quarter.shared) > lasts(quarter.streams).scaled(1.01));
  // The time is the same if every flow is simulated.
  CollectiveCosts costs;
  training.expand = true;
  CHECK(lasts(execute_shared(quarter.plan, quarter.prices, training, costs).value()).s() ==
        Approx(lasts(quarter.shared).s()).epsilon(1e-9));
}

// Copies of states on 2 nodes each: sums between copies cross leaves from all nodes at the same
// time.
TEST_CASE("shared step: in either model, sums between copies share the uplinks of a leaf") {
  for (const char* const leaf : {"2", "4"})
    for (const int shard_nodes : {1, 2, 4}) {
      INFO("leaves of " << leaf << ", copies on " << shard_nodes << " nodes");
      FlowCase of{.dp = 64, .micro_batches = 1};
      of.fabric = {{"fabric.kind", "fat-tree"},
                   {"fabric.nodes_per_leaf", leaf},
                   {"fabric.oversubscription", "4"}};
      TrainingPlan training = flow_training(of);
      training.parallelism->sharding = parallel::Sharding::optimizer;
      training.parallelism->shard_ranks = 8 * shard_nodes;
      const Execution shared = both_forms(training).shared;
      training.network = NetworkModel::analytic;
      CollectiveCosts costs;
      const StepRun apart = run_step(training, {StepKind::uniform, training.seq_len, 1}, costs);
      CHECK(apart.execution.timeline.end.since_start().s() ==
            Approx(shared.timeline.end.since_start().s()).epsilon(0.02));
    }
}

TEST_CASE(
    "shared step: a job that is too large runs in streams, and a smaller job widens its interval") {
  for (const char* const oversubscription : {"1", "4"}) {
    FlowCase of{.tp = 4, .dp = 16384, .pp = 2};
    of.fabric = {{"fabric.kind", "fat-tree"},
                 {"fabric.nodes_per_leaf", "3"},
                 {"fabric.oversubscription", oversubscription}};
    TrainingPlan training = flow_training(of);
    CollectiveCosts costs;
    const DistinctStep distinct{StepKind::uniform, 1024, 1};
    const StepRun step = run_step(training, distinct, costs);
    REQUIRE(step.metrics.stand_in);
    CHECK(step.metrics.stand_in->gpus == 65536);
    CHECK(step.execution.programs.empty());
    of.dp = 8192;
    const BothForms smaller = both_forms(flow_training(of));
    const double growth =
        smaller.shared.timeline.end.since_start() / smaller.streams.timeline.end.since_start();
    CHECK(step.metrics.stand_in->growth == Approx(growth));
    const Execution alone = execute(step.plan, step.prices);
    CHECK(step.metrics.step_time == alone.timeline.end.since_start());
    CHECK(step.metrics.step_time_high.s() ==
          Approx(alone.interval.high.s() * std::max(1.0, growth)));
    CHECK(step.metrics.step_time_low.s() == Approx(alone.interval.low.s() * std::min(1.0, growth)));
    training.network = NetworkModel::analytic;
    CHECK_FALSE(run_step(training, distinct, costs).metrics.stand_in);
  }
}

}  // namespace
}  // namespace lambcast
