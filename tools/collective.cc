#include "sim/collectives/collective.h"

#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/collectives/algorithms.h"
#include "tools/commands.h"
#include "topologies/collective_forecast.h"

namespace lambcast {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string op = "all_reduce", cluster, backend = "nccl", algorithm = "auto", protocol = "auto";
  std::string network = "analytic", symmetry = "auto", format = "nccl-tests";
  std::string begin = "8", end = "128M", factor = "2";
  int gpus = 0;
  int gpus_per_node = 0;
  std::vector<std::string> set;
};

// "64K", "1G": binary, as nccl-tests reads them.
double parse_size(const std::string& text, const char* flag) {
  double number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
  double scale = 1;
  if (suffix == "K" || suffix == "k")
    scale = 0x1p10;
  else if (suffix == "M" || suffix == "m")
    scale = 0x1p20;
  else if (suffix == "G" || suffix == "g")
    scale = 0x1p30;
  else if (!suffix.empty())
    scale = 0;
  if (status != std::errc{} || scale == 0 || !(number >= 1) || number * scale > 0x1p50)
    fail_input({"", 0, flag}, fmt::format("'{}' is not a size", text),
               "bytes, with K, M or G for powers of 1024, up to 1P");
  return number * scale;
}

struct Row {
  double size;
  Duration time;
  Collective collective;
  std::optional<CalibratedInterval> interval;  // where the cluster was calibrated
};

// Bus bandwidth over algorithm bandwidth, as nccl-tests defines it.
double busbw_factor(Op op, int ranks) {
  const double n = ranks;
  if (op == Op::all_reduce) return 2 * (n - 1) / n;
  return op == Op::broadcast ? 1 : (n - 1) / n;
}

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

std::vector<Row> forecast_rows(const Options& options, const Cluster& cluster, int gpus_per_node) {
  CollectiveSetting setting;
  setting.op = op_of(options);
  setting.ranks = options.gpus;
  setting.gpus_per_node = gpus_per_node;
  setting.mpi = options.backend == "mpi";
  if (options.algorithm != "auto") setting.algorithm = options.algorithm;
  if (options.protocol != "auto") setting.protocol = options.protocol;
  setting.expand = options.symmetry == "off";
  CollectiveSeries series = prepare(cluster, setting);
  const double first = parse_size(options.begin, "-b"), last = parse_size(options.end, "-e");
  const double factor = parse_size(options.factor, "-f");
  if (last < first) fail_input({"", 0, "-e"}, "is below -b");
  if (factor <= 1 && last > first) fail_input({"", 0, "-f"}, "must be above 1");
  std::vector<Row> rows;
  for (double size = first; size <= last * (1 + 1e-12); size *= factor) {
    Collective collective = forecast(series, Bytes(std::floor(size)));
    const bool by_flows = options.network == "flow" || setting.expand;
    const Duration time =
        by_flows ? simulate(collective,
                            options.network == "flow" ? NetworkModel::flow : NetworkModel::analytic)
                 : collective.time;
    Row row{std::floor(size), time, std::move(collective), std::nullopt};
    if (cluster.calibration && cluster.calibration->mpi == setting.mpi)
      row.interval = interval_of(*cluster.calibration, setting.op, Bytes(row.size), setting.ranks,
                                 series.request.layout.nodes(), time);
    rows.push_back(std::move(row));
    if (first == last) break;
  }
  return rows;
}

