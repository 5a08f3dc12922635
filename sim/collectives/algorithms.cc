#include "sim/collectives/algorithms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/check.h"
#include "sim/base/counted.h"
#include "sim/base/error.h"
#include "sim/collectives/builders.h"
#include "sim/collectives/double_tree.h"

namespace lambcast {
namespace {

// Reach of an algorithm's sends, which decides which parts a folded machine must write out.
enum class Reach {
  neighbours,  // the next node: a part that is not full does only what full parts do
  distances,   // ranks at a distance, or earlier ranks: parts do the same if all are full
  everybody,   // every rank to every other at once: links are counted, not flows
  trees,       // neighbours in both trees
};

struct Algorithm {
  std::string_view name;
  std::array<bool, op_count> ops;  // supported operations, indexed by Op
  void (*build)(CommSchedule&, Bytes, const Placement&);
  bool (*fits)(const ProcessGroup&);       // condition on the group in addition to the operation
  bool (*symmetric)(const ProcessGroup&);  // whether full parts do the same
  Reach reach = Reach::neighbours;
};

constexpr auto any_group = [](const ProcessGroup&) { return true; };
constexpr auto no_group = [](const ProcessGroup&) { return false; };
constexpr auto several_alike = [](const ProcessGroup& group) {
  return group.nodes() > 1 && group.uniform();
};
constexpr auto powers_of_two = [](const ProcessGroup& group) {
  return is_power_of_two(group.ranks) && is_power_of_two(group.per_node);
};

//                               AR     AG     RS     A2A    BC     SR     RE
constexpr std::array<Algorithm, 16> table{{
    {"ring", {true, true, true, false, true, false, true}, builders::ring, any_group, any_group},
    {"tree",
     {true, false, false, false, false, false, false},
     builders::tree,
     [](const ProcessGroup& group) { return group.nodes() > 1; },
     any_group,
     Reach::trees},
    {"nvls",
     {true, false, false, false, false, false, false},
     builders::in_switch,
     [](const ProcessGroup& group) { return group.uniform() && group.per_node > 1; },
     any_group},
    {"nvls_tree",
     {true, false, false, false, false, false, false},
     builders::in_switch_tree,
     [](const ProcessGroup& group) {
       return group.nodes() > 1 && group.uniform() && group.per_node > 1;
     },
     any_group,
     Reach::trees},
    {"collnet_direct",
     {true, false, false, false, false, false, false},
     builders::collnet_direct,
     several_alike,
     any_group},
    {"collnet_chain",
     {true, false, false, false, false, false, false},
     builders::collnet_chain,
     several_alike,
     any_group},
    {"hierarchical",
     {true, false, false, false, false, false, false},
     builders::hierarchical,
     [](const ProcessGroup& group) { return group.uniform(); },
     any_group},
    {"recursive_doubling",
     {true, true, false, false, false, false, false},
     builders::recursive_doubling,
     any_group,
     powers_of_two,
     Reach::distances},
    {"halving_doubling",
     {true, false, true, false, false, false, false},
     builders::halving_doubling,
     any_group,
     powers_of_two,
     Reach::distances},
    {"neighbor_exchange",
     {false, true, false, false, false, false, false},
     builders::neighbor_exchange,
     [](const ProcessGroup& group) { return group.ranks % 2 == 0; },
     [](const ProcessGroup& group) { return group.per_node % 2 == 0; },
     Reach::distances},
    {"pairwise",
     {false, false, false, true, false, false, false},
     builders::pairwise,
     any_group,
     any_group,
     Reach::distances},
    {"linear",
     {false, false, false, true, false, false, false},
     builders::linear,
     any_group,
     any_group,
     Reach::everybody},
    {"bruck",
     {false, true, false, true, false, false, false},
     builders::bruck,
     any_group,
     any_group,
     Reach::distances},
    {"deepspeed_gather",
     {false, false, false, true, false, false, false},
     builders::deepspeed_gather,
     any_group,
     any_group,
     Reach::everybody},
    {"binomial",
     {false, false, false, false, true, false, true},
     builders::binomial,
     any_group,
     no_group,
     Reach::distances},
    {"shift",
     {false, false, false, false, false, true, false},
     builders::shift,
     any_group,
     any_group},
}};

const Algorithm& find(std::string_view name) {
  for (const Algorithm& algorithm : table)
    if (algorithm.name == name) return algorithm;
  fail_unknown({"", 0, "--algorithm"}, "algorithm", name, algorithm_names());
}

bool supports(const Algorithm& algorithm, Op op, const ProcessGroup& group) {
  if (!algorithm.ops[static_cast<std::size_t>(op)]) return false;
  // An all-gather by doubling needs a power of two; the all-reduce folds the other ranks away.
  if (op == Op::all_gather && algorithm.name == "recursive_doubling")
    return is_power_of_two(group.ranks);
  return algorithm.fits(group);
}

}  // namespace

const std::vector<std::string>& algorithm_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Algorithm& algorithm : table) all.emplace_back(algorithm.name);
    return all;
  }();
  return names;
}

