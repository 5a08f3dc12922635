#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "sim/base/error.h"
#include "sim/base/file.h"
#include "sim/base/printable.h"
#include "tools/commands.h"
#include "tools/import_flags.h"
#include "tools/output_file.h"
#include "tools/patience.h"
#include "tools/terminal.h"
#include "topologies/cluster.h"
#include "validate/calibrate/calibrate.h"
#include "validate/calibrate/measured_series.h"

namespace lambcast {
namespace {

struct Options {
  std::string cluster, output, name, source, backend;
  std::vector<std::string> files;
  bool force = false;
  bool another_machine = false;
  validate::ImportHints hints;
};

std::string file_stem(const std::string& path) {
  const auto slash = path.rfind('/');
  const std::string file = slash == std::string::npos ? path : path.substr(slash + 1);
  return file.substr(0, file.rfind('.'));
}

// The different origins of the tables, as far as they are few.
std::string sources_of(const std::vector<validate::Measurement>& tables) {
  std::vector<std::string> sources;
  for (const validate::Measurement& table : tables)
    if (std::find(sources.begin(), sources.end(), table.provenance.source) == sources.end())
      sources.push_back(table.provenance.source);
  if (sources.size() <= 3) return fmt::format("{}", fmt::join(sources, "; "));
  return fmt::format("{} tables, the first: {}", tables.size(), sources.front());
}

// Whose collectives the tables are, as they and the user say; NCCL's where nobody does.
Backend whose(const std::vector<validate::Measurement>& tables, const std::string& asked) {
  std::optional<Backend> backend;
  if (!asked.empty()) backend = backend_of(asked);
  for (const validate::Measurement& table : tables) {
    if (!table.backend) continue;
    if (backend && *table.backend != *backend)
      fail_input({table.provenance.source, 0, {}},
                 fmt::format("is a table of {}, not of {}: calibrate each by itself",
                             traits_of(*table.backend).word, traits_of(*backend).word));
    backend = table.backend;
  }
  return backend.value_or(Backend::nccl);
}

// As one word of a shell.
std::string quoted(const std::string& text) {
  std::string word = "'";
  for (const char letter : text) word += letter == '\'' ? "'\\''" : std::string(1, letter);
  const bool plain = text.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789./_-+=:@%,") == std::string::npos;
  return plain ? text : word + "'";
}

// Forecasts what the largest table is of; messages between two ranks as send_recv.
std::string next_command(const std::string& description,
                         const std::vector<validate::Measurement>& tables, Backend backend) {
  const validate::Measurement& largest =
      *std::max_element(tables.begin(), tables.end(),
                        [](const auto& one, const auto& other) { return one.ranks < other.ranks; });
  const bool pair = largest.operation == validate::Operation::ping_pong ||
                    largest.operation == validate::Operation::stream;
  return fmt::format("lambcast collective --cluster {} --op {} --gpus {} --gpus-per-node {}{}",
                     quoted(is_path(description) ? description : "./" + description),
                     pair ? "send_recv" : validate::name_of(largest.operation), largest.ranks,
                     largest.ranks / validate::nodes_of(largest),
                     is_mpi(backend) ? " --backend mpi" : "");
}

// On a terminal only: a calibration of a few tables takes seconds, one of hundreds of rows minutes.
void show_progress(int done, int all) {
  if (isatty(STDERR_FILENO) == 0) return;
  fmt::print(stderr, "\rfitting: {} of {} searches", done, all);
  std::fflush(stderr);
}

void clear_progress() {
  if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r{:40}\r", "");
}

int calibrate_command(const Options& options) {
  if (std::filesystem::is_regular_file(options.output) && !options.force)
    fail_input({options.output, 0, "-o"}, "exists already: --force replaces it");
  const std::string base =
      is_path(options.cluster) ? read_file(options.cluster) : cluster_text(options.cluster);
  const std::string base_name =
      is_path(options.cluster) ? options.cluster : options.cluster + ".toml";
  std::vector<validate::Measurement> tables;
  for (const std::string& file : options.files)
    for (validate::Measurement& table :
         validate::import_measurements(read_file(file), file, options.hints))
      tables.push_back(std::move(table));
  const Backend backend = whose(tables, options.backend);
  // Where no terminal shows how far it is.
  std::optional<Patience> patience;
  if (isatty(STDERR_FILENO) == 0) patience.emplace("fitting");
  validate::FitSummary summary =
      validate::calibrate(base, base_name, tables, backend, show_progress);
  clear_progress();
  if (summary.calibration) summary.calibration->another_machine = options.another_machine;
  std::string name = options.name;
  if (name.empty()) name = options.output == "-" ? "calibrated" : file_stem(options.output);
  name = printable(name);
  const std::string source =
      printable(options.source.empty() ? sources_of(tables) : options.source);
  const std::string text = validate::calibrated_cluster(base, base_name, name, summary, source);
  write_output(options.output, "-o", text);
  const std::string report = validate::brief_report(summary);
  if (options.output == "-")
    fmt::print(stderr, "{}", report);
  else
    print_text(fmt::format("{}\nWritten to {}; forecast with:\n  {}\n", report, options.output,
                           next_command(options.output, tables, backend)));
  return 0;
}

}  // namespace

Command add_calibrate(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("calibrate", "fit a cluster description to measured collectives");
  command
      ->add_option("--cluster", options->cluster, "the description to start from: preset or file")
      ->required();
  command
      ->add_option(
          "-o,--output", options->output,
          "the fitted description to write (.toml; -: to stdout, with the report on stderr)")
      ->required();
  command->add_flag("--force", options->force, "replace the file of -o where there is one");
  command
      ->add_option(
          "FILE", options->files,
          "tables: nccl-tests text or JSON, OSU, IMB, iperf3 -J, perftest, lambcast measure, "
          "our CSV; - for stdin")
      ->required();
  command->add_option("--name", options->name, "name inside the description (default: the file's)");
  command->add_option("--source", options->source,
                      "where the tables are from, for the description (default: as they say)");
  command
      ->add_option("--backend", options->backend,
                   "whose tables these are, nccl or mpi (default: as they say, else nccl)")
      ->check(CLI::IsMember({"nccl", "mpi"}));
  command->add_flag("--another-machine", options->another_machine,
                    "the tables are of another machine of the same hardware: forecasts are not "
                    "called calibrated, and their intervals hold what machines differ by");
  add_import_flags(*command, options->hints);
  command->footer(R"(Example
  lambcast calibrate --cluster hgx-h100-ndr --nodes 4 -o mine.toml all_reduce.log
  lambcast collective --cluster mine.toml --gpus 64 --format json)");
  return [options] { return calibrate_command(*options); };
}

}  // namespace lambcast
