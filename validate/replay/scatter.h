// Points over two axes, in one or more panels, with reference lines: the drawing of all figures of
// the validation, for gnuplot and for the page. Pure text, without meaning of the numbers.
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
  std::string unit = {};  // of a value, shown at the pointer
  bool ratio = false;     // to something measured: said as an error in percent there
};

struct Dot {
  double x, y;
  std::string name;  // for readers of the data file, and shown at the pointer
};

// The points of one look; those of later groups lie on top.
struct DotGroup {
  std::string name;
  report::Look look;
  std::vector<Dot> dots;
};

// A straight line between two points of the panel, cut where it leaves it, or the rectangle between
// two corners; behind the dots.
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
  int left_px = 94;    // room for the labels of the y axis
  double marks = 1;    // factor of the size of all marks
  std::vector<ScatterPanel> panels;
  std::vector<report::LegendEntry> legend;
  std::vector<std::string> notes;  // comment lines of the data file
};

// Blocks (gnuplot's `index`) panel by panel: its guides, then its groups, without empty ones.
std::string scatter_data(const ScatterChart& chart);
std::string scatter_script(const ScatterChart& chart);
// The same as JSON for the page (experiments/report/page/chart.js).
std::string scatter_page_chart(const ScatterChart& chart);

}  // namespace lambcast
