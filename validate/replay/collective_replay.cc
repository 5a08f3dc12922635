#include "validate/replay/collective_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "embedded/collective_files.h"
#include "sim/base/check.h"
#include "sim/base/csv.h"
#include "sim/base/error.h"
#include "sim/base/sort_stably.h"
#include "topologies/nccl_machine.h"
#include "validate/calibrate/measured_series.h"

namespace lambcast {
namespace {

std::string_view carried_file(std::string_view name) {
  for (const EmbeddedFile& file : collective_files())
    if (file.name.substr(file.name.rfind('/') + 1) == name) return file.text;
  LAMBCAST_CHECK(false, "{} is not carried", name);
}

// Returns the fabric of the ranks: the cluster's network (fabrics.csv), or the links of a single
// node. A cluster outside the list is its own fabric.
std::string fabric_of(const std::string& cluster, int nodes) {
  if (nodes == 1) return "inside a node";
  const csv::Table table = csv::parse(carried_file("fabrics.csv"), "fabrics.csv");
  for (std::size_t row = 0; row < table.rows.size(); ++row)
    if (table.text(row, "cluster") == cluster) return table.text(row, "fabric");
  return cluster;
}

CollectiveResult replay_one(const CollectiveCase& replayed, const Cluster& cluster) {
  const Backend of_calibration = cluster.calibration ? cluster.calibration->backend : Backend::nccl;
  const Backend backend =
      replayed.backend.value_or(replayed.measured.backend.value_or(of_calibration));
  validate::MeasuredSeries series = validate::series_of(replayed.measured, cluster, backend);
  if (series.wire.value() > 0)
    fail_input(
        {replayed.name, 0, {}},
        "lists bytes on a link, not a collective of a library; try: lambcast calibrate with it");
  const Op op = series.message ? series.message->request.op : series.parts.front().op;
  const ProcessGroup group{series.ranks, series.gpus_per_node};
  const bool has_own = !is_mpi(backend) && op != Op::all_to_all && op != Op::send_recv;
  const NcclTuning own = nccl_machine(cluster);
  CollectiveResult result;
  result.of = replayed;
  result.fabric = fabric_of(replayed.cluster, series.nodes);
  std::vector<double> sizes, errors, absolute, own_errors;
  for (std::size_t i = 0; i < replayed.measured.rows.size(); ++i) {
    const validate::Row& row = replayed.measured.rows[i];
    const auto [time, by] = forecast(series, row.size);
    result.forecast.push_back(time);
    result.interval.push_back(interval_of(cluster, backend, op, row.size, group, time, by));
    sizes.push_back(row.size.value());
    errors.push_back(error_of(result, i));
    absolute.push_back(std::abs(errors.back()));
    if (has_own) {
      const Duration expected =
          nccl_choices(own, op, row.size, series.nodes, series.gpus_per_node).front().time;
      own_errors.push_back(std::abs(expected / row.time - 1));
    }
  }
  if (absolute.empty()) fail_input({replayed.name, 0, {}}, "holds no rows");
  result.bands = validate::errors_by_band(sizes, errors);
  result.median_error = validate::quantile(absolute, 0.5);
  if (!own_errors.empty()) result.nccl_median = validate::quantile(own_errors, 0.5);
  return result;
}

bool holds(const CollectiveLimit& limit, const CollectiveResult& result, std::size_t row) {
  const Bytes size = result.of.measured.rows[row].size;
  return (limit.role.empty() || limit.role == role_of(result.of)) && size >= limit.from &&
         size < limit.below;
}

// Returns the limits of a cluster: its own, or the general ones if it has none.
std::vector<CollectiveLimit> limits_of(const std::string& cluster,
                                       const std::vector<CollectiveLimit>& limits) {
  std::vector<CollectiveLimit> own, general;
  for (const CollectiveLimit& limit : limits) {
    if (limit.cluster == cluster) own.push_back(limit);
    if (limit.cluster == "*") general.push_back(limit);
  }
  return own.empty() ? general : own;
}

int rows_held(const CollectiveResult& result, const std::vector<CollectiveLimit>& limits) {
  int held = 0;
  for (std::size_t row = 0; row < result.forecast.size(); ++row)
    if (std::any_of(limits.begin(), limits.end(),
                    [&](const auto& limit) { return holds(limit, result, row); }))
      ++held;
  return held;
}

std::optional<LimitResult> check_limit(const CollectiveLimit& limit, const std::string& cluster,
                                       const std::vector<CollectiveResult>& results) {
  std::vector<double> errors;
  for (const CollectiveResult& result : results) {
    if (result.of.cluster != cluster) continue;
    for (std::size_t i = 0; i < result.forecast.size(); ++i)
      if (holds(limit, result, i)) errors.push_back(std::abs(error_of(result, i)));
  }
  if (errors.empty()) return std::nullopt;
  LimitResult checked{limit,
                      cluster,
                      static_cast<int>(errors.size()),
                      validate::quantile(errors, 0.5),
                      validate::quantile(errors, 0.9),
                      false};
  checked.within =
      checked.median <= limit.max_median && checked.p90 <= limit.max_p90.value_or(checked.p90);
  return checked;
}

std::string band_columns(const std::vector<validate::BandError>& bands) {
  std::string out;
  for (const std::string_view name : band_names) {
    const auto found =
        std::find_if(bands.begin(), bands.end(), [&](const auto& of) { return of.band == name; });
    out += found == bands.end() ? fmt::format(" {:>6}", "")
                                : fmt::format(" {:>5.1f}%", found->median * 100);
  }
  return out;
}

}  // namespace

std::string_view role_of(const CollectiveCase& replayed) {
  return replayed.fitted ? "fitted" : "unseen";
}

double error_of(const CollectiveResult& result, std::size_t row) {
  return result.forecast[row] / result.of.measured.rows[row].time - 1;
}

Coverage coverage_of(const std::vector<CollectiveResult>& results, std::string_view role) {
  Coverage covered;
  for (const CollectiveResult& result : results) {
    if (role_of(result.of) != role) continue;
    for (std::size_t i = 0; i < result.interval.size(); ++i) {
      const Duration measured = result.of.measured.rows[i].time;
      ++covered.rows;
      covered.inside +=
          result.interval[i].low <= measured && measured <= result.interval[i].high ? 1 : 0;
    }
  }
  return covered;
}

std::string range_text(const CollectiveLimit& limit) {
  const auto size = [](Bytes bytes) {
    const bool large = bytes.value() >= 0x1p20;
    return fmt::format("{:.4g} {}", bytes.value() / (large ? 0x1p20 : 0x1p10),
                       large ? "MiB" : "KiB");
  };
  if (limit.from.value() == 0 && std::isinf(limit.below.value())) return "all sizes";
  if (limit.from.value() == 0) return "below " + size(limit.below);
  if (std::isinf(limit.below.value())) return size(limit.from) + " and more";
  return size(limit.from) + " to " + size(limit.below);
}

std::vector<CollectiveCase> carried_collectives() {
  const csv::Table table = csv::parse(carried_file("tables.csv"), "tables.csv");
  std::vector<CollectiveCase> cases;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const std::string& name = table.text(row, "table");
    const std::string& role = table.text(row, "role");
    LAMBCAST_CHECK(role == "fitted" || role == "unseen", "{}: role '{}'", name, role);
    cases.push_back({name, table.text(row, "cluster"), role == "fitted",
                     validate::read_measurement_csv(carried_file(name), name)});
  }
  return cases;
}

