#include "experiments/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <new>
#include <optional>

#include "experiments/result_row.h"
#include "experiments/sweep_check.h"
#include "experiments/sweep_folder.h"
#include "experiments/sweep_ranks.h"
#include "models/training/forecast.h"
#include "sim/base/csv.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

// How long a row may take before the caller hears that nothing happened.
constexpr std::chrono::milliseconds patience{250};

// What most points were warned of, each kind once: a row has no place for it. What fewer were is
// what the sweep varies, such as a freeze_step that is too early.
class Warnings {
 public:
  void add(const std::vector<SweepRow>& rows) {
    rows_ += rows.size();
    for (const SweepRow& row : rows)
      for (const Finding& warning : row.warnings) {
        Kind& kind = kinds_[warning.code];
        if (kind.points++ == 0) kind.first = warning.message;
      }
  }

  void say(const std::function<void(const std::string&)>& note) const {
    for (const auto& [code, kind] : kinds_)
      if (2 * kind.points > rows_)
        note(fmt::format("warning of {} point{}: {} [{}]", kind.points, kind.points > 1 ? "s" : "",
                         kind.first, code));
  }

 private:
  struct Kind {
    std::size_t points = 0;
    std::string first;
  };
  std::map<std::string, Kind> kinds_;
  std::size_t rows_ = 0;
};

}  // namespace

SweepRow row_or_reason(const WhatIf& point, const std::function<SweepRow()>& compute) {
  SweepRow row;
  try {
    row = compute();
  } catch (const std::bad_alloc&) {
    throw;  // of the machine, not of the point
  } catch (const Error& error) {
    row.text = csv::row(infeasible_row(point, error.what()));
  } catch (const std::exception& error) {
    row.text = csv::row(
        infeasible_row(point, fmt::format("internal error, please report it: {}", error.what())));
  }
  // A row is a line: resuming counts on it.
  std::replace(row.text.begin(), row.text.end(), '\n', ' ');
  return row;
}

SweepRow sweep_row(const WhatIf& point, Catalog& catalog, CollectiveCosts& costs) {
  return row_or_reason(point, [&] {
    const Scenario scenario = resolve(point, catalog);
    const Forecast result = forecast(scenario.training, costs);
    SweepRow row{csv::row(result_row(scenario, result)), result.memory.fits};
    for (const Finding& finding : scenario.findings)
      if (finding.severity == Severity::warning) row.warnings.push_back(finding);
    return row;
  });
}

SweepSummary run_sweep(const SweepPlan& plan, const SweepOptions& options) {
  const auto texts = std::make_shared<DescriptionTexts>();
  Catalog catalog(texts);
  check_values(plan.points, catalog);
  SweepFolder folder(options.out, plan, texts->hashes(), options.resume,
                     [&](const std::string& what) {
                       if (options.note) options.note(what);
                     });
  SweepSummary summary;
  summary.points = plan.points.size();
  const std::size_t first = folder.rows();
  const int jobs = std::max(1, options.jobs);
  std::optional<SweepRanks> others;
  if (options.ranks != nullptr) others.emplace(*options.ranks, plan, *texts, jobs);
  SweepExecutor executor(plan.points, first, jobs, texts, options.row_of,
                         others ? &*others : nullptr);
  Warnings warnings;
  while (folder.rows() < summary.points) {
    const std::vector<SweepRow> rows = executor.next(patience);
    warnings.add(rows);
    folder.append(rows);
    if (options.progress && !options.progress(folder.rows(), summary.points)) {
      executor.leave();
      break;
    }
  }
  folder.finish();
  if (options.note) warnings.say(options.note);
  summary.written = folder.rows() - first;
  summary.infeasible = folder.infeasible();
  summary.complete = folder.rows() == summary.points;
  return summary;
}

}  // namespace lambcast
