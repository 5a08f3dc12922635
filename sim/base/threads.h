// Starts as many threads as the system allows.
#pragma once

#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace lambcast {

// Runs `work` on `count` threads, or on fewer if the system refuses to start more. If none starts,
// the caller must do the work itself. The error of a failed start is dropped: it would end the
// program if thrown while threads run.
template <typename Work>
std::vector<std::thread> start_threads(int count, const Work& work) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(count));
  try {
    for (int i = 0; i < count; ++i) threads.emplace_back(work);
  } catch (const std::exception&) {
  }
  return threads;
}

}  // namespace lambcast
