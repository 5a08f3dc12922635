#include "experiments/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "experiments/report/figure.h"
#include "experiments/report/page.h"
#include "experiments/report/palette.h"
#include "experiments/report/verdict.h"
#include "sim/base/error.h"

namespace fs = std::filesystem;

namespace lambcast::report {
namespace {

std::string read_results(const fs::path& path) {
  const std::optional<std::string> text = find_text(path);
  if (!text) {
    fail_input({path.string(), 0, {}}, "cannot be read", "a folder that a sweep wrote to");
  }
  return *text;
}

}  // namespace

Paths write_report(const fs::path& results_dir) {
  const csv::Table table =
      csv::parse(read_results(results_dir / "results.csv"), (results_dir / "results.csv").string());
  const fs::path manifest_path = results_dir / "manifest.json";
  const std::optional<std::string> manifest = find_text(manifest_path);
  const std::string provenance =
      manifest ? manifest_html(*manifest, manifest_path.string())
               : std::string("<p>There is no manifest.json beside results.csv.</p>");
  const std::vector<Point> points = read_points(table);

  Paths paths;
  const std::vector<Drawing> drawings = draw(figures_of(points), results_dir, paths);
  paths.page = results_dir / "report.html";
  write_file(paths.page, page_html(table, points, drawings, provenance, missing_gnuplot()));
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
