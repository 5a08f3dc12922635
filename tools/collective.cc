#include "sim/collectives/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/collectives/algorithms.h"
#include "tools/commands.h"
#include "tools/size.h"
#include "topologies/cluster.h"

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

constexpr std::size_t max_sizes = 10'000;

struct Row {
  double size;
  Duration time;
  Collective collective;
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

std::vector<Row> forecast_rows(const Options& options, const Cluster& cluster, int gpus_per_node) {
  const bool nccl = options.backend == "nccl";
  const LibrarySpec& library = nccl ? cluster.nccl : cluster.mpi;
  const auto& ops = op_names();
  const auto op = static_cast<Op>(std::find(ops.begin(), ops.end(), options.op) - ops.begin());
  CollectiveRequest request;
  request.op = op;
  request.layout = {options.gpus, gpus_per_node,
                    std::min(nics_in_use(cluster, gpus_per_node), gpus_per_node), false};
  request.library = library.library;
  if (options.algorithm != "auto")
    request.algorithm = options.algorithm;
  else if (op == Op::all_reduce && request.layout.nodes() > 1)
    request.algorithm = library.all_reduce;
  if (options.protocol != "auto") request.protocol = options.protocol;
  request.expand = options.symmetry == "off";
  Machines machines = machines_of(cluster, library, request.layout.nodes(), gpus_per_node);
  const Transport transport = transport_of(library, nccl ? Endpoint::gpu : Endpoint::host);
  const double first = parse_size(options.begin, "-b"), last = parse_size(options.end, "-e");
  const double factor = parse_size(options.factor, "-f");
  if (last < first) fail_input({"", 0, "-e"}, "is below -b");
  if (factor <= 1 && last > first) fail_input({"", 0, "-f"}, "must be above 1");
  std::vector<Row> rows;
  for (double size = first; size <= last * (1 + 1e-12); size *= factor) {
    request.size = Bytes(std::floor(size));
    Collective collective = plan_collective(request, machines, transport);
    const bool by_flows = options.network == "flow" || request.expand;
    const Duration time =
        by_flows ? simulate(collective,
                            options.network == "flow" ? NetworkModel::flow : NetworkModel::analytic)
                 : collective.time;
    rows.push_back({request.size.value(), time, std::move(collective)});
    if (first == last) break;
    if (rows.size() > max_sizes)
      fail_input({"", 0, "-f"}, fmt::format("gives more than {} sizes", max_sizes));
  }
  return rows;
}

void print_nccl_tests(const Options& options, const Cluster& cluster, double factor,
                      const std::vector<Row>& rows) {
  fmt::print("# lambcast forecast of {} on {}, {} ranks\n", options.op, cluster.name, options.gpus);
  fmt::print("#\n#{:>13} {:>13} {:>9} {:>7} {:>6} {:>11} {:>9} {:>9} {:>7}\n", "size", "count",
             "type", "redop", "root", "time", "algbw", "busbw", "#wrong");
  fmt::print("#{:>13} {:>13} {:>9} {:>7} {:>6} {:>11} {:>9} {:>9} {:>7}\n", "(B)", "(elements)", "",
             "", "", "(us)", "(GB/s)", "(GB/s)", "");
  const bool reduces = options.op == "all_reduce" || options.op == "reduce_scatter";
  const bool per_rank = options.op != "all_reduce" && options.op != "broadcast";
  std::string running;
  for (const Row& row : rows) {
    // Readers of these logs count columns, so what runs is said in comments, where it changes.
    const std::string runs =
        fmt::format("{}/{}", row.collective.algorithm, row.collective.protocol);
    if (runs != running) fmt::print("# {}\n", runs);
    running = runs;
    const double algbw = row.time.ps() == 0 ? 0 : row.size / row.time.s() * 1e-9;
    fmt::print(" {:>13.0f} {:>13.0f} {:>9} {:>7} {:>6} {:>11.2f} {:>9.2f} {:>9.2f} {:>7}\n",
               row.size, std::floor(row.size / 4 / (per_rank ? options.gpus : 1)), "float",
               reduces ? "sum" : "none", options.op == "broadcast" ? 0 : -1, row.time.us(), algbw,
               algbw * factor, "N/A");
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
    // Without a calibration there is no measured range, so the bounds are not known.
    json["results"].push_back({{"size_bytes", row.size},
                               {"time_us", row.time.us()},
                               {"algbw_GBps", algbw},
                               {"busbw_GBps", algbw * factor},
                               {"algorithm", row.collective.algorithm},
                               {"protocol", row.collective.protocol},
                               {"low_us", nullptr},
                               {"high_us", nullptr},
                               {"calibrated", false}});
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
  const auto& ops = op_names();
  const auto op = static_cast<Op>(std::find(ops.begin(), ops.end(), options.op) - ops.begin());
  const double factor = busbw_factor(op, options.gpus);
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
