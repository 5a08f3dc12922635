#include "experiments/search/faster_framework.h"

#include <algorithm>
#include <array>
#include <functional>
#include <queue>
#include <string_view>
#include <tuple>
#include <vector>

#include "experiments/search/layout_judge.h"
#include "sim/base/error.h"

namespace lambcast {

std::optional<LayoutCandidate> fastest_layout(const LayoutSpace& space, double limit_us,
                                              LayoutJudge& judge,
                                              const std::function<bool()>& go_on) {
  const std::vector<LayoutCandidate> candidates = layout_candidates(space);
  // bound, place, and whether the bound is that of judge()
  using Entry = std::tuple<Duration, std::size_t, bool>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  for (std::size_t place = 0; place < candidates.size(); ++place)
    if (const auto least = judge.least_of_blocks(candidates[place]))
      open.emplace(*least, place, false);
  std::optional<std::size_t> fastest;
  while (!open.empty()) {
    const auto [bound, place, judged] = open.top();
    open.pop();
    if (bound.us() > limit_us) break;
    if (!go_on()) return std::nullopt;
    if (!judged) {
      const Judged judgement = judge.judge(candidates[place]);
      if (judgement.least) open.emplace(std::max(bound, *judgement.least), place, true);
      continue;
    }
    const auto time_us = judge.step_time_us(candidates[place], limit_us);
    if (!time_us || std::tuple(*time_us, place) >= std::tuple(limit_us, fastest.value_or(0)))
      continue;
    limit_us = *time_us;
    fastest = place;
  }
  return fastest ? std::optional(candidates[*fastest]) : std::nullopt;
}

void add_faster_framework(const WhatIf& asked, const SearchOptions& options,
                          const std::shared_ptr<DescriptionTexts>& texts, LayoutSearch& search) {
  // Keys that choose a framework. A file of a training program applies only to this program.
  constexpr std::array<std::string_view, 4> choices{"framework", "config", "megatron_args",
                                                    "torchtitan"};
  const bool chosen = std::ranges::any_of(
      choices, [&](std::string_view key) { return asked.contains(std::string(key)); });
  if (search.best.empty() || !search.complete || chosen) return;
  const auto go_on = [&] {
    return !options.progress || options.progress(search.candidates, search.candidates);
  };
  double limit_us = search.best.front().step.step_time.us();
  for (const FrameworkName name : {FrameworkName::megatron, FrameworkName::torchtitan}) {
    WhatIf other = asked;
    other.insert_or_assign("framework", std::string(name_of(name)));
    try {
      Catalog catalog(texts);
      const LayoutSpace space = layout_space(other, catalog);
      LayoutJudge judge(space, texts);
      const auto fastest = fastest_layout(space, limit_us, judge, go_on);
      if (!fastest) continue;
      const FoundLayout best = found_layout(space, *fastest, judge);
      const RatioInterval speedup = ratio_of(search.best.front().time, best.time);
      if (best.tight || speedup.low <= 1) continue;
      limit_us = best.step.step_time.us();
      search.faster = FasterFramework{best, speedup};
    } catch (const Error& error) {
      // Skips a framework that rejects the question's optimizer or one of its flags.
      if (error.code() != Exit::usage) throw;
    }
  }
}

}  // namespace lambcast
