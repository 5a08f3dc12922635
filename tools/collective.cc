#include "sim/collectives/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "sim/base/csv.h"
#include "sim/base/error.h"
#include "sim/base/file.h"
#include "sim/collectives/algorithms.h"
#include "tools/commands.h"
#include "tools/patience.h"
#include "tools/size.h"
#include "topologies/collective_forecast.h"
#include "topologies/collective_jobs.h"
#include "validate/measurement.h"

namespace lambcast {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string op = "all_reduce", cluster, backend = "nccl", algorithm = "auto", protocol = "auto";
  std::string network = "analytic", symmetry = "auto", format = "nccl-tests";
  std::string begin = "8", end, factor = "2";
  int gpus = 0;
  int gpus_per_node = 0;
  int stride = 1, node_stride = 1, siblings = 1;
  std::string jobs;
  std::vector<std::string> set;
};

constexpr std::size_t max_sizes = 10'000;
constexpr int max_gpus = 1 << 20;

struct Row {
  double size;
  Duration time;
  std::string algorithm, protocol;
  CalibratedInterval interval;
  // By the flow model; equal to `time` but for some collectives whose flows are unlike.
  Duration flow_time;
};

// From here on the two network models are said to part.
constexpr double models_part = 0.02;

bool models_part_on(const Row& row) { return std::abs(row.flow_time / row.time - 1) > models_part; }

Overrides parse_settings(const std::vector<std::string>& settings) {
  Overrides overrides;
  for (const std::string& setting : settings) {
    const auto equals = setting.find('=');
    if (!setting.starts_with("cluster.") || equals == std::string::npos)
      fail_input({"", 0, "--set"}, fmt::format("'{}' is not cluster.KEY=VALUE", setting));
    overrides.emplace_back(setting.substr(8, equals - 8), setting.substr(equals + 1));
  }
  return overrides;
}

Op op_of(const Options& options) {
  const auto& ops = op_names();
  return static_cast<Op>(std::find(ops.begin(), ops.end(), options.op) - ops.begin());
}

const char* const compressed = "compressed_allreduce";

// Adds one collective of the exchange to a row; equal names are written once.
void add_collective(Row& row, const Collective& collective, const Options& options,
                    const Cluster& cluster, const ProcessGroup& group) {
  const bool flow = options.network == name_of(NetworkModel::flow);
  const Duration time =
      flow || options.symmetry == "off"
          ? simulate(collective, flow ? NetworkModel::flow : NetworkModel::analytic)
          : collective.time;
  row.time += time;
  row.flow_time +=
      !flow && shares_are_unlike(collective) ? simulate(collective, NetworkModel::flow) : time;
  const auto interval = interval_of(cluster, backend_of(options.backend), collective.op,
                                    collective.size, group, time);
  row.interval.low += interval.low;
  row.interval.high += interval.high;
  row.interval.calibrated &= interval.calibrated;
  row.interval.ground = std::max(row.interval.ground, interval.ground);
  const auto add = [](std::string& names, const std::string& name) {
    if (names.find(name) == std::string::npos) names += (names.empty() ? "" : "+") + name;
  };
  add(row.algorithm, collective.algorithm);
  add(row.protocol, collective.protocol);
}

