#include "validate/calibrate/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <optional>

#include "sim/base/counted.h"
#include "sim/base/error.h"
#include "sim/base/sort_stably.h"
#include "validate/calibrate/fitted_tables.h"
#include "validate/calibrate/kept_values.h"
#include "validate/calibrate/least_squares.h"
#include "validate/calibrate/measured_series.h"
#include "validate/calibrate/residuals.h"
#include "validate/calibrate/suspicions.h"
#include "validate/calibrate/taken.h"
#include "validate/calibrate/unmeasured_sizes.h"

namespace lambcast::validate {
namespace {

using Eigen::VectorXd;

struct Point {
  std::size_t table;
  Bytes size;
  double log_measured;
  double weight = 1;  // weight of the point's residual
};

// Forecasts all points with given parameters.
class Model {
 public:
  Model(const std::string& base, const std::string& name, std::span<const Measurement> tables,
        const std::vector<Parameter>& parameters, Backend backend)
      : base_(Table::parse(base, name)),
        name_(name),
        tables_(tables),
        parameters_(parameters),
        backend_(backend) {
    const Cluster cluster = decode_cluster(base_, name);
    for (const Measurement& table : tables) series_.push_back(series_of(table, cluster, backend));
  }

  // Returns log(forecast / measured) of each point, times its weight.
  VectorXd residuals(const VectorXd& x, const std::vector<Point>& points) {
    const Cluster cluster = cluster_at(x);
    const auto transport = std::make_shared<const Transport>(transport_of(cluster, backend_));
    VectorXd r(static_cast<Eigen::Index>(points.size()));
    std::size_t of = tables_.size();
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (points[i].table != of) {
        of = points[i].table;
        reprice(series_[of], tables_[of], cluster, backend_, transport);
      }
      const double seconds = std::max(1e-12, forecast_time(series_[of], points[i].size).s());
      r[static_cast<Eigen::Index>(i)] =
          points[i].weight * (std::log(seconds) - points[i].log_measured);
    }
    return r;
  }

  Cluster cluster_at(const VectorXd& x) const {
    Table table = base_;
    for (std::size_t j = 0; j < parameters_.size(); ++j) {
      const Parameter& parameter = parameters_[j];
      // Quotes the value. Text that is not TOML would become a string too, but only after a slow
      // failure of the parser.
      const char* form = parameter.unit == Unit::share ? "{}" : "\"{}\"";
      const std::string value =
          fmt::format(fmt::runtime(form),
                      value_text(parameter.unit, std::exp(x[static_cast<Eigen::Index>(j)])));
      table.set(parameter.key, value, "calibration");
      if (!parameter.also.empty()) table.set(parameter.also, value, "calibration");
    }
    Cluster cluster = decode_cluster(table, name_);
    cluster.calibration.reset();  // the base's evidence does not cover these values
    return cluster;
  }

