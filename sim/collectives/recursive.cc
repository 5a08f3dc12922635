#include <bit>

#include "sim/collectives/builders.h"

namespace lambcast::builders {
namespace {

int power_of_two_below(int n) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(n))); }

// A round in which every rank of the power-of-two core exchanges `bytes` with rank ^ distance. If n
// is not a power of two, the first 2 * extra ranks form pairs first, and the odd rank of each pair
// takes part in the core for both (as in MPICH and Open MPI).
struct Core {
  explicit Core(const Placement& placement)
      : size(power_of_two_below(placement.ranks)), extra(placement.ranks - size) {}
  int rank_of(int core_rank) const {
    return core_rank < extra ? 2 * core_rank + 1 : core_rank + extra;
  }
  int size;
  int extra;
};

void exchange_round(CommSchedule& schedule, const Core& core, int distance, Bytes bytes,
                    const Placement& placement) {
  std::vector<Send> sends;
  bool crosses = false;
  const int senders = placement.folded ? placement.senders() : core.size;
  for (int i = 0; i < senders; ++i) {
    const Send send{core.rank_of(i), core.rank_of(i ^ distance), bytes};
    crosses |= placement.node_of(send.from) != placement.node_of(send.to);
    sends.push_back(send);
  }
  schedule.rounds.push_back(
      {add_sends(schedule, std::move(sends)), 1, crosses ? 0 : 1, crosses ? 1 : 0});
}

// Adds the round before the core rounds, in which the even rank of each pair sends its data, or,
// with `back`, the round after them, in which it gets the result.
void fold_round(CommSchedule& schedule, const Core& core, Bytes bytes, bool back,
                const Placement& placement) {
  if (core.extra == 0) return;
  std::vector<Send> sends;
  bool crosses = false;
  for (int i = 0; i < core.extra; ++i) {
    Send send{2 * i, 2 * i + 1, bytes};
    if (back) std::swap(send.from, send.to);
    crosses |= placement.node_of(send.from) != placement.node_of(send.to);
    sends.push_back(send);
  }
  schedule.rounds.push_back(
      {add_sends(schedule, std::move(sends)), 1, crosses ? 0 : 1, crosses ? 1 : 0});
}

}  // namespace

void recursive_doubling(CommSchedule& schedule, Bytes size, const Placement& placement) {
  const Core core(placement);
  if (schedule.op == Op::all_gather) {
    for (int distance = 1; distance < core.size; distance *= 2)
      exchange_round(schedule, core, distance, size / placement.ranks * distance, placement);
    return;
  }
  fold_round(schedule, core, size, false, placement);
  for (int distance = 1; distance < core.size; distance *= 2)
    exchange_round(schedule, core, distance, size, placement);
  fold_round(schedule, core, size, true, placement);
}

void halving_doubling(CommSchedule& schedule, Bytes size, const Placement& placement) {
  const Core core(placement);
  fold_round(schedule, core, size, false, placement);
  Bytes part = size;
  for (int distance = 1; distance < core.size; distance *= 2) {
    part = part / 2;
    exchange_round(schedule, core, distance, part, placement);
  }
  if (schedule.op == Op::all_reduce) {
    for (int distance = core.size / 2; distance >= 1; distance /= 2) {
      exchange_round(schedule, core, distance, part, placement);
      part = part * 2;
    }
    fold_round(schedule, core, size, true, placement);
  } else {
    fold_round(schedule, core, size / placement.ranks, true, placement);
  }
}

void neighbor_exchange(CommSchedule& schedule, Bytes size, const Placement& placement) {
  const int n = placement.ranks;
  const auto with_neighbors = [&](bool even_to_right, Bytes bytes) {
    std::vector<Send> sends;
    for (int rank = 0; rank < placement.senders(); ++rank) {
      const bool to_right = (rank % 2 == 0) == even_to_right;
      sends.push_back({rank, (rank + (to_right ? 1 : n - 1)) % n, bytes});
    }
    return add_sends(schedule, std::move(sends));
  };
  const bool many_nodes = placement.nodes() > 1;
  const Bytes block = size / n;
  // Even ranks share a node with their right neighbours if the node has an even number of ranks.
  const bool right_is_local = placement.per_node % 2 == 0 || !many_nodes;
  schedule.rounds.push_back(
      {with_neighbors(true, block), 1, right_is_local ? 1 : 0, right_is_local ? 0 : 1});
  const std::int64_t steps = n / 2 - 1;
  if (steps == 0) return;
  const std::size_t left = with_neighbors(false, block * 2);
  const std::size_t right = with_neighbors(true, block * 2);
  schedule.rounds.push_back({left, (steps + 1) / 2, many_nodes ? 0 : 1, many_nodes ? 1 : 0});
  if (steps / 2 > 0)
    schedule.rounds.push_back({right, steps / 2, right_is_local ? 1 : 0, right_is_local ? 0 : 1});
}

void binomial(CommSchedule& schedule, Bytes size, const Placement& placement) {
  const int n = placement.ranks;
  int top = 1;
  while (top < n) top *= 2;
  // A reduce runs the steps of a broadcast in reverse order and direction.
  const bool reduces = schedule.op == Op::reduce;
  for (int step = 1; step < top; step *= 2) {
    const int distance = reduces ? step : top / 2 / step;
    std::vector<Send> sends;
    bool crosses = false;
    for (int rank = 0; rank + distance < n; rank += 2 * distance) {
      const int near = rank, far = rank + distance;
      sends.push_back(reduces ? Send{far, near, size} : Send{near, far, size});
      crosses |= placement.node_of(rank) != placement.node_of(rank + distance);
    }
    schedule.rounds.push_back(
        {add_sends(schedule, std::move(sends)), 1, crosses ? 0 : 1, crosses ? 1 : 0});
  }
}

}  // namespace lambcast::builders
