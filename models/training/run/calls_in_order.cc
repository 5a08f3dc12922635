#include "models/training/run/calls_in_order.h"

#include <algorithm>
#include <limits>
#include <span>

namespace lambcast {
namespace {

using PathsList = std::span<const std::shared_ptr<const Paths>>;

bool over_same_links(PathsList a, PathsList b) {
  return std::ranges::equal(a, b, [](const auto& one, const auto& other) {
    return one == other || (one->links().first == other->links().first &&
                            one->links().links == other->links().links);
  });
}

void append(const IssuedFlows& from, double share, IssuedFlows& to) {
  to.paths.insert(to.paths.end(), from.paths.begin(), from.paths.end());
  for (Flow flow : from.flows) {
    flow.bytes = flow.bytes * share;
    to.flows.push_back(flow);
  }
}

}  // namespace

void CallsInOrder::add(const Communicator& by, IssuedFlows flows, double seconds) {
  auto at = std::ranges::find(calls_, by, [](const auto& of) { return of.first; });
  if (at == calls_.end()) at = calls_.insert(at, {by, {}});
  for (Issued& known : at->second)
    if (over_same_links(PathsList(known.of.paths).first(known.paths), flows.paths)) {
      append(flows, 1, known.of);
      known.seconds += seconds;
      return;
    }
  const std::size_t paths = flows.paths.size();
  at->second.push_back({std::move(flows), paths, seconds});
}

std::vector<IssuedFlows> CallsInOrder::phases() const {
  constexpr double never = std::numeric_limits<double>::infinity();
  std::vector<double> ends{never};
  for (const auto& [by, calls] : calls_) {
    double end = 0;
    for (std::size_t i = 0; i + 1 < calls.size(); ++i) ends.push_back(end += calls[i].seconds);
  }
  std::ranges::sort(ends);
  const auto same = [](double a, double b) { return b - a <= 1e-9 * a; };
  ends.erase(std::unique(ends.begin(), ends.end(), same), ends.end());
  std::vector<IssuedFlows> phases;
  double begin = 0;
  for (const double end : ends) {
    IssuedFlows& phase = phases.emplace_back();
    for (const auto& [by, calls] : calls_) {
      double from = 0;
      for (const Issued& call : calls) {
        const double to = from + call.seconds;
        const double within = std::min(to, end) - std::max(from, begin);
        if (within > 0) append(call.of, within / call.seconds, phase);
        from = to;
      }
    }
    if (phase.flows.empty()) phases.pop_back();
    begin = end;
  }
  return phases;
}

}  // namespace lambcast
