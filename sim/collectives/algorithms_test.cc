#include "sim/collectives/algorithms.h"

#include <catch2/catch.hpp>
#include <set>
#include <vector>

namespace lambcast {
namespace {

// Returns, for each rank, the ranks whose data it holds after the rounds. A send passes on all data
// that its rank had before the round.
std::vector<std::set<int>> held_after(const CommSchedule& schedule, int ranks) {
  std::vector<std::set<int>> held(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) held[static_cast<std::size_t>(rank)] = {rank};
  for (const Round& round : schedule.rounds) {
    REQUIRE(round.times == 1);
    const auto before = held;
    for (const Send& send : schedule.send_sets[round.sends]) {
      for (int i = 0; i < send.count; ++i) {
        const auto& sent = before[static_cast<std::size_t>(send.from + i)];
        held[static_cast<std::size_t>(send.to + i)].insert(sent.begin(), sent.end());
      }
    }
  }
  return held;
}

TEST_CASE("collectives: every rank ends with data of every other rank") {
  for (const int n : {2, 3, 5, 6, 8, 12, 15, 16}) {
    const auto after = [&](const char* algorithm, Op op) {
      return held_after(make_schedule(algorithm, op, Bytes(1e6), {{n, 1}, 1, 1, false, n}), n);
    };
    INFO("n = " << n);
    for (const auto& held : after("recursive_doubling", Op::all_reduce))
      CHECK(held.size() == static_cast<std::size_t>(n));
    for (const auto& held : after("halving_doubling", Op::all_reduce))
      CHECK(held.size() == static_cast<std::size_t>(n));
    for (const auto& held : after("halving_doubling", Op::reduce_scatter))
      CHECK(held.size() == static_cast<std::size_t>(n));
    for (const auto& held : after("bruck", Op::all_gather))
      CHECK(held.size() == static_cast<std::size_t>(n));
    for (const auto& held : after("binomial", Op::broadcast)) CHECK(held.contains(0));
    if (n == 2 || n == 8 || n == 16)
      for (const auto& held : after("recursive_doubling", Op::all_gather))
        CHECK(held.size() == static_cast<std::size_t>(n));
  }
}

TEST_CASE("collectives: bytes on the wires are conserved") {
  const double S = 672468612;  // BERT-Large gradients in fp16
  for (const bool folded : {false, true}) {
    for (const int gpus : {1, 4}) {
      const Placement placement{{16, gpus}, 1, 1, folded, folded ? 1 : 16 / gpus};
      const auto sent = [&](const char* algorithm, Op op) {
        return make_schedule(algorithm, op, Bytes(S), placement).traffic;
      };
      INFO("folded " << folded << ", " << gpus << " per node");
      for (const char* algorithm : {"ring", "tree", "hierarchical"}) {
        // Every algorithm that neither repeats nor drops work sends 2(n-1)/n S per rank.
        CHECK(sent(algorithm, Op::all_reduce).sent_per_rank.value() == Approx(2 * 15. / 16 * S));
      }
      for (const char* algorithm : {"ring", "recursive_doubling", "neighbor_exchange", "bruck"})
        CHECK(sent(algorithm, Op::all_gather).sent_per_rank.value() == Approx(15. / 16 * S));
      for (const char* algorithm : {"pairwise", "linear", "deepspeed_gather"}) {
        CHECK(sent(algorithm, Op::all_to_all).sent_per_rank.value() == Approx(15. / 16 * S));
        // 16 - gpus of the 15 peers are on other nodes.
        CHECK(sent(algorithm, Op::all_to_all).network_sent_per_node.value() ==
              Approx(gpus * (16. - gpus) / 16 * S));
      }
      // In a chain of 16 ranks, one rank and one node send nothing.
      for (const Op op : {Op::broadcast, Op::reduce}) {
        CHECK(sent("ring", op).sent_per_rank.value() == Approx(15. / 16 * S));
        CHECK(sent("ring", op).network_sent_per_node.value() ==
              Approx((16. / gpus - 1) / (16. / gpus) * S));
      }
      // Only the last rank of a node has its neighbour on another node.
      CHECK(sent("shift", Op::send_recv).sent_per_rank.value() == Approx(S));
      CHECK(sent("shift", Op::send_recv).network_sent_per_node.value() == Approx(S));
      // A ring leaves each node once per round; a tree and a hierarchy send 2(N-1)/N S per node.
      const double nodes = 16. / gpus;
      CHECK(sent("ring", Op::all_reduce).network_sent_per_node.value() == Approx(2 * 15. / 16 * S));
      CHECK(sent("tree", Op::all_reduce).network_sent_per_node.value() ==
            Approx(2 * (nodes - 1) / nodes * S));
      CHECK(sent("hierarchical", Op::all_reduce).network_sent_per_node.value() ==
            Approx(2 * (nodes - 1) / nodes * S));
      // Each rank sends S and its share S/4 of the sum to its node's switch, and its share of the
      // tree's traffic.
      if (gpus == 4) {
        const Traffic traffic = sent("nvls_tree", Op::all_reduce);
        CHECK(traffic.network_sent_per_node.value() == Approx(2 * 3. / 4 * S));
        CHECK(traffic.sent_per_rank.value() == Approx((1 + 1. / 4 + 2 * 3. / 4 / 4) * S));
      }
    }
  }
}

// For every n, each rank except the root sends its sum once, after all its inputs have arrived.
TEST_CASE("collectives: a reduce gathers every rank's part at the root once") {
  for (const int n : {2, 3, 5, 8, 13, 16}) {
    const Placement placement{{n, n}, 1, 1, false, 1};
    const CommSchedule schedule = make_schedule("binomial", Op::reduce, Bytes(8), placement);
    std::vector<int> holds(static_cast<std::size_t>(n), 1);
    for (const Round& round : schedule.rounds) {
      for (const Send& send : schedule.send_sets[round.sends]) {
        holds[static_cast<std::size_t>(send.to)] += holds[static_cast<std::size_t>(send.from)];
        holds[static_cast<std::size_t>(send.from)] = 0;
      }
    }
    CHECK(holds.front() == n);
    CHECK(schedule.traffic.sent_per_rank.value() == Approx(8 * (n - 1.0) / n));
  }
}

}  // namespace
}  // namespace lambcast
