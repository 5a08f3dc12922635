#include "experiments/output/cell.h"

#include <catch2/catch.hpp>

namespace lambcast {
namespace {

TEST_CASE("cell: every row has the same number of digits") {
  CHECK(time_cell(1200) == "20.00 min");
  CHECK(time_cell(1195.2) == "19.92 min");
  CHECK(time_cell(810) == "13.50 min");
  CHECK(time_cell(0.4686) == "468.6 ms");
  CHECK(time_cell(36000) == "10.00 h");
  CHECK(time_cell(1072386000) == "297885 h");
  CHECK(time_cell(0) == "0 s");
  // Both ends use one unit, even if they are far apart.
  CHECK(time_range(431.9, 269.3, 714.6) == "269.3 to 714.6 s");
  CHECK(time_range(36000, 1800, 72000) == "0.5000 to 20.00 h");
  CHECK(time_range(0.002, 0.0005, 1.5) == "0.5000 to 1500 ms");
  CHECK(time_and_range(1200, 590, 7200) == "20 min (9.833 to 120 min)");
  CHECK(bytes_cell(Bytes(3.1e9)) == "3.100 GB");
  CHECK(bytes_cell(Bytes(672468612)) == "672.5 MB");
  CHECK(bytes_cell(Bytes(8e9)) == "8.000 GB");
  CHECK(bytes_cell(Bytes()) == "0 B");
  CHECK(number_cell(5512.7) == "5513");
  CHECK(number_cell(705600) == "705600");
  CHECK(number_cell(0.00123) == "0.001230");
  CHECK(usd_cell(7.268) == "7.27");
  CHECK(usd_cell(12.34) == "12.3");
  CHECK(usd_cell(1234.4) == "1234");
  CHECK(usd_cell(0.014) == "0.01");
  CHECK(usd_cell(0) == "0.00");
}

}  // namespace
}  // namespace lambcast
