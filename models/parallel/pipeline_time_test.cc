#include "models/parallel/pipeline_time.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <tuple>

namespace lambcast::parallel {
namespace {

using enum PipelineSchedule;

Duration units(std::int64_t count) { return Duration::picoseconds(count); }

// Returns equal times for every position: tf, tB and tW of a whole stage, divided over its chunks.
std::vector<ChunkTimes> even_times(const Pipeline& pipeline, std::int64_t forward,
                                   std::int64_t input, std::int64_t weight, std::int64_t send = 0) {
  const std::int64_t v = pipeline.chunks;
  return std::vector<ChunkTimes>(static_cast<std::size_t>(pipeline.positions()),
                                 {units(forward / v), units((input + weight) / v), units(input / v),
                                  units(weight / v), units(send), units(send)});
}

std::int64_t makespan(const Pipeline& pipeline, std::int64_t forward, std::int64_t input,
                      std::int64_t weight) {
  return pipeline_time(pipeline, even_times(pipeline, forward, input, weight),
                       Transfers::overlapped)
      .makespan.ps();
}

std::int64_t longest(const Pipeline& pipeline, std::int64_t forward, std::int64_t input,
                     std::int64_t weight) {
  return pipeline_time(pipeline, even_times(pipeline, forward, input, weight),
                       Transfers::overlapped)
      .longest_stage()
      .ps();
}

std::vector<ChunkTimes> random_times(const Pipeline& pipeline, std::mt19937& random) {
  std::vector<ChunkTimes> times(static_cast<std::size_t>(pipeline.positions()));
  const auto draw = [&] { return units(static_cast<std::int64_t>(random() % 50)); };
  for (ChunkTimes& chunk : times) chunk = {draw(), draw(), draw(), draw(), draw(), draw()};
  return times;
}

// A plain implementation of the same rules: the ends of all slots are recomputed until nothing
// changes.
std::vector<std::vector<SlotTime>> relaxed(const Pipeline& pipeline,
                                           const std::vector<ChunkTimes>& times,
                                           Transfers transfers) {
  const auto slots = pipeline_slots(pipeline);
  std::map<std::tuple<int, int, int>, Duration>
      arrived;  // indexed by (forward?, position, micro batch)
  std::vector<std::vector<SlotTime>> result(slots.size());
  for (std::size_t s = 0; s < slots.size(); ++s) result[s].resize(slots[s].size());
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < slots.size(); ++s) {
      Duration free_at;
      for (std::size_t k = 0; k < slots[s].size(); ++k) {
        const auto [kind, chunk, micro_batch] = slots[s][k];
        const int position = pipeline.position(static_cast<int>(s), chunk);
        const ChunkTimes& time = times[static_cast<std::size_t>(position)];
        const bool forward = kind == SlotKind::forward;
        const bool weight = kind == SlotKind::weight_gradient;
        const Duration start =
            weight ? free_at : std::max(free_at, arrived[{forward, position, micro_batch}]);
        const Duration end = start + (forward                      ? time.forward
                                      : kind == SlotKind::backward ? time.backward
                                      : weight                     ? time.weight_gradient
                                                                   : time.input_gradient);
        const int target = forward ? position + 1 : position - 1;
        const bool leaves = !weight && target >= 0 && target < pipeline.positions() &&
                            pipeline.stage_at(target) != static_cast<int>(s);
        const Duration transfer = !leaves   ? Duration()
                                  : forward ? time.send_forward
                                            : time.send_backward;
        if (!weight) arrived[{forward, target, micro_batch}] = end + transfer;
        moved |= result[s][k].start != start || result[s][k].end != end;
        result[s][k] = {start, end};
        free_at = transfers == Transfers::exposed ? end + transfer : end;
      }
    }
  }
  return result;
}

}  // namespace

TEST_CASE("pipeline time: gpipe and 1f1b idle for p - 1 micro batches") {
  for (const PipelineSchedule schedule : {gpipe, one_f_one_b})
    for (const int p : {1, 2, 3, 5, 8})
      for (const int m : {1, 2, 5, 8, 24})
        for (const auto& [f, b, w] : {std::tuple{1, 1, 1}, {3, 4, 1}, {5, 2, 2}}) {
          const Pipeline pipeline{schedule, p, 1, m};
          CAPTURE(name_of(schedule), p, m, f, b, w);
          CHECK(makespan(pipeline, f, b, w) == (m + p - 1) * (f + b + w));
          const PipelineTime time =
              pipeline_time(pipeline, even_times(pipeline, f, b, w), Transfers::overlapped);
          for (const StageTime& stage : time.stages) CHECK(stage.busy.ps() == m * (f + b + w));
        }
}

