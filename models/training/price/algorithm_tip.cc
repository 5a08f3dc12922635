#include "models/training/price/algorithm_tip.h"

#include <fmt/format.h>

#include <algorithm>

namespace lambcast {
namespace {

// Least relative changes of the time that are reported: with another release or plugin, and at the
// switching point itself or at twice the size.
constexpr double noticeable = 0.1, noticeable_at_tip = 0.01;

// Returns the note for a time that was not found by simulating all ranks.
Finding found_by(const Approximation& by, std::string text) {
  text += by.ranks[0] > 0
              ? fmt::format(
                    "; not every rank is simulated: the time follows from those of {} and {} "
                    "ranks",
                    by.ranks[0], by.ranks[1])
              : "; what slower messages leave is not shared out: the time is an upper bound";
  return {Severity::note, "approximated",
          fmt::format("{}, and lies within {:.2f} to {:.2f} times it", text, by.low, by.high)};
}

Duration apart(Duration a, Duration b) { return a < b ? b - a : a - b; }

}  // namespace

Duration TippingCollective::moves() const {
  Duration most;
  if (tip.rival) most = apart(tip.rival->time, time);
  if (tip.approximation)
    most = std::max(most, time.scaled(tip.approximation->high - tip.approximation->low));
  return tip.twice ? std::max(most, time - tip.twice->time) : most;
}

std::optional<Finding> find_tip(const TippingCollective& collective, std::string_view name) {
  const auto& [op, size, algorithm, protocol, time, tip] = collective;
  const bool at_tip = tip.rival && tip.rival->at_tip;
  const bool rival = tip.rival && apart(tip.rival->time, time) >
                                      time.scaled(at_tip ? noticeable_at_tip : noticeable);
  const bool falls = tip.twice && time - tip.twice->time > time.scaled(noticeable_at_tip);
  if (!rival && !falls && !tip.approximation) return std::nullopt;
  std::string text = fmt::format("{} of {} runs by {}/{} in {}", name.empty() ? name_of(op) : name,
                                 to_text(size), algorithm, protocol, to_text(time));
  if (rival)
    text +=
        fmt::format(", and by {}/{}, which {}, in {}", tip.rival->algorithm, tip.rival->protocol,
                    at_tip ? "the smallest change of a rate may have NCCL take"
                           : "NCCL's own constants rate alike within 25 %",
                    to_text(tip.rival->time));
  if (falls)
    text += fmt::format("{}one of twice the size runs by {}/{} in {}", rival ? "; " : ", and ",
                        tip.twice->algorithm, tip.twice->protocol, to_text(tip.twice->time));
  if (tip.approximation) return found_by(*tip.approximation, std::move(text));
  return Finding{Severity::note, "algorithm-tips", std::move(text)};
}

}  // namespace lambcast