std::vector<std::string> algorithms_of(Op op) {
  std::vector<std::string> all;
  for (const Algorithm& algorithm : table)
    if (algorithm.ops[static_cast<std::size_t>(op)]) all.emplace_back(algorithm.name);
  return all;
}

bool supports(std::string_view algorithm, Op op, const ProcessGroup& group) {
  return supports(find(algorithm), op, group);
}

bool in_network(std::string_view algorithm, const ProcessGroup& group) {
  return algorithm.starts_with("collnet") || (algorithm == "nvls" && group.nodes() > 1);
}

int parts_written(std::string_view name, const ProcessGroup& group, int nodes_alike) {
  const Algorithm& algorithm = find(name);
  const int part = std::max(1, nodes_alike / group.node_stride), nodes = group.nodes();
  if (nodes_alike == 0 || nodes < part || !algorithm.symmetric(group)) return 0;
  if (algorithm.reach == Reach::everybody) return 1;
  const bool strided = nodes_alike > 1 && nodes_alike % group.node_stride != 0;
  if (strided || !group.uniform()) return 0;
  if (algorithm.reach == Reach::neighbours) return 1;
  if (algorithm.reach == Reach::distances) return nodes % part == 0 ? 1 : 0;
  const auto parts = static_cast<int>(busiest_parts(nodes, part)->parts.size());
  // A written part must represent further parts: if all parts were written, folding would save
  // nothing.
  return part * (parts + 1) <= nodes ? parts : 0;
}

CommSchedule make_schedule(std::string_view name, Op op, Bytes size, const Placement& placement) {
  LAMBCAST_CHECK(placement.ranks > 0 && placement.per_node > 0, "an empty group");
  const Algorithm& algorithm = find(name);
  CommSchedule schedule;
  schedule.op = op;
  schedule.size = size;
  schedule.algorithm = name;
  if (placement.ranks == 1) return schedule;
  if (!supports(algorithm, op, placement)) {
    std::vector<std::string> allowed;
    for (const Algorithm& other : table)
      if (supports(other, op, placement)) allowed.emplace_back(other.name);
    fail_input({"", 0, "--algorithm"},
               fmt::format("{} does not do {} over {} on {}", name, name_of(op),
                           counted(placement.ranks, "rank"), counted(placement.nodes(), "node")),
               fmt::format("{}", fmt::join(allowed, ", ")));
  }
  algorithm.build(schedule, size, placement);
  if (schedule.traffic.sent_per_rank.value() == 0)
    schedule.traffic = count_traffic(schedule, placement);
  schedule.traffic.network_sent_per_node =
      schedule.traffic.network_sent_per_node * placement.siblings;
  return schedule;
}

}  // namespace lambcast
