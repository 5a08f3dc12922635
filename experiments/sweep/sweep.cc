#include "experiments/sweep/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "experiments/output/judgement.h"
#include "experiments/sweep/result_row.h"
#include "experiments/sweep/sweep_check.h"
#include "experiments/sweep/sweep_folder.h"
#include "experiments/sweep/sweep_ranks.h"
#include "models/training/run/forecast.h"
#include "sim/base/complaint.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

// Joins a message of several lines, one per error, into one line.
std::string in_one_line(std::string message) {
  for (std::size_t end = 0; (end = message.find('\n', end)) != std::string::npos;)
    message.replace(end, 1, "; ");
  return message;
}

// Longest wait for rows before the caller gets control back without any.
constexpr std::chrono::milliseconds patience{250};

// Passes the rows of points from number `first` on to `take`, in order. Returns false if stopped.
bool compute(const SweepPlan& plan, const SweepOptions& options,
             const std::shared_ptr<DescriptionTexts>& texts, std::size_t first,
             const std::function<void(std::vector<SweepRow>)>& take) {
  const int jobs = std::max(options.ranks == nullptr ? 0 : 1, options.jobs);
  std::optional<SweepRanks> others;
  if (options.ranks != nullptr) others.emplace(*options.ranks, plan, *texts, jobs);
  SweepExecutor executor(plan.points, first, jobs, texts, options.row_of,
                         others ? &*others : nullptr);
  for (std::size_t done = first; done < plan.points.size();) {
    std::vector<SweepRow> rows = executor.next(patience);
    done += rows.size();
    take(std::move(rows));
    if (options.progress && !options.progress(done, plan.points.size())) {
      executor.leave();
      return done == plan.points.size();
    }
  }
  return true;
}

}  // namespace

SweepRow row_or_reason(const WhatIf& point, const std::function<SweepRow()>& compute) {
  SweepRow row;
  try {
    row = compute();
  } catch (const std::bad_alloc&) {
    throw;  // an error of the machine, not of the point
  } catch (const std::exception& error) {
    row.text = infeasible_row(point, in_one_line(complaint_of(error).text));
  }
  // A row must be one line, since resuming relies on it.
  for (std::size_t end = 0; (end = row.text.find('\n', end)) != std::string::npos;)
    row.text[end] = ' ';
  return row;
}

SweepRow sweep_row(const WhatIf& point, Catalog& catalog, CollectiveCosts& costs) {
  return row_or_reason(point, [&] {
    const Scenario scenario = resolve(point, catalog);
    const Forecast result = forecast(scenario.training, costs);
    Judgement judgement = judgement_of(scenario, result);
    judgement.fused = fused_speedup(scenario, result, costs);
    return SweepRow{result_row(scenario, result, judgement), result.memory.fits,
                    std::move(judgement.findings)};
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
  summary.complete = compute(plan, options, texts, first, [&](const std::vector<SweepRow>& rows) {
    for (std::size_t i = 0; i < rows.size(); ++i)
      summary.findings.add(folder.rows() + i, rows[i].findings);
    folder.append(rows);
  });
  folder.finish();
  summary.written = folder.rows() - first;
  summary.infeasible = folder.infeasible();
  return summary;
}

SweptRows sweep_in_memory(const SweepPlan& plan, const SweepOptions& options,
                          const std::shared_ptr<DescriptionTexts>& texts) {
  SweptRows swept;
  swept.complete = compute(plan, options, texts, 0, [&](std::vector<SweepRow> rows) {
    for (SweepRow& row : rows) {
      swept.findings.add(swept.rows.size(), row.findings);
      swept.rows.push_back(std::move(row.text));
    }
  });
  return swept;
}

}  // namespace lambcast
