// Threads, as many as the system starts.
#pragma once

#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace lambcast {

// Runs `work` on `count` threads, or on as many as the system starts. Without any, the caller is to
// do the work itself. The error that ended the start is dropped: thrown past a thread that runs, it
// would end the program.
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
