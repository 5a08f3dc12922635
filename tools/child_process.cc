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

// The two ends of a pipe, which a started program does not inherit.
struct Pipe {
  int read = -1, write = -1;
};

Pipe new_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw Error(Exit::failure, fmt::format("pipe: {}", std::strerror(errno)));
  return {ends[0], ends[1]};
}

}  // namespace

ChildProcess::ChildProcess(std::vector<std::string> words, ChildStreams streams) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  Pipe input, output;
  if (streams == ChildStreams::piped) {
    input = new_pipe();
    output = new_pipe();
    to_.reset(fdopen(input.write, "w"));
    from_.reset(fdopen(output.read, "r"));
    posix_spawn_file_actions_adddup2(&actions, input.read, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output.write, STDOUT_FILENO);
  }
  const int status =
      posix_spawn(&id_, words.front().c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (streams == ChildStreams::piped) {
    close(input.read);
    close(output.write);
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
