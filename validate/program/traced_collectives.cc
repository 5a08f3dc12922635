#include "validate/program/traced_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

#include "models/training/price/collective_costs.h"
#include "validate/measurement.h"

namespace lambcast {
namespace {

constexpr std::size_t most_rows = 8;

double bytes_of_type(std::string_view type) {
  constexpr std::pair<std::string_view, double> types[] = {
      {"Double", 8},   {"Long", 8}, {"Float", 4}, {"Int", 4},           {"Half", 2},
      {"BFloat16", 2}, {"Byte", 1}, {"Char", 1},  {"Float8_e4m3fn", 1}, {"Float8_e5m2", 1}};
  const auto found = std::ranges::find(types, type, &std::pair<std::string_view, double>::first);
  return found == std::end(types) ? 0 : found->second;
}

// Returns the numbers of a list "[0, 8, 16]"; nothing if it is cut or malformed.
std::optional<std::vector<int>> ranks_in(std::string_view list) {
  if (list.size() < 3 || list.front() != '[' || list.back() != ']') return std::nullopt;
  std::vector<int> numbers;
  const char* at = list.data() + 1;
  const char* const end = list.data() + list.size() - 1;
  while (at < end) {
    const auto [next, error] = std::from_chars(at, end, numbers.emplace_back());
    if (error != std::errc{}) return std::nullopt;
    at = next;
    while (at < end && (*at == ',' || *at == ' ')) ++at;
  }
  return numbers;
}

Duration total_of(const TracedCollective& call) {
  return std::accumulate(call.times.begin(), call.times.end(), Duration());
}

std::string forecast_of(const TracedCollective& call, const std::shared_ptr<const Cluster>& cluster,
                        int gpus, CollectiveCosts& costs) {
  const auto op = call.operation();
  const auto group = call.group(cluster->gpus_per_node, gpus);
  if (!op || !group || !(call.bytes() > 0)) return "-";
  const CollectiveCost& cost = costs.cost({cluster, *group, NetworkModel::analytic, false},
                                          Backend::nccl, *op, Bytes(call.bytes()));
  return fmt::format("{:.0f} ({:.0f} to {:.0f})", cost.time.us(), cost.interval.low.us(),
                     cost.interval.high.us());
}

}  // namespace

bool TracedCollective::same_call(const TracedCollective& other) const {
  return op == other.op && elements_in == other.elements_in && elements_out == other.elements_out &&
         type == other.type && members == other.members && ranks == other.ranks;
}

double TracedCollective::bytes() const {
  return std::max(elements_in, elements_out) * bytes_of_type(type);
}

std::optional<Op> TracedCollective::operation() const {
  constexpr std::pair<std::string_view, Op> parts[] = {{"reduce_scatter", Op::reduce_scatter},
                                                       {"reducescatter", Op::reduce_scatter},
                                                       {"allreduce", Op::all_reduce},
                                                       {"allgather", Op::all_gather},
                                                       {"all_gather", Op::all_gather},
                                                       {"all_to_all", Op::all_to_all},
                                                       {"broadcast", Op::broadcast},
                                                       {"send", Op::send_recv},
                                                       {"recv", Op::send_recv}};
  for (const auto& [part, operation] : parts)
    if (op.find(part) != op.npos) return operation;
  return std::nullopt;
}

std::optional<ProcessGroup> TracedCollective::group(int gpus_per_node, int gpus) const {
  std::optional<std::vector<int>> ranks_of = ranks_in(members);
  if (!ranks_of || ranks_of->size() < 2) return std::nullopt;
  std::ranges::sort(*ranks_of);
  const auto node = [&](int rank) { return rank / gpus_per_node; };
  ProcessGroup group{.ranks = static_cast<int>(ranks_of->size())};
  const int first = ranks_of->front();
  group.per_node = static_cast<int>(
      std::ranges::count_if(*ranks_of, [&](int rank) { return node(rank) == node(first); }));
  if (group.per_node > 1) group.stride = (*ranks_of)[1] - first;
  if (group.nodes() > 1)
    group.node_stride = node((*ranks_of)[static_cast<std::size_t>(group.per_node)]) - node(first);
  for (std::size_t i = 0; i < ranks_of->size(); ++i) {
    const int on_node = static_cast<int>(i) % group.per_node;
    const int at = static_cast<int>(i) / group.per_node;
    const int expected = first + on_node * group.stride + at * group.node_stride * gpus_per_node;
    if ((*ranks_of)[i] != expected) return std::nullopt;
  }
  group.siblings = std::min(gpus, gpus_per_node) / group.per_node;
  return group;
}

std::string collectives_report(const std::vector<TracedCollective>& calls, int steps,
                               const std::shared_ptr<const Cluster>& cluster, int gpus) {
  std::vector<const TracedCollective*> longest;
  for (const TracedCollective& call : calls) longest.push_back(&call);
  std::ranges::sort(longest, std::greater(), [](const auto* call) { return total_of(*call); });
  if (longest.size() > most_rows) longest.resize(most_rows);
  if (longest.empty()) return "";
  CollectiveCosts costs;
  std::string out = fmt::format("{:<24} {:>6} {:>10} {:>8} {:>13}  {}\n", "collective", "ranks",
                                "size", "a step", "median (us)", "forecast, alone (us)");
  for (const TracedCollective* call : longest)
    out +=
        fmt::format("{:<24} {:>6} {:>10} {:>8.4g} {:>13.1f}  {}\n", call->op, call->ranks,
                    call->bytes() > 0 ? to_text(Bytes(call->bytes())) : "-",
                    static_cast<double>(call->times.size()) / steps,
                    validate::median(call->times).us(), forecast_of(*call, cluster, gpus, costs));
  if (calls.size() > longest.size())
    out += fmt::format("and {} more\n", calls.size() - longest.size());
  return out + "\n";
}

}  // namespace lambcast
