#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "sim/base/error.h"
#include "sim/base/file.h"
#include "sim/base/output_file.h"
#include "sim/base/printable.h"
#include "tools/commands.h"
#include "tools/import_flags.h"
#include "tools/patience.h"
#include "tools/terminal.h"
#include "topologies/cluster.h"
#include "validate/calibrate/calibrate.h"
#include "validate/calibrate/measured_tables.h"

namespace lambcast {
namespace {

struct CalibrateOptions {
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

// On a terminal only: a calibration of a few tables takes a moment, one of thousands of rows
// seconds.
void show_progress(int done, int all) {
  if (isatty(STDERR_FILENO) == 0) return;
  fmt::print(stderr, "\rfitting: {} of {} searches", done, all);
  std::fflush(stderr);
}

void clear_progress() {
  if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r{:40}\r", "");
}

int calibrate_command(const CalibrateOptions& options) {
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
  std::optional<Backend> asked;
  if (!options.backend.empty()) asked = backend_of(options.backend);
  const Backend backend = validate::backend_of_tables(tables, asked);
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
      printable(options.source.empty() ? validate::sources_of(tables) : options.source);
  const std::string text = validate::calibrated_cluster(base, base_name, name, summary, source);
  write_output(options.output, "-o", text);
  const std::string report = validate::brief_report(summary);
  if (options.output == "-")
    fmt::print(stderr, "{}", report);
  else
    print_text(fmt::format("{}\nWritten to {}; forecast with:\n  {}\n", report, options.output,
                           validate::forecast_command(options.output, tables, backend)));
  return 0;
}

}  // namespace

Command add_calibrate(CLI::App& app) {
  auto options = std::make_shared<CalibrateOptions>();
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
      ->add_option("FILE", options->files,
                   "tables: nccl-tests text or JSON, OSU, IMB, ds_bench, iperf3 -J, perftest, "
                   "lambcast measure, "
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
