// The sequence-length curriculum: early steps train on truncated sequences.
//
// With t = 1, 2, ... the optimizer step, T = total_step, s = difficulty_step, r = root_degree (1
// for fixed_linear), lengths in tokens:
//
//   d(t) = floor( (t / T)^(1/r) * (max - min) + min );  d -= d mod s;  d = min(d, max)
//
// fixed_discrete: the first difficulty whose max_step has not passed; after all, the last one. Once
// d reaches max it is not updated any more. d affects computation, not communication.
//
// Two quirks are reproduced: if min is no multiple of s, d starts below min (min 10, s 8: d = 8; s
// > min: d = 0), and if max is no multiple, d reaches max only some steps after T. Source:
// DeepSpeed 0.16.5, runtime/data_pipeline/curriculum_scheduler.py and engine.py (forward). Left
// out: `custom`, a Python function.
#pragma once

#include <cstdint>
#include <vector>

namespace lambcast {

enum class CurriculumSchedule { fixed_linear, fixed_root, fixed_discrete };

struct Curriculum {
  CurriculumSchedule schedule = CurriculumSchedule::fixed_linear;
  std::int64_t min_difficulty = 0;  // > 0
  std::int64_t max_difficulty = 0;  // at most max_seq_len
  // Values for fixed_linear and fixed_root:
  std::int64_t total_step = 0;       // > 0; DeepSpeed's total_curriculum_step
  std::int64_t difficulty_step = 0;  // > 0
  double root_degree = 1;            // > 0
  // For fixed_discrete: difficulty has one more entry than max_step, which is not empty.
  std::vector<std::int64_t> difficulty;
  std::vector<std::int64_t> max_step;

  bool operator==(const Curriculum&) const = default;
};

// Limit of sequence lengths; longer ones are considered errors. It also bounds the number of
// phases.
inline constexpr std::int64_t max_seq_len = std::int64_t{1} << 20;

// Consecutive steps with one sequence length.
struct SeqLenPhase {
  std::int64_t seq_len = 0;
  std::int64_t steps = 0;
  friend bool operator==(const SeqLenPhase&, const SeqLenPhase&) = default;
};

// Returns the phases of steps 1..total_steps in order. No phase has zero steps, neighbours differ
// in length, and all steps sum to total_steps.
std::vector<SeqLenPhase> length_phases(const Curriculum& curriculum, std::int64_t total_steps);

// Returns the sequence length at step `step` >= 1, that is of the last phase of a run with that
// number of steps.
std::int64_t seq_len_at(const Curriculum& curriculum, std::int64_t step);

}  // namespace lambcast
