// Progress of long work on stderr: a bar with the remaining time on a terminal, a line every ten
// seconds elsewhere.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace lambcast {

class Progress {
 public:
  // `things` are the counted items: "points".
  explicit Progress(std::string things) : things_(std::move(things)) {}

  // Returns false after a signal to stop (stop_signal.h).
  bool operator()(std::size_t done, std::size_t all);

 private:
  using Clock = std::chrono::steady_clock;
  std::string things_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_ = Clock::now();
  std::size_t first_ = 0;
};

}  // namespace lambcast
