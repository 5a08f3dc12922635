#include "sim/collectives/choice.h"

#include "sim/collectives/algorithms.h"

namespace lambcast {
namespace {

constexpr double kib = 1024;

// `size` is the size of the whole vector.
std::string openmpi_4_1_all_reduce(int n, double size) {
  const auto doubling_below = [&](double limit) {
    return size < limit ? "recursive_doubling" : "halving_doubling";
  };
  if (n < 4)
    return size < 64 * kib ? "recursive_doubling" : size < 256 * kib ? "ring" : "halving_doubling";
  if (n < 16) return doubling_below(8 * kib);
  if (n < 32) return doubling_below(4 * kib);
  if (n < 64) return doubling_below(128);
  if (n < 256) return doubling_below(256 * kib);
  if (n < 512) return doubling_below(4 * kib);
  return doubling_below(16 * kib);
}

// `block` is the contribution of one rank.
std::string openmpi_4_1_all_gather(int n, double block) {
  if (n < 32) return "recursive_doubling";
  if (n < 64)
    return block < 1 * kib ? "recursive_doubling" : block < 64 * kib ? "neighbor_exchange" : "ring";
  if (n < 128)
    return block < 512 ? "recursive_doubling" : block < 64 * kib ? "neighbor_exchange" : "ring";
  if (n < 512)
    return block < 512 ? "recursive_doubling" : block < 128 * kib ? "neighbor_exchange" : "ring";
  return block < 4 * kib ? "recursive_doubling" : "neighbor_exchange";
}

// `block` is the message from one rank to another.
std::string openmpi_4_1_all_to_all(int n, double block) {
  if (n < 16) return "linear";
  if (n < 32) return block < 512 ? "bruck" : "linear";
  if (n < 64) return block < 512 ? "bruck" : "linear";
  if (n < 256) return block < 1 * kib ? "bruck" : block < 256 * kib ? "linear" : "pairwise";
  return block < 1 * kib ? "bruck" : block < 32 * kib ? "linear" : "pairwise";
}

std::string openmpi_4_0(Op op, int n, double size) {
  const double block = size / n;
  switch (op) {
    case Op::all_reduce:
      return size < 10000 ? "recursive_doubling" : "ring";
    case Op::all_gather:
      // All-gathers of less than 50 kB in total use recursive doubling or Bruck's algorithm; larger
      // ones use neighbour exchange or a ring.
      if (size < 50000) return "recursive_doubling";
      return n % 2 == 0 ? "neighbor_exchange" : "ring";
    case Op::all_to_all:
      if (block < 200 && n > 12) return "bruck";
      return block < 3000 ? "linear" : "pairwise";
    case Op::reduce_scatter:
      return is_power_of_two(n) && size <= 12 * kib ? "halving_doubling" : "ring";
    case Op::broadcast:
    case Op::reduce:
      return "binomial";
    case Op::send_recv:
      return "shift";
  }
  return "ring";
}

std::string openmpi_4_1(Op op, int n, double size) {
  switch (op) {
    case Op::all_reduce:
      return openmpi_4_1_all_reduce(n, size);
    case Op::all_gather:
      return openmpi_4_1_all_gather(n, size / n);
    case Op::all_to_all:
      return openmpi_4_1_all_to_all(n, size / n);
    case Op::reduce_scatter:
      return n >= 4 && size < 256 * kib ? "halving_doubling" : "ring";
    case Op::broadcast:
    case Op::reduce:
      return "binomial";
    case Op::send_recv:
      return "shift";
  }
  return "ring";
}

std::vector<std::string> nccl_candidates(Op op, const ProcessGroup& group, bool in_switch) {
  if (op == Op::all_to_all) return {"linear"};
  if (op == Op::send_recv) return {"shift"};
  std::vector<std::string> names{"ring"};
  if (op == Op::all_reduce && group.nodes() > 1) names.push_back("tree");
  for (const char* name : {"nvls", "nvls_tree"})
    if (in_switch && supports(name, op, group) && !in_network(name, group))
      names.emplace_back(name);
  return names;
}

}  // namespace

std::vector<std::string> candidates(DecisionRules rules, Op op, Bytes size,
                                    const ProcessGroup& group, bool in_switch) {
  if (rules == DecisionRules::nccl) return nccl_candidates(op, group, in_switch);
  const std::string rule = rules == DecisionRules::openmpi_4_0
                               ? openmpi_4_0(op, group.ranks, size.value())
                               : openmpi_4_1(op, group.ranks, size.value());
  if (supports(rule, op, group)) return {rule};
  // Rules may name algorithms for an even or a power-of-two number of ranks only. For other numbers
  // the library runs these instead (coll_base_allgather.c).
  return {rule == "recursive_doubling" ? "bruck" : "ring"};
}

}  // namespace lambcast
