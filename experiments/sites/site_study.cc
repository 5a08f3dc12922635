#include "experiments/sites/site_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "embedded/site_study_files.h"
#include "sim/base/csv.h"
#include "topologies/sites/outer_round.h"

namespace lambcast {
namespace {

// Columns of a row; an empty cell does not apply.
class StudyRow {
 public:
  StudyRow(const csv::Table& table, std::size_t row) : table_(table), row_(row) {}
  const std::string& text(std::string_view title) const { return table_.text(row_, title); }
  std::optional<double> find(std::string_view title) const {
    return text(title).empty() ? std::nullopt : std::optional(table_.number(row_, title));
  }
  double number(std::string_view title) const { return table_.number(row_, title); }
  int whole(std::string_view title) const { return static_cast<int>(number(title)); }

 private:
  const csv::Table& table_;
  std::size_t row_;
};

// Equal sites whose links are the row's, slower by `grid`.
SiteGroup sites_of_row(const StudyRow& row, double grid) {
  SiteGroup group;
  group.via = row.text("via") == "store" ? Via::store : Via::direct;
  Site site;
  site.link.up.value = Bandwidth(row.number("up_gbit") * 1e9 / 8 / grid);
  site.link.down.value = Bandwidth(row.number("down_gbit") * 1e9 / 8 / grid);
  site.link.rtt.value = Duration::seconds(row.number("rtt_ms") * 1e-3);
  // The sources give the rate of the link, not of a connection.
  site.link.window.value = Bytes(1e15);
  group.sites.assign(static_cast<std::size_t>(row.whole("sites")), site);
  return group;
}

OuterExchange exchange_of_row(const StudyRow& row) {
  OuterExchange exchange;
  exchange.weights = row.number("weights");
  exchange.codec = outer_codec(row.text("codec"), "codec");
  exchange.every = row.whole("every");
  exchange.fragments = row.whole("fragments");
  exchange.delay = row.whole("delay");
  if (row.find("layers")) exchange.layers = row.whole("layers");
  return exchange;
}

double forecast_row(const StudyRow& row, double grid) {
  if (const auto transfer = row.find("transfer_s"))
    return *transfer / (*transfer + row.number("every") * row.number("step_s"));
  const SiteGroup group = sites_of_row(row, grid);
  const std::vector<Duration> steps(group.sites.size(),
                                    Duration::seconds(row.find("step_s").value_or(1)));
  const OuterRound round = outer_round(group, steps, exchange_of_row(row));
  return row.find("published_s") ? round.transfer.s() : 1 - round.utilisation;
}

// The value that a share of all values lies at or below.
double quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(std::lround(share * last))];
}

std::string errors_line(const std::string& name, const std::vector<StudyFigure>& figures) {
  std::vector<double> plain, beyond;
  for (const StudyFigure& figure : figures) {
    plain.push_back(100 * figure.error());
    beyond.push_back(100 * figure.error_beyond_grid());
  }
  return fmt::format("{:<24} {:>7} {:>8.1f} {:>8.1f} {:>8.1f} {:>8.1f}\n", name, figures.size(),
                     quantile(plain, 0.5), quantile(plain, 0.9), quantile(beyond, 0.5),
                     quantile(beyond, 0.9));
}

std::string value_cell(const StudyFigure& figure, double value) {
  return figure.in_seconds ? fmt::format("{:.1f} s", value) : fmt::format("{:.2f} %", 100 * value);
}

}  // namespace

double StudyFigure::error() const { return std::abs(forecast / published - 1); }

double StudyFigure::error_beyond_grid() const {
  if (forecast <= published && published <= forecast_high) return 0;
  return std::min(std::abs(forecast - published), std::abs(forecast_high - published)) / published;
}

std::vector<StudyFigure> site_study() {
  const EmbeddedFile& file = site_study_files().front();
  const csv::Table table = csv::parse(file.text, file.name);
  std::vector<StudyFigure> figures;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const StudyRow row(table, i);
    StudyFigure figure{
        .study = row.text("study"), .what = row.text("what"), .source = row.text("source")};
    figure.in_seconds = row.find("published_s").has_value();
    figure.published = row.number(figure.in_seconds ? "published_s" : "published_share");
    figure.forecast = forecast_row(row, 1);
    figure.forecast_high = forecast_row(row, row.number("grid"));
    figures.push_back(std::move(figure));
  }
  return figures;
}

std::string site_study_table(const std::vector<StudyFigure>& figures) {
  std::string out = fmt::format("{:<50} {:>10} {:>10} {:>7}\n", "time that communication costs",
                                "published", "forecast", "error");
  std::vector<std::string> studies;
  std::string source;
  for (const StudyFigure& figure : figures) {
    if (figure.source != source) {
      source = figure.source;
      out += fmt::format("\n{}, {}\n", figure.study, source);
    }
    out += fmt::format("  {:<48} {:>10} {:>10} {:>5.0f} %\n", figure.what,
                       value_cell(figure, figure.published), value_cell(figure, figure.forecast),
                       100 * figure.error());
    if (studies.empty() || studies.back() != figure.study) studies.push_back(figure.study);
  }
  out += fmt::format("\n{:<24} {:>7} {:>17} {:>17}\n{:<24} {:>7} {:>8} {:>8} {:>8} {:>8}\n", "", "",
                     "error (%)", "beyond grid (%)", "study", "figures", "median", "p90", "median",
                     "p90");
  for (const std::string& study : studies) {
    std::vector<StudyFigure> of_study;
    std::ranges::copy_if(figures, std::back_inserter(of_study),
                         [&](const StudyFigure& figure) { return figure.study == study; });
    out += errors_line(study, of_study);
  }
  return out + errors_line("all", figures);
}

}  // namespace lambcast
