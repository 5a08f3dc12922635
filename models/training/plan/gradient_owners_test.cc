#include "models/training/plan/gradient_owners.h"

#include <catch2/catch.hpp>
#include <set>
#include <vector>

namespace lambcast {
namespace {

// Returns the members of each sibling group as (node, slot), with the first node numbered 0.
std::set<std::vector<std::pair<int, int>>> members(const ProcessGroup& group) {
  std::set<std::vector<std::pair<int, int>>> all;
  for (int sibling = 0; sibling < group.siblings; ++sibling) {
    std::vector<std::pair<int, int>> one;
    for (int rank = 0; rank < group.ranks; ++rank)
      one.emplace_back(group.node_of(rank) * group.node_stride, group.slot_of(rank, sibling));
    all.insert(std::move(one));
  }
  return all;
}

TEST_CASE(
    "gradient owners: shards fill a node first; their copies are on the same and on other nodes") {
  const ProcessGroup replicas{64, 8};  // on 8 nodes
  CHECK(shard_groups(replicas, 64).shard == replicas);
  CHECK(shard_groups(replicas, 64).copies == ProcessGroup());
  CHECK(shard_groups(replicas, 1).shard == ProcessGroup{1, 1, 1, 1, 8});
  CHECK(shard_groups(replicas, 1).copies == replicas);
  // Two shards of four on a node: the copies of a share are four slots apart.
  CHECK(shard_groups(replicas, 4).shard == ProcessGroup{4, 4, 1, 1, 2});
  CHECK(shard_groups(replicas, 4).copies == ProcessGroup{16, 2, 4, 1, 4});
  CHECK(shard_groups(replicas, 8).copies == ProcessGroup{8, 1, 8, 1, 8});
  // Shards of two nodes: the copies of a share are two nodes apart, in the same slot.
  CHECK(shard_groups(replicas, 16).shard == ProcessGroup{16, 8});
  CHECK(shard_groups(replicas, 16).copies == ProcessGroup{4, 1, 1, 2, 8});
  // Every second slot belongs to another model: shards and copies use only their own slots.
  const ProcessGroup spread{16, 4, 2, 1, 2};
  CHECK(members(shard_groups(spread, 2).shard) ==
        std::set<std::vector<std::pair<int, int>>>{
            {{0, 0}, {0, 2}}, {{0, 1}, {0, 3}}, {{0, 4}, {0, 6}}, {{0, 5}, {0, 7}}});
  for (const auto& copies : members(shard_groups(spread, 2).copies)) {
    REQUIRE(copies.size() == 8);
    for (int i = 0; i < 8; ++i) {
      CHECK(copies[static_cast<std::size_t>(i)].first == i / 2);
      CHECK(copies[static_cast<std::size_t>(i)].second == copies[0].second + i % 2 * 4);
    }
  }
}

}  // namespace
}  // namespace lambcast