std::vector<CollectiveLimit> carried_limits() {
  const csv::Table table = csv::parse(carried_file("limits.csv"), "limits.csv");
  std::vector<CollectiveLimit> limits;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const auto size = [&](const char* column, double otherwise) {
      const std::string& text = table.text(row, column);
      return text.empty() ? Bytes(otherwise)
                          : parse_bytes(text, {table.name, table.lines[row], column});
    };
    CollectiveLimit limit{table.text(row, "cluster"),
                          table.text(row, "role"),
                          size("from", 0),
                          size("below", std::numeric_limits<double>::infinity()),
                          table.number(row, "max_median"),
                          std::nullopt};
    if (!table.text(row, "max_p90").empty()) limit.max_p90 = table.number(row, "max_p90");
    limits.push_back(limit);
  }
  return limits;
}

CollectiveCase canary_collective() {
  CollectiveCase canary = carried_collectives().front();
  canary.name = "canary";
  canary.fitted = false;
  // Repeats the rows, so that they raise the percentile of the whole cluster.
  const std::vector<validate::Row> rows = canary.measured.rows;
  for (int copy = 0; copy < 20; ++copy)
    canary.measured.rows.insert(canary.measured.rows.end(), rows.begin(), rows.end());
  for (validate::Row& row : canary.measured.rows) row.time = row.time * 2;
  return canary;
}