TEST_CASE("pipeline time: interleaving divides the idle time by the number of chunks") {
  for (const int p : {2, 3, 4, 8})
    for (const int v : {1, 2, 3, 6})
      for (const int rounds : {1, 2, 5}) {
        const Pipeline pipeline{interleaved, p, v, rounds * p};
        CAPTURE(p, v, rounds);
        // Forward and backward of a stage take 6 and 12, which are whole numbers in every chunk.
        CHECK(makespan(pipeline, 6, 6, 6) == rounds * p * 18 + (p - 1) * 18 / v);
      }
}

TEST_CASE("pipeline time: zero-bubble schedules have the idle time of their paper") {
  // Qi et al. 2024, table 2. A stage is timed from its first slot to its last.
  for (const int p : {2, 3, 4, 8})
    for (const int m : {2 * p, 3 * p + 1, 6 * p})
      for (const auto& [f, b, w] : {std::tuple{2, 2, 2}, {4, 4, 3}, {5, 5, 5}, {6, 7, 5}}) {
        CAPTURE(p, m, f, b, w);
        const std::int64_t work = m * (f + b + w);
        CHECK(makespan({one_f_one_b, p, 1, m}, f, b, w) == work + (p - 1) * (f + b + w));
        CHECK(longest({zb1p, p, 1, m}, f, b, w) == work + (p - 1) * (f + b - w));
        CHECK(longest({zb2p, p, 1, m}, f, b, w) == work + (p - 1) * (f + b - 2 * w));
        if (f == b && b == w) CHECK(longest({zbv, p, 2, m}, 2 * f, 2 * b, 2 * w) == 2 * work);
      }
}

TEST_CASE("pipeline time: the replay gives the earliest starts, for any times") {
  std::mt19937 random(7);
  for (const std::string& name : pipeline_schedule_names())
    for (const int p : {1, 2, 3, 5})
      for (const int v : {1, 2, 3})
        for (const int m : {1, 3, 5, 6, 10}) {
          const Pipeline pipeline{parse_pipeline_schedule(name, {}), p, v, m};
          if (!refusal(pipeline).empty()) continue;
          const std::vector<ChunkTimes> times = random_times(pipeline, random);
          for (const Transfers transfers : {Transfers::overlapped, Transfers::exposed}) {
            CAPTURE(name, p, v, m);
            const PipelineTime time = pipeline_time(pipeline, times, transfers, Detail::slots);
            const auto expected = relaxed(pipeline, times, transfers);
            Duration last;
            for (std::size_t s = 0; s < expected.size(); ++s) {
              REQUIRE(time.slots[s].size() == expected[s].size());
              for (std::size_t k = 0; k < expected[s].size(); ++k) {
                CHECK(time.slots[s][k].start == expected[s][k].start);
                CHECK(time.slots[s][k].end == expected[s][k].end);
              }
              const StageTime& stage = time.stages[s];
              if (transfers == Transfers::overlapped)
                CHECK(stage.last_end == expected[s].back().end);
              CHECK(stage.last_end >= expected[s].back().end);
              CHECK(stage.idle() >= Duration());
              last = std::max(last, stage.last_end);
            }
            CHECK(time.makespan == last);
          }
        }
}

TEST_CASE("pipeline time: leaving out repeated turns changes no picosecond") {
  std::mt19937 random(11);
  const auto below = [&](std::uint64_t n) { return static_cast<int>(random() % n); };
  for (int i = 0; i < 3000; ++i) {
    const auto schedule = static_cast<PipelineSchedule>(i % 6);
    Pipeline pipeline{schedule, 1 + below(6), 1, 1 + below(300)};
    if (schedule == interleaved) {
      pipeline.chunks = 1 + below(4);
      pipeline.micro_batches = pipeline.stages * (1 + below(80));
    }
    if (schedule == zbv) pipeline.chunks = 2;
    std::vector<ChunkTimes> times = random_times(pipeline, random);
    if (below(2) == 0) std::fill(times.begin(), times.end(), times.front());  // equal or nearly so
    if (below(2) == 0) times.back().forward += units(1);
    for (const Transfers transfers : {Transfers::overlapped, Transfers::exposed}) {
      CAPTURE(name_of(schedule), pipeline.stages, pipeline.chunks, pipeline.micro_batches);
      const PipelineTime time = pipeline_time(pipeline, times, transfers);
      const PipelineTime whole = pipeline_time(pipeline, times, transfers, Detail::slots);
      CHECK(time.makespan == whole.makespan);
      REQUIRE(time.stages.size() == whole.stages.size());
      for (std::size_t s = 0; s < time.stages.size(); ++s) {
        const StageTime &stage = time.stages[s], &full = whole.stages[s];
        CHECK(stage.first_start == full.first_start);
        CHECK(stage.last_end == full.last_end);
        CHECK(stage.busy == full.busy);
        CHECK(stage.sending == full.sending);
        for (std::size_t c = 0; c < full.last_gradient.size(); ++c) {
          CHECK(stage.last_gradient[c].start == full.last_gradient[c].start);
          CHECK(stage.last_gradient[c].end == full.last_gradient[c].end);
        }
      }
    }
  }
}

