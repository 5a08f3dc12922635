#include "experiments/sites/site_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>

#include "embedded/site_study_files.h"
#include "sim/base/csv.h"
#include "topologies/sites/outer_round.h"

namespace lambcast {
namespace {

// Columns of a row; an empty cell means "does not apply".
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

// Returns equal sites with the links of the row, whose rates are multiplied by `faster`.
SiteGroup sites_of_row(const StudyRow& row, double faster) {
  SiteGroup group;
  group.via = row.text("via") == "store" ? Via::store : Via::direct;
  Site site;
  site.link.up.value = Bandwidth(row.find("up_gbit").value_or(0) * 1e9 / 8 * faster);
  site.link.down.value = Bandwidth(row.find("down_gbit").value_or(0) * 1e9 / 8 * faster);
  site.link.rtt.value = Duration::seconds(row.number("rtt_ms") * 1e-3);
  // The window does not limit a connection, since the sources give the rate of the link.
  site.link.window.value = Bytes(1e15);
  if (const auto mtbf = row.find("mtbf_s")) {
    site.mtbf = {Duration::seconds(*mtbf), {}};
    site.outage.value = Duration::seconds(row.number("outage_s"));
  }
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
  exchange.decoupled = row.text("via") == "syncer";
  if (row.find("layers")) exchange.layers = row.whole("layers");
  return exchange;
}

double forecast_of(const StudyRow& row, const SiteGroup& group, const OuterExchange& exchange) {
  const std::vector<Duration> steps(group.sites.size(),
                                    Duration::seconds(row.find("step_s").value_or(1)));
  const OuterRound round = outer_round(group, steps, exchange);
  return row.find("published_s") ? round.transfer.s() : 1 - round.utilisation;
}

double forecast_row(const StudyRow& row, double faster) {
  if (const auto transfer = row.find("transfer_s"))
    return *transfer / (*transfer + row.number("every") * row.number("step_s"));
  return forecast_of(row, sites_of_row(row, faster), exchange_of_row(row));
}

// Returns the least communication that any program exposes with the row's bytes, links and steps.
// Sites that do not wait overlap it with the whole round; downloads from a store are free.
double least_of_row(const StudyRow& row) {
  if (row.find("transfer_s")) return 0;
  SiteGroup group = sites_of_row(row, row.number("grid"));
  for (Site& site : group.sites)
    if (group.via == Via::store) site.link.down.value = Bandwidth(1e15);
  OuterExchange exchange = exchange_of_row(row);
  if (exchange.delay > 0 || exchange.layers) exchange.delay = exchange.every;
  exchange.layers.reset();
  return forecast_of(row, group, exchange);
}

// Returns the rate up and down at which the row's communication takes the published share.
std::optional<Bandwidth> needed_rate(const StudyRow& row) {
  return bandwidth_for(1 - row.number("published_share"), sites_of_row(row, 1),
                       Duration::seconds(row.number("step_s")), exchange_of_row(row));
}

// Returns the errors that an exact model would have, since only the step of the grid is published:
// errors of forecasts at rates spread over one step around the rate that gives the published share.
std::vector<double> errors_of_grid(const StudyRow& row) {
  const double published = row.number("published_share"), grid = row.number("grid");
  double slow = 1 / grid, fast = grid * grid;
  constexpr int halvings = 40;
  for (int i = 0; i < halvings; ++i) {
    const double middle = std::sqrt(slow * fast);
    (forecast_row(row, middle) > published ? slow : fast) = middle;
  }
  constexpr int places = 16;
  std::vector<double> errors;
  for (int i = 0; i < places; ++i) {
    const double off = std::pow(grid, (i + 0.5) / places - 0.5);
    errors.push_back(std::abs(forecast_row(row, fast * off) / published - 1));
  }
  return errors;
}

StudyFigure figure_of_row(const StudyRow& row) {
  StudyFigure figure{
      .study = row.text("study"), .what = row.text("what"), .source = row.text("source")};
  figure.in_seconds = row.find("published_s").has_value();
  figure.published = row.number(figure.in_seconds ? "published_s" : "published_share");
  figure.has_rate = row.find("up_gbit") || row.find("transfer_s");
  if (figure.has_rate) {
    figure.forecast = forecast_row(row, std::sqrt(row.number("grid")));
    figure.forecast_low = forecast_row(row, row.number("grid"));
    figure.forecast_high = forecast_row(row, 1);
    figure.possible = least_of_row(row) <= figure.published;
  }
  if (!figure.has_rate || !figure.possible) figure.needed = needed_rate(row);
  if (figure.possible && row.number("grid") > 1) figure.grid_errors = errors_of_grid(row);
  return figure;
}

// Returns the value at or below which this share of the values lies.
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

std::string figure_line(const StudyFigure& figure) {
  const std::string needs =
      figure.needed ? fmt::format("needs {} each way", to_text_bits(*figure.needed)) : "";
  if (!figure.has_rate)
    return fmt::format("  {:<48} {:>10}   {}\n", figure.what, value_cell(figure, figure.published),
                       needs);
  const std::string exact = figure.grid_errors.empty()
                                ? "-"
                                : fmt::format("{:.0f} %", 100 * quantile(figure.grid_errors, 0.9));
  return fmt::format("  {:<48} {:>10} {:>10} {:>5.0f} % {:>5.0f} % {:>7}{}\n", figure.what,
                     value_cell(figure, figure.published), value_cell(figure, figure.forecast),
                     100 * figure.error(), 100 * figure.error_beyond_grid(), exact,
                     figure.possible ? "" : " * " + needs);
}

}  // namespace

double StudyFigure::error() const { return std::abs(forecast / published - 1); }

double StudyFigure::error_beyond_grid() const {
  const double nearest = std::clamp(published, forecast_low, forecast_high);
  return std::abs(nearest / published - 1);
}

std::vector<StudyFigure> possible_figures(const std::vector<StudyFigure>& figures,
                                          const std::string& study) {
  std::vector<StudyFigure> possible;
  std::ranges::copy_if(figures, std::back_inserter(possible), [&](const StudyFigure& figure) {
    return figure.possible && figure.has_rate && (study.empty() || figure.study == study);
  });
  return possible;
}

std::vector<StudyFigure> site_study(const std::string& study) {
  const EmbeddedFile& file = site_study_files().front();
  const csv::Table table = csv::parse(file.text, file.name);
  std::vector<StudyFigure> figures;
  std::vector<std::string> studies;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const StudyRow row(table, i);
    if (studies.empty() || studies.back() != row.text("study"))
      studies.push_back(row.text("study"));
    if (study.empty() || study == studies.back()) figures.push_back(figure_of_row(row));
  }
  if (figures.empty()) fail_unknown({"", 0, "--study"}, "study", study, studies);
  return figures;
}

