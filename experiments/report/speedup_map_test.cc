#include "experiments/report/speedup_map.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <sstream>

using namespace lambcast::report;

namespace {

// Returns a map with speedup = gpus^b * scale / nic, whose break-even is at nic = scale * gpus^b.
SpeedupMap power_map(double scale, double b) {
  SpeedupMap map{"box", {1, 4, 16, 64}, {8, 32, 128}, {}};
  for (const double gpus : map.gpus) {
    std::vector<double>& row = map.speedup.emplace_back();
    for (const double nic : map.nic_Gbps) row.push_back(scale * std::pow(gpus, b) / nic);
  }
  return map;
}

}  // namespace

TEST_CASE("the break-even line of a power law is exact") {
  // The logarithm of the speed-up is linear in both logarithms, and so is the interpolation. So
  // every end of every inner segment lies on nic = 2 * sqrt(gpus / 8), from 2 at 8 GPUs to 8 at 128
  // GPUs.
  const std::vector<Segment> line = break_even_line(power_map(2 / std::sqrt(8.0), 0.5));
  std::size_t inside = 0;
  for (const Segment& s : line) {
    for (const auto& [x, y] : {std::pair(s.x0, s.y0), std::pair(s.x1, s.y1)}) {
      if (y < 8 || y > 128) continue;
      ++inside;
      CHECK(x == Approx(2 * std::sqrt(y / 8)));
    }
  }
  CHECK(inside >= 4);
}

TEST_CASE("the break-even line runs from border to border") {
  // The speed-up does not depend on GPUs, so the line is vertical at 10. It runs from half a cell
  // below 8 (8 / sqrt(4) = 4) to half a cell above 128 (256).
  const std::vector<Segment> line = break_even_line(power_map(10, 0));
  double low = 1e9, high = 0;
  for (const Segment& s : line) {
    CHECK(s.x0 == Approx(10));
    CHECK(s.x1 == Approx(10));
    low = std::min({low, s.y0, s.y1});
    high = std::max({high, s.y0, s.y1});
  }
  CHECK(line.size() == 4);
  CHECK(low == Approx(4));
  CHECK(high == Approx(256));
}

TEST_CASE("no line if compression pays everywhere, nor next to points that did not run") {
  CHECK(break_even_line(power_map(1000, 0)).empty());
  SpeedupMap holes = power_map(10, 0);
  for (auto& row : holes.speedup) row[1] = absent;  // 4 Gbit/s, next to the line at 10
  CHECK(break_even_line(holes).empty());
}

TEST_CASE("a saddle gives two separate pieces, cut off from the corners that differ") {
  SpeedupMap map{"box", {1, 2}, {8, 16}, {{4, 0.5}, {0.5, 4}}};
  // The mean of the logarithms, log(4 * 0.5 * 0.5 * 4) / 4, is above 0. So the corners that pay are
  // joined, and each piece cuts off one that does not. In the cell itself the cuts lie at one third
  // from the losing corner: log 0.5 / (log 0.5 - log 4) = 1/3.
  std::size_t pieces = 0;
  for (const Segment& s : break_even_line(map)) {
    const bool in_cell = std::min(s.x0, s.x1) >= 1 && std::max(s.x0, s.x1) <= 2 &&
                         std::min(s.y0, s.y1) >= 8 && std::max(s.y0, s.y1) <= 16;
    if (!in_cell) continue;
    ++pieces;
    const bool lower_right = std::max(s.x0, s.x1) == Approx(2) && std::min(s.y0, s.y1) == Approx(8);
    const bool upper_left = std::min(s.x0, s.x1) == Approx(1) && std::max(s.y0, s.y1) == Approx(16);
    CHECK((lower_right || upper_left));
  }
  CHECK(pieces == 2);
}

TEST_CASE("the break-even line has the two lines of its interval, if there is one") {
  SpeedupMap map = power_map(10, 0);
  CHECK(break_even_ends(map).empty());
  map.low = map.high = map.speedup;
  CHECK(break_even_ends(map).empty());
  for (auto& row : map.low)
    for (double& s : row) s /= 1.25;
  for (auto& row : map.high)
    for (double& s : row) s *= 1.25;
  for (const Segment& s : break_even_ends(map)) {
    const bool low = s.x0 == Approx(10 / 1.25) && s.x1 == Approx(10 / 1.25);
    const bool high = s.x0 == Approx(10 * 1.25) && s.x1 == Approx(10 * 1.25);
    CHECK((low || high));
  }
  CHECK(break_even_ends(map).size() == 2 * break_even_line(map).size());
  const std::string script = map_script({map, map}, "m", "title");
  CHECK(script.find("'m.dat' index 2 using 1:2 with lines lw 1.5 dt '-'") != std::string::npos);
  // The cells of the second map are the fourth block.
  CHECK(script.find("'m.dat' index 3 using 1:2:3:4:5:6:7") != std::string::npos);
}

