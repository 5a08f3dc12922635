// The level of a training program on a machine: the ratio of its pass times to the times of the
// kernels that this project forecasts for them. Programs with the same kernels differ by 10 to 40
// %: they launch, fuse, lay out and overlap differently. One measured step of the user's own
// program determines most of it, so `lambcast calibrate --measured` writes it into the description:
//
//   [program]
//   framework = "megatron"   the measured program, a value of --framework
//   format = "half"          the format of its products: half, single, fp8, ...
//   level = { value = 1.19, kind = "fitted", source = "2 runs: ..." }
//   low = 1.12               90 % interval of the level (validate/program/level_fit.h)
//   high = 1.26
//   spread = 0.062           standard deviation of one run about the level, in logarithms, where
//                            several were measured (optional)
//   fewest_gpus = 8          of the runs that were measured (optional)
//   most_gpus = 64
//   products = 0.94          level of each kind of kernels, relative to that of all kernels, from a
//   attention = 1.21         profile of the job that tells them apart (optional;
//   element_wise = 1.08      validate/program/trace_report.h)
//
// The level multiplies forward and backward times of that program, for any model and layout. The
// levels of kinds redistribute these times, since another model or sequence length has other shares
// of each kind. They apply to passes that are priced kernel by kernel.
//
// A program without such a section has a prior: level 1, with the spread of levels over programs
// and machines to which no constant was fitted. The numbers are data, program_prior.toml, learned
// from the shipped published runs by validate/program/program_levels.h.
#pragma once

#include <optional>
#include <string>

#include "sim/base/table.h"

namespace lambcast {

// Measured over forecast time of each kind of kernels, divided by that ratio of all kernels of the
// passes.
struct KindLevels {
  double products = 1, attention = 1, element_wise = 1;
  bool operator==(const KindLevels&) const = default;
};

struct ProgramLevel {
  std::string framework, format;
  Sourced<double> level;
  double low = 1, high = 1;            // 90 % interval
  double spread = 0;                   // spread of one run about the level; 0: not stated
  int fewest_gpus = 0, most_gpus = 0;  // GPUs of the measured runs; 0: not stated
  KindLevels kinds = {};
  bool operator==(const ProgramLevel&) const = default;
};

// Prior of the level of a program that was not measured on the machine.
struct ProgramPrior {
  double spread = 0;  // standard deviation of the level's logarithm; 0: the level is known
  int programs = 0;   // number of programs behind the prior
  int stacks = 0;     // number of stacks: one program on one machine in one format
  bool operator==(const ProgramPrior&) const = default;
};

ProgramPrior decode_program_prior(const Table& root);
const ProgramPrior& shipped_program_prior();

// Decodes the section [program] of a cluster description; nothing if it is absent. Throws Error
// (usage) with file, line and key unless low <= level <= high.
std::optional<ProgramLevel> decode_program_level(const Table& table);

}  // namespace lambcast
