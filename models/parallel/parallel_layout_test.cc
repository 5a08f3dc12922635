#include "models/parallel/parallel_layout.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <vector>

namespace lambcast::parallel {
namespace {

constexpr Where flag{"", 0, "--order"};

// Returns every group by brute force: ranks in order, grouped by their coordinates outside
// `members`.
std::vector<std::vector<int>> groups_of(const RankGrid& grid, AxisSet members) {
  std::map<std::vector<int>, std::vector<int>> groups;
  for (int rank = 0; rank < grid.ranks(); ++rank) {
    std::vector<int> key;
    for (const Axis axis : grid.order)
      if (!members.has(axis))
        key.push_back(coordinates_of(grid, rank)[static_cast<std::size_t>(axis)]);
    groups[key].push_back(rank);
  }
  std::vector<std::vector<int>> list;
  for (const auto& [key, ranks] : groups) list.push_back(ranks);
  return list;
}

// Returns whether the closed form gives these ranks, relative to the first.
bool describes(const ProcessGroup& group, const std::vector<int>& ranks, int gpus_per_node) {
  if (group.ranks != static_cast<int>(ranks.size())) return false;
  for (int i = 0; i < group.ranks; ++i) {
    const int rank = ranks[static_cast<std::size_t>(i)];
    const int slot = ranks[0] % gpus_per_node + i % group.per_node * group.stride;
    const int node = ranks[0] / gpus_per_node + i / group.per_node * group.node_stride;
    if (rank % gpus_per_node != slot || rank / gpus_per_node != node) return false;
  }
  return true;
}

std::set<int> nodes_of(const std::vector<int>& ranks, int gpus_per_node) {
  std::set<int> nodes;
  for (const int rank : ranks) nodes.insert(rank / gpus_per_node);
  return nodes;
}

std::vector<RankGrid> many_grids() {
  std::vector<RankGrid> grids;
  AxisOrder order = default_order;
  do {
    if (order[2] != Axis::ep) continue;  // ep adds no ranks to this grid
    for (const int tp : {1, 2, 3, 4, 8})
      for (const int cp : {1, 2})
        for (const int dp : {1, 2, 3, 4})
          for (const int pp : {1, 2, 3})
            for (const int node : {1, 4, 6, 8, 16})
              grids.push_back({order, {tp, cp, 1, dp, pp}, node});
  } while (std::next_permutation(order.begin(), order.end()));
  return grids;
}

const AxisSet used_sets[] = {{Axis::tp},          {Axis::cp},           {Axis::dp},
                             {Axis::pp},          {Axis::dp, Axis::cp}, {Axis::tp, Axis::pp},
                             {Axis::tp, Axis::cp}};

}  // namespace

TEST_CASE("layout: an order of axes reads back as it was written") {
  CHECK(parse_order("tp-cp-ep-dp-pp", flag) == default_order);
  for (const char* text : {"tp-cp-ep-pp-dp", "pp-dp-ep-cp-tp"})
    CHECK(to_text(parse_order(text, flag)) == text);
  for (const char* text : {"", "tp", "tp-cp-ep-dp", "tp-cp-ep-dp-dp", "tp-cp-ep-dp-pp-", "-tp",
                           "tp-cp-ep-dp-pp-tp", "tp,cp,ep,dp,pp", "TP-cp-ep-dp-pp"})
    CHECK_THROWS_WITH(parse_order(text, flag), Catch::Contains("each once, innermost first"));
}

TEST_CASE("layout: coordinates are a rank in a mixed radix") {
  const ParallelLayout layout{.tp = 4, .cp = 2, .ep = 2, .dp = 3, .pp = 5, .gpus_per_node = 8};
  const RankGrid grid = dense_grid(layout);
  CHECK(grid.ranks() == layout.world());
  CHECK(grid.ranks() == 120);
  for (int rank = 0; rank < grid.ranks(); ++rank) {
    const auto [tp, cp, ep, dp, pp] = coordinates_of(grid, rank);
    CHECK(rank == tp + 4 * (cp + 2 * (dp + 3 * pp)));
    CHECK(ep == 0);
    CHECK(rank_of(grid, {tp, cp, ep, dp, pp}) == rank);
  }
  // The expert grid has the same ranks, with ep before dp and without cp.
  const RankGrid experts = expert_grid(layout);
  CHECK(experts.ranks() == 120);
  CHECK(experts.sizes == std::array<int, 5>{4, 1, 2, 3, 5});
  CHECK(coordinates_of(experts, 4) == Coordinates{0, 0, 1, 0, 0});
}

TEST_CASE("layout: the groups of Megatron-LM's default order on nodes of 8") {
  // With tp 8, data-parallel neighbours are one per node, and 8 groups share the same nodes.
  const RankGrid tp8 = dense_grid({.tp = 8, .dp = 4, .pp = 16, .gpus_per_node = 8});
  CHECK(group(tp8, {Axis::tp}) == ProcessGroup{8, 8, 1, 1, 1});
  CHECK(group(tp8, {Axis::dp}, {Axis::pp}) == ProcessGroup{4, 1, 1, 1, 8});
  CHECK(group(tp8, {Axis::pp}) == ProcessGroup{16, 1, 1, 4, 8});
  CHECK(group(tp8, {Axis::tp, Axis::pp}) == ProcessGroup{128, 8, 1, 4, 1});
  CHECK(stage_pair(tp8, 3, 4) == ProcessGroup{2, 1, 1, 4, 8});
  CHECK(stage_pair(tp8, 0, 15) == ProcessGroup{2, 1, 1, 60, 8});
  // With tp 4, two data-parallel ranks share a node.
  const RankGrid tp4 = dense_grid({.tp = 4, .dp = 6, .pp = 2, .gpus_per_node = 8});
  CHECK(group(tp4, {Axis::tp}) == ProcessGroup{4, 4, 1, 1, 2});
  CHECK(group(tp4, {Axis::dp}) == ProcessGroup{6, 2, 4, 1, 4});
  // With tp 1, data parallelism fills the node first.
  const RankGrid tp1 = dense_grid({.dp = 32, .gpus_per_node = 8});
  CHECK(group(tp1, {Axis::dp}) == ProcessGroup{32, 8, 1, 1, 1});
  // Here tp is larger than a node.
  const RankGrid wide = dense_grid({.tp = 16, .dp = 2, .gpus_per_node = 8});
  CHECK(group(wide, {Axis::tp}) == ProcessGroup{16, 8, 1, 1, 1});
}

TEST_CASE("layout: Colossal-AI's order puts pipeline neighbours in one node") {
  const ParallelLayout layout{
      .tp = 2, .dp = 4, .pp = 4, .gpus_per_node = 8, .order = parse_order("tp-cp-ep-pp-dp", flag)};
  const RankGrid grid = dense_grid(layout);
  CHECK(stage_pair(grid, 0, 1) == ProcessGroup{2, 2, 2, 1, 2});
  CHECK(group(grid, {Axis::dp}) == ProcessGroup{4, 1, 1, 1, 8});
  // Stages finish at different times, so only the tp groups of one stage reduce at the same time.
  CHECK(group(grid, {Axis::dp}, {Axis::pp}) == ProcessGroup{4, 1, 1, 1, 2});
  // With 8 stages of 2 ranks, the neighbours 3 and 4 are on different nodes.
  const RankGrid deep = dense_grid({.tp = 2, .pp = 8, .gpus_per_node = 8, .order = layout.order});
  CHECK(stage_pair(deep, 2, 3) == ProcessGroup{2, 2, 2, 1, 2});
  CHECK(stage_pair(deep, 3, 4) == ProcessGroup{2, 1, 1, 1, 2});
  CHECK(stage_pair(deep, 5, 5).ranks == 1);
}

TEST_CASE("layout: experts with another tensor size extend over the dense layers' tensor ranks") {
  // As in Megatron-LM with tp 2 and etp 1, the ranks of 32 experts are 16 pairs of tensor ranks.
  const ParallelLayout layout{.tp = 2, .ep = 32, .dp = 48, .pp = 3, .gpus_per_node = 8, .etp = 1};
  CHECK(layout.expert_replicas() == 3);
  const RankGrid experts = expert_grid(layout);
  CHECK(experts.sizes == std::array<int, 5>{1, 1, 32, 3, 3});
  CHECK(group(experts, {Axis::ep}) == ProcessGroup{32, 8, 1, 1, 1});
  CHECK(group(experts, {Axis::dp}) == ProcessGroup{3, 1, 1, 4, 8});
}

// Two replicas of 4 stages of 8 ranks. A stage is one node of 8 GPUs, so its replicas are on two
// nodes.
TEST_CASE("layout: in one mesh stages are arranged around the ranks of experts") {
  const ParallelLayout layout{
      .ep = 8, .dp = 16, .pp = 4, .gpus_per_node = 8, .order = parse_order("tp-cp-ep-pp-dp", {})};
  CHECK(has_pipeline_around_experts(layout));
  const RankGrid dense = dense_grid(layout), experts = expert_grid(layout);
  CHECK(dense.sizes == std::array<int, 5>{1, 1, 8, 2, 4});
  CHECK(experts.sizes == dense.sizes);
  CHECK(group(dense, {Axis::dp, Axis::cp, Axis::ep}).ranks == 16);
  CHECK(group(dense, {Axis::dp, Axis::cp, Axis::ep}).per_node == 8);
  CHECK(stage_pair(dense, 0, 1) == ProcessGroup{2, 1, 1, 1, 8});
  ParallelLayout whole = layout;
  whole.ep = 1;
  CHECK_FALSE(has_pipeline_around_experts(whole));
}

TEST_CASE(
    "layout: experts exchange tokens with neighbours, and reduce gradients over distant ranks") {
  const ParallelLayout layout{.ep = 8, .dp = 32, .gpus_per_node = 8};
  CHECK(group(expert_grid(layout), {Axis::ep}) == ProcessGroup{8, 8, 1, 1, 1});
  CHECK(group(expert_grid(layout), {Axis::dp}) == ProcessGroup{4, 1, 1, 1, 8});
}

TEST_CASE("layout: the closed form is even exactly if it gives every group's members") {
  int even = 0;
  int uneven = 0;
  for (const RankGrid& grid : many_grids())
    for (const AxisSet& members : used_sets) {
      const ProcessGroup closed = group(grid, members);
      bool all_described = true;
      for (const std::vector<int>& ranks : groups_of(grid, members))
        all_described &= describes(closed, ranks, grid.gpus_per_node);
      if (lies_evenly(grid, members) != all_described) {
        CAPTURE(to_text(grid.order), grid.sizes, grid.gpus_per_node, closed.ranks, closed.per_node,
                closed.stride, closed.node_stride, all_described);
        FAIL("even where it is not, or the other way round");
      }
      ++(all_described ? even : uneven);
    }
  CHECK(even > 10'000);
  CHECK(uneven > 1000);
}

TEST_CASE("layout: siblings are the equal groups on the same nodes, slot by slot") {
  int seen = 0;
  for (const RankGrid& grid : many_grids())
    for (const AxisSet& members : used_sets) {
      const bool whole_nodes =
          grid.ranks() % grid.gpus_per_node == 0 || grid.ranks() < grid.gpus_per_node;
      if (!lies_evenly(grid, members) || !whole_nodes) continue;
      const auto groups = groups_of(grid, members);
      const std::set<int> nodes = nodes_of(groups[0], grid.gpus_per_node);
      std::set<std::vector<int>> alike;
      for (const std::vector<int>& ranks : groups)
        if (nodes_of(ranks, grid.gpus_per_node) == nodes) alike.insert(ranks);
      const ProcessGroup closed = group(grid, members);
      std::set<std::vector<int>> siblings;
      for (int sibling = 0; sibling < closed.siblings; ++sibling) {
        std::vector<int> ranks;
        for (int i = 0; i < closed.ranks; ++i)
          ranks.push_back(closed.node_of(i) * closed.node_stride * grid.gpus_per_node +
                          closed.slot_of(i, sibling));
        siblings.insert(ranks);
      }
      if (siblings != alike) {
        CAPTURE(to_text(grid.order), grid.sizes, grid.gpus_per_node, siblings, alike);
        FAIL("siblings are other groups than these");
      }
      ++seen;
    }
  CHECK(seen > 10'000);
}

}  // namespace lambcast::parallel
