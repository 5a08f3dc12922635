// A program that this one starts and waits for.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lambcast {

enum class ChildStreams { inherited, piped };

class ChildProcess {
 public:
  // Starts the program `words[0]` with its arguments. If `streams` is piped, its standard input and
  // output are pipes to this process. Throws Error (missing) if it cannot be started.
  explicit ChildProcess(std::vector<std::string> words,
                        ChildStreams streams = ChildStreams::inherited);

  // Returns the next line of its output, without the line end; nothing once the output has ended.
  std::optional<std::string> line();
  // Writes a line to its input. A program that has ended does not read it.
  void answer(std::string_view text);

  // Waits for the process to end; returns its exit code, or 1 if a signal ended it.
  int code();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  pid_t id_ = 0;
  std::unique_ptr<std::FILE, Close> to_, from_;
};

}  // namespace lambcast
