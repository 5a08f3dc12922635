#include "validate/program/after_one_step.h"

#include <fmt/format.h>

#include <cmath>

#include "validate/calibrate/calibrate.h"
#include "validate/program/level_fit.h"

namespace lambcast {
namespace {

double median_width(const std::vector<SourceResult>& results) {
  std::vector<double> widths;
  for (const SourceResult& result : results) widths.push_back(std::exp(half_width_of(result)));
  return widths.empty() ? 1 : validate::quantile(widths, 0.5);
}

std::string line(const std::string& program, const std::string& machine,
                 const OneStepScore& score) {
  return fmt::format(
      "{:<29} {:<39} {:>4} {:>6.1f}% {:>5.1f}% {:>5.1f}% {:>8} {:>6.2f}\n", program, machine,
      score.after.rows, 100 * score.before.median, 100 * score.after.median, 100 * score.after.p90,
      fmt::format("{}/{}", score.after.inside, score.after.with_interval), score.width_after);
}

}  // namespace

std::vector<AfterOneStep> after_one_step(const std::vector<UnseenStack>& stacks) {
  std::vector<AfterOneStep> measured;
  for (const UnseenStack& stack : stacks) {
    AfterOneStep of{stack.program, stack.machine, {}, {}};
    std::vector<SourceFigure> others;
    for (const SourceResult& result : replay_figures(stack.rows))
      if (result.ok() && mostly_computes(result)) {
        others.push_back(result.of);
        of.before.push_back(result);
      }
    if (others.size() < 2 || others.front().name != stack.rows.front().name) continue;
    of.before.erase(of.before.begin());
    const LevelFit fit = fit_level({others.front()});
    others.erase(others.begin());
    of.after = replay_figures(with_program(others, fit.program));
    measured.push_back(std::move(of));
  }
  return measured;
}

OneStepScore score_of(const std::vector<AfterOneStep>& stacks) {
  std::vector<SourceResult> before, after;
  for (const AfterOneStep& stack : stacks) {
    before.insert(before.end(), stack.before.begin(), stack.before.end());
    after.insert(after.end(), stack.after.begin(), stack.after.end());
  }
  return {score_of(before), score_of(after), median_width(before), median_width(after)};
}

std::string one_step_table(const std::vector<AfterOneStep>& stacks) {
  std::string out = fmt::format("{:<29} {:<39} {:>4} {:>7} {:>6} {:>6} {:>8} {:>6}\n",
                                "after one measured step of", "machine", "rows", "before", "med.",
                                "p90", "inside", "width");
  for (const AfterOneStep& stack : stacks)
    out += line(stack.program, stack.machine, score_of({stack}));
  return out + line("all other runs", "", score_of(stacks)) +
         "The first run sets the level of its program; the others are forecast with it.\n";
}

}  // namespace lambcast
