#include "sim/collectives/builders.h"

namespace lambcast::builders {
namespace {

int rail_of(const Placement& placement) {
  return placement.by_rail_of_receiver ? Send::rail_of_receiver : Send::own_rail;
}

// Adds sends like `send` from every stored rank to the rank `offset` places after it, modulo
// `ranks`. The receivers are numbered from `first` on.
void add_shifted(std::vector<Send>& sends, Send send, int offset, int first, int ranks,
                 const Placement& placement) {
  const int senders = placement.senders();
  for (int from = 0; from < senders; from += send.count) {
    const int to = (from + offset) % ranks;
    send.from = from;
    send.to = first + to;
    send.count = std::min(senders - from, ranks - to);
    sends.push_back(send);
  }
}

bool any_crosses(const std::vector<Send>& sends, const Placement& placement) {
  return std::any_of(sends.begin(), sends.end(),
                     [&](const Send& send) { return crossings(send, placement) > 0; });
}

void shift_round(CommSchedule& schedule, int offset, Bytes bytes, std::int64_t times,
                 const Placement& placement) {
  std::vector<Send> sends;
  add_shifted(sends, {0, 0, bytes, rail_of(placement)}, offset, 0, placement.ranks, placement);
  const bool crosses = any_crosses(sends, placement);
  schedule.rounds.push_back(
      {add_sends(schedule, std::move(sends)), times, crosses ? 0 : 1, crosses ? 1 : 0});
}

// Returns all sends of the exchange at once. If folded, the sends of one rank to the same place in
// all other parts of the machine are merged.
std::vector<Send> everything(Bytes block, const Placement& placement) {
  std::vector<Send> sends;
  const int part = placement.senders();
  const int others = placement.ranks / part - 1;
  const Send near{0, 0, block, rail_of(placement)};
  const Send far{0, 0, block * others, near.rail, static_cast<std::uint32_t>(others)};
  for (int offset = 0; offset < part; ++offset) {
    if (offset > 0) add_shifted(sends, near, offset, 0, part, placement);
    if (others > 0) add_shifted(sends, far, offset, part, part, placement);
  }
  return sends;
}

// Limit of a part in ranks: larger parts are not written out flow by flow.
constexpr int most_in_part = 256;

// Returns whether links are counted instead of flows (exchange_loads.h).
bool counts_links(const Placement& placement) {
  return placement.folded && placement.nodes() > 1 &&
         (!placement.full_parts || placement.senders() > most_in_part);
}

// Returns one send that represents all sends within a node, and one that represents all sends that
// leave a full node.
std::vector<Send> two_kinds(CommSchedule& schedule, Bytes block, const Placement& placement) {
  const double n = placement.ranks, full = placement.per_node;
  const double last = placement.ranks_on(placement.nodes() - 1);
  const double crossing = (placement.nodes() - 1) * full * (n - full) + last * (n - last);
  schedule.everybody = true;
  schedule.traffic = {block * (n - 1), block * (crossing / placement.nodes())};
  std::vector<Send> sends;
  if (placement.per_node > 1) sends.push_back({0, 1, block, rail_of(placement)});
  const double leaving = full * (n - full);
  sends.push_back({0, placement.per_node, block * leaving, rail_of(placement),
                   static_cast<std::uint32_t>(leaving)});
  return sends;
}

void post_everything(CommSchedule& schedule, Bytes size, std::int64_t messages,
                     const Placement& placement) {
  const bool crosses = placement.nodes() > 1;
  const Bytes block = size / placement.ranks;
  std::vector<Send> sends = counts_links(placement) ? two_kinds(schedule, block, placement)
                                                    : everything(block, placement);
  schedule.rounds.push_back(
      {add_sends(schedule, std::move(sends)), 1, crosses ? 0 : 1, crosses ? 1 : 0, messages});
  schedule.rounds.back().at_once = block;
}

}  // namespace

void pairwise(CommSchedule& schedule, Bytes size, const Placement& placement) {
  const int n = placement.ranks;
  const Bytes block = size / n;
  if (!placement.folded) {
    for (int offset = 1; offset < n; ++offset) shift_round(schedule, offset, block, 1, placement);
    return;
  }
  // Offsets that take every rank to another part load this part equally if they lead to the same
  // places there; under a single switch all of them do.
  const int part = placement.senders();
  const int far = n - 2 * part;  // last of these offsets, counted from the first
  for (int offset = 1; offset < part; ++offset) shift_round(schedule, offset, block, 1, placement);
  const int kinds = placement.written == 1 ? 1 : part;
  for (int kind = 0; kind < kinds && kind <= far; ++kind)
    shift_round(schedule, part + kind, block, (far - kind) / kinds + 1, placement);
  for (int offset = std::max(part, n - part + 1); offset < n; ++offset)
    shift_round(schedule, offset, block, 1, placement);
}

void linear(CommSchedule& schedule, Bytes size, const Placement& placement) {
  post_everything(schedule, size, placement.ranks - 1, placement);
}

void deepspeed_gather(CommSchedule& schedule, Bytes size, const Placement& placement) {
  // Half of the 4(n-1) requests are sends, and half of these carry 4 bytes of scale. Here the
  // scales are part of the messages with the signs.
  post_everything(schedule, size, 4 * static_cast<std::int64_t>(placement.ranks - 1), placement);
  schedule.rounds.back().same_order = true;
}

void bruck(CommSchedule& schedule, Bytes size, const Placement& placement) {
  const int n = placement.ranks;
  for (int distance = 1; distance < n; distance *= 2) {
    if (schedule.op == Op::all_gather) {
      // A rank sends all blocks that it has and its receiver lacks, to the rank `distance` places
      // before it.
      shift_round(schedule, n - distance, size / n * std::min(distance, n - distance), 1,
                  placement);
      continue;
    }
    int blocks = 0;  // number of blocks whose index has this bit set
    for (int block = 0; block < n; ++block)
      if ((block & distance) != 0) ++blocks;
    shift_round(schedule, distance, size / n * blocks, 1, placement);
  }
}

void shift(CommSchedule& schedule, Bytes size, const Placement& placement) {
  shift_round(schedule, 1, size, 1, placement);
}

}  // namespace lambcast::builders
