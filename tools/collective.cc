#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "sim/base/error.h"
#include "tools/collective_question.h"
#include "tools/commands.h"
#include "tools/patience.h"
#include "tools/terminal.h"

namespace lambcast {
namespace {

struct CollectiveOptions {
  CollectiveWords words;
  std::vector<std::string> set;
  std::string format;
};

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

std::string jobs_output(const CollectiveOptions& options, const Cluster& cluster) {
  const auto [jobs, forecasts] = jobs_answer_of(options.words, cluster);
  if (options.format == "json") return jobs_json(jobs, forecasts, cluster);
  if (options.format == "csv") return jobs_csv(jobs, forecasts);
  return jobs_text(jobs, forecasts, cluster);
}

// Returns a log in the form of nccl-tests, or another table if the terminal is too narrow for it.
std::string for_people(const CollectiveAnswer& answer, const Cluster& cluster,
                       const std::string& format) {
  if (format == "table") return collective_table(answer, cluster);
  std::string log = collective_text(answer, cluster);
  return format.empty() && !fits_terminal(log) ? collective_table(answer, cluster) : log;
}

std::string collective_output(const CollectiveOptions& options, const Cluster& cluster) {
  const CollectiveAnswer answer = answer_of(options.words, cluster);
  if (options.format == "json") return collective_json(answer, cluster);
  if (options.format == "csv") return collective_csv(answer);
  return for_people(answer, cluster, options.format);
}

int collective_command(CollectiveOptions options) {
  const Patience patience("simulating");
  options.words.settings = parse_settings(options.set);
  const Cluster cluster = cluster_of(options.words);
  const std::string output = options.words.jobs.empty() ? collective_output(options, cluster)
                                                        : jobs_output(options, cluster);
  if (options.format == "json" || options.format == "csv")
    fmt::print("{}", output);
  else
    print_text(output);
  return 0;
}

void add_sizes(CLI::App& command, CollectiveWords& words) {
  command
      .add_option("-b", words.begin, "smallest size in bytes (K, M, G: powers of 1024; default: 8)")
      ->type_name("SIZE");
  command
      .add_option("-e", words.end, "largest size in bytes (default: 128M, or -b if that is more)")
      ->type_name("SIZE");
  command.add_option("-f", words.factor, "factor from one size to the next (default: 2)")
      ->type_name("FACTOR");
}

void add_algorithms(CLI::App& command, CollectiveWords& words) {
  command
      .add_option("--algorithm", words.algorithm,
                  "auto (the default), or one of the library: ring, tree, nvls, ...; an unknown "
                  "word lists them")
      ->type_name("WORD");
  command
      .add_option("--protocol", words.protocol,
                  "auto (the default), or one of the library: Simple, LL, LL128, ...; an "
                  "unknown word lists them")
      ->type_name("WORD");
}

}  // namespace

Command add_collective(CLI::App& app) {
  auto options = std::make_shared<CollectiveOptions>();
  CLI::App* command =
      app.add_subcommand("collective", "forecast one collective over a range of sizes");
  CollectiveWords& words = options->words;
  command
      ->add_option(
          "--op", words.op,
          fmt::format("operation: {} (default: all_reduce)", fmt::join(collective_names(), ", ")))
      ->option_text("WORD")
      ->transform(CLI::IsMember(collective_names(), CLI::ignore_case, CLI::ignore_underscore,
                                [](std::string word) {
                                  std::erase(word, '-');
                                  return word;
                                }));
  command->add_option("--cluster", words.cluster, "cluster preset or TOML file")->required();
  CLI::Option* gpus =
      command->add_option("--gpus", words.gpus, "number of ranks (a file of --jobs has its own)")
          ->required();
  command->add_option("--gpus-per-node", words.gpus_per_node,
                      "GPUs used of each node (default: all)");
  command->add_option("--stride", words.stride,
                      "GPUs of a node from one rank to the next (default: 1)");
  command->add_option("--node-stride", words.node_stride,
                      "nodes from one that is used to the next (default: 1)");
  command->add_option(
      "--siblings", words.siblings,
      "groups alike on the same nodes that call at once, this one counted (default: 1)");
  command->add_option("--backend", words.backend, "nccl (the default) or mpi (host buffers)")
      ->check(CLI::IsMember({"nccl", "mpi"}));
  add_sizes(*command, words);
  add_algorithms(*command, words);
  command->add_option("--network", words.network, "analytic (the default) or flow")
      ->check(CLI::IsMember(network_model_names()));
  command
      ->add_option("--symmetry", words.symmetry,
                   "auto (the default), or off: every rank on its own")
      ->check(CLI::IsMember({"auto", "off"}));
  CLI::Option* jobs = command
                          ->add_option("--jobs", words.jobs,
                                       "TOML file of collectives that run at the same time, by the "
                                       "flow model (default: none)")
                          ->each([gpus](const std::string&) { gpus->required(false); });
  // Flags whose values come from the job in a file of jobs.
  for (const char* own : {"--op", "--gpus", "--gpus-per-node", "--stride", "--node-stride",
                          "--siblings", "-b", "-e", "-f", "--algorithm", "--protocol", "--network"})
    jobs->excludes(own);
  command
      ->add_option("--set", options->set,
                   "change a key of the cluster: cluster.KEY=VALUE (default: none)")
      ->allow_extra_args(false);
  command
      ->add_option("--format", options->format,
                   "nccl-tests, table, json or csv (default: nccl-tests; on a terminal that is too "
                   "narrow for it, table)")
      ->check(CLI::IsMember({"nccl-tests", "table", "json", "csv"}));
  command->footer(R"(Examples
  lambcast collective --cluster paper-eth40-v100 --gpus 64 -b 1M -e 1G -f 4
  lambcast collective --cluster hgx-h100-ndr --gpus 16 --stride 8 --siblings 8
  lambcast collective --op all_to_all --cluster hgx-h100-ndr --gpus 32 --network flow --format json
A file of --jobs has a table of each collective, of which name, gpus_per_node,
stride, node_stride, siblings, first_gpu, first_node (both from 0), start
("2 ms"), times (one after another), algorithm and protocol may be left out:
  [[jobs]]
  op = "all_reduce"
  size = "64 MiB"
  gpus = 16
  first_node = 2)");
  return [options] { return collective_command(*options); };
}

}  // namespace lambcast
