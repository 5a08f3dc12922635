#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/base/file.h"
#include "validate/calibrate/calibrate.h"
#include "validate/calibrate/measured_series.h"

namespace lambcast::validate {
namespace {

const std::string base_file = "bases/perlmutter-a100.toml";

Measurement table_of(const std::string& operation, const std::string& layout) {
  const std::string name = fmt::format("perlmutter_{}_a100_{}_ss11.csv", operation, layout);
  return read_measurement_csv(
      read_file(std::string(LAMBCAST_VALIDATE) + "/replay/collectives/" + name), name);
}

std::string fitted_to(const std::string& base, const std::vector<Measurement>& tables,
                      bool another_machine) {
  FitSummary summary = calibrate(base, base_file, tables);
  REQUIRE(summary.calibration);
  summary.calibration->another_machine = another_machine;
  return calibrated_cluster(base, base_file, "mine", summary, "tables");
}

// The median of |forecast / measured - 1|.
double error_on(const std::string& description, const Measurement& table) {
  const Cluster cluster = decode_cluster(Table::parse(description, base_file), base_file);
  MeasuredSeries series = series_of(table, cluster, Backend::nccl);
  std::vector<double> errors;
  for (const Row& row : table.rows)
    errors.push_back(std::abs(forecast_time(series, row.size) / row.time - 1));
  return quantile(errors, 0.5);
}

// A preset that has seen other operations on one to eight nodes, a user who has measured one node,
// and the forecast of two: what one node cannot tell stays as the preset has it.
TEST_CASE("priors: a table of one node does not harm the forecast of two") {
  const std::string base = read_file(std::string(LAMBCAST_VALIDATE) + "/calibrate/" + base_file);
  const std::vector<std::string> operations{"allgather", "allreduce", "reducescatter"};
  std::vector<double> before, after;
  for (const std::string& operation : operations) {
    std::vector<Measurement> others;
    for (const std::string& other : operations)
      for (const char* layout : {"1n2r", "1n4r", "2n2r", "2n4r", "2n8r", "4n8r", "8n32r"})
        if (other != operation) others.push_back(table_of(other, layout));
    const std::string preset = fitted_to(base, others, true);
    for (const char* one : {"1n2r", "1n4r"}) {
      const std::string mine = fitted_to(preset, {table_of(operation, one)}, false);
      for (const char* two : {"2n2r", "2n4r", "2n8r"}) {
        const Measurement measured = table_of(operation, two);
        before.push_back(error_on(preset, measured));
        after.push_back(error_on(mine, measured));
        INFO(operation << " " << one << " for " << two);
        CHECK(after.back() < before.back() + 0.02);
      }
    }
  }
  fmt::print(
      "two nodes after a table of one: {} pairs, median error {:.1f} % before, {:.1f} % after\n",
      after.size(), quantile(before, 0.5) * 100, quantile(after, 0.5) * 100);
  CHECK(after.size() == 18);
  CHECK(quantile(after, 0.5) < 0.08);
}

}  // namespace
}  // namespace lambcast::validate
