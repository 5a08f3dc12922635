#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "validate/calibrate/calibrate.h"

namespace lambcast::validate {
namespace {

std::string error_lines(const char* title, const std::vector<BandError>& bands) {
  std::string out;
  for (const BandError& band : bands)
    out += fmt::format("  {:<8} {:<15} {:>5} rows, median {:>5.1f} %, 90th percentile {:>5.1f} %\n",
                       title, band.band, band.rows, band.median * 100, band.p90 * 100);
  return out;
}

std::string number_with_unit(Unit unit, double value) {
  return value_text(unit, std::stod(fmt::format("{:.3g}", value)));
}

// Lists the intervals that the calibration narrowed.
std::string narrowed(const Calibration& calibration) {
  std::string out = fmt::format(
      "\nOf what was measured ({}) a time is expected at these multiples of its forecast:\n",
      describe(calibration));
  const char* last = calibration.bands.size() == 1 ? "of every size" : "above that";
  for (const Calibration::Band& band : calibration.bands)
    out += fmt::format("  {:.3g} to {:.3g} {}\n", band.low, band.high,
                       std::isfinite(band.below.value()) ? "below " + to_text(band.below) : last);
  return out + "Beyond it intervals are wider, up to those of a description without tables.\n";
}

}  // namespace

std::string brief_report(const FitSummary& summary) {
  std::string out =
      fmt::format("{} parameters from {} rows of {} tables in {:.1f} s\n\n",
                  summary.parameters.size(), summary.rows, summary.tables, summary.seconds);
  out += fmt::format("  {:<31} {:>12}  {}\n", "parameter", "value", "95 % interval");
  std::string loose;
  for (const FittedParameter& parameter : summary.parameters) {
    const Unit unit = parameter.of.unit;
    out +=
        fmt::format("  {:<31} {:>12}  ", parameter.of.key, number_with_unit(unit, parameter.value));
    out += parameter.identified ? fmt::format("{} to {}\n", number_with_unit(unit, parameter.low),
                                              number_with_unit(unit, parameter.high))
                                : "not identified\n";
    if (!parameter.identified) loose += (loose.empty() ? "" : ", ") + parameter.of.key;
  }
  out += "\n|forecast / measured - 1|\n" + error_lines("fitted", summary.fitted) +
         error_lines("held out", summary.held_out);
  if (!summary.held_out.empty())
    out += fmt::format("  held out: every other size, in turn{}{}\n",
                       summary.held_out_table.empty() ? "" : ", and the table ",
                       summary.held_out_table);
  for (const std::string& suspicion : summary.suspicions)
    out += fmt::format("\nWarning: {}\n", suspicion);
  for (const BandError& band : summary.fitted)
    if (band.median > poor_fit_median)
      out += fmt::format(
          "\nPoor fit: {} rows of {} are off by {:.0f} % and more. Either the "
          "machine was busy, or it is not what the description says.\n",
          (band.rows + 1) / 2, band.band, band.median * 100);
  for (const std::string& misfit : summary.misfits) out += fmt::format("\nLeft over: {}\n", misfit);
  const auto identified = [](const FittedParameter& parameter) { return parameter.identified; };
  const bool none = std::none_of(summary.parameters.begin(), summary.parameters.end(), identified);
  if (none && !summary.calibration)
    out += "\nNothing is identified: these tables say no more than was assumed before.\n";
  if (none && summary.calibration)
    out +=
        "\nNo parameter is identified by itself: the tables do not tell one from another. What "
        "they "
        "tell is how long they take together.\n";
  if (summary.calibration) out += narrowed(*summary.calibration);
  if (!loose.empty())
    out += fmt::format(
        "\nNot identified, so assumed: {}. More tables (other sizes, numbers of nodes "
        "or GPUs per node) would tell.\n",
        loose);
  return out;
}

}  // namespace lambcast::validate
