#include "validate/priors/learn_priors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/csv.h"
#include "sim/base/file.h"
#include "validate/calibrate/least_squares.h"
#include "validate/calibrate/measured_series.h"

namespace lambcast::validate {
namespace {

using Eigen::VectorXd;

struct Factor {
  const char* key;
  double begin;
  double low, high;
  double width;  // width of the weak prior that keeps factors in place if no table determines them
};

// Starting values, bounds and prior widths of the factors. Shares are limited by physics; latencies
// are 0.3 to at most 30 times NCCL's own. `LL.base` has a narrow prior: it is little more than a
// launch, whose time is the same in tables of one node.
constexpr Factor on_rdma[] = {{"LL.base", 1.9, .3, 10, .35},
                              {"LL.local_hop", 3, .3, 30, 1},
                              {"LL.network_hop", 1.5, .3, 20, 1},
                              {"LL.tree_network_hop", 1.5, .3, 20, 1},
                              {"LL.efficiency", .5, .02, 1, .7},
                              {"LL.node_cap", .3, .01, 3, 1},
                              {"LL.channel_rate", 1, .05, 20, .7},
                              {"LL128.channel_rate", 1, .05, 20, .5},
                              {"Simple.channel_rate", 1, .2, 10, .3},
                              {"LL.alone_base", 1, .3, 10, .7},
                              {"LL.alone_local_hop", 1, .3, 20, 1},
                              {"LL128.base", 1, .3, 10, .7},
                              {"LL128.local_hop", 1, .3, 20, 1},
                              {"LL128.network_hop", 1.5, .3, 20, 1},
                              {"LL128.tree_network_hop", 1.5, .3, 20, 1},
                              {"Simple.base", 1, .3, 10, .7},
                              {"Simple.local_hop", 2, .3, 20, 1},
                              {"Simple.network_hop", 1.5, .3, 20, 1},
                              {"Simple.tree_network_hop", 1.5, .3, 20, 1},
                              {"Simple.alone_base", 1, .3, 10, .7},
                              {"Simple.alone_local_hop", 1, .3, 20, 1},
                              {"nic_efficiency", .8, .1, 1, .4},
                              {"effective_nic_efficiency", .9, .3, 1.2, .4},
                              {"link_efficiency", .9, .3, 1.3, .4},
                              {"tree_efficiency", .9, .3, 1, .3},
                              {"single_gpu_efficiency", .9, .3, 1, .3},
                              {"slice", 1, .05, 8, 1},
                              {"nvls.base", 1, .3, 4, .5},
                              {"nvls.network_hop", 1, .3, 8, .7}};
// `flow_cap` is the rate of a connection of NCCL in GB/s: 0.645 between RTX 3060 and 0.705 between
// H20 on 100 Gbit/s, 0.82 between L20, 0.34 on a cloud host of 4 x 200 Gbit/s. Their geometric mean
// is 0.6, the standard deviation of the logarithm 0.4. Single channels reached more (1.9 GB/s,
// nccl#209; 1 to 1.5, nccl#450).
constexpr Factor on_sockets[] = {{"LL.base", 1, .3, 20, .7},
                                 {"LL.network_hop", 1, .3, 20, .7},
                                 {"LL.tree_network_hop", 1, .3, 20, .7},
                                 {"LL.node_cap", .05, .001, 3, 1},
                                 {"Simple.network_hop", 2, .3, 20, .7},
                                 {"Simple.tree_network_hop", 2, .3, 20, .7},
                                 {"nic_efficiency", .8, .1, 1, .2},
                                 {"flow_cap", 0.6, .1, 10, .4}};

std::span<const Factor> factors_of(NetworkKind network) {
  if (network == NetworkKind::rdma) return on_rdma;
  return on_sockets;
}

constexpr std::string_view of_mpi = "emulated-ethernet-100mbit";
constexpr double band_ends[] = {small_below, medium_below, 1e300};
constexpr std::size_t rows_of_a_band = 9;
constexpr double outlier = 0.3;        // residual from which on a row counts as an outlier
constexpr double least_spread = 0.15;  // lower limit: the spread between two equal machines
constexpr double enough_fabrics = 3;   // with less weight, a small spread is not trusted
constexpr double determined = 0.5;     // least share of own tables to determine a factor
constexpr double mostly = 2.0 / 3;     // share above which one fabric determines a factor alone
constexpr double noticeable = 0.05;    // below it a fabric's tables do not depend on the factor
// Two minima are different if their ratio of costs is below this, and otherwise equal within
// rounding.
constexpr double another_valley = 0.999;

struct Point {
  std::size_t table;
  Bytes size;
  double log_measured;
};

std::vector<Point> points_of(const LearningFabric& fabric) {
  std::vector<Point> points;
  for (std::size_t i = 0; i < fabric.tables.size(); ++i)
    for (const Row& row : fabric.tables[i].rows)
      if (counts(fabric.tables[i], row)) points.push_back({i, row.size, std::log(row.time.s())});
  return points;
}

// Returns an equal number of points per band, spread over tables and sizes, so that all fabrics
// have equal weight.
std::vector<Point> thinned(const std::vector<Point>& points) {
  std::vector<Point> few;
  double from = 0;
  for (const double below : band_ends) {
    std::vector<Point> band;
    for (const Point& point : points)
      if (point.size.value() >= from && point.size.value() < below) band.push_back(point);
    const std::size_t take = std::min(band.size(), rows_of_a_band);
    for (std::size_t i = 0; i < take; ++i)
      few.push_back(band[(i * band.size() + band.size() / 2) / take]);
    from = below;
  }
  return few;
}

// The rows of a fabric used in the search, and its parsed description.
struct Sample {
  const LearningFabric* fabric;
  std::vector<Point> points;
  Table description;
};

Sample sample_of(const LearningFabric& fabric, std::vector<Point> points) {
  return {&fabric, std::move(points), Table::parse(fabric.description, fabric.name)};
}

std::vector<double> residuals_of(const Sample& sample, const Priors& priors) {
  const LearningFabric& fabric = *sample.fabric;
  const Cluster cluster = decode_cluster(sample.description.copy(), fabric.name, priors);
  std::vector<double> residuals;
  std::size_t of = fabric.tables.size();
  MeasuredSeries series;
  for (const Point& point : sample.points) {
    if (point.table != of) {
      of = point.table;
      series = series_of(fabric.tables[of], cluster, Backend::nccl);
    }
    const double seconds = std::max(1e-12, forecast_time(series, point.size).s());
    residuals.push_back(std::log(seconds) - point.log_measured);
  }
  return residuals;
}

Priors priors_at(NetworkKind network, const VectorXd& x) {
  Priors priors;
  Priors::OfKind& kind = network == NetworkKind::rdma ? priors.rdma : priors.socket;
  Eigen::Index j = 0;
  for (const Factor& factor : factors_of(network)) kind.of[factor.key] = {std::exp(x[j++]), 1, 0};
  return priors;
}

LeastSquares problem_of(const std::vector<Sample>& samples, NetworkKind network,
                        const VectorXd& typical, const VectorXd& first) {
  const auto factors = factors_of(network);
  const auto count = static_cast<Eigen::Index>(factors.size());
  LeastSquares problem;
  problem.start = typical;
  problem.first = first;
  problem.low = problem.high = problem.prior_width = VectorXd(count);
  for (Eigen::Index j = 0; j < count; ++j) {
    const Factor& factor = factors[static_cast<std::size_t>(j)];
    problem.low[j] = std::log(factor.low);
    problem.high[j] = std::log(factor.high);
    problem.prior_width[j] = factor.width;
  }
  problem.outlier = outlier;
  problem.most_leaps = 2;
  problem.residuals = [&samples, network](const VectorXd& x) {
    const Priors priors = priors_at(network, x);
    std::vector<double> all;
    for (const Sample& sample : samples)
      for (const double residual : residuals_of(sample, priors)) all.push_back(residual);
    return VectorXd(Eigen::Map<const VectorXd>(all.data(), static_cast<Eigen::Index>(all.size())));
  };
  return problem;
}

LeastSquaresFit fit(const std::vector<Sample>& samples, NetworkKind network,
                    const VectorXd& typical, const VectorXd& first) {
  return minimise(problem_of(samples, network, typical, first));
}

// Returns, for each factor at x, the share of the information that a fabric's own tables
// contribute.
VectorXd felt_by(const Sample& sample, NetworkKind network, const VectorXd& x) {
  const std::vector<Sample> alone{sample};
  LeastSquares problem = problem_of(alone, network, x, x);
  problem.most_steps = problem.most_leaps = 0;
  return minimise(problem).from_data;
}

// Returns the factors that one fabric determines almost alone and that no other depends on.
std::vector<bool> felt_by_one_alone(const std::vector<Sample>& samples, NetworkKind network,
                                    const VectorXd& x) {
  std::vector<int> feel(static_cast<std::size_t>(x.size())), mostly_by(feel);
  for (const Sample& sample : samples) {
    const VectorXd share = felt_by(sample, network, x);
    for (std::size_t j = 0; j < feel.size(); ++j) {
      feel[j] += share[static_cast<Eigen::Index>(j)] > noticeable ? 1 : 0;
      mostly_by[j] += share[static_cast<Eigen::Index>(j)] > mostly ? 1 : 0;
    }
  }
  std::vector<bool> alone;
  for (std::size_t j = 0; j < feel.size(); ++j) alone.push_back(feel[j] == 1 && mostly_by[j] == 1);
  return alone;
}

// Fits all fabrics together. The cheapest protocol depends on the latencies, so the cost has
// several minima. The search starts at `start`, and with the latencies of LL three times as long.
LeastSquaresFit fit_to_all(const std::vector<Sample>& samples, NetworkKind network,
                           const VectorXd& start) {
  VectorXd slower = start;
  Eigen::Index j = 0;
  for (const Factor& factor : factors_of(network)) {
    const std::string_view key = factor.key;
    if (key.starts_with("LL.") && (key.ends_with("base") || key.ends_with("hop")))
      slower[j] += std::log(3);
    ++j;
  }
  LeastSquaresFit here = fit(samples, network, start, start);
  LeastSquaresFit there = fit(samples, network, start, slower);
  return there.cost < here.cost * another_valley ? there : here;
}

}  // namespace

std::vector<LearningFabric> fabrics_to_learn_from(const std::string& validate) {
  const std::string folder = validate + "/replay/collectives/";
  const csv::Table list = csv::parse(read_file(folder + "tables.csv"), "tables.csv");
  std::map<std::string, LearningFabric> by_name;
  for (std::size_t row = 0; row < list.rows.size(); ++row) {
    const std::string &name = list.text(row, "table"), &cluster = list.text(row, "cluster");
    if (cluster == of_mpi) continue;
    LearningFabric& fabric = by_name[cluster];
    fabric.name = cluster;
    fabric.tables.push_back(read_measurement_csv(read_file(folder + name), name));
  }
  std::vector<LearningFabric> fabrics;
  for (auto& [name, fabric] : by_name) {
    fabric.description = read_file(validate + "/calibrate/bases/" + name + ".toml");
    fabric.network = decode_cluster(Table::parse(fabric.description, name), name).network;
    fabrics.push_back(std::move(fabric));
  }
  return fabrics;
}

std::vector<RowError> errors_under(const LearningFabric& fabric, const Priors& priors) {
  const Sample all = sample_of(fabric, points_of(fabric));
  const std::vector<double> residuals = residuals_of(all, priors);
  std::vector<RowError> errors;
  for (std::size_t i = 0; i < all.points.size(); ++i)
    errors.push_back({all.points[i].size, residuals[i]});
  return errors;
}

Priors::OfKind learn_kind(std::span<const LearningFabric> fabrics, NetworkKind network,
                          const std::string& without, bool with_spreads) {
  std::vector<Sample> samples;
  for (const LearningFabric& fabric : fabrics)
    if (fabric.network == network && fabric.name != without)
      samples.push_back(sample_of(fabric, thinned(points_of(fabric))));
  const auto factors = factors_of(network);
  VectorXd start(static_cast<Eigen::Index>(factors.size()));
  for (std::size_t j = 0; j < factors.size(); ++j)
    start[static_cast<Eigen::Index>(j)] = std::log(factors[j].begin);
  const LeastSquaresFit typical = fit_to_all(samples, network, start);
  VectorXd squares = VectorXd::Zero(start.size()), weights = squares;
  std::vector<int> determine(factors.size());
  for (const Sample& sample : samples) {
    if (!with_spreads) break;
    const LeastSquaresFit own = fit({sample}, network, typical.x, typical.x);
    for (Eigen::Index i = 0; i < start.size(); ++i) {
      if (own.from_data[i] < determined) continue;
      // The prior pulls this fit towards the typical value. Dividing by the share of the data
      // undoes this.
      const double apart = (own.x[i] - typical.x[i]) / own.from_data[i];
      squares[i] += own.from_data[i] * apart * apart;
      weights[i] += own.from_data[i];
      ++determine[static_cast<std::size_t>(i)];
    }
  }
  const std::vector<bool> alone = felt_by_one_alone(samples, network, typical.x);
  Priors::OfKind kind;
  kind.fabrics = static_cast<int>(samples.size());
  for (std::size_t j = 0; j < factors.size(); ++j) {
    const auto i = static_cast<Eigen::Index>(j);
    const double weak = factors[j].width;
    double spread = weights[i] > 0 && !alone[j] ? std::sqrt(squares[i] / weights[i]) : weak;
    if (weights[i] < enough_fabrics) spread = std::max(spread, weak / 2);
    const double at = alone[j] ? (start[i] + typical.x[i]) / 2 : typical.x[i];
    kind.of[factors[j].key] = {std::exp(at), std::max(least_spread, spread), determine[j]};
  }
  return kind;
}

Priors learn_priors(std::span<const LearningFabric> fabrics) {
  return {learn_kind(fabrics, NetworkKind::rdma, {}, true),
          learn_kind(fabrics, NetworkKind::socket, {}, true)};
}

std::string priors_text(const Priors& priors, std::span<const LearningFabric> fabrics) {
  std::string text =
      "# What is typical of fabrics that were measured, for those that were not; what each key\n"
      "# multiplies stands in topologies/priors.h. Learned, not written: see\n"
      "# validate/priors/learn_priors.h. Do not edit.\n"
      "#\n"
      "# fabrics: descriptions in validate/calibrate/bases, tables with their sources in\n"
      "# validate/replay/collectives (tables.csv says which belong to which); of a key, how many "
      "have\n"
      "# tables that determine it by themselves. Where none does, it follows from all together, "
      "and\n"
      "# its spread is that of the weak prior it was learned under. Where one alone feels it, it "
      "is\n"
      "# midway between that fabric and where the search began, and its spread the same.\n";
  for (const NetworkKind network : {NetworkKind::rdma, NetworkKind::socket}) {
    std::string names;
    for (const LearningFabric& fabric : fabrics)
      if (fabric.network == network) names += fmt::format("  \"{}\",\n", fabric.name);
    text += fmt::format(
        "\n[{}]\nfabrics = [\n{}]\nlearned = \"one set for all, each fabric weighing alike; spread "
        "of the logarithm: root mean square over fabrics\"\n",
        network == NetworkKind::rdma ? "rdma" : "socket", names);
    for (const auto& [key, prior] : priors.on(network).of)
      text += fmt::format("\"{}\" = {{ typical = {:.3g}, spread = {:.2g}, fabrics = {} }}\n", key,
                          prior.typical, prior.spread, prior.fabrics);
  }
  return text;
}

}  // namespace lambcast::validate
