#include "tools/import_flags.h"

namespace lambcast {

std::vector<CLI::Option*> add_import_flags_but_nodes(CLI::App& command,
                                                     validate::ImportHints& hints) {
  const auto read_operation = [&hints](const std::string& text) {
    hints.operation = validate::parse_operation(text, {"", 0, "--op"});
  };
  return {
      command.add_option_function<std::string>("--op", read_operation,
                                               "operation of a log that does not name it: "
                                               "all_reduce, all_gather, ... (default: the log's)"),
      command
          .add_option("--ranks", hints.ranks,
                      "number of ranks of a log that does not name it (default: the log's)")
          ->check(CLI::Range(1, 1'000'000)),
      command.add_flag("--in-place", hints.in_place,
                       "take the in-place columns of nccl-tests and lambcast measure")};
}

std::vector<CLI::Option*> add_import_flags(CLI::App& command, validate::ImportHints& hints) {
  std::vector<CLI::Option*> options = add_import_flags_but_nodes(command, hints);
  options.push_back(
      command
          .add_option("--nodes", hints.nodes,
                      "number of nodes of a log that does not name it (default: the log's)")
          ->check(CLI::Range(1, 1'000'000)));
  return options;
}

}  // namespace lambcast
