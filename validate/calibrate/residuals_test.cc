// Tests the misfits named for tables that are wrong on purpose.
#include "validate/calibrate/residuals.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "sim/base/file.h"
#include "validate/calibrate/calibrate.h"
#include "validate/calibrate/carried_table.h"

namespace lambcast::validate {
namespace {

using Catch::Matchers::Contains;

const std::string& perlmutter() {
  static const std::string text =
      read_file(std::string(LAMBCAST_VALIDATE) + "/calibrate/bases/perlmutter-a100.toml");
  return text;
}

const char* const of_two = "perlmutter_allgather_a100_2n8r_ss11.csv";
const char* const of_four = "perlmutter_allgather_a100_4n16r_ss11.csv";
const char* const of_eight = "perlmutter_allgather_a100_8n32r_ss11.csv";
const char* const reduced = "perlmutter_allreduce_a100_4n16r_ss11.csv";

FitSummary fit(const std::vector<Measurement>& tables) {
  return calibrate(perlmutter(), "perlmutter-a100.toml", tables);
}

std::string left_over(const std::vector<Measurement>& tables) {
  return fmt::format("{}", fmt::join(fit(tables).misfits, "\n"));
}

Measurement spoiled(const char* name,
                    const std::function<double(double size, std::size_t row)>& by) {
  Measurement table = carried(name);
  for (std::size_t i = 0; i < table.rows.size(); ++i)
    table.rows[i].time = table.rows[i].time.scaled(by(table.rows[i].size.value(), i));
  return table;
}

TEST_CASE("residuals: good tables give no finding") {
  CHECK(
      left_over({carried(of_two), carried(of_four), carried(of_eight), carried(reduced)}).empty());
  CHECK(left_over({carried(reduced)}).empty());
}

TEST_CASE("residuals: the only table that is off is named") {
  const Measurement slow = spoiled(of_four, [](double, std::size_t) { return 3.; });
  const FitSummary summary = fit({carried(of_two), slow, carried(of_eight), carried(reduced)});
  REQUIRE(summary.misfits.size() == 1);
  CHECK_THAT(summary.misfits.front(),
             Contains("all_gather over 16 ranks") && Contains("slower than the other tables say"));
  CHECK_THAT(brief_report(summary), Contains("Left over: all_gather over 16 ranks"));
}

TEST_CASE("residuals: a row that is off is named, with the number of other tables that share it") {
  const auto at_16_mib = [](double size, std::size_t) { return size == 16777216 ? 3. : 1.; };
  CHECK_THAT(left_over({carried(of_two), spoiled(of_four, at_16_mib), carried(reduced)}),
             Contains("the row of 16777216 B in all_gather over 16 ranks") &&
                 Contains("times slower than the sizes beside it say"));
  const std::string repeated = left_over(
      {spoiled(of_two, at_16_mib), spoiled(of_four, at_16_mib), spoiled(of_eight, at_16_mib)});
  CHECK_THAT(repeated,
             Contains("the row of 16777216 B in all_gather") && Contains("and of 2 more"));
  CHECK(std::count(repeated.begin(), repeated.end(), '\n') == 0);
  const auto fast = [](double, std::size_t row) { return row == 0 ? 0.2 : 1.; };
  CHECK_THAT(left_over({spoiled(of_four, fast)}), Contains("times faster than the sizes beside"));
}

TEST_CASE("residuals: a change of speed from one size on is a step") {
  const auto step = [](double size, std::size_t) { return size < 3e7 ? 1. : 5.; };
  CHECK_THAT(left_over({spoiled(of_four, step)}),
             Contains("times slower than below") && Contains("takes over there"));
}

TEST_CASE("residuals: waiting for lost packets is distinguished from a slow network") {
  const auto waits_up_to = [](double largest) {
    Measurement table = carried(of_four);
    for (Row& row : table.rows)
      if (row.size.value() >= 1 << 20 && row.size.value() <= largest)
        row.time = Duration::microseconds(2e5);
    return left_over({table});
  };
  // The sizes with a constant time must span at least a factor of eight, here from 1 MiB.
  for (const double largest : {0x1p23, 0x1p28})
    CHECK_THAT(waits_up_to(largest), Contains("takes 200 ms") && Contains("packets are lost"));
  CHECK_THAT(waits_up_to(0x1p22), !Contains("packets are lost"));
}

TEST_CASE("residuals: a busy machine scatters") {
  const auto busy = [](double, std::size_t row) { return row % 2 == 0 ? 0.4 : 2.5; };
  CHECK_THAT(left_over({spoiled(of_four, busy)}), Contains("scatter") && Contains("busy"));
}

// Returns the misfit findings for a fit whose residuals are `slower`, at sizes doubling from 2 KiB.
std::string shape_of(const std::vector<double>& slower) {
  std::vector<Residual> rows;
  double size = 1024;
  for (const double each : slower) rows.push_back({0, Bytes(size *= 2), each});
  Measurement table = carried(of_four);
  table.rows.clear();
  return fmt::format("{}", fmt::join(misfits_of({&table, 1}, rows, 0.2), "\n"));
}

TEST_CASE("residuals: a step has two rows on either side") {
  const auto is_step = Contains("takes over there");
  CHECK_THAT(shape_of({0, 0, 0, 0, 0, 0, 2, 2}), is_step);
  CHECK_THAT(shape_of({0, 0, 2, 2, 2, 2, 2, 2}), is_step);
  CHECK_THAT(shape_of({0, 0, 0, 0, 0, 0, 0, 2}), !is_step);
  CHECK_THAT(shape_of({0, 2, 2, 2, 2, 2, 2, 2}), !is_step);
}

TEST_CASE(
    "residuals: rows that jump up and down around their median scatter, a smooth curve does not") {
  const double half = std::log(1.5);
  CHECK_THAT(shape_of({half, -half, half, -half, half, -half, half, -half}),
             Contains("scatter by 50 % from one size to the next"));
  const double twice = std::log(3.);
  CHECK_THAT(shape_of({twice + half, twice - half, twice + half, twice - half, twice + half,
                       twice - half, twice + half, twice - half}),
             Contains("scatter"));
  // Residuals on a straight line do not count as scatter, for any mean and slope.
  for (const double middle : {-3., -1., 0., 1., 3.})
    for (const double slope : {-0.3, 0.3}) {
      std::vector<double> line;
      for (int i = 0; i < 12; ++i) line.push_back(middle + slope * (i - 5.5));
      INFO(middle << ", " << slope);
      CHECK(shape_of(line).empty());
    }
}

}  // namespace
}  // namespace lambcast::validate
