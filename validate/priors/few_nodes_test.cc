#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/base/file.h"
#include "topologies/collective_forecast.h"
#include "validate/calibrate/calibrate.h"
#include "validate/calibrate/carried_table.h"
#include "validate/calibrate/measured_series.h"

namespace lambcast::validate {
namespace {

const std::string base_file = "bases/perlmutter-a100.toml";

Measurement table_of(const std::string& operation, const std::string& layout) {
  return carried(fmt::format("perlmutter_{}_a100_{}_ss11.csv", operation, layout));
}

std::string fitted_to(const std::string& base, const std::vector<Measurement>& tables,
                      bool another_machine) {
  FitSummary summary = calibrate(base, base_file, tables);
  REQUIRE(summary.calibration);
  summary.calibration->another_machine = another_machine;
  return calibrated_cluster(base, base_file, "mine", summary, "tables");
}

// Returns the median of |forecast / measured - 1|.
double error_on(const std::string& description, const Measurement& table) {
  const Cluster cluster = decode_cluster(Table::parse(description, base_file), base_file);
  MeasuredSeries series = series_of(table, cluster, Backend::nccl);
  std::vector<double> errors;
  for (const Row& row : table.rows)
    errors.push_back(std::abs(forecast_time(series, row.size) / row.time - 1));
  return quantile(errors, 0.5);
}

const std::vector<std::string> operations{"allgather", "allreduce", "reducescatter"};

// Returns a preset fitted to the tables of the other operations on one to eight nodes.
std::string preset_without(const std::string& base, const std::string& operation) {
  std::vector<Measurement> others;
  for (const std::string& other : operations)
    for (const char* layout : {"1n2r", "1n4r", "2n2r", "2n4r", "2n8r", "4n8r", "8n32r"})
      if (other != operation) others.push_back(table_of(other, layout));
  return fitted_to(base, others, true);
}

struct Pair {
  const char* measured;
  std::vector<const char*> forecast;
};

// Median errors on tables that neither the preset nor the calibration used, before and after the
// calibration with the user's table.
struct Errors {
  std::vector<double> before, after;
};

// Returns the errors. Checks that calibration worsens no pair by more than `harm`.
Errors errors_of(const std::vector<Pair>& pairs, double harm) {
  const std::string base = read_file(std::string(LAMBCAST_VALIDATE) + "/calibrate/" + base_file);
  Errors errors;
  for (const std::string& operation : operations) {
    const std::string preset = preset_without(base, operation);
    for (const auto& [measured, forecast] : pairs) {
      const std::string mine = fitted_to(preset, {table_of(operation, measured)}, false);
      for (const char* unseen : forecast) {
        const Measurement table = table_of(operation, unseen);
        errors.before.push_back(error_on(preset, table));
        errors.after.push_back(error_on(mine, table));
        INFO(operation << " " << measured << " for " << unseen);
        CHECK(errors.after.back() < errors.before.back() + harm);
      }
    }
  }
  fmt::print("{} pairs, median error {:.1f} % before, {:.1f} % after a table of {}\n",
             errors.after.size(), quantile(errors.before, 0.5) * 100,
             quantile(errors.after, 0.5) * 100, pairs.front().measured);
  return errors;
}

// Parameters that a table of one node does not determine keep the values of the preset.
TEST_CASE("priors: a table of one node does not harm the forecast of two") {
  const std::vector<const char*> two{"2n2r", "2n4r", "2n8r"};
  const Errors errors = errors_of({{"1n2r", two}, {"1n4r", two}}, 0.02);
  CHECK(errors.after.size() == 18);
  CHECK(quantile(errors.after, 0.5) < 0.08);
}

// Some rates apply to two nodes only (that of a tree, and of one GPU per node), so a forecast of
// four may get worse, by less than 0.09.
TEST_CASE("priors: a table of two nodes improves the forecast of four and eight") {
  const Errors errors = errors_of(
      {{"2n2r", {"4n4r"}}, {"2n4r", {"4n8r"}}, {"2n8r", {"4n16r", "8n32r"}}, {"4n16r", {"8n32r"}}},
      0.09);
  CHECK(errors.after.size() == 15);
  CHECK(quantile(errors.after, 0.5) < 0.05);
  CHECK(quantile(errors.after, 0.5) < quantile(errors.before, 0.5));
}

// A ring over two nodes is limited by its NICs, so presets fitted only to such rings keep the
// published rates of their links, 235 GB/s on A100.
TEST_CASE("priors: tables of several nodes leave the links inside one as they were") {
  for (const char* preset : {"dgx-a100-80g", "selene-a100", "aws-p4d"}) {
    INFO(preset);
    CollectiveSetting setting;
    setting.group.ranks = setting.group.per_node = 8;
    CollectiveSeries series = prepare(load_cluster(preset, {}), setting);
    const Bytes size(8e9);
    const double bus = 2 * 7. / 8 * size.value() / forecast(series, size).time.s();
    CHECK(bus > 0.95 * 235e9);
    CHECK(bus < 235e9);
  }
}

}  // namespace
}  // namespace lambcast::validate
