#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "experiments/compare/folder_comparison.h"
#include "experiments/output/cell.h"
#include "experiments/output/forecast_output.h"
#include "experiments/output/interval_axis.h"
#include "sim/base/csv.h"
#include "sim/base/json.h"
#include "sim/base/ratio.h"
#include "sim/base/units.h"

namespace lambcast {
namespace {

std::string time_text(const FolderPoint& point) {
  if (point.run_time_low_s && point.run_time_high_s)
    return time_and_range(point.run_time_s, *point.run_time_low_s, *point.run_time_high_s);
  return run_time_text(point.run_time_s);
}

// Returns the folder whose best point has the smallest value of `figure`.
template <typename Figure>
const ResultsFolder* best_by(const FolderComparison& comparison,
                             std::optional<FolderPoint> ResultsFolder::*point, Figure figure) {
  const ResultsFolder* best = nullptr;
  for (const ResultsFolder& folder : comparison.folders)
    if ((folder.*point) && (best == nullptr || figure(*(folder.*point)) < figure(*(best->*point))))
      best = &folder;
  return best;
}

std::string cheapest_sentence(const FolderComparison& comparison) {
  const ResultsFolder* cheapest =
      best_by(comparison, &ResultsFolder::cheapest, [](const FolderPoint& at) { return at.usd(); });
  if (cheapest == nullptr)
    return fmt::format("Cost: {}, when sweep writes them.\n", no_price_text());
  const FolderPoint& point = *cheapest->cheapest;
  std::string out =
      fmt::format("Cheapest: {}, {} USD a run", cheapest->name, usd_cell(*point.cost_usd));
  if (point.cost_low_usd && point.cost_high_usd)
    out +=
        fmt::format(" ({} to {})", usd_cell(*point.cost_low_usd), usd_cell(*point.cost_high_usd));
  if (!comparison.work.is_a_run())
    out += fmt::format(", {} USD a {},", usd_cell(point.usd()), comparison.work.name());
  return out + fmt::format(" with {}.\n", settings_text(point));
}

std::string answer_of(const FolderComparison& comparison) {
  const ResultsFolder* fastest = best_by(comparison, &ResultsFolder::fastest,
                                         [](const FolderPoint& at) { return at.time_s(); });
  if (fastest == nullptr) return "No point of them runs.\n";
  const EqualWork& work = comparison.work;
  const FolderPoint& best = *fastest->fastest;
  std::string out = fmt::format(
      "Fastest: {}, {} a run{} with {}.", fastest->name, time_text(best),
      work.is_a_run() ? "" : fmt::format(", {} a {},", run_time_text(best.time_s()), work.name()),
      settings_text(best));
  if (!work.is_a_run()) out += fmt::format(" {}", work.reason());
  out += fmt::format("\n{}", cheapest_sentence(comparison));
  for (const ResultsFolder& folder : comparison.folders)
    if (!folder.verdict.empty()) out += fmt::format("{}: {}\n", folder.name, folder.verdict);
  for (const ResultsFolder& folder : comparison.folders) {
    if (&folder == &comparison.folders.front()) continue;
    const std::string& first = comparison.folders.front().name;
    out += folder.against_first
               ? fmt::format(
                     "{} takes {} as {} in the median of the {} points that are alike "
                     "({} to {}).\n",
                     folder.name, times_as_long(folder.against_first->median), first,
                     folder.against_first->points, ratio_digits(folder.against_first->least),
                     ratio_digits(folder.against_first->most))
               : fmt::format("{} and {} have no points alike.\n", folder.name, first);
  }
  return out;
}

std::string line_of(const ResultsFolder& folder, std::size_t width) {
  const auto& fastest = folder.fastest;
  const auto& pays = folder.pays_most;
  const auto number = [](const auto& point, auto member) {
    return point && (*point).*member ? usd_cell(*((*point).*member)) : "-";
  };
  return fmt::format(
      "{:<{}} {:>6} {:>7} {:>9} {:>8} {:>6} {:>6} {:>12}\n", folder.name, width, folder.points,
      folder.points - folder.ran, fastest ? time_cell(fastest->run_time_s) : "-",
      fastest ? bytes_cell(Bytes(fastest->peak_bytes_per_gpu)) : "-",
      number(folder.cheapest, &FolderPoint::cost_usd),
      pays ? fmt::format("{:.2f}x", pays->speedup->value) : "-",
      pays ? fmt::format("{:.2f} to {:.2f}", pays->speedup->low, pays->speedup->high) : "-");
}

Json point_json(const std::optional<FolderPoint>& point) {
  if (!point) return nullptr;
  const auto optional = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  const auto end = [&](double Speedup::*member) {
    return point->speedup ? Json((*point->speedup).*member) : Json(nullptr);
  };
  Json settings = Json::object();
  for (const auto& [key, value] : point->settings) settings[key] = value;
  return {{"settings", settings},
          {"run_time_s", point->run_time_s},
          {"run_time_low_s", optional(point->run_time_low_s)},
          {"run_time_high_s", optional(point->run_time_high_s)},
          {"cost_usd", optional(point->cost_usd)},
          {"speedup_vs_baseline", end(&Speedup::value)},
          {"speedup_low", end(&Speedup::low)},
          {"speedup_high", end(&Speedup::high)},
          {"peak_bytes_per_gpu", point->peak_bytes_per_gpu},
          {"cost_low_usd", optional(point->cost_low_usd)},
          {"cost_high_usd", optional(point->cost_high_usd)},
          {"equal_work_time_s", point->time_s()}};
}

}  // namespace

std::string folder_comparison_table(const FolderComparison& comparison) {
  std::size_t width = 6;
  std::vector<AxisEntry> axis;
  double longest_s = 0;
  for (const ResultsFolder& folder : comparison.folders) {
    width = std::max(width, folder.name.size());
    if (!folder.fastest) continue;
    const FolderPoint& point = *folder.fastest;
    axis.push_back({folder.name, point.share * point.run_time_low_s.value_or(point.run_time_s),
                    point.time_s(),
                    point.share * point.run_time_high_s.value_or(point.run_time_s)});
    longest_s = std::max(longest_s, axis.back().high);
  }
  std::string out = answer_of(comparison);
  out += fmt::format("\n{:<{}} {:>6} {:>7} {:>9} {:>8} {:>6} {:>6} {:>12}\n", "folder", width,
                     "points", "not run", "fastest", "memory", "USD", "1-bit", "within");
  for (const ResultsFolder& folder : comparison.folders) out += line_of(folder, width);
  out += fmt::format("\n{}", interval_axis(std::string(comparison.work.name()), axis, "0 s",
                                           run_time_text(longest_s)));
  if (!comparison.differ.empty())
    out += fmt::format("\nWhat differs: {}.\n", fmt::join(comparison.differ, ", "));
  return out +
         "\nnot run: what does not fit or is refused. memory: of the fastest. USD: of the "
         "cheapest. "
         "1-bit: the most that compression makes of a run. Points are alike that agree in every "
         "key of which the folders share values; of those the fastest counts.\n";
}

std::string folder_comparison_json(const FolderComparison& comparison) {
  Json json{{"schema_version", 1},         {"tool", "lambcast"},
            {"version", tool_version},     {"answer", answer_of(comparison)},
            {"differ", comparison.differ}, {"equal_work", std::string(comparison.work.name())},
            {"folders", Json::array()}};
  for (const ResultsFolder& folder : comparison.folders) {
    Json one{{"name", folder.name},
             {"points", folder.points},
             {"ran", folder.ran},
             {"fastest", point_json(folder.fastest)},
             {"cheapest", point_json(folder.cheapest)},
             {"pays_most", point_json(folder.pays_most)},
             {"verdict", folder.verdict},
             {"against_first", nullptr},
             {"verdict_words",
              folder.opens ? Json(std::string(words_of(*folder.opens))) : Json(nullptr)}};
    if (const auto& like = folder.against_first)
      one["against_first"] = {{"points", like->points},
                              {"least", like->least},
                              {"median", like->median},
                              {"most", like->most}};
    json["folders"].push_back(std::move(one));
  }
  return json_lines(json);
}

std::string folder_comparison_csv(const FolderComparison& comparison) {
  std::string out = csv::row({"folder", "points", "ran", "fastest_run_time_s", "cheapest_cost_usd",
                              "most_speedup", "like_points", "median_times_as_long"}) +
                    "\n";
  for (const ResultsFolder& folder : comparison.folders) {
    const auto& like = folder.against_first;
    out += csv::row({folder.name, fmt::format("{}", folder.points), fmt::format("{}", folder.ran),
                     folder.fastest ? csv::number(folder.fastest->run_time_s) : "",
                     folder.cheapest ? csv::number(*folder.cheapest->cost_usd) : "",
                     folder.pays_most ? csv::number(folder.pays_most->speedup->value) : "",
                     like ? fmt::format("{}", like->points) : "",
                     like ? csv::number(like->median) : ""}) +
           "\n";
  }
  return out;
}

}  // namespace lambcast