TEST_CASE("pipeline time: exposed transfers of 1f1b cost two messages per micro batch") {
  // In the steady state a middle stage sends one activation and one gradient per micro batch, and
  // its neighbours wait for both.
  const int p = 4;
  const int m = 64;
  const Pipeline pipeline{one_f_one_b, p, 1, m};
  const auto step = [&](Transfers transfers, std::int64_t send) {
    return pipeline_time(pipeline, even_times(pipeline, 100, 100, 100, send), transfers)
        .makespan.ps();
  };
  CHECK(step(Transfers::exposed, 0) == step(Transfers::overlapped, 0));
  const double per_message =
      static_cast<double>(step(Transfers::exposed, 10) - step(Transfers::exposed, 0)) / 10;
  CHECK(per_message >= 2 * m);
  CHECK(per_message <= 2 * (m + p));
  CHECK(step(Transfers::overlapped, 10) < step(Transfers::exposed, 10));
}

TEST_CASE("pipeline time: gradients of late stages are complete first") {
  const Pipeline pipeline{one_f_one_b, 4, 1, 8};
  const PipelineTime time =
      pipeline_time(pipeline, even_times(pipeline, 1, 1, 1), Transfers::overlapped);
  for (std::size_t r = 0; r < 4; ++r) {
    // In the cool-down, only earlier stages still run backward passes: stage r ends r passes before
    // the makespan.
    CHECK(time.stages[r].last_gradient[0].end.ps() == time.makespan.ps() - 2 * static_cast<int>(r));
    CHECK(time.stages[r].last_gradient[0].start.ps() ==
          time.stages[r].last_gradient[0].end.ps() - 2);
  }
  // The last chunk in the order of the model has its gradients complete first.
  const Pipeline chunked{interleaved, 4, 3, 8};
  const PipelineTime chunks =
      pipeline_time(chunked, even_times(chunked, 3, 3, 3), Transfers::overlapped);
  for (const StageTime& stage : chunks.stages) {
    CHECK(stage.last_gradient[2].end < stage.last_gradient[1].end);
    CHECK(stage.last_gradient[1].end < stage.last_gradient[0].end);
    CHECK(stage.last_gradient[0].end == stage.last_end);
  }
}

TEST_CASE("pipeline time: the slowest stage determines the rate") {
  const Pipeline pipeline{one_f_one_b, 4, 1, 100};
  std::vector<ChunkTimes> times = even_times(pipeline, 10, 10, 10);
  times[3].forward = units(15);
  times[3].backward = units(30);
  const PipelineTime time = pipeline_time(pipeline, times, Transfers::overlapped);
  CHECK(time.makespan.ps() == 100 * 45 + 3 * 30);
  CHECK(time.stages[3].idle() == Duration());
  CHECK(time.stages[0].busy.ps() == 100 * 30);
}

TEST_CASE("pipeline time: a step of 16 stages, 6 chunks and 1,536 micro batches") {
  const Pipeline pipeline{interleaved, 16, 6, 1536};
  const PipelineTime time =
      pipeline_time(pipeline, even_times(pipeline, 60, 60, 60, 1), Transfers::overlapped);
  // The bound adds the idle time (p - 1) / v, and the transfers of the first micro batch forward
  // and back.
  CHECK(time.makespan.ps() >= 1536 * 180 + 15 * 180 / 6 + 2 * 15);
  CHECK(time.makespan.ps() <= 1536 * 180 + 15 * 180 / 6 + 2 * 96 * 2);
}

TEST_CASE("pipeline time: a time above 106 days is refused instead of overflowing") {
  const Pipeline pipeline{one_f_one_b, 2, 1, 8};
  const Duration long_pass = Duration::seconds(1e6);
  const std::vector<ChunkTimes> times(2, {long_pass, long_pass, long_pass, long_pass, {}, {}});
  CHECK_THROWS_WITH(pipeline_time(pipeline, times, Transfers::overlapped),
                    Catch::Contains("106 days"));
}

}  // namespace lambcast::parallel
