#include "models/recipe/batch_ramp.h"

#include <catch2/catch.hpp>

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

const Where where{"", 0, "--rampup-batch-size"};

// Replays Megatron-LM's calculator step by step.
std::vector<std::int64_t> replay(const BatchRamp& ramp, std::int64_t full, std::int64_t steps) {
  std::vector<std::int64_t> batches;
  const std::int64_t increments = (full - ramp.start) / ramp.increment;
  std::int64_t consumed = 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    std::int64_t batch = full;
    if (consumed <= ramp.samples) {
      std::int64_t level = 0;  // consumed / (samples / increments), rounded down
      while ((level + 1) * ramp.samples <= consumed * increments) ++level;
      batch = ramp.start + level * ramp.increment;
    }
    batches.push_back(batch);
    consumed += batch;
  }
  return batches;
}

TEST_CASE("batch ramp: phases equal the calculator's steps") {
  struct Row {
    BatchRamp ramp;
    std::int64_t full;
  };
  // Cases: boundaries that are met exactly or passed, increments shorter than a step, and numbers
  // of samples that the increments do not divide.
  const Row rows[] = {{{16, 16, 640}, 64},  {{16, 16, 1000}, 64}, {{192, 16, 3000}, 2048},
                      {{1, 1, 7}, 8},       {{8, 24, 100}, 32},   {{4, 4, 1}, 16},
                      {{32, 32, 4096}, 96}, {{3, 5, 997}, 48}};
  for (const auto& [ramp, full] : rows) {
    for (const std::int64_t steps : {0, 1, 2, 5, 17, 200}) {
      INFO(ramp.start << ":" << ramp.increment << ":" << ramp.samples << " to " << full << ", "
                      << steps << " steps");
      const std::vector<std::int64_t> want = replay(ramp, full, steps);
      std::vector<std::int64_t> got;
      std::int64_t samples = 0;
      for (const BatchPhase& phase : batch_phases(ramp, full, steps)) {
        CHECK(phase.steps > 0);
        got.insert(got.end(), static_cast<std::size_t>(phase.steps), phase.batch);
        samples += phase.batch * phase.steps;
      }
      CHECK(got == want);
      CHECK(samples_in(ramp, full, steps) == samples);
      CHECK(steps_for(ramp, full, samples) == steps);
      CHECK(steps_for(ramp, full, samples + 1) == steps + 1);
    }
  }
}

TEST_CASE("batch ramp: GPT-3's ramp has 95 increments over 5,859,375 samples") {
  const BatchRamp ramp = parse_ramp("16:16:5859375", where);
  CHECK(ramp == BatchRamp{16, 16, 5859375});
  CHECK_NOTHROW(check_reaches(ramp, 1536, where));
  const std::vector<BatchPhase> phases = batch_phases(ramp, 1536, 500'000);
  REQUIRE(phases.size() == 96);
  // Each batch size lasts for 61,677.6 samples, so the first one has 3,855 steps of 16.
  CHECK(phases.front() == BatchPhase{16, 3855});
  CHECK(phases.back().batch == 1536);
}

TEST_CASE("batch ramp: an invalid ramp is refused") {
  CHECK_THROWS_WITH(parse_ramp("16:16", where),
                    Contains("--rampup-batch-size: '16:16' is not a ramp of the batch"));
  CHECK_THROWS_WITH(parse_ramp("16:16:many", where),
                    Contains("'many' is not a whole number in range"));
  CHECK_THROWS_WITH(parse_ramp("16:0:10", where), Contains("'0' is not a whole number"));
  CHECK_THROWS_WITH(check_reaches(parse_ramp("64:16:100", where), 64, where),
                    Contains("starts with 64 samples, and the batch is 64"));
  CHECK_THROWS_WITH(check_reaches(parse_ramp("16:20:100", where), 64, where),
                    Contains("16 to 64 samples are no whole number of increments of 20"));
  CHECK_THROWS_WITH(check_reaches(parse_ramp("1:1:100", where), 65536, where),
                    Contains("has 65535 increments"));
}

}  // namespace
}  // namespace lambcast