CollectiveSummary replay_collectives(const std::vector<CollectiveCase>& cases,
                                     const std::vector<CollectiveLimit>& limits) {
  CollectiveSummary summary;
  std::map<std::string, Cluster> clusters;
  for (const CollectiveCase& replayed : cases) {
    auto [cluster, fresh] = clusters.try_emplace(replayed.cluster);
    if (fresh) cluster->second = load_cluster(replayed.cluster, {});
    summary.results.push_back(replay_one(replayed, cluster->second));
  }
  summary.within = true;
  for (const auto& [name, cluster] : clusters) {
    for (const CollectiveLimit& limit : limits_of(name, limits)) {
      if (const auto checked = check_limit(limit, name, summary.results)) {
        summary.limits.push_back(*checked);
        summary.within = summary.within && checked->within;
      }
    }
  }
  for (const CollectiveResult& result : summary.results) {
    summary.rows += static_cast<int>(result.forecast.size());
    summary.rows_held += rows_held(result, limits_of(result.of.cluster, limits));
  }
  return summary;
}

std::vector<RoleErrors> errors_by_role(const CollectiveSummary& summary) {
  std::vector<RoleErrors> all;
  for (const char* role : {"", "fitted", "unseen"}) {
    RoleErrors of{role, 0, 0, 0, {}};
    std::vector<double> sizes, errors, absolute;
    for (const CollectiveResult& result : summary.results) {
      if (!of.role.empty() && of.role != role_of(result.of)) continue;
      ++of.tables;
      for (std::size_t row = 0; row < result.forecast.size(); ++row) {
        sizes.push_back(result.of.measured.rows[row].size.value());
        errors.push_back(error_of(result, row));
        absolute.push_back(std::abs(errors.back()));
      }
    }
    // Skips a role without tables, and one that has all of them, since its line would repeat the
    // first.
    if (of.tables == 0 || (!all.empty() && of.tables == all.front().tables)) continue;
    of.rows = static_cast<int>(absolute.size());
    of.median = validate::quantile(absolute, 0.5);
    of.bands = validate::errors_by_band(sizes, errors);
    all.push_back(std::move(of));
  }
  return all;
}

