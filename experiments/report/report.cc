#include "experiments/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>

#include "experiments/report/figure.h"
#include "experiments/report/gnuplot.h"
#include "experiments/report/page.h"
#include "experiments/report/palette.h"
#include "experiments/report/verdict.h"
#include "sim/base/error.h"

namespace fs = std::filesystem;

namespace lambcast::report {
namespace {

constexpr const char* no_gnuplot =
    "gnuplot is not installed, so the pictures are left out. Install it (Debian, Ubuntu: apt "
    "install gnuplot-nox) and run the report again, or draw plots/*.gp on another machine.";

std::optional<std::string> read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text << std::flush;
  if (!out) throw Error(Exit::failure, fmt::format("cannot write {}", path.string()));
}

std::string read_results(const fs::path& path) {
  const std::optional<std::string> text = read_file(path);
  if (!text) {
    fail_input({path.string(), 0, {}}, "cannot be read", "a folder that a sweep wrote to");
  }
  return *text;
}

// Writes the sources of a figure and draws it. A picture of an earlier report would outlive the
// figure that it belonged to, so it goes first.
Drawing draw(const Figure& figure, const fs::path& folder, bool can_draw, Paths& paths) {
  const auto file = [&](const char* ending) { return folder / (figure.name + ending); };
  for (const char* ending : {".gp", ".dat", ".svg", ".png"}) fs::remove(file(ending));
  if (!figure.left_out.empty()) return {figure, {}};
  write_file(file(".dat"), figure.data);
  write_file(file(".gp"), figure.script);
  paths.plots.insert(paths.plots.end(), {file(".gp"), file(".dat")});
  if (!can_draw) return {figure, {}};
  run_gnuplot(folder, figure.name);
  const std::optional<std::string> svg = read_file(file(".svg"));
  if (!svg || svg->empty()) {
    throw Error(Exit::failure, fmt::format("gnuplot left no {}", file(".svg").string()));
  }
  paths.plots.insert(paths.plots.end(), {file(".svg"), file(".png")});
  return {figure, *svg};
}

}  // namespace

Paths write_report(const fs::path& results_dir) {
  const csv::Table table =
      csv::parse(read_results(results_dir / "results.csv"), (results_dir / "results.csv").string());
  const fs::path manifest_path = results_dir / "manifest.json";
  const std::optional<std::string> manifest = read_file(manifest_path);
  const std::string provenance =
      manifest ? manifest_html(*manifest, manifest_path.string())
               : std::string("<p>There is no manifest.json beside results.csv.</p>");
  const std::vector<Point> points = read_points(table);

  Paths paths;
  const fs::path folder = results_dir / "plots";
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) throw Error(Exit::failure, fmt::format("cannot make {}", folder.string()));
  const bool can_draw = gnuplot_found();
  if (!can_draw) paths.messages.push_back(no_gnuplot);
  std::vector<Drawing> drawings;
  for (const Figure& figure : figures_of(points)) {
    drawings.push_back(draw(figure, folder, can_draw, paths));
    if (!figure.left_out.empty()) {
      paths.messages.push_back(fmt::format("no figure '{}': {}", figure.title, figure.left_out));
    }
  }
  paths.page = results_dir / "report.html";
  write_file(paths.page,
             page_html(table, points, drawings, provenance, can_draw ? "" : no_gnuplot));
  return paths;
}

std::string summary_text(const csv::Table& results) {
  const std::vector<Point> points = read_points(results);
  const Verdict verdict = verdict_of(points);
  std::string text = fmt::format("{}\n", fmt::join(in_words(verdict), "\n"));
  if (verdict.spreads.empty()) return text;
  std::size_t cluster = 7, pair = 9;
  const auto pair_of = [](const Spread& s) {
    return fmt::format("{} / {}", display_name(s.optimizer), display_name(s.baseline));
  };
  for (const Spread& s : verdict.spreads) {
    cluster = std::max(cluster, s.cluster.size());
    pair = std::max(pair, pair_of(s).size());
  }
  text += "\nSpeed-up of the whole run over the plain optimizer:\n";
  text += fmt::format("  {:{}}  {:{}}  {:>6}  {:>6}  {:>6}  {:>6}\n", "cluster", cluster,
                      "optimizer", pair, "points", "least", "median", "most");
  for (const Spread& s : verdict.spreads) {
    text += fmt::format("  {:{}}  {:{}}  {:>6}  {:>6.2f}  {:>6.2f}  {:>6.2f}\n", s.cluster, cluster,
                        pair_of(s), pair, s.count, s.least, s.median, s.most);
  }
  return text;
}

}  // namespace lambcast::report
