#include "validate/replay/fabric_scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "validate/interval_score.h"
#include "validate/replay/coverage.h"

namespace lambcast {
namespace {

std::size_t band_of(Bytes size) {
  return size.value() < small_below ? 0 : size.value() < medium_below ? 1 : 2;
}

struct Rows {
  std::vector<double> errors;
  double inside = 0, score = 0;
};

BandScore score_of(const Rows& rows) {
  const auto count = static_cast<double>(rows.errors.size());
  return {validate::quantile(rows.errors, 0.5), validate::quantile(rows.errors, 0.9),
          rows.inside / count, rows.score / count};
}

// Formats a table with two figures per band: errors, or properties of intervals.
std::string table_of(const std::vector<FabricScore>& scores, const char* title,
                     const std::array<const char*, 2>& figures,
                     std::string (*shown)(const BandScore& band)) {
  std::string out = fmt::format("{:<29} {:<6} {:>4}", "fabrics, each alike", "", "");
  for (const char* name : {"below 64 KiB", "to 4 MiB", "above"})
    out += fmt::format(" {:>13}", name);
  out += fmt::format("\n{:<29} {:<6} {:>4}", title, "role", "rows");
  for (std::size_t band = 0; band < band_names.size(); ++band)
    out += fmt::format(" {:>6} {:>6}", figures[0], figures[1]);
  out += "\n";
  for (const FabricScore& score : scores) {
    out += fmt::format("{:<29} {:<6} {:>4}", score.cluster, score.role, score.rows);
    for (const std::optional<BandScore>& band : score.bands)
      out += fmt::format(" {:>13}", band ? shown(*band) : "");
    out += "\n";
  }
  return out;
}

}  // namespace

std::vector<FabricScore> scores_by_fabric(const std::vector<CollectiveResult>& results,
                                          std::optional<Ground> ground) {
  std::map<std::pair<std::string, std::string>, std::array<Rows, 3>> all;
  for (const CollectiveResult& result : results) {
    auto& bands = all[{result.of.cluster, std::string(role_of(result.of))}];
    for (std::size_t i = 0; i < result.forecast.size(); ++i) {
      if (ground && result.interval[i].ground != *ground) continue;
      const validate::Row& row = result.of.measured.rows[i];
      Rows& rows = bands[band_of(row.size)];
      const auto& [low, high] = std::pair{result.interval[i].low, result.interval[i].high};
      rows.errors.push_back(std::abs(error_of(result, i)));
      rows.inside += low <= row.time && row.time <= high ? 1 : 0;
      rows.score += interval_score(low.s(), high.s(), row.time.s());
    }
  }
  std::vector<FabricScore> scores;
  for (const auto& [key, bands] : all) {
    FabricScore score{key.first, key.second, 0, {}};
    for (std::size_t band = 0; band < bands.size(); ++band) {
      score.rows += static_cast<int>(bands[band].errors.size());
      if (!bands[band].errors.empty()) score.bands[band] = score_of(bands[band]);
    }
    scores.push_back(std::move(score));
  }
  return scores;
}

FabricScore over_fabrics(const std::vector<FabricScore>& fabrics, const std::string& role) {
  FabricScore over{"over fabrics", role, 0, {}};
  for (std::size_t band = 0; band < over.bands.size(); ++band) {
    std::vector<double> medians, p90s;
    BandScore sum;
    for (const FabricScore& fabric : fabrics) {
      if (fabric.role != role || !fabric.bands[band]) continue;
      medians.push_back(fabric.bands[band]->median);
      p90s.push_back(fabric.bands[band]->p90);
      sum.inside += fabric.bands[band]->inside;
      sum.score += fabric.bands[band]->score;
    }
    if (medians.empty()) continue;
    const auto count = static_cast<double>(medians.size());
    over.bands[band] = {validate::quantile(medians, 0.5), validate::quantile(p90s, 0.5),
                        sum.inside / count, sum.score / count};
  }
  for (const FabricScore& fabric : fabrics)
    if (fabric.role == role) over.rows += fabric.rows;
  return over;
}

std::string fabric_score_table(const std::vector<CollectiveResult>& results) {
  std::vector<FabricScore> scores = scores_by_fabric(results);
  const std::vector<FabricScore> fabrics = scores;
  for (const char* role : {"fitted", "unseen"}) {
    const FabricScore over = over_fabrics(fabrics, role);
    if (over.rows > 0) scores.push_back(over);
    for (const Ground ground : {Ground::calibrated, Ground::same_hardware, Ground::algorithm,
                                Ground::extrapolated, Ground::none}) {
      FabricScore part = over_fabrics(scores_by_fabric(results, ground), role);
      part.cluster = fmt::format("  {}", in_words(ground));
      if (part.rows > 0) scores.push_back(part);
    }
  }
  return table_of(scores, "|forecast / measured - 1|", {"median", "90th"},
                  [](const BandScore& band) {
                    return fmt::format("{:>5.1f}% {:>5.1f}%", band.median * 100, band.p90 * 100);
                  }) +
         "\n" +
         table_of(scores, "intervals of 90 %", {"inside", "score"},
                  [](const BandScore& band) {
                    return fmt::format("{:>5.0f}% {:>6.2f}", band.inside * 100, band.score);
                  }) +
         std::string(role_legend);
}

}  // namespace lambcast