std::string collective_replay_table(const CollectiveSummary& summary) {
  std::string out = fmt::format("{:<45} {:>6} {:>6} {:>6} {:>6} {:>6}\n", "", "below", "64 KiB",
                                "above", "", "NCCL's");
  out += fmt::format("{:<45} {:>6} {:>6} {:>6} {:>6} {:>6}\n", "table", "64 KiB", "-4 MiB", "4 MiB",
                     "median", "own");
  int worse = 0, compared = 0;
  // Groups the tables by cluster and role.
  std::vector<const CollectiveResult*> results;
  for (const CollectiveResult& result : summary.results) results.push_back(&result);
  const auto heading = [](const CollectiveResult* result) {
    return fmt::format("{}, {}", result->of.cluster, role_of(result->of));
  };
  sort_stably(results, {}, heading);
  std::string of;
  for (const CollectiveResult* result : results) {
    std::string own;
    if (result->nccl_median) {
      ++compared;
      own = fmt::format("{:>5.1f}%", *result->nccl_median * 100);
      if (*result->nccl_median < result->median_error) ++worse, own += "*";
    }
    if (heading(result) != of) out += (of = heading(result)) + "\n";
    out += fmt::format(" {:<44}{} {:>5.1f}% {:>6}\n",
                       result->of.name.substr(0, result->of.name.rfind('.')),
                       band_columns(result->bands), result->median_error * 100, own);
  }
  for (const RoleErrors& errors : errors_by_role(summary))
    out += fmt::format("{:<45}{} {:>5.1f}%\n",
                       fmt::format("over all {} {}tables, {} rows", errors.tables,
                                   errors.role.empty() ? "" : errors.role + " ", errors.rows),
                       band_columns(errors.bands), errors.median * 100);
  for (const char* role : {"fitted", "unseen"}) {
    const Coverage covered = coverage_of(summary.results, role);
    if (covered.rows > 0)
      out += fmt::format("{} of {} {} rows lie inside the 90 % interval of their forecast.\n",
                         covered.inside, covered.rows, role);
  }
  out += fmt::format(
      "Medians of |forecast / measured - 1|. Better than NCCL's own model, "
      "uncalibrated, on {} of {} tables (*: not on this one).\n\n",
      compared - worse, compared);
  if (!summary.limits.empty())
    out += fmt::format("{:<25} {:<6} {:<16} {:>4} {:>6} {:>5} {:>6} {:>5}\n", "limits", "role",
                       "sizes", "rows", "median", "limit", "90th", "limit");
  for (const LimitResult& checked : summary.limits) {
    out += fmt::format("{:<25} {:<6} {:<16} {:>4} {:>5.1f}% {:>4.0f}% {:>5.1f}% {:>5}{}\n",
                       checked.cluster, checked.of.role, range_text(checked.of), checked.rows,
                       checked.median * 100, checked.of.max_median * 100, checked.p90 * 100,
                       checked.of.max_p90 ? fmt::format("{:.0f}%", *checked.of.max_p90 * 100) : "",
                       checked.within ? "" : "  PAST ITS LIMIT");
  }
  out += fmt::format("{} tables: {}\n", summary.results.size(),
                     summary.limits.empty() ? "no limit applies (--max-error sets one)"
                     : summary.within       ? "within limits"
                                            : "PAST LIMITS");
  return out;
}

std::string collective_replay_csv(const CollectiveSummary& summary) {
  std::string out =
      "table,cluster,role,operation,ranks,nodes,size_bytes,measured_us,forecast_us,error,low_us,"
      "high_us,calibrated\n";
  for (const CollectiveResult& result : summary.results) {
    const validate::Measurement& measured = result.of.measured;
    for (std::size_t i = 0; i < result.forecast.size(); ++i)
      out +=
          csv::row({csv::field(result.of.name), csv::field(result.of.cluster),
                    std::string(role_of(result.of)), std::string(name_of(measured.operation)),
                    fmt::format("{}", measured.ranks),
                    measured.nodes ? fmt::format("{}", *measured.nodes) : "",
                    csv::number(measured.rows[i].size.value()),
                    csv::number(measured.rows[i].time.us()), csv::number(result.forecast[i].us()),
                    csv::number(error_of(result, i)), csv::number(result.interval[i].low.us()),
                    csv::number(result.interval[i].high.us()),
                    result.interval[i].calibrated ? "true" : "false"}) +
          "\n";
  }
  return out;
}

}  // namespace lambcast
