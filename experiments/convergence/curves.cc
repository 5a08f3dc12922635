#include "experiments/convergence/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/check.h"
#include "sim/base/csv.h"
#include "sim/base/error.h"

namespace lambcast::convergence {

std::string curves_csv(const std::vector<Curve>& curves) {
  std::string out = csv::row({"run", "frozen_at", "step", "loss", "held_out_loss"}) + "\n";
  for (const Curve& curve : curves) {
    for (const Point& point : curve.points) {
      out +=
          csv::row({curve.run.name(), std::to_string(curve.frozen_at), std::to_string(point.step),
                    csv::number(point.loss), csv::number(point.held_out)}) +
          "\n";
    }
  }
  return out;
}

namespace {

int step_at(const csv::Table& table, std::size_t row, const char* column) {
  const double step = table.number(row, column);
  if (step < 0 || step > std::numeric_limits<int>::max() || step != std::floor(step))
    fail_input({table.name, table.lines.at(row), column},
               fmt::format("'{}' is not the number of a step", table.text(row, column)));
  return static_cast<int>(step);
}

}  // namespace

std::vector<Curve> parse_curves(std::string_view text, std::string_view name,
                                const std::vector<Run>& runs) {
  const csv::Table table = csv::parse(text, name);
  std::vector<Curve> curves;
  for (const Run& run : runs) {
    Curve curve{.run = run, .frozen_at = 0, .points = {}};
    for (std::size_t r = 0; r < table.rows.size(); ++r) {
      if (table.text(r, "run") != run.name()) continue;
      curve.frozen_at = step_at(table, r, "frozen_at");
      const bool looked = !table.text(r, "held_out_loss").empty();
      curve.points.push_back(
          {step_at(table, r, "step"), table.number(r, "loss"),
           looked ? table.number(r, "held_out_loss") : std::numeric_limits<double>::quiet_NaN()});
    }
    if (!curve.points.empty()) curves.push_back(std::move(curve));
  }
  return curves;
}

double final_loss(const Curve& curve, std::size_t points) {
  LAMBCAST_CHECK(!curve.points.empty(), "a curve of no points");
  const std::size_t count = std::min(points, curve.points.size());
  double sum = 0;
  for (std::size_t i = curve.points.size() - count; i < curve.points.size(); ++i)
    sum += curve.points[i].loss;
  return sum / static_cast<double>(count);
}

}  // namespace lambcast::convergence
