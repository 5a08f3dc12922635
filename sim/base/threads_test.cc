#include "sim/base/threads.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <new>
#include <utility>

namespace lambcast {
namespace {

// Work whose copy constructor throws bad_alloc at a given copy.
struct Greedy {
  std::atomic<int>& ran;
  int& copies_left;
  Greedy(std::atomic<int>& done, int& copies) : ran(done), copies_left(copies) {}
  Greedy(const Greedy& other) : ran(other.ran), copies_left(other.copies_left) {
    if (copies_left-- == 0) throw std::bad_alloc();
  }
  Greedy(Greedy&& other) noexcept = default;
  void operator()() const { ++ran; }
};

TEST_CASE("threads: work runs on all threads that start; the caller sees if none did") {
  for (const auto& [copies, started] : {std::pair{9, 4}, {4, 4}, {2, 2}, {1, 1}, {0, 0}}) {
    std::atomic<int> ran = 0;
    int left = copies;
    std::vector<std::thread> threads = start_threads(4, Greedy(ran, left));
    CHECK(threads.size() == static_cast<std::size_t>(started));
    for (std::thread& thread : threads) thread.join();
    CHECK(ran == started);
  }
  std::atomic<int> ran = 0;
  int none = 0;
  CHECK(start_threads(0, Greedy(ran, none)).empty());
}

}  // namespace
}  // namespace lambcast
