#include "models/training/plan/gradient_reduction.h"
#include "models/training/plan/buffers.h"

#include <catch2/catch.hpp>
#include <utility>

#include "models/training/price/beside_collectives.h"
#include "models/training/run/step.h"
#include "models/training/run/training_case.h"

namespace lambcast {
namespace {

// Returns whether the overlap of communication makes the backward pass longer, by at most the time
// of communication multiplied by the share of the GPU that collectives occupy.
bool loses_to_collectives(const StepMetrics& serial, const StepMetrics& overlapped,
                          const TrainingPlan& training) {
  const ProcessGroup all{training.gpus, training.gpus_per_node};
  const Duration most =
      overlapped.gradient_comm.scaled(lost_to_collectives(all, *training.device->rates));
  return overlapped.backward > serial.backward && overlapped.backward <= serial.backward + most;
}

TEST_CASE("gradient reduction: DDP's communication overlaps the backward pass") {
  for (const char* cluster : {"paper-eth40-v100", "paper-edr100-v100", "azure-ndv2"}) {
    for (const int gpus : {2, 8, 16, 32}) {
      TrainingPlan training = training_of({OptimizerType::lamb, gpus, cluster});
      training.batch = {gpus * 16 * 3, 16, 3};
      const StepMetrics serial = metrics_of(training, StepKind::uniform);
      training.overlap = Overlap::ddp;
      const StepMetrics overlapped = metrics_of(training, StepKind::uniform);
      INFO(cluster << ", " << gpus << " GPUs");
      // Each bucket adds latency, which overlap outweighs in these small runs. If hardly anything
      // can overlap (8 nodes with 4 Gbit/s), the added latency is larger.
      const bool hides_little = std::string(cluster) == "paper-eth40-v100" && gpus == 32;
      CHECK(overlapped.step_time <= serial.step_time.scaled(hides_little ? 1.01 : 1));
      CHECK(overlapped.exposed_comm <= overlapped.gradient_comm);
      // The step exceeds its computation by the exposed communication.
      CHECK(overlapped.step_time == overlapped.forward + overlapped.backward +
                                        overlapped.optimizer + overlapped.exposed_comm);
      // Bytes and computation are the same, except for the time that kernels lose to collectives.
      CHECK(overlapped.forward == serial.forward);
      CHECK(loses_to_collectives(serial, overlapped, training));
      CHECK(overlapped.wire_bytes_per_gpu.value() ==
            Approx(serial.wire_bytes_per_gpu.value()).epsilon(1e-12));
      // Nothing is left to overlap the last bucket.
      CHECK(overlapped.exposed_comm > Duration());
    }
  }
}

// ZeRO sums the gradients that the optimizer gets, and gathers its three groups, padded to
// multiples of 2 n.
constexpr double summed = 335'184'706, gathered = 335'184'720;  // 8 ranks

TEST_CASE("gradient reduction: ZeRO all-reduces gradients, updates a share and gathers weights") {
  TrainingPlan training = training_of({OptimizerType::adam, 8, "paper-edr100-v100"});
  const StepMetrics plain = metrics_of(training, StepKind::uniform);
  for (const std::int64_t stage : {1, 2}) {
    training.recipe.zero.stage = stage;
    const StepMetrics sharded = metrics_of(training, StepKind::uniform);
    // 2(n-1)/n 2N bytes of gradients, (n-1)/n 2N of weights.
    CHECK(sharded.wire_bytes_per_gpu.value() ==
          Approx(7. / 8 * 2 * (2 * summed + gathered)).epsilon(1e-12));
    CHECK(sharded.num_collectives == 1 + 3);
    // A rank updates an eighth of the parameters.
    CHECK(sharded.optimizer < plain.optimizer);
  }
  // In an fp32 run, weights and gradients have 4 bytes each.
  training.recipe.precision.weights = DataType::fp32;
  CHECK(metrics_of(training, StepKind::uniform).wire_bytes_per_gpu.value() ==
        Approx(7. / 8 * 4 * (2 * summed + gathered)).epsilon(1e-12));
}

TEST_CASE("gradient reduction: bytes moved per element around its collective") {
  TrainingPlan training = training_of({OptimizerType::adam, 8, "paper-edr100-v100"});
  Recipe& recipe = training.recipe;
  const auto moved = [&] {
    const GradientReduction reduction = gradient_reduction(training);
    return std::pair(reduction.fill_bytes, reduction.scale_bytes);
  };
  const double held = 2, share = 1. / 8;
  // Gradients are copied into the flat buffer and divided, then copied out of it.
  CHECK(moved() == std::pair(2 * held, 4 * held));
  recipe.zero.stage = 2;
  // Gradients are averaged and flattened; an eighth is moved to the shard and back.
  CHECK(moved() == std::pair(2 * held, 2 * held + 2 * held + 4 * held * share));
  recipe.zero.reduce_scatter = false;
  const double plain = 2 * held + 2 * held * share;
  CHECK(moved() == std::pair(2 * held, plain));
  // If sent as fp32, each of the two conversions reads one type and writes the other.
  recipe.precision.gradients = DataType::fp32;
  CHECK(moved() == std::pair(2 * held, plain + 2 * (2 + 4)));
  // fp32 weights, with gradients sent as fp16 and as fp32.
  recipe.precision.weights = DataType::fp32;
  recipe.precision.gradients = DataType::fp16;
  CHECK(moved() == std::pair(8., 2 * plain + 2 * (4 + 2)));
  recipe.precision.gradients = DataType::fp32;
  CHECK(moved() == std::pair(8., 2 * plain));
}

TEST_CASE("gradient reduction: BF16_Optimizer sends its fp32 sums in another type") {
  TrainingPlan training = bf16_of({OptimizerType::adamw, 8, "paper-edr100-v100"});
  training.recipe.engine.wraps_bf16_as_fp16 = false;
  // Divided as bf16, converted from fp32 and back, added to the fp32 sums.
  CHECK(gradient_reduction(training).scale_bytes == 2 * 2 + 2 * (4 + 2) + 4 + 4);
  training.recipe.precision.gradients = DataType::fp32;
  CHECK(gradient_reduction(training).scale_bytes == 2 * 4 + 4 + 4);
}

TEST_CASE(
    "gradient reduction: ZeRO stage 2 sums gradients after every micro batch, stage 1 after the "
    "last") {
  const std::int64_t gas = 8;
  for (const bool per_block : {false, true}) {
    TrainingPlan training = training_of({OptimizerType::adam, 8, "paper-edr100-v100"});
    training.batch = {16 * 8 * gas, 16, gas};
    training.per_block = per_block;
    training.recipe.zero.stage = 1;
    const StepMetrics once = metrics_of(training, StepKind::uniform);
    CHECK(once.wire_bytes_per_gpu.value() ==
          Approx(7. / 8 * 2 * (2 * summed + gathered)).epsilon(1e-12));
    training.recipe.zero.stage = 2;
    const StepMetrics each = metrics_of(training, StepKind::uniform);
    CHECK(each.wire_bytes_per_gpu.value() ==
          Approx(7. / 8 * 2 * (gas * 2 * summed + gathered)).epsilon(1e-12));
    CHECK(each.num_collectives == gas + 3);
    CHECK(each.exposed_comm == each.gradient_comm);
    CHECK(each.step_time == parts_of(each));
    // Without gradient accumulation both stages take the same time.
    training.batch = {16 * 8, 16, 1};
    const StepMetrics two = metrics_of(training, StepKind::uniform);
    training.recipe.zero.stage = 1;
    CHECK(two.step_time == metrics_of(training, StepKind::uniform).step_time);
  }
}

TEST_CASE("gradient reduction: without reduce_scatter ZeRO sends the same bytes and copies less") {
  TrainingPlan training = training_of({OptimizerType::adam, 8, "paper-edr100-v100"});
  training.recipe.zero.stage = 2;
  const StepMetrics scattered = metrics_of(training, StepKind::uniform);
  training.recipe.zero.reduce_scatter = false;
  const StepMetrics whole = metrics_of(training, StepKind::uniform);
  CHECK(whole.wire_bytes_per_gpu == scattered.wire_bytes_per_gpu);
  // Flattening reads and writes 2 bytes per element, and the rank's eighth is copied back.
  const double bytes = 4 * summed * (1 + 1 / 8.);
  CHECK((scattered.gradient_comm - whole.gradient_comm).s() ==
        Approx(bytes / training.device->copy_bandwidth.value.value()).epsilon(1e-6));
}

TEST_CASE(
    "gradient reduction: with overlap_comm every backward pass hides the gradients of its own "
    "micro batch") {
  for (const std::int64_t stage : {1, 2}) {
    for (const bool per_block : {false, true}) {
      TrainingPlan training = training_of({OptimizerType::adam, 16, "paper-edr100-v100"});
      training.per_block = per_block;
      training.recipe.zero.stage = stage;
      training.recipe.zero.bucket = 20'000'000;
      const auto with = [&](bool overlap, std::int64_t gas) {
        training.batch = {16 * 16 * gas, 16, gas};
        training.recipe.zero.overlap = overlap;
        return metrics_of(training, StepKind::uniform);
      };
      const StepMetrics serial = with(false, 4), hidden = with(true, 4), one = with(true, 1);
      INFO("stage " << stage << (per_block ? ", block by block" : ""));
      CHECK(hidden.wire_bytes_per_gpu.value() ==
            Approx(serial.wire_bytes_per_gpu.value()).epsilon(1e-12));
      CHECK(hidden.exposed_comm < serial.exposed_comm);
      CHECK(hidden.step_time < serial.step_time);
      CHECK(loses_to_collectives(serial, hidden, training));
      CHECK(hidden.step_time ==
            hidden.forward + hidden.backward + hidden.optimizer + hidden.exposed_comm);
      // A pass cannot overlap communication of another one: stage 2 exposes the same time in each
      // pass.
      const double weights = 3e-9 * static_cast<double>(one.num_collectives);  // rounding
      const StepMetrics two = with(true, 2);
      const double each = (two.exposed_comm - one.exposed_comm).s();
      if (stage == 2) {
        CHECK((hidden.exposed_comm - one.exposed_comm).s() == Approx(3 * each).margin(weights));
        CHECK(each > 0);
      } else {
        CHECK(hidden.exposed_comm == one.exposed_comm);
      }
    }
  }
}

TEST_CASE(
    "gradient reduction: with one bucket there is nothing to overlap, with two a pass waits for "
    "the first") {
  TrainingPlan training = training_of({OptimizerType::adam, 16, "paper-eth40-v100"});
  training.recipe.zero.stage = 2;
  const StepMetrics serial = metrics_of(training, StepKind::uniform);
  training.recipe.zero.overlap = true;
  // One bucket of 5e8 elements holds all of BERT-Large.
  CHECK(metrics_of(training, StepKind::uniform).step_time == serial.step_time);
  // If the wire is far slower than the pass, a bucket waits for the reduction of the one before the
  // last.
  training.recipe.zero.bucket = 40'000'000;
  CollectiveCosts costs;
  const StepRun run = run_step(training, {StepKind::uniform, 128, 1}, costs);
  const auto& tasks = run.execution.graph.tasks();
  std::vector<Duration> filled, reduced;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].name == "flatten bucket")
      filled.push_back(run.execution.timeline.spans[i].end.since_start());
    if (tasks[i].name.starts_with("scale and copy bucket"))
      reduced.push_back(run.execution.timeline.spans[i].end.since_start());
  }
  REQUIRE(filled.size() >= 4);
  REQUIRE(reduced.size() == filled.size());
  for (std::size_t i = 2; i < filled.size(); ++i) CHECK(filled[i] > reduced[i - 2]);
  CHECK(filled[1] < reduced[0]);
}

