#include "validate/replay/page.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/report/html.h"
#include "sim/base/durable_file.h"
#include "sim/base/error.h"
#include "validate/replay/figures.h"

namespace lambcast {
namespace {

using report::escaped;

// Outcome as a sign and a word, not only as a colour.
std::string_view outcome(bool within) { return within ? "\u2713 met" : "\u2717 MISSED"; }

std::string text_cell(std::string_view text) { return "<td>" + escaped(text); }
std::string number_cell(std::string_view text) { return fmt::format("<td class=n>{}", text); }

std::string row(bool within, const std::vector<std::string>& cells) {
  return fmt::format("<tr{}>{}\n", within ? "" : " class=missed", fmt::join(cells, ""));
}

std::string section(std::string_view heading, std::string_view before,
                    const std::vector<std::string>& headings, const std::string& rows) {
  std::string text = fmt::format(
      "<section><h2>{}</h2>\n<p>{}</p>\n<div class=scroll><table class=listing><thead><tr>",
      heading, before);
  for (const std::string& head : headings) text += "<th>" + escaped(head);
  return text + "</thead><tbody>\n" + rows + "</tbody></table></div></section>\n";
}

std::string training_limits(const ReplaySummary& training) {
  double least = training.results.front().of.max_error, most = least;
  int within = 0;
  for (const ReplayResult& result : training.results) {
    least = std::min(least, result.of.max_error);
    most = std::max(most, result.of.max_error);
    if (result.within) ++within;
  }
  const int count = static_cast<int>(training.results.size());
  const bool median_within = training.median_error <= max_median_error;
  const std::string number = fmt::format("{}", count);
  return row(median_within,
             {text_cell("training, median of all figures"), text_cell(outcome(median_within)),
              "<td>", number_cell(number), number_cell(percent(training.median_error)),
              number_cell(percent(max_median_error)), "<td class=n>", "<td class=n>"}) +
         row(within == count,
             {text_cell(fmt::format("training, each figure: {} within its own", within)),
              text_cell(outcome(within == count)), "<td>", number_cell(number), "<td class=n>",
              "<td class=n>", number_cell(percent(training.worst_error) + " worst"),
              number_cell(least == most ? percent(most)
                                        : percent(least) + " to " + percent(most))});
}

std::string limits_section(const Validation& validation) {
  std::string rows;
  if (validation.training) rows += training_limits(*validation.training);
  if (validation.collectives) {
    for (const LimitResult& checked : validation.collectives->limits) {
      const auto max_p90 = checked.of.max_p90;
      rows +=
          row(checked.within,
              {text_cell(fmt::format("{}, {}", checked.cluster, range_text(checked.of))),
               text_cell(outcome(checked.within)), text_cell(checked.of.role),
               number_cell(fmt::format("{}", checked.rows)), number_cell(percent(checked.median)),
               number_cell(percent(checked.of.max_median)), number_cell(percent(checked.p90)),
               number_cell(max_p90 ? percent(*max_p90) : "")});
    }
  }
  if (rows.empty())
    return "<section><h2>Limits</h2>\n<p>None was asked for (--max-error).</p></section>\n";
  return section(
      "Limits",
      "Errors are |forecast / measured - 1|. A limit with a role holds the tables of "
      "that role alone. Past any of them <code>lambcast validate</code> exits with 3.",
      {"what is held", "outcome", "role", "rows", "median", "limit", "90th percentile", "limit"},
      rows);
}

std::string training_section(const ReplaySummary& training) {
  std::string rows;
  for (const ReplayResult& result : training.results) {
    const auto cluster = result.of.what_if.find("cluster");
    rows += row(result.within,
                {text_cell(table_name(result.of.table)), text_cell(result.of.id),
                 text_cell(cluster == result.of.what_if.end() ? "" : cluster->second),
                 text_cell(result.of.fitted ? "fitted" : "unseen"),
                 text_cell(result.of.quantity == "step_time_ms" ? "ms" : "samples/s"),
                 number_cell(fmt::format("{:.1f}", result.of.measured)),
                 number_cell(fmt::format("{:.1f}", result.forecast)),
                 number_cell(fmt::format("{:.1f} to {:.1f}", result.low, result.high)),
                 number_cell(signed_percent(result.error)),
                 number_cell(percent(result.of.max_error)), text_cell(outcome(result.within))});
  }
  return section("Training figures", "The same rows with full precision: training.csv.",
                 {"table", "case", "cluster", "role", "unit", "measured", "forecast", "interval",
                  "error", "limit", "outcome"},
                 rows);
}

std::string sources_section(const SourceSummary& sources) {
  std::string rows;
  const auto add = [&](const SourceScore& source, const std::string& what, const ErrorScore& score,
                       const std::optional<ErrorLimit>& limit) {
    if (score.rows + score.refused == 0) return;
    const auto shown = [&](double share) {
      return number_cell(score.rows > 0 ? percent(share) : std::string());
    };
    rows +=
        row(source.within,
            {text_cell(source.source), text_cell(what), number_cell(fmt::format("{}", score.rows)),
             number_cell(fmt::format("{}", score.refused)), shown(score.median),
             number_cell(limit ? percent(limit->median) : ""), shown(score.p90),
             number_cell(limit ? percent(limit->p90) : ""),
             number_cell(score.with_interval > 0
                             ? fmt::format("{} of {}", score.inside, score.with_interval)
                             : std::string()),
             number_cell(score.with_interval > 0 ? fmt::format("{:.2f}", score.interval_score)
                                                 : std::string())});
  };
  for (const SourceScore& source : sources.sources) {
    add(source, "time", source.time, source.time_limit);
    add(source, "memory", source.memory, source.memory_limit);
  }
  return section("Tables of training runs",
                 "Whole tables of measured runs, each read by one mapping. A row that cannot be "
                 "forecast says why in sources.csv, where all rows are. The score of intervals is "
                 "their width and 20 times what lies outside, in logarithms: lower is better.",
                 {"source", "of", "rows", "no forecast", "median", "limit", "90th percentile",
                  "limit", "inside", "score"},
                 rows);
}

// Returns a cell for each size band with its median, empty if the band has no row.
std::vector<std::string> band_cells(const std::vector<validate::BandError>& bands) {
  std::vector<std::string> cells;
  for (const std::string_view name : band_names) {
    const auto found =
        std::find_if(bands.begin(), bands.end(), [&](const auto& of) { return of.band == name; });
    cells.push_back(number_cell(found == bands.end() ? "" : percent(found->median)));
  }
  return cells;
}

std::string role_rows(const CollectiveSummary& collectives) {
  std::string rows;
  for (const RoleErrors& of : errors_by_role(collectives)) {
    std::vector<std::string> cells = {text_cell(of.role.empty() ? "all" : of.role),
                                      number_cell(fmt::format("{}", of.tables)),
                                      number_cell(fmt::format("{}", of.rows))};
    for (std::string& cell : band_cells(of.bands)) cells.push_back(std::move(cell));
    cells.push_back(number_cell(percent(of.median)));
    rows += row(true, cells);
  }
  return rows;
}

std::string bands_section(const CollectiveSummary& collectives) {
  return fmt::format(
      "<section><h2>Collectives: median error by size</h2>\n<table class=sums><thead><tr><th>tables"
      "<th>number<th>rows<th>{}<th>all sizes</thead><tbody>\n{}</tbody></table></section>\n",
      fmt::join(band_names, "<th>"), role_rows(collectives));
}

std::string collectives_section(const CollectiveSummary& collectives) {
  std::string rows;
  for (const CollectiveResult& result : collectives.results) {
    const validate::Measurement& measured = result.of.measured;
    std::vector<std::string> cells = {text_cell(table_name(result.of.name)),
                                      text_cell(role_of(result.of))};
    for (std::string& cell : band_cells(result.bands)) cells.push_back(std::move(cell));
    cells.insert(
        cells.end(),
        {number_cell(percent(result.median_error)),
         number_cell(result.nccl_median ? percent(*result.nccl_median) : ""),
         text_cell(result.of.cluster), text_cell(result.fabric),
         text_cell(name_of(measured.operation)), number_cell(fmt::format("{}", measured.ranks)),
         number_cell(measured.nodes ? fmt::format("{}", *measured.nodes) : ""),
         number_cell(fmt::format("{}", result.forecast.size()))});
    rows += row(true, cells);
  }
  std::vector<std::string> headings = {"table", "role"};
  headings.insert(headings.end(), band_names.begin(), band_names.end());
  headings.insert(headings.end(), {"all sizes", "NCCL's own", "cluster", "fabric", "operation",
                                   "ranks", "nodes", "rows"});
  return section("Collective tables",
                 "Medians of |forecast / measured - 1| by size. NCCL's own model, uncalibrated, "
                 "covers neither MPI nor all_to_all. Every row: collectives.csv.",
                 headings, rows);
}

}  // namespace

std::string validation_page(const Validation& validation,
                            const std::vector<report::Figure>& figures) {
  std::string text =
      report::page_start("lambcast validation", "lambcast: forecast against measurement") +
      report::verdict_box(verdict_of(validation));
  text += limits_section(validation);
  if (validation.collectives) text += bands_section(*validation.collectives);
  text += report::figure_sections(figures);
  if (validation.training) text += training_section(*validation.training);
  if (validation.sources) text += sources_section(*validation.sources);
  if (validation.collectives) text += collectives_section(*validation.collectives);
  return text + report::page_end();
}

report::Paths write_validation(const Validation& validation, const std::filesystem::path& dir) {
  std::error_code failed;
  std::filesystem::create_directories(dir, failed);
  if (failed) fail_input({dir.string(), 0, {}}, failed.message());
  if (validation.training) replace_file(dir / "training.csv", replay_csv(*validation.training));
  if (validation.collectives)
    replace_file(dir / "collectives.csv", collective_replay_csv(*validation.collectives));
  if (validation.sources)
    replace_file(dir / "sources.csv", source_results_csv(*validation.sources));
  report::Paths paths;
  const std::vector<report::Figure> figures = validation_figures(validation);
  report::draw(figures, dir, paths);
  paths.page = dir / "report.html";
  replace_file(paths.page, validation_page(validation, figures));
  return paths;
}

}  // namespace lambcast
