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

// Quotes a text for a gnuplot script. Single quotes keep gnuplot from running back-quoted text in
// names. Quotes inside a name are put in double quotes and joined on, since '' stands for a quote
// only inside such a text. gnuplot's SVG is invalid XML if it contains ]]>, so that gets a space.
std::string script_text(std::string_view text);

// Quotes a text for a field of a data file.
std::string data_text(std::string_view text);

// Returns one comment line for scripts and data files.
std::string comment(std::string_view text);

// Formats a number for a data file; '?' if it is absent.
std::string data_number(double value);

// Returns 1, 2, 5, 10, ... from `low` to `high`, both above zero; denser if those are fewer than
// three.
std::vector<double> round_places(double low, double high);

// Formats tick marks as ("8" 8, "16" 16, ...). On a logarithmic axis it leaves out the closest
// ones, so that at most `most` remain.
std::string log_ticks(const std::vector<double>& places, int most);

// Screen coordinates of one panel of a figure, from 0 to 1.
struct Frame {
  double left, right, bottom, top;
};
std::string margins(const Frame& frame);

// Places the y label of the next plot at a fixed position; gnuplot's own moves with the width of
// tick labels.
std::string y_label(std::string_view text, double screen_x);

// Returns the title of a figure as a gnuplot label. A long one takes two lines in smaller letters,
// broken after a comma.
std::string title_label(std::string_view title, int width, int height);

// Returns a whole script that draws `body` as NAME.svg and NAME.png, `width` x `height` SVG pixels.
// The two terminals scale marks and letters differently; `body` can correct that with the variables
// `mark` (factor of a point size) and `up` (offset of an x label).
std::string script(std::string_view name, std::string_view title, int width, int height,
                   std::string_view body);

// One entry of a legend, with the look of its series in the figure.
struct LegendEntry {
  enum class Mark { line, dashes, point, box };
  std::string name;
  Mark mark = Mark::box;
  std::string_view colour;
  int point = 0;
  double size = 1;
};
// Returns the height in pixels of a legend at the foot of a figure `width` pixels wide.
int legend_height(const std::vector<LegendEntry>& entries, int width);
// Returns commands that add the legend to the next plot, at the foot of a figure of that size.
std::string legend(const std::vector<LegendEntry>& entries, int width, int height);

bool gnuplot_found();

// Time limit of one picture, and a way to stop it.
struct DrawingLimits {
  double picture_s = 60;
  std::function<bool()> stopped = {};  // polled several times per second; may be empty
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
