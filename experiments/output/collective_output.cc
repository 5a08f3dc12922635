#include "experiments/output/collective_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "models/training/price/algorithm_tip.h"
#include "models/training/price/gpu_way_limit.h"
#include "sim/base/counted.h"
#include "sim/base/csv.h"
#include "sim/base/json.h"
#include "topologies/nccl_machine.h"

namespace lambcast {
namespace {

// Formats a bandwidth as wide as nccl-tests does, with more digits for a slow link.
std::string rate(double GBps) {
  return GBps < 1 ? fmt::format("{:.4f}", GBps) : fmt::format("{:.2f}", GBps);
}

bool on_whole_nodes(const ProcessGroup& group) {
  return group.stride == 1 && group.node_stride == 1 && group.siblings == 1;
}

// Describes the placement of a group that is not simply on whole nodes.
std::string lie(const ProcessGroup& group) {
  if (on_whole_nodes(group)) return "";
  return fmt::format(", stride {}, node stride {}, {} group{} at once", group.stride,
                     group.node_stride, group.siblings, group.siblings == 1 ? "" : "s");
}

// Returns the findings about the cluster that apply to a group over several nodes.
std::vector<Finding> findings_of(const CollectiveAnswer& answer, const Cluster& cluster) {
  std::vector<Finding> findings;
  if (answer.group.nodes() == 1) return findings;
  if (const auto finding = find_above_name_plate(cluster)) findings.push_back(*finding);
  if (is_mpi(answer.backend)) return findings;
  if (const auto finding = find_gpu_way_limit(cluster, answer.group.nodes()))
    findings.push_back(*finding);
  const std::string idle = why_sharp_is_idle(cluster, answer.group.per_node);
  if (!idle.empty())
    findings.push_back(
        {Severity::note, "flag-no-effect", fmt::format("nccl.sharp has no effect: {}", idle)});
  return findings;
}

std::string subject(const CollectiveAnswer& answer, const Cluster& cluster) {
  std::string text = fmt::format("# lambcast forecast of {} on {}, {}{}\n", answer.op, cluster.name,
                                 counted(answer.group.ranks, "rank"), lie(answer.group));
  if (is_calibrated(cluster, answer.backend, answer.group.nodes()))
    text +=
        fmt::format("# {} {}\n",
                    cluster.calibration->another_machine ? "preset of another machine, measured:"
                                                         : "calibrated for",
                    describe(*cluster.calibration));
  for (const Finding& finding : findings_of(answer, cluster))
    text += fmt::format("# {}\n", finding.message);
  return text;
}

std::string heading(const CollectiveAnswer& answer, const Cluster& cluster) {
  std::string text = subject(answer, cluster);
  text += fmt::format("#\n#{:>13} {:>13} {:>9} {:>7} {:>6} {:>11} {:>9} {:>9} {:>7}\n", "size",
                      "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong");
  return text + fmt::format("#{:>13} {:>13} {:>9} {:>7} {:>6} {:>11} {:>9} {:>9} {:>7}\n", "(B)",
                            "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "");
}

std::string ground_of(const CalibratedInterval& interval, const Cluster& cluster, int nodes) {
  if (interval.ground == Ground::none) return without_calibration(cluster);
  const bool extrapolated = interval.ground == Ground::extrapolated;
  return std::string(in_words(interval.ground)) +
         (extrapolated ? changed_keys(cluster, nodes) : "");
}

// Returns a remark if the flow model of the network gives a different time.
std::string flow_remark(const CollectiveRow& row) {
  if (!row.models_part()) return "";
  return fmt::format(
      "\n# flows are unlike here: --network flow, where they take up what others leave, says "
      "{:.2f} times the time",
      row.flow_time / row.time);
}

// Returns a finding if the library is near a switch to another algorithm at this row.
std::optional<Finding> find_tip(const CollectiveRow& row, const CollectiveAnswer& answer) {
  return find_tip(TippingCollective{Op::all_reduce, Bytes(row.size), row.algorithm, row.protocol,
                                    row.time, row.tip},
                  answer.op);
}

std::string tip_remark(const CollectiveRow& row, const CollectiveAnswer& answer) {
  const auto finding = find_tip(row, answer);
  return finding ? fmt::format("# {}\n", finding->message) : "";
}

constexpr const char* of_one_rank = "one rank sends nothing";

// Returns the algorithm, its protocol and the accuracy of the time.
std::string grounds(const CollectiveRow& row, const CollectiveAnswer& answer,
                    const Cluster& cluster) {
  if (answer.group.ranks == 1) return of_one_rank;
  return fmt::format("{}/{}, {}: {:.2f} to {:.2f} times the time", row.algorithm, row.protocol,
                     ground_of(row.interval, cluster, answer.group.nodes()),
                     row.interval.low / row.time, row.interval.high / row.time) +
         flow_remark(row);
}

// Formats microseconds, without decimals from 100 us on.
std::string whole_us(Duration time) {
  return time.us() < 100 ? fmt::format("{:.1f}", time.us()) : fmt::format("{:.0f}", time.us());
}

}  // namespace

std::string collective_text(const CollectiveAnswer& answer, const Cluster& cluster) {
  const std::string& op = answer.op;
  const bool reduces = op == "all_reduce" || op == "reduce_scatter" || op == "reduce";
  const bool is_rooted = op == "broadcast" || op == "reduce";
  const bool per_rank = op == "all_gather" || op == "reduce_scatter" || op == "all_to_all";
  std::string text = heading(answer, cluster), said;
  for (const CollectiveRow& row : answer.rows) {
    // Parsers of these logs count columns, so the grounds are printed as comments when they change.
    const std::string why = grounds(row, answer, cluster);
    if (why != said) text += fmt::format("# {}\n", why);
    said = why;
    text += tip_remark(row, answer);
    const double algbw = row.algbw_GBps();
    text += fmt::format(" {:>13.0f} {:>13.0f} {:>9} {:>7} {:>6} {:>11.2f} {:>9} {:>9} {:>7}\n",
                        row.size, std::floor(row.size / 4 / (per_rank ? answer.group.ranks : 1)),
                        "float", reduces ? "sum" : "none", is_rooted ? 0 : -1, row.time.us(),
                        rate(algbw), rate(algbw * answer.bus_factor), "N/A");
  }
  return text;
}

std::string collective_table(const CollectiveAnswer& answer, const Cluster& cluster) {
  std::string text = subject(answer, cluster), said;
  text += fmt::format("#\n#{:>11} {:>10} {:>20} {:>7} {:>7}  {}\n", "size", "time", "within",
                      "algbw", "busbw", "runs");
  text +=
      fmt::format("#{:>11} {:>10} {:>20} {:>7} {:>7}\n", "(B)", "(us)", "(us)", "(GB/s)", "(GB/s)");
  for (const CollectiveRow& row : answer.rows) {
    const bool alone = answer.group.ranks == 1;
    const std::string why =
        alone ? of_one_rank
              : ground_of(row.interval, cluster, answer.group.nodes()) + flow_remark(row);
    if (why != said) text += fmt::format("# {}\n", why);
    said = why;
    text += tip_remark(row, answer);
    const double algbw = row.algbw_GBps();
    text += fmt::format(
        " {:>11.0f} {:>10.2f} {:>20} {:>7} {:>7}  {}\n", row.size, row.time.us(),
        fmt::format("{} to {}", whole_us(row.interval.low), whole_us(row.interval.high)),
        rate(algbw), rate(algbw * answer.bus_factor),
        alone ? "" : fmt::format("{}/{}", row.algorithm, row.protocol));
  }
  return text;
}

std::string collective_json(const CollectiveAnswer& answer, const Cluster& cluster) {
  const ProcessGroup& group = answer.group;
  Json json{{"schema_version", 1},
            {"op", answer.op},
            {"cluster", cluster.name},
            {"gpus", group.ranks},
            {"gpus_per_node", group.per_node}};
  if (!on_whole_nodes(group)) {
    json["stride"] = group.stride;
    json["node_stride"] = group.node_stride;
    json["siblings"] = group.siblings;
  }
  json["results"] = Json::array();
  for (const CollectiveRow& row : answer.rows) {
    const double algbw = row.algbw_GBps();
    json["results"].push_back({{"size_bytes", static_cast<std::uint64_t>(row.size)},
                               {"time_us", row.time.us()},
                               {"algbw_GBps", algbw},
                               {"busbw_GBps", algbw * answer.bus_factor},
                               {"algorithm", row.algorithm},
                               {"protocol", row.protocol},
                               {"low_us", row.interval.low.us()},
                               {"high_us", row.interval.high.us()},
                               {"calibrated", row.interval.calibrated}});
    if (row.models_part()) json["results"].back()["flow_model_time_us"] = row.flow_time.us();
  }
  std::vector<Finding> findings = findings_of(answer, cluster);
  for (const CollectiveRow& row : answer.rows)
    if (auto finding = find_tip(row, answer)) findings.push_back(std::move(*finding));
  json["findings"] = Json::array();
  for (const Finding& finding : findings)
    json["findings"].push_back({{"severity", name_of(finding.severity)},
                                {"code", finding.code},
                                {"message", finding.message}});
  return json_lines(json);
}

std::string collective_csv(const CollectiveAnswer& answer) {
  std::string text =
      "size_bytes,time_us,algbw_GBps,busbw_GBps,algorithm,protocol,low_us,high_us,calibrated,"
      "flow_model_time_us\n";
  for (const CollectiveRow& row : answer.rows) {
    const double algbw = row.algbw_GBps();
    text += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", row.size, row.time.us(), algbw,
                        algbw * answer.bus_factor, row.algorithm, row.protocol,
                        row.interval.low.us(), row.interval.high.us(), row.interval.calibrated,
                        row.models_part() ? fmt::format("{}", row.flow_time.us()) : "");
  }
  return text;
}

std::string jobs_text(std::span<const CollectiveJob> jobs, std::span<const JobForecast> forecasts,
                      const Cluster& cluster) {
  const auto line = [](auto job, auto op, auto gpus, auto size, auto alone, auto together,
                       auto within, auto slowdown) {
    return fmt::format("{:>12} {:>14} {:>5} {:>11} {:>9} {:>9} {:>20} {:>8}", job, op, gpus, size,
                       alone, together, within, slowdown);
  };
  std::string text = fmt::format(
      "# lambcast forecast of {} jobs at once on {}\n#{}  runs\n#{}", jobs.size(), cluster.name,
      line("job", "op", "gpus", "size", "alone", "together", "within", "slowdown"),
      line("", "", "", "(B)", "(us)", "(us)", "(us)", ""));
  text.erase(text.find_last_not_of(' ') + 1);
  text += "\n";
  std::string said;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const CollectiveJob& job = jobs[i];
    const JobForecast& of = forecasts[i];
    const std::string why = ground_of(of.interval, cluster, job.group.nodes());
    if (why != said) text += fmt::format("# {}\n", why);
    said = why;
    text += fmt::format(
        " {}  {}/{}\n",
        line(job.name, name_of(job.op), job.group.ranks, fmt::format("{:.0f}", job.size.value()),
             whole_us(of.alone), whole_us(of.together),
             fmt::format("{} to {}", whole_us(of.interval.low), whole_us(of.interval.high)),
             fmt::format("{:.2f}", of.alone.ps() == 0 ? 1 : of.together / of.alone)),
        of.algorithm, of.protocol);
  }
  return text;
}

