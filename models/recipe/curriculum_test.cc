#include "models/recipe/curriculum.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace lambcast {
namespace {

Curriculum linear(std::int64_t min, std::int64_t max, std::int64_t total, std::int64_t step) {
  return {CurriculumSchedule::fixed_linear, min, max, total, step, 1, {}, {}};
}

// Replays an engine that calls the scheduler before every step.
std::vector<std::int64_t> replay(const Curriculum& c, std::int64_t steps) {
  std::vector<std::int64_t> lengths;
  std::int64_t current = c.min_difficulty;
  for (std::int64_t t = 1; t <= steps; ++t) {
    if (current < c.max_difficulty) {
      if (c.schedule == CurriculumSchedule::fixed_discrete) {
        std::size_t i = 0;
        while (i < c.max_step.size() && t > c.max_step[i]) ++i;
        current = c.difficulty[i];
      } else {
        const double share = std::pow(static_cast<double>(t) / static_cast<double>(c.total_step),
                                      1.0 / c.root_degree);
        const auto d = static_cast<std::int64_t>(
            std::floor(share * static_cast<double>(c.max_difficulty - c.min_difficulty) +
                       static_cast<double>(c.min_difficulty)));
        current = std::min(d - d % c.difficulty_step, c.max_difficulty);
      }
    }
    lengths.push_back(current);
  }
  return lengths;
}

void check_against_replay(const Curriculum& c, std::int64_t steps) {
  std::vector<std::int64_t> unrolled;
  std::int64_t previous = -1;
  for (const SeqLenPhase& phase : length_phases(c, steps)) {
    CHECK(phase.steps > 0);
    CHECK(phase.seq_len != previous);
    previous = phase.seq_len;
    unrolled.insert(unrolled.end(), static_cast<std::size_t>(phase.steps), phase.seq_len);
  }
  CHECK(unrolled == replay(c, steps));
}

TEST_CASE("curriculum: the tutorial's 8 to 1024 over 15000 steps") {
  const Curriculum c = linear(8, 1024, 15000, 8);
  // 16 is reached if t / 15000 * 1016 + 8 >= 16, that is at t = ceil(15000 * 8 / 1016) = 119.
  CHECK(seq_len_at(c, 118) == 8);
  CHECK(seq_len_at(c, 119) == 16);
  CHECK(seq_len_at(c, 14999) == 1016);
  CHECK(seq_len_at(c, 15000) == 1024);
  CHECK(seq_len_at(c, 1'000'000) == 1024);
  CHECK(length_phases(c, 20000).size() == 128);  // 8, 16, ..., 1024
  check_against_replay(c, 20000);
}

TEST_CASE("curriculum: rounding can start below the minimum and end after the total") {
  CHECK(seq_len_at(linear(10, 1024, 1000, 8), 1) == 8);
  CHECK(seq_len_at(linear(8, 1024, 1000, 64), 1) == 0);
  // 1000 is not a multiple of 64. The length is 960 until (t / 100) * 936 + 64 >= 1024, that is t =
  // ceil(102.6) = 103.
  const Curriculum late = linear(64, 1000, 100, 64);
  CHECK(seq_len_at(late, 100) == 960);
  CHECK(seq_len_at(late, 102) == 960);
  CHECK(seq_len_at(late, 103) == 1000);
}

TEST_CASE("curriculum: phases equal the replayed steps, for any schedule") {
  for (const std::int64_t total : {1, 7, 100, 999})
    for (const std::int64_t step : {1, 8, 64, 100}) {
      check_against_replay(linear(64, 1000, total, step), 1200);
      for (const double degree : {0.5, 1.0, 2.0, 3.0}) {
        Curriculum root = linear(16, 512, total, step);
        root.schedule = CurriculumSchedule::fixed_root;
        root.root_degree = degree;
        check_against_replay(root, 1100);
      }
    }
}

TEST_CASE("curriculum: a square root reaches half of the range in a quarter of the steps") {
  Curriculum c = linear(8, 1032, 400, 8);
  c.schedule = CurriculumSchedule::fixed_root;
  c.root_degree = 2;
  // The length is sqrt(100 / 400) * 1024 + 8 = 520.
  CHECK(seq_len_at(c, 100) == 520);
}

TEST_CASE(
    "curriculum: discrete steps include their limits and may decrease until the maximum is "
    "reached") {
  Curriculum c{CurriculumSchedule::fixed_discrete, 128, 512, 0, 0, 1, {128, 256, 512}, {5, 10}};
  CHECK(length_phases(c, 20) == std::vector<SeqLenPhase>{{128, 5}, {256, 5}, {512, 10}});
  CHECK(length_phases(c, 5) == std::vector<SeqLenPhase>{{128, 5}});
  check_against_replay(c, 20);
  c.difficulty = {256, 128, 512};
  CHECK(length_phases(c, 12) == std::vector<SeqLenPhase>{{256, 5}, {128, 5}, {512, 2}});
  c.difficulty = {512, 128, 256};  // the maximum is reached at once, and kept
  CHECK(length_phases(c, 12) == std::vector<SeqLenPhase>{{512, 12}});
  check_against_replay(c, 12);
}

TEST_CASE("curriculum: a minimum at or above the maximum stays") {
  CHECK(length_phases(linear(512, 512, 100, 8), 50) == std::vector<SeqLenPhase>{{512, 50}});
  CHECK(length_phases(linear(513, 512, 100, 8), 50) == std::vector<SeqLenPhase>{{513, 50}});
  CHECK(length_phases(linear(8, 512, 100, 8), 0).empty());
}

TEST_CASE("curriculum: a run of 10^15 steps costs no more than its number of phases") {
  const std::int64_t steps = 1'000'000'000'000'000;
  const std::vector<SeqLenPhase> all = length_phases(linear(8, 1024, steps / 2, 8), steps);
  CHECK(all.size() == 128);
  std::int64_t sum = 0;
  for (const SeqLenPhase& phase : all) sum += phase.steps;
  CHECK(sum == steps);
}

}  // namespace
}  // namespace lambcast
