// Line chart over a common x, one panel per cluster, for the figures of throughput, efficiency,
// speed-up and freeze steps. It does not depend on the meaning of the numbers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "experiments/report/palette.h"
#include "experiments/report/point.h"

namespace lambcast::report {

struct Series {
  std::string name;
  Look look;
  bool reference = false;  // drawn as a dashed grey line without marks, such as an ideal
};

struct Panel {
  std::string title;
  std::map<double, std::vector<double>> rows;  // x to one value per series; NaN if absent
  std::map<double, std::vector<double>> low = {}, high = {};  // ends of their intervals, as `rows`

  // Sets the value of a series and the ends of its interval; `count` is the number of series.
  void set(double x, std::size_t series, std::size_t count, double value, double low_end = absent,
           double high_end = absent);
};

struct LineChart {
  std::string name, title;
  std::string x_label, y_label;
  std::string x_column;  // heading in the data file
  bool log_x = true, log_y = false;
  double level = absent;   // a horizontal reference line
  double mark_x = absent;  // a vertical line, with its label
  std::string mark_label;
  std::vector<Series> series;
  std::vector<Panel> panels;
  std::vector<std::string> notes;  // comment lines of the data file
};

// Returns the data: one block per panel (gnuplot's `index`), one row per x, one column per series.
// If there are intervals, two columns per series follow, for their ends.
std::string chart_data(const LineChart& chart);
std::string chart_script(const LineChart& chart);

}  // namespace lambcast::report