TEST_CASE(
    "gradient reduction: bf16 without ZeRO updated a shard and gathered the weights after every "
    "step before 0.17.6") {
  TrainingPlan training = bf16_of({OptimizerType::onebit_adam, 8, "paper-edr100-v100"});
  training.recipe.engine.wraps_bf16_as_fp16 = false;
  for (const StepKind kind : {StepKind::warmup, StepKind::compression}) {
    const StepMetrics step = metrics_of(training, kind);
    // Gradients, or the signs and scales of the rank's part of each group.
    double bytes = 7. / 4 * 2 * gathered;  // the same padded groups
    if (kind == StepKind::compression) {
      bytes = 3 * 8 * 7.;
      for (const std::int64_t buffer : compressed_buffers(training))
        bytes += 7. / 4 * static_cast<double>(buffer) / 8;
    }
    CHECK(step.wire_bytes_per_gpu.value() == Approx(bytes + 7. / 8 * 2 * gathered).epsilon(1e-12));
  }
  // An eighth of the elements is compressed; launches and waits stay the same.
  TrainingPlan fp16 = training_of({OptimizerType::onebit_adam, 8, "paper-edr100-v100"});
  CHECK(metrics_of(training, StepKind::compression).compress.s() <
        metrics_of(fp16, StepKind::compression).compress.s() / 7);
}

}  // namespace
}  // namespace lambcast
