// Figures on disk: every report writes the sources and pictures of its figures in the same way.
//
//   DIR/plots/NAME.gp, NAME.dat    always written; `cd DIR/plots && gnuplot NAME.gp` redraws them
//   DIR/plots/NAME.svg, NAME.png   drawn by gnuplot if it is installed
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/report/gnuplot.h"

namespace lambcast::report {

// A figure before it is drawn: the data, the script that draws it, its title and caption. If the
// results do not allow the figure, it has the reason instead. The pictures are for papers and
// slides; a page draws its own.
struct Figure {
  std::string name;      // file stem: name.gp, name.dat, name.svg, name.png
  std::string title;     // describes what is shown
  std::string caption;   // the slice, and an explanation of the figure
  std::string data;      // contents of name.dat
  std::string script;    // contents of name.gp
  std::string left_out;  // why there is no figure; data and script are then empty
  // The figure for a page (page/chart.js), if the page draws it: JSON that cannot end its script
  // element.
  std::string chart = {};
};

struct Paths {
  std::filesystem::path page;
  std::vector<std::filesystem::path> plots;  // every file under plots/, in the order of the figures
  // messages to the user on stderr: what was left out, and why
  std::vector<std::string> messages;
  // DrawingLimits::stopped ended the drawing, so there is no page
  bool stopped = false;
};

// Returns a hint on installing gnuplot if it is missing, else an empty text.
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