namespace {

// Returns the errors by study, then the errors of all figures and the errors due to the grid alone.
std::string errors_table(const std::vector<StudyFigure>& figures,
                         const std::vector<std::string>& studies) {
  std::vector<StudyFigure> with_rate;
  std::ranges::copy_if(figures, std::back_inserter(with_rate), &StudyFigure::has_rate);
  const auto impossible = std::ranges::count(figures, false, &StudyFigure::possible);
  std::string out;
  if (impossible > 0)
    out += fmt::format(
        "\n* {} of {} figures: the stated links cannot carry the stated bytes in that time.\n",
        impossible, with_rate.size());
  const std::vector<StudyFigure> all = possible_figures(figures);
  if (all.empty()) return out;
  out += fmt::format("\n{:<24} {:>7} {:>17} {:>17}\n{:<24} {:>7} {:>8} {:>8} {:>8} {:>8}\n", "", "",
                     "error (%)", "beyond grid (%)", "study, without *", "figures", "median", "p90",
                     "median", "p90");
  for (const std::string& study : studies) {
    const std::vector<StudyFigure> of_study = possible_figures(figures, study);
    if (!of_study.empty()) out += errors_line(study, of_study);
  }
  if (studies.size() > 1) out += errors_line("all", all);
  if (studies.size() > 1 && impossible > 0) out += errors_line("all, with *", with_rate);
  std::vector<double> of_grid;
  for (const StudyFigure& figure : all)
    for (const double error : figure.grid_errors) of_grid.push_back(100 * error);
  if (!of_grid.empty())
    out +=
        fmt::format("{:<24} {:>7} {:>8.1f} {:>8.1f}\n", "an exact model, by grid",
                    std::ranges::count_if(
                        all, [](const StudyFigure& figure) { return !figure.grid_errors.empty(); }),
                    quantile(of_grid, 0.5), quantile(of_grid, 0.9));
  return out;
}

}  // namespace

std::string site_study_table(const std::vector<StudyFigure>& figures) {
  std::string out =
      fmt::format("{:<50} {:>10} {:>10} {:>7} {:>7} {:>7}\n", "time that communication costs",
                  "published", "forecast", "error", "beyond", "exact");
  std::vector<std::string> studies;
  std::string source;
  for (const StudyFigure& figure : figures) {
    if (figure.source != source) {
      source = figure.source;
      out += fmt::format("\n{}, {}\n", figure.study, source);
    }
    out += figure_line(figure);
    if (studies.empty() || studies.back() != figure.study) studies.push_back(figure.study);
  }
  return out + errors_table(figures, studies);
}

}  // namespace lambcast
