// Sorts short lists of large elements. The standard library's sort is compiled anew for each
// element type and comparison: up to 20 kB of code for one line of a page. Here one function sorts
// positions, and each element moves once.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace lambcast {

// Returns the positions 0 to count - 1 in sorted order: `before(a, b)` is true if the element at a
// precedes the one at b. Equal elements keep their order.
std::vector<std::size_t> stable_order(std::size_t count,
                                      const std::function<bool(std::size_t, std::size_t)>& before);

// Sorts like std::ranges::stable_sort(list, before, key).
template <typename T, typename Before = std::ranges::less, typename Key = std::identity>
void sort_stably(std::vector<T>& list, Before before = {}, Key key = {}) {
  std::vector<T> sorted;
  sorted.reserve(list.size());
  for (const std::size_t place : stable_order(list.size(), [&](std::size_t a, std::size_t b) {
         return std::invoke(before, std::invoke(key, list[a]), std::invoke(key, list[b]));
       }))
    sorted.push_back(std::move(list[place]));
  list = std::move(sorted);
}

}  // namespace lambcast
