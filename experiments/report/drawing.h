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

// A figure before anything is drawn: the data, the script that draws it, and what a reader needs to
// know. A figure that the results do not allow says why instead. The pictures are for papers and
// slides: a page draws its own.
struct Figure {
  std::string name;      // file stem: name.gp, name.dat, name.svg, name.png
  std::string title;     // what is shown, in words
  std::string caption;   // the slice, and how to read the figure
  std::string data;      // contents of name.dat
  std::string script;    // contents of name.gp
  std::string left_out;  // why there is no figure; data and script are then empty
  // The same for a page (page/chart.js), where it has it from here: JSON that cannot end the script
  // element it stands in.
  std::string chart = {};
};

struct Paths {
  std::filesystem::path page;
  std::vector<std::filesystem::path> plots;  // every file under plots/, in the order of the figures
  std::vector<std::string> messages;         // for people, on stderr: what was left out, and why
  bool stopped = false;                      // on the way, as the limits asked: there is no page
};

// What to install, where gnuplot is not; else empty.
std::string missing_gnuplot();

// Writes and draws the figures into results_dir/plots, and adds files and messages to `paths`.
// Throws Error (failure) for a file that cannot be written. Gnuplot not being installed, or
// failing, is no error: the sources come out, and a message says so. One that hangs is not tried
// again.
void draw(const std::vector<Figure>& figures, const std::filesystem::path& results_dir,
          Paths& paths, const DrawingLimits& limits = {});

// The bytes of one picture alone, of `ending` .svg or .png. Throws Error: missing where gnuplot is
// not installed, failure where it draws none.
std::string picture_of(const Figure& figure, const std::string& ending);

}  // namespace lambcast::report
