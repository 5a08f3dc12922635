#include "sim/collectives/algorithms.h"

#include <fmt/format.h>

#include <array>
#include <bit>

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "sim/collectives/builders.h"

namespace lambcast {
namespace {

bool is_power_of_two(int n) { return std::has_single_bit(static_cast<unsigned>(n)); }

struct Algorithm {
  std::string_view name;
  std::array<bool, 6> ops;  // by Op
  void (*build)(Schedule&, Bytes, const Layout&);
  bool (*fits)(const Layout&);       // beyond the operation
  bool (*symmetric)(const Layout&);  // node 0 stands for every node
};

constexpr auto any_layout = [](const Layout&) { return true; };
constexpr auto no_layout = [](const Layout&) { return false; };
constexpr auto powers_of_two = [](const Layout& layout) {
  return is_power_of_two(layout.ranks) && is_power_of_two(layout.gpus_per_node);
};

//                               AR     AG     RS     A2A    BC     SR
constexpr std::array<Algorithm, 13> table{{
    {"ring", {true, true, true, false, true, false}, builders::ring, any_layout, any_layout},
    {"tree",
     {true, false, false, false, false, false},
     builders::tree,
     [](const Layout& layout) { return layout.nodes() > 1; },
     any_layout},
    {"nvls",
     {true, false, false, false, false, false},
     builders::in_switch,
     [](const Layout& layout) { return layout.uniform() && layout.gpus_per_node > 1; },
     any_layout},
    {"hierarchical",
     {true, false, false, false, false, false},
     builders::hierarchical,
     [](const Layout& layout) { return layout.uniform(); },
     any_layout},
    {"recursive_doubling",
     {true, true, false, false, false, false},
     builders::recursive_doubling,
     any_layout,
     powers_of_two},
    {"halving_doubling",
     {true, false, true, false, false, false},
     builders::halving_doubling,
     any_layout,
     powers_of_two},
    {"neighbor_exchange",
     {false, true, false, false, false, false},
     builders::neighbor_exchange,
     [](const Layout& layout) { return layout.ranks % 2 == 0; },
     [](const Layout& layout) { return layout.gpus_per_node % 2 == 0; }},
    {"pairwise",
     {false, false, false, true, false, false},
     builders::pairwise,
     any_layout,
     any_layout},
    {"linear", {false, false, false, true, false, false}, builders::linear, any_layout, any_layout},
    {"bruck", {false, false, false, true, false, false}, builders::bruck, any_layout, any_layout},
    {"deepspeed_gather",
     {false, false, false, true, false, false},
     builders::deepspeed_gather,
     any_layout,
     any_layout},
    {"binomial",
     {false, false, false, false, true, false},
     builders::binomial,
     any_layout,
     no_layout},
    {"shift", {false, false, false, false, false, true}, builders::shift, any_layout, any_layout},
}};

const Algorithm& find(std::string_view name) {
  for (const Algorithm& algorithm : table)
    if (algorithm.name == name) return algorithm;
  fail_unknown({"", 0, "--algorithm"}, "algorithm", name, algorithm_names());
}

bool supports(const Algorithm& algorithm, Op op, const Layout& layout) {
  if (!algorithm.ops[static_cast<std::size_t>(op)]) return false;
  // An all-gather by doubling needs whole powers; the all-reduce folds the rest away.
  if (op == Op::all_gather && algorithm.name == "recursive_doubling")
    return is_power_of_two(layout.ranks);
  return algorithm.fits(layout);
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

bool supports(std::string_view algorithm, Op op, const Layout& layout) {
  return supports(find(algorithm), op, layout);
}

bool foldable(std::string_view algorithm, Op, const Layout& layout) {
  return layout.uniform() && find(algorithm).symmetric(layout);
}

Schedule make_schedule(std::string_view name, Op op, Bytes size, const Layout& layout) {
  LAMBCAST_CHECK(layout.ranks > 0 && layout.gpus_per_node > 0, "an empty layout");
  const Algorithm& algorithm = find(name);
  Schedule schedule;
  schedule.op = op;
  schedule.algorithm = name;
  if (layout.ranks == 1) return schedule;
  if (!supports(algorithm, op, layout)) {
    std::vector<std::string> allowed;
    for (const Algorithm& other : table)
      if (supports(other, op, layout)) allowed.emplace_back(other.name);
    fail_input({"", 0, "--algorithm"},
               fmt::format("{} does not do {} over {} ranks on {} node(s)", name, name_of(op),
                           layout.ranks, layout.nodes()),
               fmt::format("{}", fmt::join(allowed, ", ")));
  }
  algorithm.build(schedule, size, layout);
  if (schedule.traffic.sent_per_rank.value() == 0)
    schedule.traffic = count_traffic(schedule, layout);
  return schedule;
}

}  // namespace lambcast