std::string jobs_json(std::span<const CollectiveJob> jobs, std::span<const JobForecast> forecasts,
                      const Cluster& cluster) {
  Json json{{"schema_version", 1}, {"cluster", cluster.name}, {"jobs", Json::array()}};
  for (std::size_t i = 0; i < jobs.size(); ++i)
    json["jobs"].push_back({{"job", jobs[i].name},
                            {"op", name_of(jobs[i].op)},
                            {"gpus", jobs[i].group.ranks},
                            {"size_bytes", static_cast<std::uint64_t>(jobs[i].size.value())},
                            {"algorithm", forecasts[i].algorithm},
                            {"protocol", forecasts[i].protocol},
                            {"alone_us", forecasts[i].alone.us()},
                            {"together_us", forecasts[i].together.us()},
                            {"low_us", forecasts[i].interval.low.us()},
                            {"high_us", forecasts[i].interval.high.us()},
                            {"calibrated", forecasts[i].interval.calibrated}});
  return json_lines(json);
}

std::string jobs_csv(std::span<const CollectiveJob> jobs, std::span<const JobForecast> forecasts) {
  std::string text =
      "job,op,gpus,size_bytes,algorithm,protocol,alone_us,together_us,low_us,high_us,calibrated\n";
  for (std::size_t i = 0; i < jobs.size(); ++i)
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", csv::field(jobs[i].name),
                        name_of(jobs[i].op), jobs[i].group.ranks, jobs[i].size.value(),
                        forecasts[i].algorithm, forecasts[i].protocol, forecasts[i].alone.us(),
                        forecasts[i].together.us(), forecasts[i].interval.low.us(),
                        forecasts[i].interval.high.us(), forecasts[i].interval.calibrated);
  return text;
}

}  // namespace lambcast