std::vector<double> sizes_of(const Options& options) {
  const double first = parse_size(options.begin, "-b");
  const double last = options.end.empty() ? std::max(first, 0x1p27) : parse_size(options.end, "-e");
  const double factor = parse_size(options.factor, "-f");
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

std::vector<Row> forecast_rows(const Options& options, const Cluster& cluster,
                               const ProcessGroup& group) {
  CollectiveSetting setting;
  setting.group = group;
  setting.backend = backend_of(options.backend);
  if (options.algorithm != "auto") setting.algorithm = options.algorithm;
  if (options.protocol != "auto") setting.protocol = options.protocol;
  setting.expand = options.symmetry == "off";
  const bool exchange = options.op == compressed;
  if (exchange && !setting.algorithm.empty())
    fail_input({"", 0, "--algorithm"},
               "is not for compressed_allreduce, which is several collectives");
  if (!exchange) setting.op = op_of(options);
  CollectiveSeries series = prepare(cluster, setting);
  std::vector<Row> rows;
  for (const double size : sizes_of(options)) {
    Row row{size, Duration(), "", "", {Duration(), Duration(), true, Ground::calibrated}, {}};
    if (exchange) {
      for (const Collective& part : compressed_exchange(cluster, setting, Bytes(size)))
        add_collective(row, part, options, cluster, group);
    } else {
      add_collective(row, forecast(series, Bytes(size)), options, cluster, group);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

// As wide as in nccl-tests, but with digits left for a slow link.
std::string rate(double GBps) {
  return GBps < 1 ? fmt::format("{:.4f}", GBps) : fmt::format("{:.2f}", GBps);
}

bool on_whole_nodes(const Options& options) {
  return options.stride == 1 && options.node_stride == 1 && options.siblings == 1;
}

// How the ranks of a group lie that is not simply on whole nodes, for people.
std::string lie(const Options& options) {
  if (on_whole_nodes(options)) return "";
  return fmt::format(", stride {}, node stride {}, {} group{} at once", options.stride,
                     options.node_stride, options.siblings, options.siblings == 1 ? "" : "s");
}

void print_nccl_tests(const Options& options, const Cluster& cluster, double factor,
                      const std::vector<Row>& rows) {
  fmt::print("# lambcast forecast of {} on {}, {} ranks{}\n", options.op, cluster.name,
             options.gpus, lie(options));
  const bool known = is_calibrated(cluster, backend_of(options.backend));
  if (known)
    fmt::print("# {} {}\n",
               cluster.calibration->another_machine ? "preset of another machine, measured:"
                                                    : "calibrated for",
               describe(*cluster.calibration));
  fmt::print("#\n#{:>13} {:>13} {:>9} {:>7} {:>6} {:>11} {:>9} {:>9} {:>7}\n", "size", "count",
             "type", "redop", "root", "time", "algbw", "busbw", "#wrong");
  fmt::print("#{:>13} {:>13} {:>9} {:>7} {:>6} {:>11} {:>9} {:>9} {:>7}\n", "(B)", "(elements)", "",
             "", "", "(us)", "(GB/s)", "(GB/s)", "");
  const bool reduces =
      options.op == "all_reduce" || options.op == "reduce_scatter" || options.op == "reduce";
  const bool is_rooted = options.op == "broadcast" || options.op == "reduce";
  const bool per_rank =
      options.op == "all_gather" || options.op == "reduce_scatter" || options.op == "all_to_all";
  std::string running;
  for (const Row& row : rows) {
    // Readers of these logs count columns, so what runs and how far it can be trusted is said in
    // comments, where it changes.
    std::string runs =
        options.gpus == 1
            ? "one rank communicates with nobody"
            : fmt::format("{}/{}, {}: {:.2f} to {:.2f} times the time", row.algorithm, row.protocol,
                          row.interval.ground == Ground::none
                              ? without_calibration(cluster)
                              : std::string(in_words(row.interval.ground)),
                          row.interval.low / row.time, row.interval.high / row.time);
    if (models_part_on(row))
      runs += fmt::format(
          "\n# flows are unlike here: --network flow, where they take up what others leave, says "
          "{:.2f} times the time",
          row.flow_time / row.time);
    if (runs != running) fmt::print("# {}\n", runs);
    running = runs;
    const double algbw = row.time.ps() == 0 ? 0 : row.size / row.time.s() * 1e-9;
    fmt::print(" {:>13.0f} {:>13.0f} {:>9} {:>7} {:>6} {:>11.2f} {:>9} {:>9} {:>7}\n", row.size,
               std::floor(row.size / 4 / (per_rank ? options.gpus : 1)), "float",
               reduces ? "sum" : "none", is_rooted ? 0 : -1, row.time.us(), rate(algbw),
               rate(algbw * factor), "N/A");
  }
}

void print_json(const Options& options, const Cluster& cluster, const ProcessGroup& group,
                double factor, const std::vector<Row>& rows) {
  Json json{{"schema_version", 1},
            {"op", options.op},
            {"cluster", cluster.name},
            {"gpus", options.gpus},
            {"gpus_per_node", group.per_node}};
  if (!on_whole_nodes(options)) {
    json["stride"] = group.stride;
    json["node_stride"] = group.node_stride;
    json["siblings"] = group.siblings;
  }
  json["results"] = Json::array();
  for (const Row& row : rows) {
    const double algbw = row.time.ps() == 0 ? 0 : row.size / row.time.s() * 1e-9;
    json["results"].push_back({{"size_bytes", static_cast<std::uint64_t>(row.size)},
                               {"time_us", row.time.us()},
                               {"algbw_GBps", algbw},
                               {"busbw_GBps", algbw * factor},
                               {"algorithm", row.algorithm},
                               {"protocol", row.protocol},
                               {"low_us", row.interval.low.us()},
                               {"high_us", row.interval.high.us()},
                               {"calibrated", row.interval.calibrated}});
    if (models_part_on(row)) json["results"].back()["flow_model_time_us"] = row.flow_time.us();
  }
  fmt::print("{}\n", json.dump(2));
}

void check_range(const char* flag, int value, int most) {
  if (value < 1 || value > most)
    fail_input({"", 0, flag}, fmt::format("{} is out of range", value),
               fmt::format("1 to {}", most));
}

// The ranks as the flags lay them: as many on a node as its GPUs leave room for, unless said.
ProcessGroup group_of(const Options& options, const Cluster& cluster) {
  const int most = cluster.gpus_per_node;
  check_range("--gpus", options.gpus, max_gpus);
  check_range("--stride", options.stride, most);
  check_range("--siblings", options.siblings, most);
  ProcessGroup group{options.gpus, 1, options.stride, options.node_stride, options.siblings};
  const int room = std::max(1, most / group.slots());
  group.per_node = options.gpus_per_node == 0 ? room : options.gpus_per_node;
  check_range("--gpus-per-node", group.per_node, room);
  group.per_node = std::min(group.per_node, options.gpus);
  if (group.slots() > most)
    fail_input({"", 0, "--siblings"},
               fmt::format("{} groups of stride {} do not fit a node of {} GPUs", options.siblings,
                           options.stride, most));
  check_range("--node-stride", options.node_stride, max_gpus / group.nodes());
  return group;
}

void print_jobs(const Options& options, const Cluster& cluster,
                const std::vector<CollectiveJob>& jobs) {
  const std::vector<JobForecast> forecasts =
      forecast_jobs(cluster, jobs, backend_of(options.backend), options.symmetry == "off");
  Json json{{"schema_version", 1}, {"cluster", cluster.name}, {"jobs", Json::array()}};
  if (options.format == "csv")
    fmt::print("job,op,gpus,size_bytes,algorithm,protocol,alone_us,together_us\n");
  if (options.format == "nccl-tests")
    fmt::print(
        "# lambcast forecast of {} jobs at once on {}\n#{:>13} {:>14} {:>6} {:>13} {:>24} "
        "{:>11} {:>13} {:>9}\n",
        jobs.size(), cluster.name, "job", "op", "gpus", "size (B)", "runs", "alone (us)",
        "together (us)", "slowdown");
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const CollectiveJob& job = jobs[i];
    const JobForecast& forecast = forecasts[i];
    const double alone = forecast.alone.us(), together = forecast.together.us();
    if (options.format == "json") {
      json["jobs"].push_back({{"job", job.name},
                              {"op", name_of(job.op)},
                              {"gpus", job.group.ranks},
                              {"size_bytes", static_cast<std::uint64_t>(job.size.value())},
                              {"algorithm", forecast.algorithm},
                              {"protocol", forecast.protocol},
                              {"alone_us", alone},
                              {"together_us", together}});
    } else if (options.format == "csv") {
      fmt::print("{},{},{},{},{},{},{},{}\n", csv::field(job.name), name_of(job.op),
                 job.group.ranks, job.size.value(), forecast.algorithm, forecast.protocol, alone,
                 together);
    } else {
      fmt::print(" {:>13} {:>14} {:>6} {:>13.0f} {:>24} {:>11.2f} {:>13.2f} {:>9.2f}\n", job.name,
                 name_of(job.op), job.group.ranks, job.size.value(),
                 forecast.algorithm + "/" + forecast.protocol, alone, together,
                 alone == 0 ? 1 : together / alone);
    }
  }
  if (options.format == "json") fmt::print("{}\n", json.dump(2));
}

int collective_command(const Options& options) {
  const Patience patience("simulating");
  const Cluster cluster = load_cluster(options.cluster, parse_settings(options.set));
  if (!options.jobs.empty()) {
    const Table table = Table::parse(read_file(options.jobs), options.jobs);
    print_jobs(options, cluster, decode_jobs(table, cluster));
    return 0;
  }
  const ProcessGroup group = group_of(options, cluster);
  const std::vector<Row> rows = forecast_rows(options, cluster, group);
  const double factor =
      validate::bus_factor(validate::parse_operation(options.op, {"", 0, "--op"}), options.gpus);
  if (options.format == "json") {
    print_json(options, cluster, group, factor, rows);
  } else if (options.format == "csv") {
    fmt::print(
        "size_bytes,time_us,algbw_GBps,busbw_GBps,algorithm,protocol,low_us,high_us,calibrated\n");
    for (const Row& row : rows) {
      const double algbw = row.time.ps() == 0 ? 0 : row.size / row.time.s() * 1e-9;
      fmt::print("{},{},{},{},{},{},{},{},{}\n", row.size, row.time.us(), algbw, algbw * factor,
                 row.algorithm, row.protocol, row.interval.low.us(), row.interval.high.us(),
                 row.interval.calibrated);
    }
  } else {
    print_nccl_tests(options, cluster, factor, rows);
  }
  return 0;
}

}  // namespace

Command add_collective(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("collective", "forecast one collective over a range of sizes");
  std::vector<std::string> offered = op_names();
  offered.emplace_back(compressed);
  command->add_option("--op", options->op, "the operation")->check(CLI::IsMember(offered));
  command->add_option("--cluster", options->cluster, "cluster preset or TOML file")->required();
  const CLI::Option* gpus = command->add_option("--gpus", options->gpus, "number of ranks");
  command->add_option("--gpus-per-node", options->gpus_per_node, "GPUs used of each node");
  command->add_option("--stride", options->stride, "slots from one rank to the next on a node");
  command->add_option("--node-stride", options->node_stride, "nodes from one to the next");
  command->add_option("--siblings", options->siblings,
                      "groups alike on the same nodes that call at once, this one counted");
  command->add_option("--backend", options->backend, "nccl or mpi (host buffers)")
      ->check(CLI::IsMember({"nccl", "mpi"}));
  command->add_option("-b", options->begin, "smallest size (K, M, G binary)");
  command->add_option("-e", options->end, "largest size (128M, or -b where that is more)");
  command->add_option("-f", options->factor, "from one size to the next");
  command->add_option("--algorithm", options->algorithm, "auto, ring, tree, ...");
  command->add_option("--protocol", options->protocol, "auto, or one the library has");
  command->add_option("--network", options->network, "analytic or flow")
      ->check(CLI::IsMember(network_model_names()));
  command->add_option("--symmetry", options->symmetry, "auto, or off: every rank on its own")
      ->check(CLI::IsMember({"auto", "off"}));
  command
      ->add_option("--jobs", options->jobs,
                   "TOML file of collectives that run at the same time, by the flow model")
      ->excludes("--gpus");
  command->add_option("--set", options->set, "change a key of the cluster: cluster.KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--format", options->format, "nccl-tests, json or csv")
      ->check(CLI::IsMember({"nccl-tests", "json", "csv"}));
  command->footer(R"(Examples
  lambcast collective --cluster paper-eth40-v100 --gpus 64 -b 1M -e 1G -f 4
  lambcast collective --cluster hgx-h100-ndr --gpus 16 --stride 8 --siblings 8
  lambcast collective --op all_to_all --cluster hgx-h100-ndr --gpus 32 --network flow --format json)");
  return [options, gpus] {
    if (gpus->count() == 0 && options->jobs.empty())
      fail_input({"", 0, "--gpus"}, "or --jobs is required");
    return collective_command(*options);
  };
}

}  // namespace lambcast
