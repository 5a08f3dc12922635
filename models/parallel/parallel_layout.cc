#include "models/parallel/parallel_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <vector>

#include "sim/base/check.h"

namespace lambcast::parallel {
namespace {

// `size` members at a distance of `stride`, counted in ranks, slots or nodes.
struct Level {
  int stride;
  int size;
};

void append(std::vector<Level>& levels, Level next) {
  if (next.size == 1) return;
  if (!levels.empty() && levels.back().stride * levels.back().size == next.stride)
    levels.back().size *= next.size;
  else
    levels.push_back(next);
}

int product(const std::vector<Level>& levels) {
  int members = 1;
  for (const Level& level : levels) members *= level.size;
  return members;
}

struct Placement {
  std::vector<Level> slots;  // levels within the node
  std::vector<Level> nodes;
  bool even = true;
};

// Adds a run of ranks to the placement. Runs start at multiples of their extent. A run stays inside
// a node, or fills its share of each node that it crosses, only if extents and node sizes divide
// one another; otherwise the placement is not even.
void place(Level run, int node, int world, Placement& placement) {
  const int extent = run.stride * run.size;
  if (run.stride >= node) {
    placement.even &= run.stride % node == 0;
    append(placement.nodes, {run.stride / node, run.size});
  } else if (extent <= node) {
    placement.even &= node % extent == 0;
    append(placement.slots, run);
  } else {
    const int per_node = (node + run.stride - 1) / run.stride;
    placement.even &= node % run.stride == 0 && (extent % node == 0 || extent == world);
    append(placement.slots, {run.stride, per_node});
    append(placement.nodes, {1, (run.size + per_node - 1) / per_node});
  }
}

Placement placement_of(const RankGrid& grid, AxisSet members) {
  const int world = grid.ranks();
  std::vector<Level> runs;
  int stride = 1;
  for (const Axis axis : grid.order) {
    if (members.has(axis)) append(runs, {stride, grid.size(axis)});
    stride *= grid.size(axis);
  }
  Placement placement;
  for (const Level& run : runs) place(run, std::min(grid.gpus_per_node, world), world, placement);
  placement.even &= placement.slots.size() <= 1 && placement.nodes.size() <= 1;
  return placement;
}

RankGrid grid_of(const ParallelLayout& layout, int tp, int cp, int ep, int dp) {
  LAMBCAST_CHECK(layout.gpus_per_node >= 1, "{} GPUs per node", layout.gpus_per_node);
  LAMBCAST_CHECK(layout.world() <= std::numeric_limits<int>::max(), "{} ranks", layout.world());
  return {layout.order, {tp, cp, ep, dp, layout.pp}, layout.gpus_per_node};
}

}  // namespace

std::string_view name_of(Axis axis) {
  constexpr std::array<std::string_view, axis_count> names = {"tp", "cp", "ep", "dp", "pp"};
  return names[static_cast<std::size_t>(axis)];
}

AxisOrder parse_order(std::string_view text, const Where& where) {
  const auto refuse = [&] {
    fail_input(where, fmt::format("'{}' is not an order of ranks", text),
               "tp, cp, ep, dp and pp, each once, innermost first, as in tp-cp-ep-dp-pp");
  };
  AxisOrder order{};
  std::size_t found = 0;
  std::string_view rest = text;
  while (found < axis_count) {
    const std::string_view word = rest.substr(0, rest.find('-'));
    const auto axis = std::find_if(default_order.begin(), default_order.end(),
                                   [&](Axis a) { return name_of(a) == word; });
    const auto end = order.cbegin() + static_cast<std::ptrdiff_t>(found);
    if (axis == default_order.end() || std::find(order.cbegin(), end, *axis) != end) refuse();
    order[found++] = *axis;
    if (word.size() == rest.size()) break;
    rest.remove_prefix(word.size() + 1);
    if (found == axis_count) refuse();
  }
  if (found < axis_count) refuse();
  return order;
}

std::string to_text(const AxisOrder& order) {
  std::string text;
  for (const Axis axis : order) text += fmt::format("{}{}", text.empty() ? "" : "-", name_of(axis));
  return text;
}

int RankGrid::ranks() const {
  int product = 1;
  for (const int axis_size : sizes) product *= axis_size;
  return product;
}

bool has_pipeline_around_experts(const ParallelLayout& layout) {
  if (layout.ep == 1 || layout.pp == 1) return false;
  const auto place = [&](Axis axis) { return std::ranges::find(layout.order, axis); };
  return place(Axis::ep) < place(Axis::pp) && place(Axis::pp) < place(Axis::dp);
}

RankGrid dense_grid(const ParallelLayout& layout) {
  if (has_pipeline_around_experts(layout) && layout.dp % layout.ep == 0)
    return grid_of(layout, layout.tp, layout.cp, layout.ep, layout.dp / layout.ep);
  return grid_of(layout, layout.tp, layout.cp, 1, layout.dp);
}

RankGrid expert_grid(const ParallelLayout& layout) {
  const int ranks = layout.tp * layout.cp * layout.dp;
  LAMBCAST_CHECK(ranks % (layout.expert_tp() * layout.ep) == 0, "ep {} x etp {} of {} ranks",
                 layout.ep, layout.expert_tp(), ranks);
  return grid_of(layout, layout.expert_tp(), 1, layout.ep, layout.expert_replicas());
}

Coordinates coordinates_of(const RankGrid& grid, int rank) {
  LAMBCAST_CHECK(rank >= 0 && rank < grid.ranks(), "rank {} of {}", rank, grid.ranks());
  Coordinates coordinates{};
  for (const Axis axis : grid.order) {
    coordinates[static_cast<std::size_t>(axis)] = rank % grid.size(axis);
    rank /= grid.size(axis);
  }
  return coordinates;
}

int rank_of(const RankGrid& grid, const Coordinates& coordinates) {
  int rank = 0;
  int stride = 1;
  for (const Axis axis : grid.order) {
    rank += coordinates[static_cast<std::size_t>(axis)] * stride;
    stride *= grid.size(axis);
  }
  return rank;
}

ProcessGroup group(const RankGrid& grid, AxisSet members, AxisSet apart) {
  const Placement placement = placement_of(grid, members);
  ProcessGroup result;
  for (const Axis axis : grid.order)
    if (members.has(axis)) result.ranks *= grid.size(axis);
  result.per_node = product(placement.slots);
  if (!placement.slots.empty()) result.stride = placement.slots.front().stride;
  if (!placement.nodes.empty()) result.node_stride = placement.nodes.front().stride;
  const int callers = product(placement_of(grid, AxisSet::all().without(apart)).slots);
  result.siblings = std::max(1, callers / result.per_node);
  return result;
}

bool lies_evenly(const RankGrid& grid, AxisSet members) { return placement_of(grid, members).even; }

ProcessGroup stage_pair(const RankGrid& grid, int from_stage, int to_stage) {
  const auto rank_of_stage = [&](int stage) {
    LAMBCAST_CHECK(stage >= 0 && stage < grid.size(Axis::pp), "stage {}", stage);
    Coordinates coordinates{};
    coordinates[static_cast<std::size_t>(Axis::pp)] = stage;
    return rank_of(grid, coordinates);
  };
  const int from = rank_of_stage(from_stage);
  const int to = rank_of_stage(to_stage);
  ProcessGroup pair;
  pair.siblings = group(grid, AxisSet::all().without({Axis::pp})).per_node;
  if (from == to) return pair;
  pair.ranks = 2;
  const int nodes = std::abs(to / grid.gpus_per_node - from / grid.gpus_per_node);
  if (nodes == 0) {
    pair.per_node = 2;
    pair.stride = std::abs(to - from);
  } else {
    pair.node_stride = nodes;
  }
  return pair;
}

}  // namespace lambcast::parallel
