// Sources of error of a run's forecast, separated so that two runs can be compared under the same
// error: a GPU that is slower than forecast slows both.
//
// Operations whose times have the same origin err together and form one source: the model's passes,
// copies in the GPU's memory, the kernels of one implementation, copies to the host, one collective
// of one library. A source moves all its operations to the low or to the high end of their
// intervals (price.h). The step is then executed again, so that hidden work does not change it.
// Collectives within the passes of a layout err with the other collectives of their kind, and not
// with the computation of the passes: slower computation hides more of them. The passes are priced
// again with each kind at its ends (PassesAtEnds in stretches.h).
//
// Sources err independently. With s a source and r = ln(a / b) the logarithm of the ratio of two
// runs' times,
//
//   interval of the ratio = exp(r -+ sqrt(sum over s of (r(s) - r)^2)),
//
// where changes below r and above r are summed separately. A source common to both runs cancels.
// For runs on different machines a source is common if it depends on the same data: kernels on one
// description of a GPU under the same software, passes if the same program runs on both (its level
// cancels), collectives on descriptions that differ at most in the rate of their NICs. Other
// sources change each run separately.
//
// Errors of NCCL's collectives on one machine are equal in part. With c the share of the variance
// that a collective has in common with the others (topologies/common_error.h), and x = r(s) - r the
// effect of one end of a collective's interval,
//
//   square of the effects of all collectives = sum of (1 - c) x^2 + (sum of sqrt(c) x)^2.
//
// So effects of opposite signs cancel in part: a slow network slows both runs. The interval of a
// single run assumes that all collectives have one error (interval.h).
#pragma once

#include <array>
#include <bitset>
#include <optional>
#include <string>
#include <vector>

#include "models/training/run/step.h"

namespace lambcast {

inline constexpr std::size_t error_sources = 35;

// Time of a step or a run, and its time with each source at either end of its interval.
struct TimeAtEnds {
  struct Ends {
    double low_s = 0, high_s = 0;
    double common_s = 0;  // c (high_s - low_s) of a collective; 0 for other sources
  };
  double s = 0;
  std::array<Ends, error_sources> at{};

  // Adds `times` steps with these times.
  void add(const TimeAtEnds& step, double times);
};

// Returns the times of a step of this plan.
TimeAtEnds time_at_ends(const StepRun& step, const TrainingPlan& training);

// Kind of operation whose times a source moves.
enum class ErrorOf { passes, copies, plain_kernels, exchange_kernels, onebit_kernels, wires };
ErrorOf what_errs(std::size_t source);

// Returns the kind of collective whose errors form this source; nothing for kernels, copies and
// passes.
std::optional<CallKind> measured_call(std::size_t source);

// Name of a source ("all_reduce over nccl"), and the measurement, with its command, that would
// narrow its interval.
std::string name_of_source(std::size_t source);
std::string measurement_of(std::size_t source);

// Effect of one source on a ratio, with all others as expected.
struct ErrorShare {
  std::size_t source = 0;
  double low = 1, high = 1;
};

struct RatioInterval {
  double value = 1, low = 1, high = 1;
  std::vector<ErrorShare> shares;  // widest first; sources without an effect are omitted
};

using ErrorSources = std::bitset<error_sources>;

// Returns the sources whose errors are the same in both runs.
ErrorSources common_sources(const TrainingPlan& a, const TrainingPlan& b);

// Returns the ratio a / b with its interval, such as a speed-up: the time of the baseline divided
// by that of the other run. On one machine all sources are common.
RatioInterval ratio_of(const TimeAtEnds& a, const TimeAtEnds& b,
                       const ErrorSources& common = ErrorSources().set());

}  // namespace lambcast
