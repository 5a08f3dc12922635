// Threads, as many as the system gives.
#pragma once

#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace lambcast {

// `work` on so many threads; on fewer where there is no more memory or no more threads, and where
// there is not even one that error is thrown. (Thrown past a thread that runs, it would end the
// program.)
template <typename Work>
std::vector<std::thread> start_threads(int count, const Work& work) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(count));
  try {
    for (int i = 0; i < count; ++i) threads.emplace_back(work);
  } catch (const std::exception&) {
    if (threads.empty()) throw;
  }
  return threads;
}

}  // namespace lambcast
