#include "validate/program/left_out_stacks.h"

#include <catch2/catch.hpp>

namespace lambcast {
namespace {

TEST_CASE("left-out stacks: forecast in turn, 90 % of the rows lie inside their 90 % intervals") {
  const LeftOutStacks left_out = leave_out_stacks();
  INFO(left_out_table(left_out));
  const double inside = static_cast<double>(left_out.inside) / left_out.rows;
  CHECK(left_out.stacks.size() == 29);
  CHECK(left_out.rows == 172);
  CHECK(inside >= 0.85);
  CHECK(inside <= 0.95);
  CHECK(left_out.of_levels < 1.1 * left_out.limit);
  CHECK(left_out.of_medians < 0.1);
}

}  // namespace
}  // namespace lambcast