 private:
  Table base_;  // parsed once; every evaluation sets all parameters in it
  const std::string& name_;
  std::span<const Measurement> tables_;
  const std::vector<Parameter>& parameters_;
  Backend backend_;
  std::vector<MeasuredSeries> series_;  // one per table, prepared once
};

LeastSquares problem_of(Model& model, const std::vector<Parameter>& parameters,
                        const std::vector<Point>& measured, const std::vector<Point>& kept) {
  std::vector<Point> points = measured;
  points.insert(points.end(), kept.begin(), kept.end());
  const auto count = static_cast<Eigen::Index>(parameters.size());
  LeastSquares problem;
  problem.residuals = [&model, points](const VectorXd& x) { return model.residuals(x, points); };
  problem.of_prior = static_cast<Eigen::Index>(kept.size());
  problem.start = problem.low = problem.high = problem.prior_width = VectorXd(count);
  for (Eigen::Index j = 0; j < count; ++j) {
    const Parameter& parameter = parameters[static_cast<std::size_t>(j)];
    problem.start[j] = std::log(parameter.start);
    problem.low[j] = std::log(parameter.low);
    problem.high[j] = std::log(parameter.high);
    problem.prior_width[j] = parameter.prior_width;
  }
  return problem;
}

// Returns the starting points of the search, since the cost has several local minima: the cheapest
// algorithm and protocol change with the parameters. The points combine latencies as given or three
// times as long with slices as given or four times as large.
std::vector<VectorXd> beginnings(const VectorXd& start, const std::vector<Parameter>& parameters) {
  std::vector<VectorXd> all;
  for (const double slower : {1.0, 3.0}) {
    for (const double coarser : {1.0, 4.0}) {
      VectorXd first = start;
      for (std::size_t j = 0; j < parameters.size(); ++j) {
        const Unit unit = parameters[j].unit;
        if (unit == Unit::microseconds) first[static_cast<Eigen::Index>(j)] += std::log(slower);
        if (unit == Unit::bytes) first[static_cast<Eigen::Index>(j)] += std::log(coarser);
      }
      all.push_back(std::move(first));
    }
  }
  return all;
}

// Number of searches in a fit: 4 with one half of the data held out, 1 with the other half held out
// (from the previous result), and 5 on all data (from the 4 starting points and that result).
constexpr int searches_per_fit = 4 + 1 + 5;

LeastSquaresFit best_fit(LeastSquares problem, const std::vector<VectorXd>& firsts,
                         const std::function<void()>& begun) {
  std::optional<LeastSquaresFit> best;
  for (const VectorXd& first : firsts) {
    begun();
    problem.first = first;
    LeastSquaresFit found = minimise(problem);
    if (!best || found.cost < best->cost) best = std::move(found);
  }
  return *best;
}

// An added limit (the rate of a connection) is kept only if it lowers the cost below this share of
// the cost without it.
constexpr double worth_a_limit = 0.9;

// Returns the index of the middle table by number of ranks. With fewer than four tables none is
// held out, and the result is their number.
std::size_t table_to_hold_out(std::span<const Measurement> tables) {
  if (tables.size() < 4) return tables.size();
  const auto order = stable_order(
      tables.size(), [&](auto a, auto b) { return tables[a].ranks < tables[b].ranks; });
  return order[order.size() / 2];
}

constexpr double no_limit = std::numeric_limits<double>::infinity();

struct SizeBand {
  const char* name;
  double from, below;
  double typical;  // root mean square of log(measured / forecast) over held-out rows
};
constexpr SizeBand size_bands[] = {{"below 64 KiB", 0, small_below, 0.08},
                                   {"64 KiB to 4 MiB", small_below, medium_below, 0.13},
                                   {"4 MiB and more", medium_below, no_limit, 0.07}};

std::vector<BandError> band_errors(const std::vector<Point>& points, const VectorXd& residuals) {
  std::vector<double> sizes, errors;
  for (std::size_t i = 0; i < points.size(); ++i) {
    sizes.push_back(points[i].size.value());
    errors.push_back(std::expm1(residuals[static_cast<Eigen::Index>(i)]));
  }
  return errors_by_band(sizes, errors);
}

// Returns a 90 % interval from log(measured / forecast) of held-out rows. From thirty rows on its
// ends are the 5th and 95th percentile, each at least 4 % from the forecast. With fewer rows, their
// spread is combined with the typical one. With the prior that a fabric's variance is v from k
// rows, n rows of mean square m give the variance
//
//   (k v + n m) / (k + n)
//
// Each side of the interval is t times its root, with t the 95 % point of Student's distribution
// with k + n degrees of freedom (Cornish-Fisher expansion). v is the square of the median over the
// 18 fabrics whose tables ship; k comes from leaving each of them out (leave_out.py, "h").
Calibration::Band band_of(const SizeBand& band, const std::vector<double>& errors,
                          std::size_t rows) {
  // With fewer rows than this in all bands, the fit is not trusted to be as good as others.
  constexpr std::size_t too_few = 6;
  constexpr double of_too_few = 0.8;  // half-width (log), the same as without any table
  constexpr double typical_rows = 4;
  constexpr double repeated = 0.04;  // spread of one machine between days
  const auto n = static_cast<double>(errors.size());
  double low = repeated, high = repeated;
  if (rows < too_few) {
    low = high = of_too_few;
  } else if (errors.size() >= 30) {
    low = std::max(low, -quantile(errors, 0.05));
    high = std::max(high, quantile(errors, 0.95));
  } else {
    double squares = typical_rows * band.typical * band.typical;
    for (const double error : errors) squares += error * error;
    const double freedom = typical_rows + n;
    const double t = 1.645 + 1.524 / freedom + 1.42 / (freedom * freedom);
    low = high = std::max(repeated, t * std::sqrt(squares / freedom));
  }
  return {Bytes(band.below), std::exp(-low), std::exp(high)};
}

// Returns the calibration from the tables that a library produced. `points` and `residuals` are
// those of held-out forecasts.
std::optional<Calibration> calibration_of(std::span<const Measurement> tables,
                                          const Cluster& cluster, Backend backend,
                                          const std::vector<Point>& points,
                                          const VectorXd& residuals) {
  const auto of_library = [](const Measurement& table) { return !table.streams; };
  if (std::none_of(tables.begin(), tables.end(), of_library)) return {};
  Calibration calibration;
  calibration.backend = backend;
  calibration.sizes = {no_limit, 0};
  std::map<int, Calibration::Range> nodes;  // by GPUs per node
  const auto widen = [](Calibration::Range& range, double value) {
    range = {std::min(range.low, value), std::max(range.high, value)};
  };
  const std::vector<TakenRow> taken = taken_by(tables, cluster, backend);
  for (const Measurement& table : tables) {
    if (!of_library(table)) continue;
    const MeasuredSeries series = series_of(table, cluster, backend);
    const auto covers = [&](Op op) {
      if (std::find(calibration.operations.begin(), calibration.operations.end(), op) ==
          calibration.operations.end())
        calibration.operations.push_back(op);
    };
    for (const MeasuredSeries::Part& part : series.parts)
      if (part.covers) covers(part.op);
    if (series.message) covers(series.message->request.op);
    widen(nodes.try_emplace(series.gpus_per_node, Calibration::Range{no_limit, 0}).first->second,
          series.nodes);
  }
  for (const auto& [gpus_per_node, range] : nodes)
    calibration.layouts.push_back({gpus_per_node, range});
  for (const Measurement& table : tables)
    for (const Row& row : table.rows)
      if (of_library(table) && counts(table, row)) widen(calibration.sizes, row.size.value());
  for (const SizeBand& band : size_bands) {
    std::vector<double> errors;  // log(measured / forecast)
    for (std::size_t i = 0; i < points.size(); ++i)
      if (of_library(tables[points[i].table]) && points[i].size.value() >= band.from &&
          points[i].size.value() < band.below)
        errors.push_back(-residuals[static_cast<Eigen::Index>(i)]);
    if (errors.empty()) continue;
    calibration.bands.push_back(band_of(band, errors, points.size()));
    calibration.bands.back().algorithms = algorithms_of(taken, band.from, band.below);
  }
  calibration.protocols = protocols_of(taken);
  // With a single row, no row was held out: one band for all sizes has the width for too few rows.
  if (calibration.bands.empty())
    calibration.bands.push_back(band_of(*std::rbegin(size_bands), {}, points.size()));
  return calibration;
}

std::vector<FittedParameter> fitted_parameters(const std::vector<Parameter>& parameters,
                                               const LeastSquaresFit& fit) {
  std::vector<FittedParameter> fitted;
  for (std::size_t j = 0; j < parameters.size(); ++j) {
    const auto i = static_cast<Eigen::Index>(j);
    const Parameter& of = parameters[j];
    const double half = 1.96 * fit.standard_error[i];
    FittedParameter parameter{of, std::exp(fit.x[i]), 0, 0, false};
    parameter.low = std::max(of.low, std::exp(fit.x[i] - half));
    parameter.high = std::min(of.high, std::exp(fit.x[i] + half));
    const bool at_bound = parameter.value < of.low * 1.001 || parameter.value > of.high * 0.999;
    parameter.identified = !at_bound && fit.from_data[i] > 0.75 && half < std::log(2.0);
    fitted.push_back(parameter);
  }
  return fitted;
}

std::vector<Point> points_of(std::span<const Measurement> tables) {
  std::vector<Point> points;
  for (std::size_t t = 0; t < tables.size(); ++t)
    for (const Row& row : tables[t].rows)
      if (counts(tables[t], row)) points.push_back({t, row.size, std::log(row.time.s())});
  return points;
}

// Returns the description's own forecasts of unmeasured sizes, as points of the prior.
std::vector<Point> kept_points(const Cluster& before, std::span<const Measurement> tables,
                               Backend backend) {
  std::vector<Point> points;
  for (const UnmeasuredSize& of : unmeasured_sizes(before, tables, backend))
    points.push_back(
        {of.table, of.size, std::log(of.forecast.s()), LeastSquares{}.outlier / of.sigma});
  return points;
}

std::string with_nodes(const Measurement& table) {
  return fmt::format("{} over {} on {}, {}", name_of(table.operation), counted(table.ranks, "rank"),
                     counted(nodes_of(table), "node"), table.provenance.source);
}

struct Fit {
  FitSummary summary;
  double cost = 0;
};

// Computes the held-out errors first, then the fit on all data.
Fit fitted(const std::string& base, const std::string& name, std::span<const Measurement> tables,
           const std::vector<Parameter>& parameters, const std::vector<Point>& points,
           Backend backend, const std::function<void()>& begun) {
  const Cluster cluster = decode_cluster(Table::parse(base, name), name);
  Model model(base, name, tables, parameters, backend);
  FitSummary summary;
  summary.backend = backend;
  summary.tables = static_cast<int>(tables.size());
  for (const Measurement& table : tables) summary.fitted_tables.push_back(fingerprints(table));
  summary.rows = static_cast<int>(points.size());
  const std::size_t held_table = table_to_hold_out(tables);
  if (held_table < tables.size()) summary.held_out_table = with_nodes(tables[held_table]);
  const std::vector<Point> kept = kept_points(cluster, tables, backend);
  std::vector<Point> judged;
  std::vector<double> unseen;
  std::optional<VectorXd> blind;
  for (const std::size_t half : {0u, 1u}) {
    std::vector<Point> seen, held;
    std::size_t row = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      row = i > 0 && points[i].table == points[i - 1].table ? row + 1 : 0;
      const bool hold = (half == 0 && points[i].table == held_table) || row % 2 == half;
      (hold ? held : seen).push_back(points[i]);
    }
    if (seen.empty()) continue;
    const LeastSquares problem = problem_of(model, parameters, seen, kept);
    blind = best_fit(problem, blind ? std::vector{*blind} : beginnings(problem.start, parameters),
                     begun)
                .x;
    const VectorXd residuals = model.residuals(*blind, held);
    unseen.insert(unseen.end(), residuals.begin(), residuals.end());
    judged.insert(judged.end(), held.begin(), held.end());
  }
  const VectorXd errors =
      Eigen::Map<const VectorXd>(unseen.data(), static_cast<Eigen::Index>(unseen.size()));
  summary.held_out = band_errors(judged, errors);
  LeastSquares problem = problem_of(model, parameters, points, kept);
  problem.most_leaps = 10;
  std::vector<VectorXd> firsts = beginnings(problem.start, parameters);
  if (blind) firsts.push_back(*blind);
  const LeastSquaresFit all = best_fit(problem, firsts, begun);
  summary.parameters = fitted_parameters(parameters, all);
  summary.kept = kept_latencies(cluster, tables, backend);
  for (FittedParameter& share : kept_shares(cluster, tables, backend, summary.parameters))
    summary.parameters.push_back(std::move(share));
  summary.fitted = band_errors(points, all.residuals);
  summary.calibration = calibration_of(tables, model.cluster_at(all.x), backend, judged, errors);
  std::vector<Residual> left;
  for (std::size_t i = 0; i < points.size(); ++i)
    left.push_back({points[i].table, points[i].size, -all.residuals[static_cast<Eigen::Index>(i)]});
  summary.misfits = misfits_of(tables, left, poor_fit_median);
  return {summary, all.cost};
}

}  // namespace

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double at = share * (static_cast<double>(values.size()) - 1);
  const auto below = static_cast<std::size_t>(at);
  if (below + 1 >= values.size()) return values.back();
  const double rest = at - static_cast<double>(below);
  return values[below] * (1 - rest) + values[below + 1] * rest;
}

