#include "validate/program/after_one_step.h"

#include <fmt/format.h>

#include <cmath>

#include "models/training/price/measured_program.h"
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

// Returns the median difference between two runs of one program, each with the spread run_spread.
double one_step_limit() { return std::expm1(0.6745 * std::sqrt(2.0) * run_spread); }

// Returns whether the run uses the framework of the stack. A level applies to one framework; runs
// of another one keep the prior.
bool is_of_first_program(const SourceFigure& figure, const UnseenStack& stack) {
  return figure.what_if.at("framework") == stack.framework;
}

}  // namespace

std::vector<AfterOneStep> after_one_step(const std::vector<UnseenStack>& stacks,
                                         std::size_t measured) {
  std::vector<AfterOneStep> all;
  for (const UnseenStack& stack : stacks) {
    std::vector<SourceResult> before;
    for (const SourceResult& result : replay_figures(stack.rows))
      if (result.ok() && mostly_computes(result) && is_of_first_program(result.of, stack))
        before.push_back(result);
    if (before.size() <= measured || before.front().of.name != stack.rows.front().name) continue;
    AfterOneStep of{stack.program, stack.machine, {}, {}};
    std::vector<SourceFigure> own, others;
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (i == own.size() * before.size() / measured && own.size() < measured) {
        own.push_back(before[i].of);
        continue;
      }
      others.push_back(before[i].of);
      of.before.push_back(before[i]);
    }
    of.after = replay_figures(with_program(others, fit_level(own).program));
    all.push_back(std::move(of));
  }
  return all;
}

OneStepScore score_of(const std::vector<AfterOneStep>& stacks) {
  std::vector<SourceResult> before, after;
  for (const AfterOneStep& stack : stacks) {
    before.insert(before.end(), stack.before.begin(), stack.before.end());
    after.insert(after.end(), stack.after.begin(), stack.after.end());
  }
  return {score_of(before), score_of(after), median_width(before), median_width(after)};
}

std::string one_step_table(const std::vector<AfterOneStep>& stacks,
                           const std::vector<AfterOneStep>& after_three) {
  std::string out = fmt::format("{:<29} {:<39} {:>4} {:>7} {:>6} {:>6} {:>8} {:>6}\n",
                                "after one measured step of", "machine", "rows", "before", "med.",
                                "p90", "inside", "width");
  for (const AfterOneStep& stack : stacks)
    out += line(stack.program, stack.machine, score_of({stack}));
  return out + line("all other runs", "", score_of(stacks)) +
         line("after three measured steps", "", score_of(after_three)) +
         "The first run sets the level of its program; the others are forecast with it. Single "
         "runs lie " +
         fmt::format("{:.0f} % about their level: that allows a median of {:.1f} %.\n",
                     100 * run_spread, 100 * one_step_limit());
}

}  // namespace lambcast
