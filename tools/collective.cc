#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "experiments/collective_output.h"
#include "sim/base/error.h"
#include "sim/base/file.h"
#include "tools/commands.h"
#include "tools/patience.h"
#include "tools/size.h"
#include "tools/terminal.h"
#include "validate/measurement.h"

namespace lambcast {
namespace {

struct Options {
  std::string op = "all_reduce", cluster, backend = "nccl", algorithm = "auto", protocol = "auto";
  std::string network = "analytic", symmetry = "auto", format;
  std::string begin = "8", end, factor = "2";
  int gpus = 0;
  int gpus_per_node = 0;
  int stride = 1, node_stride = 1, siblings = 1;
  std::string jobs;
  std::vector<std::string> set;
};

constexpr int max_gpus = 1 << 20;

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

std::vector<double> sizes_of(const Options& options) {
  const double first = parse_size(options.begin, "-b");
  const double last = options.end.empty() ? std::max(first, 0x1p27) : parse_size(options.end, "-e");
  return sizes_between(first, last, parse_size(options.factor, "-f"));
}

CollectiveQuestion question_of(const Options& options, const ProcessGroup& group) {
  CollectiveQuestion question;
  CollectiveSetting& setting = question.setting;
  setting.group = group;
  setting.backend = backend_of(options.backend);
  if (options.algorithm != "auto") setting.algorithm = options.algorithm;
  if (options.protocol != "auto") setting.protocol = options.protocol;
  setting.expand = options.symmetry == "off";
  question.exchange = options.op == compressed;
  if (!question.exchange) setting.op = op_of(options);
  if (options.network == name_of(NetworkModel::flow)) question.network = NetworkModel::flow;
  question.sizes = sizes_of(options);
  return question;
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

std::string jobs_output(const Options& options, const Cluster& cluster) {
  const Table table = Table::parse(read_file(options.jobs), options.jobs);
  const std::vector<CollectiveJob> jobs = decode_jobs(table, cluster);
  const std::vector<JobForecast> forecasts =
      forecast_jobs(cluster, jobs, backend_of(options.backend), options.symmetry == "off");
  if (options.format == "json") return jobs_json(jobs, forecasts, cluster);
  if (options.format == "csv") return jobs_csv(jobs, forecasts);
  return jobs_text(jobs, forecasts, cluster);
}

// A log of nccl-tests, unless a terminal is too narrow for it.
std::string for_people(const CollectiveAnswer& answer, const Cluster& cluster,
                       const std::string& format) {
  if (format == "table") return collective_table(answer, cluster);
  std::string log = collective_text(answer, cluster);
  return format.empty() && !fits_terminal(log) ? collective_table(answer, cluster) : log;
}

std::string collective_output(const Options& options, const Cluster& cluster) {
  const ProcessGroup group = group_of(options, cluster);
  CollectiveAnswer answer{options.op, group, backend_of(options.backend), 1, {}};
  answer.rows = forecast_rows(cluster, question_of(options, group));
  answer.bus_factor =
      validate::bus_factor(validate::parse_operation(options.op, {"", 0, "--op"}), group.ranks);
  if (options.format == "json") return collective_json(answer, cluster);
  if (options.format == "csv") return collective_csv(answer);
  return for_people(answer, cluster, options.format);
}

int collective_command(const Options& options) {
  const Patience patience("simulating");
  const Cluster cluster = load_cluster(options.cluster, parse_settings(options.set));
  const std::string output =
      options.jobs.empty() ? collective_output(options, cluster) : jobs_output(options, cluster);
  if (options.format == "json" || options.format == "csv")
    fmt::print("{}", output);
  else
    print_text(output);
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
  command
      ->add_option("--format", options->format,
                   "nccl-tests, table, json or csv (default: nccl-tests; on a terminal that is too "
                   "narrow for it, table)")
      ->check(CLI::IsMember({"nccl-tests", "table", "json", "csv"}));
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