std::vector<BandError> errors_by_band(std::span<const double> sizes,
                                      std::span<const double> errors) {
  std::vector<BandError> bands;
  for (const SizeBand& band : size_bands) {
    std::vector<double> absolute;
    for (std::size_t i = 0; i < sizes.size(); ++i)
      if (sizes[i] >= band.from && sizes[i] < band.below) absolute.push_back(std::abs(errors[i]));
    if (absolute.empty()) continue;
    bands.push_back({band.name, static_cast<int>(absolute.size()), quantile(absolute, 0.5),
                     quantile(absolute, 0.9)});
  }
  return bands;
}

FitSummary calibrate(const std::string& base, const std::string& name,
                     std::span<const Measurement> given, Backend backend,
                     const CalibrationProgress& progress) {
  const auto began = std::chrono::steady_clock::now();
  const std::vector<Measurement> tables = without_repeats(given);
  const Cluster cluster = decode_cluster(Table::parse(base, name), name);
  for (const Measurement& table : tables) series_of(table, cluster, backend);
  const std::vector<Point> points = points_of(tables);
  if (points.empty()) fail_input({"", 0, {}}, "nothing to calibrate on: no row with a time");
  const std::vector<Parameter> parameters = parameters_for(cluster, tables, backend);
  std::vector<Parameter> needed;
  std::copy_if(parameters.begin(), parameters.end(), std::back_inserter(needed),
               [](const Parameter& parameter) { return !parameter.optional; });
  const bool twice = needed.size() < parameters.size();
  int searches = 0;
  const auto begun = [&] {
    if (progress) progress(searches, searches_per_fit * (twice ? 2 : 1));
    ++searches;
  };
  Fit fit = fitted(base, name, tables, needed, points, backend, begun);
  if (twice) {
    Fit limited = fitted(base, name, tables, parameters, points, backend, begun);
    if (limited.cost < fit.cost * worth_a_limit) fit = std::move(limited);
  }
  FitSummary summary = std::move(fit.summary);
  summary.suspicions = suspicions_of(cluster, tables, backend);
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return summary;
}

}  // namespace lambcast::validate
