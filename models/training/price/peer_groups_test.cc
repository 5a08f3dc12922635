#include "models/training/price/peer_groups.h"

#include <catch2/catch.hpp>

namespace lambcast {
namespace {

using Nodes = std::vector<int>;

parallel::RankGrid grid_of(const parallel::ParallelLayout& layout) {
  return parallel::dense_grid(layout);
}

TEST_CASE("peer groups: a stage lies on nodes of its own, or on all of them") {
  parallel::ParallelLayout layout{.tp = 8, .dp = 2, .pp = 2, .gpus_per_node = 8};
  CHECK(nodes_by_stage(grid_of(layout)) == std::vector<Nodes>{{0, 1}, {2, 3}});
  layout.tp = 2, layout.pp = 4;
  using parallel::Axis;
  layout.order = {Axis::tp, Axis::cp, Axis::ep, Axis::pp, Axis::dp};
  CHECK(nodes_by_stage(grid_of(layout)) == std::vector<Nodes>(4, {0, 1}));
}

TEST_CASE("peer groups: stages that fill nodes unevenly have no peers") {
  const parallel::ParallelLayout layout{.dp = 6, .pp = 4, .gpus_per_node = 8};
  for (const Nodes& nodes : nodes_by_stage(grid_of(layout))) CHECK(nodes.size() <= 1);
}

TEST_CASE("peer groups: groups of a stage cover its nodes") {
  const Nodes stage{8, 9, 10, 11, 12, 13, 14, 15};
  // Pairs with the next stage, rings of two nodes, rings of every second node, and one ring of all
  // nodes.
  CHECK(peer_distances({.ranks = 2, .node_stride = 8}, 8, stage) == Nodes{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(peer_distances({.ranks = 16, .per_node = 8}, 8, stage) == Nodes{0, 2, 4, 6});
  CHECK(peer_distances({.ranks = 4, .node_stride = 2}, 8, stage) == Nodes{0, 1});
  CHECK(peer_distances({.ranks = 8, .siblings = 8}, 8, stage) == Nodes{0});
  CHECK(peer_distances({.ranks = 8}, 8, {}) == Nodes{0});
}

}  // namespace
}  // namespace lambcast