TEST_CASE("the crossings of a row of the map are interpolated") {
  const std::vector<double> nic = {1, 10, 100};
  // The speed-up falls from 10 at 1 to 0.1 over one decade of bandwidth: it is 1 in the middle, at
  // sqrt(10).
  const std::vector<Crossing> falling = crossings(nic, {10, 0.1, 0.05});
  REQUIRE(falling.size() == 1);
  CHECK(falling[0].nic_Gbps == Approx(std::sqrt(10.0)));
  CHECK(falling[0].falling);
  const std::vector<Crossing> both = crossings(nic, {0.5, 2, 0.5});
  REQUIRE(both.size() == 2);
  CHECK_FALSE(both[0].falling);
  CHECK(both[1].falling);
  CHECK(crossings(nic, {2, 3, 4}).empty());
  // The row is flat within 0.1 %, so the sign of its difference from 1 is rounding.
  CHECK(crossings(nic, {1.0002, 0.9998, 1.0001}).empty());
  CHECK(is_flat_row({1.0002, absent, 0.9998}));
  CHECK_FALSE(is_flat_row({1.002, 0.9998}));
  CHECK_FALSE(is_flat_row({1.5}));
  // A missing point is interpolated: from 10 at 1 to 0.1 at 100 the line crosses 1 at 10.
  CHECK(crossings(nic, {10, absent, 0.1}).at(0).nic_Gbps == Approx(10));
}

TEST_CASE("map data has a block of cells and a block of the line") {
  const std::vector<SpeedupMap> maps = {power_map(10, 0), power_map(1000, 0), power_map(10, 0)};
  const std::string data = map_data(maps, {"note"});
  CHECK(data.find("# note\n# box\n") == 0);
  // Cell of 4 Gbit/s and 32 GPUs: borders at half the factor of 4, speed-up 10 / 4.
  CHECK(data.find("4 32 2 8 16 64 2.5 ") != std::string::npos);
  CHECK(data.find("# break-even line (speed-up 1)") != std::string::npos);
  CHECK(data.find("10 4\n10 8\n\n") != std::string::npos);
  // The second map has no line, so the cells of the third are the fourth block and its line the
  // fifth.
  const std::string script = map_script(maps, "m", "title");
  CHECK(script.find("'m.dat' index 1 using 1:2 with lines") != std::string::npos);
  CHECK(script.find("'m.dat' index 2 using 1:2 with lines") == std::string::npos);
  CHECK(script.find("'m.dat' index 4 using 1:2 with lines") != std::string::npos);
  CHECK(script.find("'break-even 1.0' at graph 1,graph") != std::string::npos);
  CHECK(script.find("'no break-even here: above 1.0'") != std::string::npos);
}

TEST_CASE("no line of a map crosses a number, wherever it runs through the cells") {
  // Half a number is 17 by 8 pixels in a frame of 619 by 228 pixels.
  for (double scale = 1; scale < 64; scale *= 1.13) {
    for (const double exponent : {0.0, 0.2, 0.6}) {
      const SpeedupMap map = power_map(scale, exponent);
      std::istringstream data(map_data({map}, {}));
      const double px = 619.1 / std::log(128 / 0.5), py = 228 / std::log(256 / 4.0);
      for (std::string line; std::getline(data, line) && !line.starts_with("# break-even");) {
        std::istringstream cell(line);
        std::vector<double> of;
        for (double value = 0; cell >> value;) of.push_back(value);
        if (of.size() != 9) continue;
        for (const Segment& s : break_even_line(map)) {
          for (int i = 0; i <= 100; ++i) {
            const double x = s.x0 * std::pow(s.x1 / s.x0, i / 100.0),
                         y = s.y0 * std::pow(s.y1 / s.y0, i / 100.0);
            const bool crosses =
                px * std::abs(std::log(x / of[7])) < 14 && py * std::abs(std::log(y / of[8])) < 6;
            REQUIRE_FALSE(crosses);
          }
        }
      }
    }
  }
}
