#include <catch2/catch.hpp>
#include <limits>

#include "validate/calibrate/calibrate.h"

namespace lambcast::validate {
namespace {

using Catch::Matchers::Contains;

FitSummary unidentified() {
  FitSummary summary;
  summary.tables = summary.rows = 1;
  FittedParameter parameter;
  parameter.of.key = "nccl.nic_efficiency";
  parameter.value = 0.8;
  summary.parameters.push_back(parameter);
  return summary;
}

TEST_CASE("brief report: without a calibration, nothing is reported as identified") {
  CHECK_THAT(brief_report(unidentified()),
             Contains("Nothing is identified") && !Contains("Of what was measured"));
}

TEST_CASE(
    "brief report: narrower forecasts are reported, whether or not a parameter is "
    "identified") {
  FitSummary summary = unidentified();
  Calibration calibration;
  calibration.operations = {Op::all_reduce};
  calibration.sizes = {1024, 1048576};
  calibration.layouts = {{4, {2, 2}}};
  calibration.bands = {{Bytes(65536), 0.9, 1.2},
                       {Bytes(std::numeric_limits<double>::infinity()), 0.8, 1.1}};
  summary.calibration = calibration;
  const auto narrows = Contains(
      "Of what was measured (all_reduce; 1.024 kB to 1.049 MB; 4 GPUs a node on 2 nodes) a time is "
      "expected at these multiples of its forecast:\n  0.9 to 1.2 below 65.54 kB\n  0.8 to 1.1 "
      "above that\n");
  CHECK_THAT(brief_report(summary), narrows && Contains("No parameter is identified by itself") &&
                                        !Contains("Nothing is identified"));
  summary.parameters.front().identified = true;
  CHECK_THAT(brief_report(summary), narrows && !Contains("by itself"));
}

TEST_CASE("brief report: held-out tables are reported if there are any") {
  FitSummary summary = unidentified();
  CHECK_THAT(brief_report(summary), !Contains("held out: every other size"));
  summary.held_out.emplace_back();
  CHECK_THAT(brief_report(summary), Contains("  held out: every other size, in turn\n"));
  summary.held_out_table = "b.log";
  CHECK_THAT(brief_report(summary),
             Contains("  held out: every other size, in turn, and the table b.log\n"));
}

TEST_CASE("brief report: the interval of a single band holds for every size") {
  FitSummary summary = unidentified();
  Calibration calibration;
  calibration.operations = {Op::all_reduce};
  calibration.sizes = {1024, 1048576};
  calibration.layouts = {{4, {2, 2}}};
  calibration.bands = {{Bytes(std::numeric_limits<double>::infinity()), 0.8, 1.1}};
  summary.calibration = calibration;
  CHECK_THAT(brief_report(summary),
             Contains("0.8 to 1.1 of every size\n") && !Contains("above that"));
}

}  // namespace
}  // namespace lambcast::validate
