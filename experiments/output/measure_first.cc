#include "experiments/output/measure_first.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "models/training/plan/distinct_steps.h"
#include "models/training/plan/step_plan.h"
#include "topologies/cluster.h"

namespace lambcast {
namespace {

// Calls of one collective, in the terms of a calibration.
struct Calls {
  Calibration::Range sizes{};
  std::set<std::pair<int, int>> layouts;  // GPUs per node, nodes

  bool empty() const { return layouts.empty(); }
};

// Leaves out calls much smaller than the largest, such as overflow flags, since they take little of
// the time.
Calls calls_of(const TrainingPlan& training, const CallKind& wanted) {
  constexpr double little = 0.01;
  std::vector<Call> all;
  double largest = 0;
  for (const DistinctStep& step : distinct_steps(training))
    for (const PlanOp& op : plan_step(in_step(training, step), step).ops) {
      const Call* const call = std::get_if<Call>(&op.work);
      if (call == nullptr || call->op != wanted.op || call->backend != wanted.backend) continue;
      all.push_back(*call);
      largest = std::max(largest, call->bytes.value());
    }
  Calls calls{{largest, largest}, {}};
  for (const Call& call : all) {
    if (call.bytes.value() < little * largest) continue;
    calls.sizes.low = std::min(calls.sizes.low, call.bytes.value());
    const int per_node = std::min(call.group.per_node, call.group.ranks);
    calls.layouts.emplace(per_node, (call.group.ranks + per_node - 1) / per_node);
  }
  return calls;
}

bool holds_layout(const Calibration& calibration, const std::pair<int, int>& layout) {
  return std::ranges::any_of(calibration.layouts, [&](const auto& measured) {
    return measured.gpus_per_node == layout.first && measured.nodes.low <= layout.second &&
           layout.second <= measured.nodes.high;
  });
}

std::string nodes_text(const std::set<std::pair<int, int>>& layouts) {
  std::vector<std::string> texts;
  for (const auto& [gpus, nodes] : layouts)
    texts.push_back(fmt::format("{} node{} with {} GPU{} each", nodes, nodes == 1 ? "" : "s", gpus,
                                gpus == 1 ? "" : "s"));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string sizes_text(const Calibration::Range& sizes) {
  return sizes.low == sizes.high
             ? to_text(Bytes(sizes.low))
             : fmt::format("{} to {}", to_text(Bytes(sizes.low)), to_text(Bytes(sizes.high)));
}

// Returns the sizes and nodes of the run's calls that no log covers, as parts of a sentence.
std::vector<std::string> lacks_of(const Calibration& calibration, const CallKind& wanted,
                                  const Calls& calls) {
  std::vector<std::string> lacks;
  if (std::ranges::find(calibration.operations, wanted.op) == calibration.operations.end())
    return {fmt::format("{} on {}", sizes_text(calls.sizes), nodes_text(calls.layouts))};
  if (calls.sizes.low < calibration.sizes.low || calls.sizes.high > calibration.sizes.high)
    lacks.push_back("sizes of " + sizes_text(calls.sizes));
  std::set<std::pair<int, int>> missing;
  for (const auto& layout : calls.layouts)
    if (!holds_layout(calibration, layout)) missing.insert(layout);
  if (!missing.empty()) lacks.push_back(nodes_text(missing));
  return lacks;
}

// Returns the calls of this run that the cluster's logs do not cover, as parts of a sentence.
// Nothing if the cluster has no logs of this source.
std::optional<std::vector<std::string>> lacks_for(std::size_t source,
                                                  const TrainingPlan& training) {
  const auto wanted = measured_call(source);
  const auto& calibration = training.cluster->calibration;
  if (!wanted || !calibration || calibration->another_machine ||
      is_mpi(calibration->backend) != is_mpi(wanted->backend))
    return std::nullopt;
  const Calls calls = calls_of(training, *wanted);
  if (calls.empty()) return std::nullopt;
  return lacks_of(*calibration, *wanted, calls);
}

}  // namespace

std::string measurement_for(std::size_t source, const TrainingPlan& training) {
  return measurement_for(source, std::array{&training});
}

std::string measurement_for(std::size_t source, std::span<const TrainingPlan* const> trainings) {
  std::vector<std::string> all;
  for (const TrainingPlan* training : trainings) {
    const auto lacks = lacks_for(source, *training);
    if (!lacks) return measurement_of(source);
    for (const std::string& lack : *lacks)
      if (std::ranges::find(all, lack) == all.end()) all.push_back(lack);
  }
  if (all.empty()) return {};
  return fmt::format("{}: the logs of this cluster lack {}", measurement_of(source),
                     fmt::join(all, " and "));
}

}  // namespace lambcast
