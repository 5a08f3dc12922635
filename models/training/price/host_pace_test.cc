#include "models/training/price/host_pace.h"

#include <catch2/catch.hpp>

#include "models/training/price/passage.h"
#include "models/training/run/layout_case.h"
#include "models/training/run/step.h"

namespace lambcast {
namespace {

Duration us(double value) { return Duration::microseconds(value); }

TEST_CASE("host pace: a chunk takes at least as long as starting its kernels") {
  ChunkPrice chunk;
  chunk.forward.compute = us(3), chunk.forward.exposed = us(4);
  chunk.input_gradient.compute = us(2), chunk.weight_gradient.compute = us(1);
  ChunkReads reads;
  reads.kernels[Rate::start] = us(10);
  GpuRates rates;
  rates.kernel_start.value = us(1);
  const auto lasts = [&] {
    return chunk.forward.time() + chunk.input_gradient.time() + chunk.weight_gradient.time();
  };
  pace_by_host(chunk, reads, rates,
               us(1));  // ten launches of 1 us within 6 us of kernels and 4 us of collectives
  CHECK(reads.paced == Duration());
  CHECK(lasts() == us(10));
  pace_by_host(chunk, reads, rates, us(2));
  CHECK(reads.paced.us() == Approx(10));
  CHECK(lasts().us() == Approx(20));
  CHECK(chunk.forward.exposed == us(4));
  CHECK(chunk.forward.compute / chunk.weight_gradient.compute == Approx(3));
}

// A step with small micro batches waits for the host equally with and without a layout.
TEST_CASE("host pace: runs with and without a layout wait for the host alike") {
  TrainingPlan layout = layout_training({.dp = 8});
  TrainingPlan none = layout;
  none.parallelism.reset();
  const auto passes = [](TrainingPlan training, double launch_us) {
    Device device = *training.device;
    device.framework_launch.value = us(launch_us);
    training.device = std::make_shared<const Device>(device);
    CollectiveCosts costs;
    const StepMetrics step =
        run_step(training, {StepKind::uniform, training.seq_len, 1}, costs).metrics;
    return (step.forward + step.backward).s();
  };
  for (const TrainingPlan& training : {layout, none}) {
    const double fast = passes(training, 0.1);
    CHECK(passes(training, 200) > 2 * fast);
    CHECK(passes(training, 600) - passes(training, 400) ==
          Approx(passes(training, 400) - passes(training, 200)));
    CHECK(passes(training, 0.2) == fast);
  }
  TrainingPlan captured = layout;
  captured.parallelism->captured = true;
  CHECK(passes(captured, 600) == passes(layout, 0.1));
}

}  // namespace
}  // namespace lambcast
