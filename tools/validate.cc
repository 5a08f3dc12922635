#include <fmt/format.h>

#include <limits>
#include <memory>

#include "sim/base/file.h"
#include "tools/commands.h"
#include "validate/importers/importers.h"
#include "validate/replay/page.h"

namespace lambcast {
namespace {

struct Options {
  std::string against, cluster, backend, rows, out;
  int nodes = 0;
  double max_error = 0;
  bool canary = false;
};

// A log of the user's on a cluster of theirs.
std::vector<CollectiveCase> cases_from_log(const Options& options) {
  validate::ImportHints hints;
  if (options.nodes > 0) hints.nodes = options.nodes;
  std::vector<CollectiveCase> cases;
  for (validate::Measurement& table :
       validate::import_measurements(read_file(options.against), options.against, hints))
    cases.push_back({options.against, options.cluster, false, std::move(table), {}});
  if (!options.backend.empty()) cases.back().mpi = options.backend == "mpi";
  return cases;
}

Validation validation_of(const Options& options) {
  Validation validation;
  if (!options.cluster.empty()) {
    if (options.against.empty())
      fail_input({"", 0, "--cluster"}, "says where the log of --against is from; there is none");
    std::vector<CollectiveLimit> limits;
    if (options.max_error > 0)
      limits.push_back({"*", "", Bytes(0), Bytes(std::numeric_limits<double>::infinity()),
                        options.max_error, std::nullopt});
    validation.collectives = replay_collectives(cases_from_log(options), limits);
    return validation;
  }
  std::vector<ReplayCase> cases = options.against.empty()
                                      ? published_cases()
                                      : parse_cases(read_file(options.against), options.against);
  if (options.canary) cases.push_back(canary_case());
  validation.training = replay(cases);
  if (!options.against.empty()) return validation;
  std::vector<CollectiveCase> tables = carried_collectives();
  if (options.canary) tables.push_back(canary_collective());
  validation.collectives = replay_collectives(tables, carried_limits());
  return validation;
}

void write_rows(const CollectiveSummary& collectives, const std::string& path) {
  std::ofstream out(path, std::ios::binary);
  out << collective_replay_csv(collectives);
  out.close();
  if (!out) fail_input({path, 0, "--rows"}, "cannot be written");
}

// Files come first: where one cannot be written there is no result on stdout.
int validate_command(const Options& options) {
  const Validation validation = validation_of(options);
  const auto& [training, collectives] = validation;
  if (!options.rows.empty() && collectives) write_rows(*collectives, options.rows);
  std::string page;
  if (!options.out.empty()) {
    const report::Paths paths = write_validation(validation, options.out);
    for (const std::string& message : paths.messages) fmt::print(stderr, "lambcast: {}\n", message);
    page = fmt::format("report: {}\n", paths.page.string());
  }
  if (training) fmt::print("{}\n", replay_table(*training));
  if (collectives) fmt::print("{}", collective_replay_table(*collectives));
  fmt::print("{}", page);
  return static_cast<int>(within(validation) ? Exit::done : Exit::limit);
}

}  // namespace

Command add_validate(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("validate", "forecast against measurement; exit code 3 past the limits");
  command->add_option("--against", options->against,
                      "figures of your own: with --cluster a log of nccl-tests, OSU or lambcast "
                      "measure, else training cases as validate/replay/published/*.csv");
  command->add_option("--cluster", options->cluster, "the cluster the log is from");
  command
      ->add_option("--backend", options->backend,
                   "whose log it is, nccl or mpi (default: as the log says, else what the cluster "
                   "was calibrated for)")
      ->check(CLI::IsMember({"nccl", "mpi"}));
  command->add_option("--nodes", options->nodes, "number of nodes, where the log does not say");
  command->add_option("--max-error", options->max_error,
                      "limit of the median error of the log, as 0.1");
  command->add_option("--out", options->out,
                      "folder for a page with scatter plots, the plots, and the rows as CSV");
  command->add_option("--rows", options->rows, "write every measured and forecast row as CSV");
  command->add_flag("--canary", options->canary,
                    "add cases that are wrong on purpose: must exit with 3");
  command->footer(R"(Examples
  lambcast validate --out results-validation
  lambcast validate --against all_reduce.log --cluster mine.toml --nodes 4 --max-error 0.15)");
  return [options] { return validate_command(*options); };
}

}  // namespace lambcast
