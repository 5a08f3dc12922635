#include "experiments/output/forecast_explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "experiments/output/memory_output.h"
#include "experiments/output/plain_name.h"
#include "experiments/verdict/reference_words.h"
#include "experiments/verdict/verdict.h"
#include "sim/base/sort_stably.h"

namespace lambcast {
namespace {

// General notes on DeepSpeed and NCCL, which do not depend on the user's input or this forecast.
constexpr std::array<std::string_view, 3> at_large{"onebit-removed", "skipped-steps",
                                                   "stream-limit"};

// A number that affects a smaller share of the time is left out.
constexpr double least_share = 0.01;

}  // namespace

const std::vector<std::string>& forecast_explanation_names() {
  static const std::vector<std::string> names{"sources", "parts", "notes"};
  return names;
}

std::string explain_forecast(const TrainingPlan& training, const Forecast& forecast,
                             const Judgement& judgement, std::string_view what) {
  if (what == "sources") return sources_text(forecast.sources.shares());
  if (what == "parts") return memory_text(training, forecast.memory);
  return notes_text(judgement.findings);
}

std::string notes_text(const std::vector<Finding>& findings) {
  std::string out;
  for (const Finding& finding : findings)
    out += fmt::format("{}: {} [{}]\n  {}\n", name_of(finding.severity), finding.message,
                       finding.code, meaning_of("finding", finding.code));
  return out.empty() ? "no findings\n" : out;
}

std::string sources_text(const std::vector<CostSource>& sources) {
  std::string out = "sources of the costs, and the share of the time that each affects\n";
  for (const CostSource& source : sources)
    out +=
        fmt::format("  {:<27} {:>3.0f} % {:<9} {}\n", plain_cost(source.cost), 100 * source.share,
                    name_of(source.provenance.kind), source.provenance.source);
  return out;
}

std::string sources_line(const std::vector<CostSource>& sources) {
  std::size_t matter = 0, assumed = 0;
  for (const CostSource& source : sources) {
    if (source.share < least_share) continue;
    ++matter;
    if (source.provenance.kind == Kind::assumed) ++assumed;
  }
  return fmt::format("rests on {} number{}, {} of them assumed (--explain sources)\n", matter,
                     matter == 1 ? "" : "s", assumed);
}

std::string findings_text(std::vector<Finding> findings) {
  // A run that ends with an error comes before one that is only forecast less surely.
  sort_stably(findings, std::ranges::less(), [](const Finding& finding) {
    return std::pair(finding.severity, !backend_fails(finding.code));
  });
  std::string out, notes;
  for (const Finding& finding : findings) {
    if (std::ranges::find(at_large, finding.code) != at_large.end())
      notes += (notes.empty() ? "notes: " : ", ") + finding.code;
    else
      out += fmt::format("{}: {} [{}]\n", name_of(finding.severity), finding.message, finding.code);
  }
  return notes.empty() ? out : out + notes + " (--explain notes)\n";
}

}  // namespace lambcast
