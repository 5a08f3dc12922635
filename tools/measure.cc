#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include "sim/base/error.h"
#include "tools/commands.h"
#include "tools/terminal.h"
#include "validate/measure/options.h"

namespace lambcast {
namespace {

// Replaces this process by lambcast-measure from the same folder; the launcher's environment is
// kept.
int run_measure(const CLI::App& command) {
  const char* const self = "/proc/self/exe";
  std::error_code error;
  const auto program =
      std::filesystem::read_symlink(self, error).parent_path() / "lambcast-measure";
  if (error) throw Error(Exit::missing, fmt::format("{}: {}", self, error.message()));
  std::vector<std::string> words{program.string()};
  for (const std::string& word : command.remaining()) words.push_back(word);
  // Shows the help of this command even after a flag of lambcast-measure, which has no help of its
  // own.
  for (const char* help : {"-h", "--help", "--help-all"})
    if (std::ranges::find(words, help) != words.end()) {
      show_help(command.help("lambcast"));
      return 0;
    }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::signal(SIGPIPE, SIG_DFL);  // ignored signals would stay ignored in the new program
  execv(program.c_str(), arguments.data());
  const int reason = errno;
  throw Error(Exit::missing,
              fmt::format("cannot start {}: {}{}", program.string(), std::strerror(reason),
                          reason == ENOENT ? "; the target lambcast_installed builds it" : ""));
}

}  // namespace

Command add_measure(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "measure", "time real collectives: NCCL on GPUs, MPI on hosts (flags of nccl-tests)");
  command->prefix_command();
  command->footer(std::string(validate::measure_help()));
  return [command] { return run_measure(*command); };
}

}  // namespace lambcast
