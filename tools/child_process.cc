#include "tools/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "sim/base/error.h"

extern char** environ;

namespace lambcast {
namespace {

// Returns the ends of a pipe to read from and to write to, which a started program does not
// inherit.
std::array<int, 2> new_pipe() {
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw Error(Exit::failure, fmt::format("pipe: {}", std::strerror(errno)));
  return ends;
}

}  // namespace

ChildProcess::ChildProcess(std::vector<std::string> words, ChildStreams streams) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  std::array<int, 2> input{-1, -1}, output{-1, -1};
  if (streams == ChildStreams::piped) {
    input = new_pipe();
    output = new_pipe();
    to_.reset(fdopen(input[1], "w"));
    from_.reset(fdopen(output[0], "r"));
    posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
  }
  const int status =
      posix_spawn(&id_, words.front().c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (streams == ChildStreams::piped) {
    close(input[0]);
    close(output[1]);
  }
  if (status != 0)
    throw Error(Exit::missing, fmt::format("{}: {}", words.front(), std::strerror(status)));
}

std::optional<std::string> ChildProcess::line() {
  std::string text;
  for (int c = std::fgetc(from_.get()); c != EOF; c = std::fgetc(from_.get())) {
    if (c == '\n') return text;
    text += static_cast<char>(c);
  }
  return std::nullopt;
}

void ChildProcess::answer(std::string_view text) {
  fmt::print(to_.get(), "{}\n", text);
  std::fflush(to_.get());
}

int ChildProcess::code() {
  int status = 0;
  while (waitpid(id_, &status, 0) != id_ && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : static_cast<int>(Exit::failure);
}

}  // namespace lambcast
