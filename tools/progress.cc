#include "tools/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "tools/stop_signal.h"
#include "tools/terminal.h"

namespace lambcast {

bool Progress::operator()(std::size_t done, std::size_t all) {
  const auto now = Clock::now();
  const double passed = std::chrono::duration<double>(now - start_).count();
  if (first_ == 0) first_ = done;
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const double due = terminal ? 0.1 : 10;
  if (terminal_settings().quiet) return stop_signal() == 0;
  if (std::chrono::duration<double>(now - shown_).count() >= due || (terminal && done == all)) {
    shown_ = now;
    const double left = passed * static_cast<double>(all - done) /
                        static_cast<double>(std::max<std::size_t>(1, done - first_ + 1));
    constexpr std::size_t width = 30;
    const std::size_t filled = width * done / std::max<std::size_t>(1, all);
    if (terminal)
      fmt::print(stderr, "\r[{}{}] ", std::string(filled, '#'), std::string(width - filled, '.'));
    fmt::print(stderr, "{}/{} {}, {:.0f} s left{}", done, all, things_, left,
               terminal ? "  " : "\n");
    if (terminal && done == all) fmt::print(stderr, "\n");
    std::fflush(stderr);
  }
  return stop_signal() == 0;
}

}  // namespace lambcast
