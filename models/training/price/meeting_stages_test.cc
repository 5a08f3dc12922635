#include "models/training/price/meeting_stages.h"

#include <catch2/catch.hpp>

#include "models/training/run/training_case.h"

namespace lambcast {
namespace {

using parallel::Axis;
using parallel::Sharding;

// Pipeline stages with one GPU on each node, as torchtitan places them if data parallelism is the
// outermost axis. Gradients are sharded and reduced in every pass.
TrainingPlan reduced_in_passes(const std::string& model, int pp, int gpus, Sharding sharding,
                               std::int64_t micro_batches = 8) {
  TrainingPlan training = training_of({OptimizerType::adamw, gpus, "commodity-10gbe", model, {}});
  const int dp = gpus / pp;
  training.batch = {micro_batches * dp, 1, micro_batches};
  training.seq_len = model == "gpt2-xl" ? 1024 : 128;
  Parallelism how;
  how.layout = {1,
                1,
                1,
                dp,
                pp,
                1,
                training.gpus_per_node,
                {Axis::tp, Axis::cp, Axis::ep, Axis::pp, Axis::dp}};
  how.framework = framework_of(FrameworkName::torchtitan);
  how.sharding = sharding;
  training.parallelism = how;
  return training;
}

StepRun sharded_step(const TrainingPlan& training) {
  CollectiveCosts costs;
  return run_step(training, {StepKind::uniform, training.seq_len, 1}, costs);
}

TEST_CASE("stages that meet: both network models agree on collectives inside passes") {
  for (const char* model : {"bert-large", "gpt2-xl"})
    for (const int pp : {2, 4})
      for (const Sharding sharding : {Sharding::gradients, Sharding::weights})
        for (const std::int64_t micro_batches : {4, 16}) {
          INFO(model << ", pp " << pp << ", sharding " << static_cast<int>(sharding) << ", "
                     << micro_batches << " micro batches");
          TrainingPlan training = reduced_in_passes(model, pp, 16, sharding, micro_batches);
          const StepMetrics streams = sharded_step(training).metrics;
          training.network = NetworkModel::flow;
          const StepMetrics flow = sharded_step(training).metrics;
          CHECK(streams.step_time / flow.step_time == Approx(1).epsilon(0.15));
          CHECK(streams.network_bytes_per_node.value() ==
                Approx(flow.network_bytes_per_node.value()));
        }
}

// During the first p - 1 calls the other stages of the node are silent: W (1 + (p - 1) / (p m)).
TEST_CASE(
    "stages that meet: a pipeline that fills its NICs takes their time and a first micro batch") {
  for (const int micro_batches : {4, 8, 32}) {
    const TrainingPlan training =
        reduced_in_passes("gpt2-xl", 4, 16, Sharding::gradients, micro_batches);
    CollectiveCosts costs;
    const StepRun step = sharded_step(training);
    const PipelinePlan& plan = *step.plan.pipeline;
    const PipelinePrice price = price_pipeline(plan, training, costs, End::expected, 0);
    MeetingStages all(plan, {training.cluster, {}, training.network, training.expand}, costs,
                      End::expected, 1);
    Duration busy;  // calls of the mean stage, if all four stages make them at once
    for (const std::vector<CallsMade>& calls : price.calls)
      for (const CallsMade& made : calls)
        if (all.priced_with(*made.call) > 1) busy += all.time(*made.call) * made.times;
    const double w = busy.s() * micro_batches / 4;
    CHECK(price.time.makespan.s() == Approx(w * (1 + 3.0 / (4 * micro_batches))).epsilon(0.05));
  }
}

TEST_CASE("stages that meet: the share used for a price equals the share that results from it") {
  const TrainingPlan training = reduced_in_passes("gpt2-xl", 4, 16, Sharding::gradients);
  CollectiveCosts costs;
  const StepRun step = sharded_step(training);
  const PipelinePlan& plan = *step.plan.pipeline;
  const PipelinePrice price = price_pipeline(plan, training, costs, End::expected, 0);
  const double meeting = meeting_of(plan, price);
  CHECK(meeting > 0.5);
  CHECK(meeting < 1);
  MeetingStages now(plan, {training.cluster, {}, training.network, training.expand}, costs,
                    End::expected, meeting);
  Duration calls;
  for (std::size_t position = 0; position < price.calls.size(); ++position)
    for (const CallsMade& made : price.calls[position])
      if (now.priced_with(*made.call) > 1) calls += now.time(*made.call) * made.times;
  const double shown = calls.s() * static_cast<double>(plan.pipeline.micro_batches) /
                       (price.time.makespan.s() * plan.pipeline.stages);
  CHECK(shown == Approx(meeting).epsilon(0.02));
}

// Four nodes with one stage each: the share is 0.
TEST_CASE("stages that meet: a single stage on its node meets no others") {
  TrainingPlan training = reduced_in_passes("gpt2-xl", 4, 16, Sharding::gradients);
  training.parallelism->layout.order = parallel::default_order;
  CollectiveCosts costs;
  const StepRun step = sharded_step(training);
  const PipelinePlan& plan = *step.plan.pipeline;
  const PipelinePrice price = price_pipeline(plan, training, costs, End::expected, 0);
  CHECK(meeting_of(plan, price) == 0);
}

}  // namespace
}  // namespace lambcast
