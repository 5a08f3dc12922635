#include <memory>

#include "experiments/phases/freeze_log.h"
#include "sim/base/error.h"
#include "sim/base/file.h"
#include "tools/commands.h"
#include "tools/result_flags.h"

namespace lambcast {
namespace {

struct FreezeOptions {
  std::string log;
  reference::FreezeOptions freeze;
  std::vector<std::string> columns;
  bool losses = false;
  ResultFlags result;
};

int freeze_command(const FreezeOptions& options) {
  const FreezeLog log =
      parse_freeze_log(read_file(options.log), options.log, options.columns, options.losses);
  const FreezeChoice choice = choose_freeze_step(log, options.freeze);
  print_result(options.result,
               {[&] { return freeze_table(choice); }, [&] { return freeze_json(choice); },
                [&] { return freeze_csv(choice); }});
  return static_cast<int>(choice.step != 0 ? Exit::done : Exit::limit);
}

}  // namespace

Command add_freeze(CLI::App& app) {
  auto options = std::make_shared<FreezeOptions>();
  CLI::App* command = app.add_subcommand(
      "freeze", "which freeze_step the monitor of the variance would have chosen for a logged run");
  command
      ->add_option("LOG", options->log,
                   "norms of the variance or losses by step, CSV or plain numbers (-: stdin)")
      ->required();
  command->add_option("--columns", options->columns, "columns of the log: A,B,C (default: all)")
      ->delimiter(',');
  command->add_flag("--losses", options->losses, "the values are losses");
  command->add_option("--beta2", options->freeze.beta2,
                      "factor by which the optimizer's variance decays a step (default: 0.999)");
  command->add_option("--threshold", options->freeze.threshold,
                      "factor between norms that counts as settled (default: 0.96)");
  command->add_option("--share", options->freeze.share,
                      "share of the elements that must have settled (default: 0.9)");
  command
      ->add_option("--earliest", options->freeze.earliest,
                   "step where the learning rate's warm-up ends (default: 1)")
      ->check(CLI::Range(1, 1000000000));
  command
      ->add_option("--latest", options->freeze.latest,
                   "step at which compression begins all the same (default: none)")
      ->check(CLI::Range(1, 1000000000));
  add_result_flags(*command, options->result);
  command->footer(
      R"(A log has the columns step and one per layer, or step, layer, norm and, where layers differ in size, elements; or lines of numbers, the step first. The norm is sum |v| of a layer's exp_avg_sq.
Example
  lambcast freeze variance.csv --beta2 0.999 --earliest 450
Exit codes: 0 a step was found, 2 bad usage or input, 3 the variance has not settled.)");
  return [options] { return freeze_command(*options); };
}

}  // namespace lambcast
