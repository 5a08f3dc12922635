// Points over two axes, in one or more panels, with reference lines. All figures of the validation
// are drawn this way, for gnuplot and for the page. Independent of the meaning of the numbers.
#pragma once

#include <string>
#include <vector>

#include "experiments/report/gnuplot.h"
#include "experiments/report/palette.h"

namespace lambcast {

struct AxisTick {
  double place;
  std::string text;
};

struct ScatterAxis {
  std::string label;
  bool logarithmic = true;
  double low = 1, high = 10;
  std::vector<AxisTick> ticks;
  std::string unit = {};  // unit of a value, shown at the pointer
  bool ratio = false;     // ratio to a measurement, shown at the pointer as an error in percent
};

struct Dot {
  double x, y;
  std::string name;  // for readers of the data file; also shown at the pointer
};

// The points of one look; later groups are drawn on top.
struct DotGroup {
  std::string name;
  report::Look look;
  std::vector<Dot> dots;
};

// A straight line between two points of the panel, cut at its border, or the rectangle between two
// corners. Drawn behind the dots.
struct Guide {
  enum class Kind { line, dashes, area };
  double x1, y1, x2, y2;
  Kind kind = Kind::line;
};

struct ScatterNote {
  double x, y;
  std::string text;
};

struct ScatterPanel {
  std::string title;
  ScatterAxis x, y;
  std::vector<DotGroup> groups;
  std::vector<Guide> guides;
  std::vector<ScatterNote> notes;
};

struct ScatterChart {
  std::string name, title;
  int columns = 1;
  int panel_px = 310;  // height
  int left_px = 94;    // space for the labels of the y axis
  double marks = 1;    // factor of the size of all marks
  std::vector<ScatterPanel> panels;
  std::vector<report::LegendEntry> legend;
  std::vector<std::string> notes;  // comment lines of the data file
};

// Returns the blocks (gnuplot's `index`) panel by panel: guides, then groups; empty ones are left
// out.
std::string scatter_data(const ScatterChart& chart);
std::string scatter_script(const ScatterChart& chart);
// Returns the chart as JSON for the page (experiments/report/page/chart.js).
std::string scatter_page_chart(const ScatterChart& chart);

}  // namespace lambcast
