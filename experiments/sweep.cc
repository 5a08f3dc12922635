#include "experiments/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "experiments/result_row.h"
#include "experiments/sweep_check.h"
#include "experiments/sweep_folder.h"
#include "models/training/forecast.h"
#include "sim/base/csv.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

// How long a row may take before the caller hears that nothing happened.
constexpr std::chrono::milliseconds patience{250};

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
    return SweepRow{csv::row(result_row(scenario, result)), result.memory.fits};
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
  SweepExecutor executor(plan.points, first, std::max(1, options.jobs), texts, options.row_of);
  while (folder.rows() < summary.points) {
    folder.append(executor.next(patience));
    if (options.progress && !options.progress(folder.rows(), summary.points)) {
      executor.leave();
      break;
    }
  }
  folder.finish();
  summary.written = folder.rows() - first;
  summary.infeasible = folder.infeasible();
  summary.complete = folder.rows() == summary.points;
  return summary;
}

}  // namespace lambcast
