#include "experiments/output/finding_tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <tuple>

#include "experiments/verdict/verdict.h"
#include "sim/base/sort_stably.h"

namespace lambcast {
namespace {

// Codes of findings that each row shows itself, by its status, speed-up or count of skipped steps.
constexpr std::array<std::string_view, 4> said_by_rows{"out-of-memory", "out-of-host-memory",
                                                       "compression-loses", "skipped-steps"};

// Findings on unused flags are counted per message: a flag unused at one point may be used at
// others.
constexpr std::string_view unread = "flag-no-effect";

}  // namespace

void FindingTally::add(std::size_t point, const std::vector<Finding>& findings) {
  ++points_;
  std::set<std::string_view> seen;
  for (const Finding& finding : findings) {
    if (std::ranges::find(said_by_rows, finding.code) != said_by_rows.end()) continue;
    const auto [kind, fresh] =
        kinds_.try_emplace(finding.code == unread ? finding.code + finding.message : finding.code,
                           Kind{finding, 0, point});
    if (seen.insert(kind->first).second) ++kind->second.points;
  }
}

std::vector<std::string> FindingTally::sentences(
    const std::function<std::string(std::size_t)>& name) const {
  std::vector<const Kind*> kinds;
  for (const auto& [of, kind] : kinds_)
    if (kind.first.code != unread || kind.points == points_) kinds.push_back(&kind);
  sort_stably(kinds, {}, [](const Kind* kind) {
    return std::tuple(kind->first.severity, !backend_fails(kind->first.code),
                      -static_cast<std::ptrdiff_t>(kind->points));
  });
  std::vector<std::string> out;
  for (const Kind* kind : kinds) {
    std::string where = "";
    if (points_ > 1 && kind->points == points_)
      where = fmt::format("all {} points: ", points_);
    else if (points_ > 1)
      where = fmt::format("{} of {} points, first of {}: ", kind->points, points_,
                          name(kind->first_point));
    out.push_back(fmt::format("{}: {}{} [{}]", name_of(kind->first.severity), where,
                              kind->first.message, kind->first.code));
  }
  return out;
}

}  // namespace lambcast
