#include "experiments/output/finding_tally.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <tuple>

#include "experiments/output/cell.h"
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

std::vector<const FindingTally::Kind*> FindingTally::sorted() const {
  std::vector<const Kind*> kinds;
  for (const auto& [of, kind] : kinds_)
    if (kind.first.code != unread || kind.points == points_) kinds.push_back(&kind);
  sort_stably(kinds, {}, [](const Kind* kind) {
    return std::tuple(kind->first.severity, !backend_fails(kind->first.code),
                      -static_cast<std::ptrdiff_t>(kind->points));
  });
  return kinds;
}

std::string FindingTally::sentence(const Kind& kind,
                                   const std::function<std::string(std::size_t)>& name) const {
  std::string where = "";
  if (points_ > 1 && kind.points == points_)
    where = fmt::format("all {} points: ", points_);
  else if (points_ > 1)
    where =
        fmt::format("{} of {} points, first of {}: ", kind.points, points_, name(kind.first_point));
  return fmt::format("{}: {}{} [{}]", name_of(kind.first.severity), where, kind.first.message,
                     kind.first.code);
}

std::vector<std::string> FindingTally::sentences(
    const std::function<std::string(std::size_t)>& name) const {
  std::vector<std::string> out;
  for (const Kind* kind : sorted()) out.push_back(sentence(*kind, name));
  return out;
}

std::vector<std::string> FindingTally::brief(const std::function<std::string(std::size_t)>& name,
                                             const std::string& more) const {
  constexpr std::size_t most_lines = 6;
  std::size_t lines = 0;
  bool has_room = true;
  std::vector<std::string> out, codes;
  for (const Kind* kind : sorted()) {
    std::string text = sentence(*kind, name);
    const std::size_t needed = text.size() / page_width + 1;
    has_room = has_room && (lines == 0 || lines + needed <= most_lines);
    if (has_room || kind->first.severity == Severity::error) {
      lines += needed;
      out.push_back(std::move(text));
    } else if (std::ranges::find(codes, kind->first.code) == codes.end()) {
      codes.push_back(kind->first.code);
    }
  }
  if (!codes.empty()) out.push_back(fmt::format("more: {} ({})", fmt::join(codes, ", "), more));
  return out;
}

}  // namespace lambcast
