// The kernel's nearest values of the maps, compared with the reference's search.
#include "kernels/cuda/eight_bit_code.cuh"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

template <reference::Sign sign>
void agrees_with_a_search() {
  const std::vector<std::uint32_t> table = nearest_table(sign);
  const auto& map = reference::dynamic_map(sign);
  unsigned compared = 0;
  const auto agrees = [&](float x) {
    if (nearest_code<sign>(table.data(), x) != reference::nearest(map, x)) FAIL(x);
    ++compared;
  };
  for (std::size_t k = 1; k < map.size(); ++k) {
    agrees(map[k]);
    const auto middle = to_bits((map[k - 1] + map[k]) / 2);
    for (unsigned away = 0; away < 2000; ++away) agrees(from_bits(middle + away - 1000));
  }
  std::mt19937 bits(1);
  for (int i = 0; i < 1'000'000; ++i) {
    const float x = from_bits(bits());
    if (!(std::fabs(x) > 1)) agrees(x);
    agrees(static_cast<float>(static_cast<int>(bits())) * 0x1p-31f);
  }
  for (const float x : {0.0f, 1.0f, 0x1p-149f, 0x1p-23f, std::nanf("")}) {
    agrees(x);
    agrees(-x);
  }
  CHECK(compared > 1'500'000);
}

}  // namespace

TEST_CASE("a bin's entry finds the nearest of a map's values") {
  agrees_with_a_search<reference::Sign::both>();
  agrees_with_a_search<reference::Sign::positive>();
}
