// Finds a framework whose best layout is faster than the layouts of a search.
//
// The search goes by lower bounds, least first (branch and bound). A candidate first has a bound
// that needs the time of one block alone (LayoutJudge::least_of_blocks), then, if it runs, that of
// LayoutJudge::judge(), then its step time. The search ends when the least bound exceeds the
// fastest step. Candidates beyond it are not resolved, so those that run are not counted.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "experiments/search/layout_search.h"

namespace lambcast {

// Returns the fastest layout of the space among those faster than `limit_us`; of equal ones the
// first. `go_on` is called between candidates; if it returns false, the search ends with nothing.
std::optional<LayoutCandidate> fastest_layout(const LayoutSpace& space, double limit_us,
                                              LayoutJudge& judge,
                                              const std::function<bool()>& go_on);

// Searches the layouts of Megatron-LM and torchtitan too if the question names no framework, and
// keeps the fastest if it is faster than the best layout found.
void add_faster_framework(const WhatIf& asked, const SearchOptions& options,
                          const std::shared_ptr<DescriptionTexts>& texts, LayoutSearch& search);

}  // namespace lambcast
