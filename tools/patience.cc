#include "tools/patience.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <utility>

#include "tools/terminal.h"

namespace lambcast {
namespace {

using std::chrono::seconds;

constexpr seconds first_on_terminal{2}, next_on_terminal{1}, first_in_log{5}, next_in_log{30};

// Prints to stderr; a closed or full stderr is ignored.
void show(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace

Patience::Patience(std::string what)
    : what_(std::move(what)), terminal_(isatty(STDERR_FILENO) == 1), thread_([this] { wait(); }) {}

Patience::~Patience() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void Patience::wait() {
  if (terminal_settings().quiet) return;
  std::unique_lock lock(mutex_);
  seconds waited = terminal_ ? first_on_terminal : first_in_log;
  for (seconds next = waited; !ended_.wait_for(lock, next, [this] { return over_; });) {
    show(fmt::format("{}lambcast: {}, {} s{}", terminal_ ? "\r" : "", what_, waited.count(),
                     terminal_ ? "" : "\n"));
    next = terminal_ ? next_on_terminal : next_in_log;
    waited += next;
  }
  if (terminal_ && waited > first_on_terminal) show("\r\033[K");
}

}  // namespace lambcast
