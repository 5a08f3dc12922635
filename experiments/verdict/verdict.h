// Verdict on whether compression pays, for one run and for many: used by `advise`, `simulate`,
// `sweep`, `compare` and the first screen of a report. Labels are here; the sentences around them
// are written by these commands (experiments/advise/advice_verdict.h).
//
// A speed-up over the plain optimizer comes with an interval (models/training/run/error_source.h).
// It pays, or does not, if the whole interval is on one side of 1. Otherwise it is not certain, and
// the source of error with the widest interval should be measured first. An interval within 5 % of
// 1 is no difference. A run that compresses fewer than 5 % of its steps
// (models/training/run/compressed_share.h) is not judged.
//
// Among many runs, those with an unusual share of warm-up are not representative. A run that
// compresses from its first step on has no variance to freeze. One that freezes in the first tenth
// of its steps, earlier than any published recipe, is fast but need not converge. One that warms up
// for more than half of its steps is hardly compressed. Tables and figures over freeze_step show
// them. Counts, best, worst, medians and fastest leave them out and state how many, and likewise
// runs with a backend that ends with an error there (models/training/price/backend_limit.h). Runs
// that freeze early count if no run freezes later.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace lambcast {

enum class Verdict { does_not_fit, not_judged, yes, hardly, no, cannot_tell };
std::string_view name_of(Verdict verdict);  // the code in files: "yes", "cannot_tell"
// Returns the words shown to users: "pays", "does not pay", "no difference", "not certain", "not
// judged", "does not fit".
std::string_view words_of(Verdict verdict);
// Returns the words of a code in a file; a text that is not a code is returned unchanged.
std::string_view words_of_code(std::string_view code);

// Speed-up over the plain optimizer. Older files have no interval; low and high then equal the
// value.
struct Speedup {
  double value = 1, low = 1, high = 1;
};

Verdict verdict_of(const Speedup& speedup, double compressed_share, bool fits);

// Returns why a run is not judged, in a sentence with the flags that would change that.
std::string why_not_judged(double compressed_share, double steps);

// Returns the reason for a run without warm-up.
std::string no_warm_up_text();

// Shares of the run between which a warm-up is usual. The published recipes warm up for 13 to 25 %.
inline constexpr double shortest_warmup_share = 0.1, longest_warmup_share = 0.5;

enum class WarmUp { usual, none, early, most_of_the_run };
// Classifies the warm-up. Steps count from 1, and step freeze_step already compresses. NaN: the
// optimizer has no freeze step.
WarmUp warm_up_of(double freeze_step, double steps);

// Returns whether the codes of a row's findings, separated by spaces, include one of a backend that
// ends with an error.
bool backend_fails(std::string_view findings);

// Numbers of runs that are left out, by reason. A run that fails counts as failing alone.
struct LeftOut {
  std::size_t no_warm_up = 0, early = 0, long_warm_up = 0, failing = 0;

  // Adds a run, and returns whether it is left out.
  bool add(WarmUp warm_up, bool fails);
  std::size_t all() const { return no_warm_up + early + long_warm_up + failing; }
};
// Returns "2 without warm-up (freeze_step 0 or 1), which have no variance to freeze; ..."; empty if
// none were left out.
std::string left_out_text(const LeftOut& left_out);

// Counts of the verdicts of many runs.
struct VerdictCounts {
  std::size_t yes = 0, hardly = 0, no = 0, cannot_tell = 0;
  std::size_t best_at = 0;  // number of the run with the largest speed-up
  Speedup best{0, 0, 0};
  // Runs with an uncertain verdict, by the measurement to make first.
  std::map<std::string, std::size_t, std::less<>> measure = {};

  // Adds a run; one that does not fit or is not judged is not counted.
  void add(std::size_t run, const Speedup& speedup, Verdict verdict, std::string_view measure);
  std::size_t judged() const { return yes + hardly + no + cannot_tell; }
};

// A function that returns the name of a run, which may be empty.
using RunName = std::function<std::string(std::size_t)>;

// Returns the verdict that the headline opens with; not_judged if no run was judged.
Verdict verdict_of(const VerdictCounts& counts);
// Returns a headline such as "Pays in all 12 points, most with 65536: 2.34x (1.59 to 3.20x)."
std::string headline_of(const VerdictCounts& counts, const RunName& name);
// Returns which measurement to make first, and the headline of the fused kernels if it differs.
std::string detail_of(const VerdictCounts& counts, const VerdictCounts& fused, const RunName& name);
// Returns headline and details.
std::string in_words(const VerdictCounts& counts, const VerdictCounts& fused, const RunName& name);

// Formats a speed-up as "2.34x (1.59 to 3.20x)"; without an interval only the value.
std::string to_text(const Speedup& speedup);

}  // namespace lambcast
