#include "experiments/report/drawing.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>

#include "experiments/report/gnuplot.h"
#include "sim/base/error.h"

namespace fs = std::filesystem;

namespace lambcast::report {
namespace {

// A picture of an earlier report would outlive the figure that it belonged to, so it goes first.
Drawing draw_one(const Figure& figure, const fs::path& folder, bool can_draw, Paths& paths) {
  const auto file = [&](const char* ending) { return folder / (figure.name + ending); };
  for (const char* ending : {".gp", ".dat", ".svg", ".png"}) fs::remove(file(ending));
  if (!figure.left_out.empty()) {
    paths.messages.push_back(fmt::format("no figure '{}': {}", figure.title, figure.left_out));
    return {figure, {}};
  }
  write_file(file(".dat"), figure.data);
  write_file(file(".gp"), figure.script);
  paths.plots.insert(paths.plots.end(), {file(".gp"), file(".dat")});
  if (!can_draw) return {figure, {}};
  run_gnuplot(folder, figure.name);
  const std::optional<std::string> svg = find_text(file(".svg"));
  if (!svg || svg->empty()) {
    throw Error(Exit::failure, fmt::format("gnuplot left no {}", file(".svg").string()));
  }
  paths.plots.insert(paths.plots.end(), {file(".svg"), file(".png")});
  return {figure, *svg};
}

}  // namespace

std::string missing_gnuplot() {
  if (gnuplot_found()) return {};
  return "gnuplot is not installed, so the pictures are left out. Install it (Debian, Ubuntu: apt "
         "install gnuplot-nox) and run this again, or draw plots/*.gp on another machine.";
}

std::vector<Drawing> draw(const std::vector<Figure>& figures, const fs::path& results_dir,
                          Paths& paths) {
  const fs::path folder = results_dir / "plots";
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) throw Error(Exit::failure, fmt::format("cannot make {}", folder.string()));
  const std::string notice = missing_gnuplot();
  if (!notice.empty()) paths.messages.push_back(notice);
  std::vector<Drawing> drawings;
  for (const Figure& figure : figures) {
    drawings.push_back(draw_one(figure, folder, notice.empty(), paths));
  }
  return drawings;
}

std::optional<std::string> find_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text << std::flush;
  if (!out) throw Error(Exit::failure, fmt::format("cannot write {}", path.string()));
}

}  // namespace lambcast::report