void print_nccl_tests(const Options& options, const Cluster& cluster, double factor,
                      const std::vector<Row>& rows) {
  fmt::print("# lambcast forecast of {} on {}, {} ranks\n", options.op, cluster.name, options.gpus);
  const bool mpi = options.backend == "mpi";
  if (cluster.calibration && cluster.calibration->mpi == mpi)
    fmt::print("# calibrated for {}\n", describe(*cluster.calibration));
  fmt::print("#\n#{:>13} {:>13} {:>9} {:>7} {:>6} {:>11} {:>9} {:>9} {:>7}   {}\n", "size", "count",
             "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "algorithm/protocol");
  fmt::print("#{:>13} {:>13} {:>9} {:>7} {:>6} {:>11} {:>9} {:>9} {:>7}\n", "(B)", "(elements)", "",
             "", "", "(us)", "(GB/s)", "(GB/s)", "");
  const bool reduces = options.op == "all_reduce" || options.op == "reduce_scatter";
  const bool per_rank = options.op != "all_reduce" && options.op != "broadcast";
  for (const Row& row : rows) {
    const double algbw = row.time.ps() == 0 ? 0 : row.size / row.time.s() * 1e-9;
    fmt::print(" {:>13.0f} {:>13.0f} {:>9} {:>7} {:>6} {:>11.2f} {:>9.2f} {:>9.2f} {:>7}   {}/{}\n",
               row.size, std::floor(row.size / 4 / (per_rank ? options.gpus : 1)), "float",
               reduces ? "sum" : "none", options.op == "broadcast" ? 0 : -1, row.time.us(), algbw,
               algbw * factor, "N/A", row.collective.algorithm, row.collective.protocol);
  }
}

void print_json(const Options& options, const Cluster& cluster, int gpus_per_node, double factor,
                const std::vector<Row>& rows) {
  Json json{{"schema_version", 1},
            {"op", options.op},
            {"cluster", cluster.name},
            {"gpus", options.gpus},
            {"gpus_per_node", gpus_per_node},
            {"results", Json::array()}};
  for (const Row& row : rows) {
    const double algbw = row.time.ps() == 0 ? 0 : row.size / row.time.s() * 1e-9;
    json["results"].push_back({{"size_bytes", row.size},
                               {"time_us", row.time.us()},
                               {"algbw_GBps", algbw},
                               {"busbw_GBps", algbw * factor},
                               {"algorithm", row.collective.algorithm},
                               {"protocol", row.collective.protocol},
                               {"low_us", nullptr},
                               {"high_us", nullptr},
                               {"calibrated", row.interval && row.interval->calibrated}});
    if (row.interval) {
      json["results"].back()["low_us"] = row.interval->low.us();
      json["results"].back()["high_us"] = row.interval->high.us();
    }
  }
  fmt::print("{}\n", json.dump(2));
}

int collective_command(const Options& options) {
  const Cluster cluster = load_cluster(options.cluster, parse_settings(options.set));
  if (options.gpus < 1 || options.gpus > 65536)
    fail_input({"", 0, "--gpus"}, fmt::format("{} is out of range", options.gpus), "1 to 65536");
  const int most = cluster.gpus_per_node;
  int gpus_per_node = options.gpus_per_node == 0 ? most : options.gpus_per_node;
  if (gpus_per_node < 1 || gpus_per_node > most)
    fail_input({"", 0, "--gpus-per-node"}, fmt::format("{} is out of range", gpus_per_node),
               fmt::format("1 to {}", most));
  gpus_per_node = std::min(gpus_per_node, options.gpus);
  const std::vector<Row> rows = forecast_rows(options, cluster, gpus_per_node);
  const double factor = busbw_factor(op_of(options), options.gpus);
  if (options.format == "json") {
    print_json(options, cluster, gpus_per_node, factor, rows);
  } else if (options.format == "csv") {
    fmt::print("size_bytes,time_us,algbw_GBps,busbw_GBps,algorithm,protocol\n");
    for (const Row& row : rows) {
      const double algbw = row.time.ps() == 0 ? 0 : row.size / row.time.s() * 1e-9;
      fmt::print("{},{},{},{},{},{}\n", row.size, row.time.us(), algbw, algbw * factor,
                 row.collective.algorithm, row.collective.protocol);
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
  command->add_option("--op", options->op, "the operation")->check(CLI::IsMember(op_names()));
  command->add_option("--cluster", options->cluster, "cluster preset or TOML file")->required();
  command->add_option("--gpus", options->gpus, "number of ranks")->required();
  command->add_option("--gpus-per-node", options->gpus_per_node, "GPUs used of each node");
  command->add_option("--backend", options->backend, "nccl or mpi (host buffers)")
      ->check(CLI::IsMember({"nccl", "mpi"}));
  command->add_option("-b", options->begin, "smallest size (K, M, G binary)");
  command->add_option("-e", options->end, "largest size");
  command->add_option("-f", options->factor, "from one size to the next");
  command->add_option("--algorithm", options->algorithm, "auto, ring, tree, ...");
  command->add_option("--protocol", options->protocol, "auto, or one the library has");
  command->add_option("--network", options->network, "analytic or flow")
      ->check(CLI::IsMember({"analytic", "flow"}));
  command->add_option("--symmetry", options->symmetry, "auto, or off: every rank on its own")
      ->check(CLI::IsMember({"auto", "off"}));
  command->add_option("--set", options->set, "change a key of the cluster: cluster.KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--format", options->format, "nccl-tests, json or csv")
      ->check(CLI::IsMember({"nccl-tests", "json", "csv"}));
  command->footer(R"(Examples
  lambcast collective --cluster paper-eth40-v100 --gpus 64 -b 1M -e 1G -f 4
  lambcast collective --op all_to_all --cluster hgx-h100-ndr --gpus 32 --network flow --format json)");
  return [options] { return collective_command(*options); };
}

}  // namespace lambcast
