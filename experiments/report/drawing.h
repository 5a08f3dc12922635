// Figures on disk: every report writes the sources of its figures and their pictures the same way.
//
//   DIR/plots/NAME.gp, NAME.dat    always; `cd DIR/plots && gnuplot NAME.gp` draws again
//   DIR/plots/NAME.svg, NAME.png   drawn by gnuplot where it is installed
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/report/gnuplot.h"

namespace lambcast::report {

// A figure before it is drawn: the data, the script that draws it, and its title and caption. A
// figure that the results do not allow has the reason instead. The pictures are for papers and
// slides; a page draws its own.
struct Figure {
  std::string name;      // file stem: name.gp, name.dat, name.svg, name.png
  std::string title;     // what is shown, in words
  std::string caption;   // the slice, and how to read the figure
  std::string data;      // contents of name.dat
  std::string script;    // contents of name.gp
  std::string left_out;  // why there is no figure; data and script are then empty
  // The same for a page (page/chart.js), if the page draws it: JSON that cannot end its script
  // element.
  std::string chart = {};
};

struct Paths {
  std::filesystem::path page;
  std::vector<std::filesystem::path> plots;  // every file under plots/, in the order of the figures
  std::vector<std::string> messages;         // for people, on stderr: what was left out, and why
  bool stopped = false;                      // by DrawingLimits::stopped: there is no page
};

// Returns what to install if gnuplot is missing; else an empty text.
std::string missing_gnuplot();

// Writes and draws the figures into results_dir/plots, and adds files and messages to `paths`.
// Throws Error (failure) if a file cannot be written. A missing or failing gnuplot is no error: the
// sources are written, and a message states so. A gnuplot that hangs is not tried again.
void draw(const std::vector<Figure>& figures, const std::filesystem::path& results_dir,
          Paths& paths, const DrawingLimits& limits = {});

// Returns the bytes of one picture; `ending` is .svg or .png. Throws Error: missing if gnuplot is
// not installed, failure if it draws none.
std::string picture_of(const Figure& figure, const std::string& ending);

}  // namespace lambcast::report
