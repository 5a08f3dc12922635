#include "validate/program/left_out_stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/training/price/measured_program.h"
#include "validate/calibrate/calibrate.h"
#include "validate/program/program_levels.h"

namespace lambcast {
namespace {

constexpr double median_of_normal = 0.6745;  // median absolute value, in standard deviations

}  // namespace

LeftOutStacks leave_out_stacks() {
  const std::vector<UnseenStack> stacks = unseen_stacks();
  const std::vector<StackLevel> levels = shipped_levels();
  LeftOutStacks left_out;
  std::vector<double> medians, medians_of_levels, variances;
  for (const UnseenStack& stack : stacks) {
    if (stack.rows.empty()) continue;
    std::vector<StackLevel> others = levels;
    const auto own = std::ranges::find_if(others, [&](const StackLevel& level) {
      return level.program == stack.program && level.machine == stack.machine;
    });
    const bool has_level = own != others.end();  // true if it mostly computes
    if (has_level) {
      variances.push_back(own->variance);
      others.erase(own);
    }
    LeftOutStack of{stack, replay_figures(stack.rows, learn_prior(others)), {}, 0};
    of.score = score_of(of.results);
    for (const SourceResult& result : of.results)
      of.half_width += half_width_of(result) / static_cast<double>(of.results.size());
    medians.push_back(of.score.median);
    if (has_level) medians_of_levels.push_back(of.score.median);
    left_out.rows += of.score.with_interval;
    left_out.inside += of.score.inside;
    left_out.stacks.push_back(std::move(of));
  }
  const double spread = learn_prior(levels).spread;
  left_out.of_medians = validate::quantile(medians, 0.5);
  left_out.of_levels = validate::quantile(medians_of_levels, 0.5);
  const double of_kernels = std::accumulate(variances.begin(), variances.end(), 0.0) /
                            static_cast<double>(variances.size());
  left_out.limit = std::expm1(median_of_normal *
                              std::sqrt(spread * spread + of_kernels + run_spread * run_spread));
  return left_out;
}

std::vector<SourceResult> results_of(const LeftOutStacks& left_out) {
  std::vector<SourceResult> results;
  for (const LeftOutStack& stack : left_out.stacks)
    results.insert(results.end(), stack.results.begin(), stack.results.end());
  return results;
}

std::string left_out_table(const LeftOutStacks& left_out) {
  std::string out = fmt::format("{:<29} {:<39} {:>4} {:>6} {:>6} {:>6}\n", "unseen program",
                                "machine", "rows", "med.", "inside", "width");
  for (const LeftOutStack& of : left_out.stacks)
    out += fmt::format("{:<29} {:<39} {:>4} {:>5.1f}% {:>6} {:>6.2f}\n", of.stack.program,
                       of.stack.machine, of.score.rows, 100 * of.score.median,
                       fmt::format("{}/{}", of.score.inside, of.score.with_interval),
                       std::exp(of.half_width));
  return out +
         fmt::format(
             "Grade S, {} stacks left out in turn: median of their medians {:.1f}%, {:.1f}% where "
             "they "
             "mostly compute (the spread of programs allows {:.1f}%), {} of {} rows ({:.0f}%) "
             "inside "
             "90 % intervals.\n",
             left_out.stacks.size(), 100 * left_out.of_medians, 100 * left_out.of_levels,
             100 * left_out.limit, left_out.inside, left_out.rows,
             100.0 * left_out.inside / left_out.rows);
}

}  // namespace lambcast
