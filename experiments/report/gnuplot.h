// Writes gnuplot scripts with safe quoting, and runs gnuplot. A figure is a script and the data it
// reads. Both are kept next to the pictures, so that they can be changed and drawn again: `gnuplot
// throughput.gp`.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lambcast::report {

constexpr int figure_width_px = 820;

// 'text' for a gnuplot script. Single quotes keep gnuplot from running back-quoted text in names;
// the quotes in a name are joined on, since gnuplot takes two of them for one only where they stand
// alone. The SVG of gnuplot is no XML with ]]> in it, so that gets a space.
std::string script_text(std::string_view text);

// "text" for a field of a data file.
std::string data_text(std::string_view text);

// One line that gnuplot skips, for scripts and data files.
std::string comment(std::string_view text);

// A number for a data file; '?' where there is none.
std::string data_number(double value);

// 1, 2, 5, 10, ... from `low` to `high`, both above zero; closer where that gives fewer than three.
std::vector<double> round_places(double low, double high);

// ("8" 8, "16" 16, ...): tick marks at these places; the least distant ones are left out so that
// at most `most` remain on a logarithmic axis.
std::string log_ticks(const std::vector<double>& places, int most);

// Screen coordinates of one panel of a figure, from 0 to 1.
struct Frame {
  double left, right, bottom, top;
};
std::string margins(const Frame& frame);

// The y label of the next plot at a fixed place; gnuplot's own moves with the width of tick labels.
std::string y_label(std::string_view text, double screen_x);

// The title of a figure as gnuplot's label: a long one takes two lines, broken behind a comma, and
// smaller letters.
std::string title_label(std::string_view title, int width, int height);

// A whole script that draws `body` as NAME.svg and NAME.png, `width` x `height` SVG pixels. The two
// terminals measure marks and letters differently; `body` evens that out with the variables `mark`
// (factor of a point size) and `up` (offset of an x label).
std::string script(std::string_view name, std::string_view title, int width, int height,
                   std::string_view body);

// One entry of a legend, as it looks in the figure.
struct LegendEntry {
  enum class Mark { line, dashes, point, box };
  std::string name;
  Mark mark = Mark::box;
  std::string_view colour;
  int point = 0;
  double size = 1;
};
// Pixels that a legend takes at the foot of a figure `width` pixels wide.
int legend_height(const std::vector<LegendEntry>& entries, int width);
// Commands that add the legend to the next plot, at the foot of a figure of that size.
std::string legend(const std::vector<LegendEntry>& entries, int width, int height);

bool gnuplot_found();

// Time limit of one picture, and a way to stop it.
struct DrawingLimits {
  double picture_s = 60;
  std::function<bool()> stopped = {};  // polled several times a second; may be empty
};

// How a run of gnuplot ended; `message` is for users.
struct GnuplotRun {
  enum class End { done, failed, too_long, stopped };
  End end = End::done;
  std::string message;
};

// Runs NAME.gp in `folder`. A gnuplot that does not end by itself is killed.
GnuplotRun run_gnuplot(const std::filesystem::path& folder, const std::string& name,
                       const DrawingLimits& limits);

}  // namespace lambcast::report
