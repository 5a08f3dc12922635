#include "sim/base/sort_stably.h"

#include <algorithm>
#include <numeric>

namespace lambcast {

std::vector<std::size_t> stable_order(std::size_t count,
                                      const std::function<bool(std::size_t, std::size_t)>& before) {
  std::vector<std::size_t> places(count);
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::stable_sort(places.begin(), places.end(),
                   [&](std::size_t a, std::size_t b) { return before(a, b); });
  return places;
}

}  // namespace lambcast
