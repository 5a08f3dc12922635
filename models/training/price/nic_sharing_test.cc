#include "models/training/price/nic_sharing.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "models/training/run/training_case.h"

namespace lambcast {
namespace {

using parallel::Axis;

struct StagesOnNode {
  std::string model = "bert-large";
  int pp = 4, gpus = 16;
  std::int64_t micro_batch = 1, micro_batches = 8;
  Overrides settings = {};
  std::string cluster = "commodity-10gbe";
  int tp = 1;
};

// Each node has ranks of all stages, as Colossal-AI places them.
TrainingPlan stages_on_node(const StagesOnNode& of) {
  TrainingPlan training =
      training_of({OptimizerType::adamw, of.gpus, of.cluster, of.model, of.settings});
  const int dp = of.gpus / of.pp / of.tp;
  training.batch = {of.micro_batch * of.micro_batches * dp, of.micro_batch, of.micro_batches};
  training.seq_len = of.model == "gpt2-xl" ? 1024 : 128;
  Parallelism how;
  how.layout = {of.tp,
                1,
                1,
                dp,
                of.pp,
                1,
                training.gpus_per_node,
                {Axis::tp, Axis::cp, Axis::ep, Axis::pp, Axis::dp}};
  how.framework = framework_of(FrameworkName::colossalai);
  training.parallelism = how;
  return training;
}

StepRun run_of(const TrainingPlan& training) {
  CollectiveCosts costs;
  return run_step(training, {StepKind::uniform, training.seq_len, 1}, costs);
}

double least_s(const TrainingPlan& training, const StepMetrics& step) {
  const Cluster& cluster = *training.cluster;
  return (step.network_bytes_per_node / (cluster.nic_nominal.value * cluster.nics)).s();
}

TEST_CASE("NIC sharing: stages of one node take about as long as on the shared network") {
  for (const StagesOnNode& of :
       {StagesOnNode{"gpt2-xl", 2}, StagesOnNode{"gpt2-xl", 4}, StagesOnNode{"bert-large", 2},
        StagesOnNode{"bert-large", 4}, StagesOnNode{"bert-large", 4, 16, 4, 16},
        StagesOnNode{"bert-large", 4, 32}, StagesOnNode{"bert-large", 2, 8, 2},
        StagesOnNode{"bert-large", 2, 16, 8, 16}}) {
    INFO(of.model << ", pp " << of.pp << ", " << of.gpus << " GPUs");
    TrainingPlan training = stages_on_node(of);
    const StepMetrics streams = run_of(training).metrics;
    training.network = NetworkModel::flow;
    const StepMetrics flow = run_of(training).metrics;
    CHECK(streams.step_time / flow.step_time == Approx(1).epsilon(0.05));
    CHECK(streams.network_bytes_per_node.value() == Approx(flow.network_bytes_per_node.value()));
    for (const StepMetrics& step : {streams, flow}) {
      CHECK(step.step_time.s() > least_s(training, step));
      CHECK(step.step_time_low.s() >= least_s(training, step) * (1 - 1e-9));
    }
  }
}

// gpt2-xl has 1,557.6 M parameters, and its embedding of 80.4 M twice: on the first and on the last
// stage. Four nodes sum 2 bytes of each parameter in rings, so each node sends 2 x 3/4 of them. The
// first and the last stage lie on one node, so the tied embedding is not sent.
TEST_CASE("NIC sharing: the bytes of a node are those of all its stages") {
  const StepMetrics step = run_of(stages_on_node({"gpt2-xl", 4})).metrics;
  CHECK(step.network_bytes_per_node.value() ==
        Approx(2 * 2 * 3 / 4. * (1557.6e6 + 80.4e6)).epsilon(1e-3));
}

// A single NIC is never idle between the first release and the last end.
TEST_CASE("NIC sharing: the last reduction ends as in a queue with one server") {
  const TrainingPlan training = stages_on_node({"gpt2-xl", 4});
  const StepRun step = run_of(training);
  struct Reduction {
    double released = 0, work = 0, end = 0;
  };
  std::map<int, Reduction> reductions;  // by stage, over all its buckets
  for (std::size_t i = 0; i < step.plan.ops.size(); ++i) {
    if (step.plan.ops[i].name != "all_reduce gradients") continue;
    const Span& span = step.execution.timeline.spans[i];
    const Price& price = step.prices[i];
    CHECK(price.nics.used == std::vector<int>{0});
    Reduction& stage = reductions[step.plan.ops[i].rank_class];
    if (stage.work == 0) stage.released = span.begin.since_start().s();
    stage.work += price.nics.share * price.time.s();
    stage.end = span.end.since_start().s();
  }
  REQUIRE(reductions.size() == 4);
  double by_formula = 0, last = 0;
  for (const auto& [stage, first] : reductions) {
    double end = first.released;
    for (const auto& [same, other] : reductions)
      if (other.released >= first.released) end += other.work;
    by_formula = std::max(by_formula, end);
    last = std::max(last, first.end);
  }
  CHECK(last == Approx(by_formula).epsilon(0.01));
}

TEST_CASE("NIC sharing: stages with NICs of their own share none") {
  const auto shares = [](int nics) {
    const TrainingPlan training = stages_on_node(
        {"gpt2-xl", 4, 32, 1, 8, {{"nic.count", std::to_string(nics)}}, "dgx-a100-80g", 2});
    const StepRun step = run_of(training);
    return NicSharing(step.plan, step.prices).any();
  };
  CHECK(shares(1));
  CHECK(shares(2));  // two stages share a NIC
  CHECK_FALSE(shares(4));
  CHECK_FALSE(shares(8));
}

// Each node of eight GPUs holds two stages, each with two tensor ranks and two replicas.
TEST_CASE(
    "NIC sharing: siblings of calls in passes are of all stages of a node, siblings of sends of "
    "one") {
  const TrainingPlan training = stages_on_node({"gpt2-xl", 2, 16, 1, 8, {}, "dgx-a100-80g", 2});
  const PipelinePlan plan = *run_of(training).plan.pipeline;
  REQUIRE(plan.activations.sum);
  CHECK(plan.activations.sum->group.siblings == 4);
  CHECK(stages_among(plan, *plan.activations.sum) == 2);
  CHECK(stages_among(plan, plan.sends.front()) == 1);
}

}  // namespace
}  // namespace lambcast
