// Sorting a few large things. The standard library's sort is compiled anew for each type of element
// and each comparison, with all the moves of elements: up to 20 kB of code for one line of a page.
// Here one function sorts places, and each element moves once.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace lambcast {

// Returns the positions 0 to count - 1 in sorted order: `before(a, b)` is true if the element at a
// precedes the one at b. Elements of which neither precedes the other keep their order.
std::vector<std::size_t> stable_order(std::size_t count,
                                      const std::function<bool(std::size_t, std::size_t)>& before);

// Sorts as std::ranges::stable_sort(list, before, key) does.
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
