#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <utility>
#include <vector>

#include "experiments/forecast_output.h"
#include "sim/base/check.h"
#include "sim/base/error.h"
#include "sim/base/printable.h"
#include "tools/commands.h"
#include "tools/standard_streams.h"

namespace {

const char* const footer = R"(Examples
  lambcast simulate --model bert-large --cluster paper-eth40-v100 --gpus 64 --optimizer onebit_lamb \
    --global-batch 65536 --micro-batch 16 --steps 5993 --freeze-step 1000
  lambcast simulate --config ds.json --model bert-large --cluster my-cluster.toml --nodes 16
  lambcast sweep sweep.toml --out results --jobs 2
  lambcast collective --cluster hgx-h100-ndr --gpus 32 -b 1M -e 1G -f 4
  lambcast validate
Exit codes: 0 done, 1 failure, 2 bad usage or input, 3 a limit was exceeded, 4 hardware or library
missing, 130/143 stopped by a signal.)";

int run(int argc, char** argv) {
  using namespace lambcast;
  CLI::App app{"Forecasts what compressed large-batch training does on a given cluster.",
               "lambcast"};
  app.set_version_flag("--version", std::string("lambcast ") + tool_version);
  app.footer(footer);
  app.require_subcommand(0, 1);
  std::vector<std::pair<CLI::App*, Command>> commands;
  const auto add = [&](Command (*add_command)(CLI::App&)) {
    Command command = add_command(app);
    commands.emplace_back(app.get_subcommands({}).back(), std::move(command));
  };
  for (const auto add_command :
       {add_simulate, add_advise, add_plan, add_compare, add_sensitivity, add_sweep, add_collective,
        add_profile, add_measure, add_freeze, add_calibrate, add_validate, add_presets, add_report})
    add(add_command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version are no errors; everything else is one line.
    if (error.get_exit_code() == 0) return app.exit(error);
    fmt::print(stderr, "lambcast: {}\nlambcast: see lambcast --help\n",
               lambcast::printable(error.what()));
    return static_cast<int>(Exit::usage);
  }
  for (const auto& [parsed, command] : commands)
    if (parsed->parsed()) return command();
  throw Error(Exit::usage, "a command is missing; see lambcast --help");
}

int exit_code_of(int argc, char** argv) {
  using namespace lambcast;
  try {
    return run(argc, argv);
  } catch (const Error& error) {
    fmt::print(stderr, "lambcast: {}\n", printable(error.what()));
    return static_cast<int>(error.code());
  } catch (const InternalError& error) {
    fmt::print(stderr, "lambcast: internal error, please report it: {}\n", printable(error.what()));
  } catch (const std::exception& error) {
    // Where stdout is the reason, main() says so.
    if (std::ferror(stdout) == 0) fmt::print(stderr, "lambcast: {}\n", printable(error.what()));
  }
  return static_cast<int>(Exit::failure);
}

}  // namespace

int main(int argc, char** argv) {
  lambcast::settle_standard_streams();
  const int code = exit_code_of(argc, argv);
  return lambcast::exit_code_of_stdout().value_or(code);
}
