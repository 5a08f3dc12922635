#include "experiments/output/flat_key.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/output/mean_step.h"
#include "experiments/scenario/unread_keys.h"
#include "models/training/price/gpu_way_limit.h"
#include "models/training/run/stream_limit.h"

namespace lambcast {
namespace {

Forecast forecast_of_one(const TrainingPlan& training) {
  CollectiveCosts costs;
  return forecast_alone(training, costs);
}

// Returns the limits of traffic between nodes, for keys of the bandwidth of a NIC or of the path to
// it.
std::vector<std::string> limits_between_nodes(const std::string& key,
                                              const TrainingPlan& training) {
  const Cluster& cluster = *training.cluster;
  std::vector<std::string> limits;
  const bool of_nic = key == "cluster.nic.bandwidth" || key == "cluster.nic.nominal";
  const bool of_way = key == "cluster.node.gpu_nic" || key == "cluster.node.gpu_link";
  if (of_nic)
    for (const auto& finding : {find_stream_limit(cluster, training.nodes()),
                                find_gpu_way_limit(cluster, training.nodes())})
      if (finding) limits.push_back(finding->message);
  if (of_way && training.nodes() > 1 && !gpu_way_limit(cluster, training.nodes()))
    limits.push_back(
        fmt::format("nic.bandwidth of {} is less than a GPU's way to its NICs, and "
                    "limits what crosses nodes",
                    to_text_bits(cluster.nic_bandwidth.value)));
  const bool of_streams = key == "cluster.nccl.connections" || key == "cluster.nccl.flow_cap";
  if (of_streams && training.nodes() > 1 && !stream_limit(cluster))
    limits.push_back(fmt::format("nic.bandwidth of {} is less than the TCP streams to a peer carry",
                                 to_text_bits(cluster.nic_bandwidth.value)));
  return limits;
}

bool is_of_communication(const std::string& key) {
  return std::ranges::any_of(
      std::array{"cluster.nic.", "cluster.node.", "cluster.nccl.", "cluster.fabric."},
      [&](const char* part) { return key.starts_with(part); });
}

bool hides_communication(const Forecast& forecast) {
  return std::ranges::all_of(forecast.steps,
                             [](const StepForecast& step) { return step.exposed_comm_us == 0; });
}

}  // namespace

bool is_flat(std::span<const double> values) {
  if (std::ranges::any_of(values, [](double x) { return std::isnan(x); }))
    return std::ranges::all_of(values, [](double x) { return std::isnan(x); });
  const auto [low, high] = std::ranges::minmax(values);
  return high - low <= flat_spread * std::abs(high);
}

std::vector<std::string> limits_of_key(const std::string& key, const TrainingPlan& training) {
  if (const std::string why = why_unread(key, training); !why.empty()) return {why};
  std::vector<std::string> limits = limits_between_nodes(key, training);
  if (limits.empty() && is_of_communication(key) && hides_communication(forecast_of_one(training)))
    limits.emplace_back("the passes hide all communication");
  return limits;
}

std::string largest_part_text(const TrainingPlan& training) {
  const PartTimes parts = mean_step(forecast_of_one(training)).parts;
  const auto largest = std::ranges::max_element(parts.us);
  double all = 0;
  for (const double us : parts.us) all += us;
  return fmt::format("{} is {:.0f} % of the mean step",
                     part_group_names[static_cast<std::size_t>(largest - parts.us.begin())],
                     100 * *largest / all);
}

std::string flat_key_text(const std::string& key, const TrainingPlan& training) {
  const std::vector<std::string> limits = limits_of_key(key, training);
  if (limits.empty())
    return fmt::format(
        "{} moves nothing here: no cost of this run depends on it at these values; "
        "{}.",
        key, largest_part_text(training));
  return fmt::format("{} moves nothing here: {}.", key, fmt::join(limits, "; "));
}

}  // namespace lambcast
