#include "topologies/collective_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/error.h"

namespace lambcast {
namespace {

constexpr std::size_t max_sizes = 10'000;

void add_name(std::string& names, const std::string& name) {
  if (names.find(name) == std::string::npos) names += (names.empty() ? "" : "+") + name;
}

// Adds `collective`, which takes `time`, to a row, after its other messages. `tip` belongs to this
// collective.
void add(CollectiveRow& row, const Collective& collective, Duration time, const Tip& tip,
         const Cluster& cluster, const CollectiveQuestion& question) {
  const CollectiveSetting& setting = question.setting;
  const bool flow = question.network == NetworkModel::flow;
  row.time += time;
  row.flow_time +=
      !flow && shares_are_unlike(collective) ? simulate(collective, NetworkModel::flow) : time;
  RunBy by{collective.chosen, collective.protocol, tip.rival,
           collective.traffic.network_sent_per_node};
  row.tip.approximation = approximation_of(collective, question.network);
  const CalibratedInterval interval = widened(interval_of(cluster, setting.backend, collective.op,
                                                          collective.size, setting.group, time, by),
                                              row.tip.approximation);
  row.interval.low += interval.low;
  row.interval.high += interval.high;
  row.interval.calibrated &= interval.calibrated;
  row.interval.ground = std::max(row.interval.ground, interval.ground);
  add_name(row.algorithm, collective.algorithm);
  add_name(row.protocol, collective.protocol);
}

}  // namespace

bool CollectiveRow::models_part() const {
  constexpr double part = 0.02;
  return std::abs(flow_time / time - 1) > part;
}

double CollectiveRow::algbw_GBps() const { return time.ps() == 0 ? 0 : size / time.s() * 1e-9; }

std::vector<CollectiveRow> forecast_rows(const Cluster& cluster,
                                         const CollectiveQuestion& question) {
  const CollectiveSetting& setting = question.setting;
  if (question.exchange && !setting.algorithm.empty())
    fail_input({"", 0, "--algorithm"},
               "is not for compressed_allreduce, which is several collectives");
  const auto time_of = [&](const Collective& collective) {
    const bool alone = question.network == NetworkModel::analytic && !setting.expand;
    return alone ? collective.time : simulate(collective, question.network);
  };
  CollectiveSeries series = prepare(cluster, setting);
  std::vector<CollectiveRow> rows;
  for (const double size : question.sizes) {
    CollectiveRow row{size};
    if (question.exchange) {
      CollectiveRow twice{2 * size};
      for (CollectiveRow* of : {&row, &twice})
        for (const Collective& message :
             compressed_exchange(series, setting.backend, Bytes(of->size)))
          add(*of, message, time_of(message), {}, cluster, question);
      if (twice.time < row.time) row.tip.twice = Rival{twice.algorithm, twice.protocol, twice.time};
    } else {
      const Collective collective = forecast(series, Bytes(size));
      const Duration time = time_of(collective);
      row.tip = tip_of(series.request, series.machines, series.transport, time, question.network);
      add(row, collective, time, row.tip, cluster, question);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<double> sizes_between(double first, double last, double factor) {
  if (last < first) fail_input({"", 0, "-e"}, "is below -b");
  if (factor <= 1 && last > first) fail_input({"", 0, "-f"}, "must be above 1");
  std::vector<double> sizes{std::floor(first)};
  for (double size = first * factor;
       size <= last * (1 + 1e-12) && last > first && sizes.size() <= max_sizes; size *= factor)
    sizes.push_back(std::floor(size));
  if (sizes.size() > max_sizes)
    fail_input({"", 0, "-f"}, fmt::format("gives more than {} sizes", max_sizes));
  return sizes;
}

}  // namespace lambcast
