#include "experiments/report/drawing.h"

#include <fmt/format.h>

#include "experiments/report/gnuplot.h"
#include "sim/base/durable_file.h"
#include "sim/base/error.h"
#include "sim/base/temporary_folder.h"

namespace fs = std::filesystem;

namespace lambcast::report {
namespace {

struct Plots {
  fs::path folder;
  const DrawingLimits& limits;
  bool can_draw;
};

// Removes the picture of an earlier report first, since it would no longer match its figure.
void draw_one(const Figure& figure, Plots& plots, Paths& paths) {
  const auto file = [&](const char* ending) { return plots.folder / (figure.name + ending); };
  for (const char* ending : {".gp", ".dat", ".svg", ".png"}) remove_file(file(ending));
  if (!figure.left_out.empty()) {
    paths.messages.push_back(fmt::format("no figure '{}': {}", figure.title, figure.left_out));
    return;
  }
  replace_file(file(".dat"), figure.data);
  replace_file(file(".gp"), figure.script);
  paths.plots.insert(paths.plots.end(), {file(".gp"), file(".dat")});
  if (!plots.can_draw) return;
  const GnuplotRun run = run_gnuplot(plots.folder, figure.name, plots.limits);
  paths.stopped = run.end == GnuplotRun::End::stopped;
  if (run.end == GnuplotRun::End::too_long) plots.can_draw = false;
  std::error_code none;
  const auto size = fs::file_size(file(".svg"), none);
  if (run.end == GnuplotRun::End::done && !none && size > 0 && fs::exists(file(".png"))) {
    paths.plots.insert(paths.plots.end(), {file(".svg"), file(".png")});
    return;
  }
  // Removes the pictures that a failed gnuplot left behind.
  for (const char* ending : {".svg", ".png"}) remove_file(file(ending));
  paths.messages.push_back(fmt::format("no picture '{}': {}", figure.title,
                                       run.message.empty() ? "gnuplot left none" : run.message));
}

}  // namespace

std::string missing_gnuplot() {
  if (gnuplot_found()) return {};
  return "gnuplot is not installed, so the pictures are left out. Install it (Debian, Ubuntu: apt "
         "install gnuplot-nox) and run this again, or draw plots/*.gp on another machine.";
}

void draw(const std::vector<Figure>& figures, const fs::path& results_dir, Paths& paths,
          const DrawingLimits& limits) {
  const fs::path folder = results_dir / "plots";
  refuse_link(folder);
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) throw Error(Exit::failure, fmt::format("cannot make {}", folder.string()));
  const std::string notice = missing_gnuplot();
  if (!notice.empty()) paths.messages.push_back(notice);
  Plots plots{folder, limits, notice.empty()};
  for (const Figure& figure : figures) {
    if (paths.stopped) break;
    draw_one(figure, plots, paths);
  }
}

std::string picture_of(const Figure& figure, const std::string& ending) {
  if (!figure.left_out.empty())
    throw Error(Exit::failure, fmt::format("no picture: {}", figure.left_out));
  if (!gnuplot_found())
    throw Error(Exit::missing,
                "no picture: gnuplot is not installed (Debian, Ubuntu: apt install gnuplot-nox)");
  const TemporaryFolder folder;
  folder.file(figure.name + ".dat", figure.data);
  folder.file(figure.name + ".gp", figure.script);
  const GnuplotRun run = run_gnuplot(folder.path(), figure.name, {});
  std::string picture = text_of(folder.path() / (figure.name + ending));
  if (run.end != GnuplotRun::End::done || picture.empty())
    throw Error(
        Exit::failure,
        fmt::format("no picture: {}", run.message.empty() ? "gnuplot left none" : run.message));
  return picture;
}

}  // namespace lambcast::report
