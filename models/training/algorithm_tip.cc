#include "models/training/algorithm_tip.h"

#include <fmt/format.h>

#include <algorithm>

namespace lambcast {
namespace {

constexpr double noticeable = 0.1;

Duration apart(Duration a, Duration b) { return a < b ? b - a : a - b; }

}  // namespace

Duration TippingCollective::moves() const {
  Duration most;
  if (tip.rival) most = apart(tip.rival->time, time);
  return tip.twice ? std::max(most, time - *tip.twice) : most;
}

std::optional<Finding> find_tip(const TippingCollective& collective) {
  const auto& [op, size, algorithm, protocol, time, tip] = collective;
  const bool rival = tip.rival && apart(tip.rival->time, time) > time.scaled(noticeable);
  if (!rival && !tip.twice) return std::nullopt;
  std::string text = fmt::format("{} of {} runs by {}/{} in {}", name_of(op), to_text(size),
                                 algorithm, protocol, to_text(time));
  if (rival)
    text += fmt::format(", and by {}/{}, which NCCL's own constants rate alike within 25 %, in {}",
                        tip.rival->algorithm, tip.rival->protocol, to_text(tip.rival->time));
  if (tip.twice)
    text += fmt::format("{}one of twice the size, which NCCL has another run, takes {}",
                        rival ? "; " : ", and ", to_text(*tip.twice));
  return Finding{Severity::note, "algorithm-tips", std::move(text)};
}

}  // namespace lambcast
