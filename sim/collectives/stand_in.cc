#include "sim/collectives/stand_in.h"

#include <algorithm>
#include <cmath>

#include "sim/collectives/algorithms.h"

namespace lambcast {
namespace {

constexpr int most_ranks = 16384;
constexpr double least_off = 0.1;

ProcessGroup with_ranks(ProcessGroup group, int ranks) {
  group.ranks = ranks;
  return group;
}

// Returns the groups that fill whole parts of the machine, the next smaller and the next larger.
std::array<ProcessGroup, 2> of_full_parts(const ProcessGroup& group, int part) {
  const int whole = group.ranks / (part * group.per_node);
  return {with_ranks(group, whole * part * group.per_node),
          with_ranks(group, (whole + 1) * part * group.per_node)};
}

std::array<ProcessGroup, 2> of_smaller(const ProcessGroup& group, const CanWrite& can_write) {
  int ranks = group.ranks;
  while (ranks > most_ranks || (ranks > 4 && !can_write(with_ranks(group, ranks)))) ranks /= 2;
  ranks += ranks % 2;  // neighbour exchange needs an even number
  return {with_ranks(group, ranks / 2 + ranks / 2 % 2), with_ranks(group, ranks)};
}

}  // namespace

std::optional<StandIns> stand_ins(std::string_view algorithm, const ProcessGroup& group,
                                  int nodes_alike, const CanWrite& can_write) {
  if (nodes_alike == 0) return std::nullopt;
  const int part = std::max(1, nodes_alike / group.node_stride);
  StandIns by{of_full_parts(group, part)};
  const auto folds = [&](const ProcessGroup& full) {
    return full.ranks > 0 && parts_written(algorithm, full, nodes_alike) > 0 && can_write(full);
  };
  const bool full = std::ranges::all_of(by.groups, folds);
  if (!full) by.groups = of_smaller(group, can_write);
  const bool linear =
      full || algorithm == "neighbor_exchange" || algorithm == "pairwise" || algorithm == "ring";
  const auto at = [&](const ProcessGroup& of) { return linear ? of.ranks : std::log2(of.ranks); };
  const double first = at(by.groups[0]), second = at(by.groups[1]);
  by.share = (at(group) - first) / (second - first);
  return by;
}

Collective plan_by(const StandIns& groups, const CollectiveRequest& request, Machines& machines,
                   const Transport& transport) {
  CollectiveRequest first = request, second = request;
  first.group = groups.groups[0];
  second.group = groups.groups[1];
  Machines larger = machines.reaching(second.group.node_span());
  const Collective near = plan_collective(first, larger, transport);
  Collective planned = plan_collective(second, larger, transport);
  const auto between = [&](Bytes a, Bytes b) { return a + (b - a) * groups.share; };
  const Duration own = planned.time;
  // Computed in doubles, since the difference may be negative and a Duration cannot.
  planned.time = Duration::seconds(
      std::max(0.5 * own.s(), near.time.s() + (own.s() - near.time.s()) * groups.share));
  planned.traffic = {
      between(near.traffic.sent_per_rank, planned.traffic.sent_per_rank),
      between(near.traffic.network_sent_per_node, planned.traffic.network_sent_per_node)};
  const double most = std::max(
      {least_off, std::abs(1 - near.time / planned.time), std::abs(1 - own / planned.time)});
  planned.approximation = {{first.group.ranks, second.group.ranks},
                           planned.time / own,
                           std::max(0.0, 1 - most),
                           1 + most};
  return planned;
}

}  // namespace lambcast
