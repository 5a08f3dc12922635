#include "experiments/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "experiments/report/answer.h"
#include "experiments/report/figure.h"
#include "experiments/report/page.h"
#include "experiments/report/palette.h"
#include "experiments/report/summary.h"
#include "sim/base/durable_file.h"
#include "sim/base/error.h"
#include "sim/base/file.h"
#include "sim/base/sort_stably.h"

namespace fs = std::filesystem;

namespace lambcast::report {
namespace {

// Beginning of every page that this program writes.
constexpr std::string_view page_mark = "<title>lambcast ";

// Returns the beginning of a file; does not wait if it is a pipe.
std::string beginning_of(const fs::path& path) {
  std::string text(4096, ' ');
  std::ifstream in(path, std::ios::binary);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

}  // namespace

Results read_results(const fs::path& results_dir) {
  // Refuses links, which may lead out of this folder: an error message would show the first line of
  // the file.
  for (const char* name : {"results.csv", "results.sums"}) refuse_link(results_dir / name);
  std::error_code none;
  if (!fs::exists(fs::symlink_status(results_dir / "results.csv", none)))
    fail_input({(results_dir / "results.csv").string(), 0, {}}, "cannot be read",
               "a folder that lambcast sweep --out wrote");
  return read_results(csv::Reader::of_file(results_dir / "results.csv"));
}

void refuse_foreign_page(const fs::path& results_dir) {
  const fs::path page = results_dir / "report.html";
  refuse_link(page);
  std::error_code error;
  const fs::file_status there = fs::status(page, error);
  if (!fs::exists(there)) return;
  if (fs::is_regular_file(there) && beginning_of(page).find(page_mark) != std::string::npos) return;
  fail_input({page.string(), 0, {}}, "is not a page of lambcast and is not overwritten",
             "another folder, or move it away");
}

Paths write_report(const Results& results, const fs::path& results_dir,
                   const DrawingLimits& limits) {
  refuse_foreign_page(results_dir);
  const fs::path manifest = results_dir / "manifest.json";
  refuse_link(manifest);
  if (fs::exists(manifest) && !fs::is_regular_file(manifest))
    fail_input({manifest.string(), 0, {}}, "is not a regular file");
  const bool known = fs::exists(manifest);
  const std::string said = known ? read_file(manifest.string()) : std::string();
  PageFacts facts;
  facts.provenance = known ? manifest_html(said, manifest.string())
                           : "<p>There is not a manifest.json beside results.csv.</p>";
  facts.swept = swept_keys(said);
  facts.study = study_name(said);
  Paths paths;
  draw(figures_of(results.points, results.summary.thinning), results_dir, paths, limits);
  if (paths.stopped) return paths;
  for (const fs::path& plot : paths.plots)
    if (plot.extension() != ".dat" && plot.extension() != ".gp")
      facts.plots.push_back(plot.filename().string());
  paths.page = results_dir / "report.html";
  replace_file(paths.page, page_html(results, facts));
  return paths;
}

namespace {

std::string spread_table(const std::vector<Spread>& spreads) {
  std::size_t cluster = 7, pair = 9;
  const auto pair_of = [](const Spread& s) {
    return fmt::format("{} / {}", display_name(s.optimizer), display_name(s.baseline));
  };
  for (const Spread& s : spreads) {
    cluster = std::max(cluster, s.cluster.size());
    pair = std::max(pair, pair_of(s).size());
  }
  std::string text = fmt::format("  {:{}}  {:{}}  {:>6}  {:>6}  {:>6}  {:>6}\n", "cluster", cluster,
                                 "optimizer", pair, "points", "least", "median", "most");
  for (const Spread& s : spreads)
    text += fmt::format("  {:{}}  {:{}}  {:>6}  {:>6.2f}  {:>6.2f}  {:>6.2f}\n", s.cluster, cluster,
                        pair_of(s), pair, s.count, s.least, s.median, s.most);
  return text;
}

// Returns the rows with the largest medians of each cluster, or all rows if they fit a screen.
std::vector<Spread> best_spreads(const std::vector<Spread>& spreads) {
  constexpr std::size_t most = 9;
  std::map<std::string, std::size_t> shown;
  for (const Spread& s : spreads) shown[s.cluster] = 0;
  if (spreads.size() <= most) return spreads;
  std::vector<Spread> best = spreads;
  sort_stably(best, std::ranges::greater(), &Spread::median);
  std::erase_if(best, [&](const Spread& s) {
    return ++shown[s.cluster] > std::max<std::size_t>(1, most / shown.size());
  });
  sort_stably(best, {}, &Spread::cluster);
  return best;
}

}  // namespace

std::string summary_screen(const Results& results, const std::string& more) {
  const Summary& summary = results.summary;
  const std::vector<std::string> all = in_words(summary), brief = in_brief(summary);
  std::string text =
      fmt::format("{}\n{}\n", answer_of(results, summary).headline, fmt::join(brief, "\n"));
  const std::vector<Spread> best = best_spreads(summary.spreads);
  if (!best.empty())
    text += fmt::format("\nSpeed-up of the whole run over the plain optimizer{}:\n{}",
                        best.size() < summary.spreads.size() ? ", the best of each cluster" : "",
                        spread_table(best));
  if (best.size() < summary.spreads.size())
    return text + fmt::format("{} more rows and {} more sentences: {}\n",
                              summary.spreads.size() - best.size(), all.size() - brief.size(),
                              more);
  if (brief.size() < all.size())
    text += fmt::format("{} more sentences: {}\n", all.size() - brief.size(), more);
  return text;
}

std::string summary_text(const Results& results) {
  const Summary& summary = results.summary;
  std::string text = fmt::format("{}\n{}\n", answer_of(results, summary).headline,
                                 fmt::join(in_words(summary), "\n"));
  if (summary.spreads.empty()) return text;
  return text + "\nSpeed-up of the whole run over the plain optimizer:\n" +
         spread_table(summary.spreads);
}

}  // namespace lambcast::report
