#include "models/training/price/beside_collectives.h"

#include <catch2/catch.hpp>

namespace lambcast {
namespace {

TEST_CASE(
    "beside collectives: one of four chunks behind a product is exposed, none if they are "
    "gathered") {
  const auto us = [](double n) { return Duration::microseconds(n); };
  CHECK(beyond_chunks(us(8), us(100), 4, false) == us(2));
  CHECK(beyond_chunks(us(8), us(100), 4, true) == us(0));
  CHECK(beyond_chunks(us(8), us(4), 4, false) == us(5));
  CHECK(beyond_chunks(us(8), us(4), 4, true) == us(5));
}

// With a share of 3/10, kernels lose 3/10 of a collective that ends first. If the collective
// outlasts them, they take 10/7 of their time.
TEST_CASE("beside collectives: kernels lose time to a collective only while both run") {
  const auto us = [](double n) { return Duration::microseconds(n); };
  CHECK(lost_beside(us(100), us(140), 0.3).us() == Approx(30));
  CHECK(lost_beside(us(200), us(140), 0.3).us() == Approx(60));
  CHECK(lost_beside(us(9000), us(140), 0.3).us() == Approx(60));
  CHECK(lost_beside(us(100), us(140), 0) == us(0));
}

}  // namespace
}  // namespace lambcast
