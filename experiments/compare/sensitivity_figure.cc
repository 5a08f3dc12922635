#include "experiments/compare/sensitivity_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/output/forecast_output.h"
#include "experiments/output/plain_name.h"
#include "experiments/report/palette.h"

namespace lambcast {
namespace {

using report::data_number;
using report::data_text;

constexpr std::size_t most_inputs = 18;
constexpr int width = 860, row_px = 26, head_px = 70, foot_px = 64;
constexpr const char* shorter = "#0072B2";  // colour of Okabe and Ito, as in all figures
constexpr const char* longer = "#D55E00";
constexpr const char* share_colour = "#999999";

std::string title_of(const Sensitivity& sensitivity) {
  const TrainingPlan& training = sensitivity.scenario.training;
  return fmt::format("What moves a run of {} with {} on {}, {} GPUs: {}", training.model->name,
                     report::display_name(name_of(training.optimizer())), training.cluster->name,
                     training.gpus, run_time_text(sensitivity.forecast.run.time_s));
}

std::string data_of(const std::vector<const InputEffect*>& shown) {
  std::string data = "# place key time_elasticity speedup_elasticity share_percent\n";
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const InputEffect& effect = *shown[i];
    const auto share = effect.interval_share;
    data += fmt::format("{} {} {} {} {}\n", i, data_text(effect.key),
                        data_number(effect.time_elasticity),
                        data_number(effect.speedup_elasticity.value_or(std::nan(""))),
                        data_number(share ? 100 * *share : std::nan("")));
  }
  return data;
}

std::string body_of(const Sensitivity& sensitivity, const std::vector<const InputEffect*>& shown,
                    int height) {
  std::string names;
  for (std::size_t i = 0; i < shown.size(); ++i)
    names += fmt::format("{}{} {}", i == 0 ? "" : ", ",
                         report::script_text(plain_name(shown[i]->key)), i);
  double most = 0;
  for (const InputEffect* effect : shown) most = std::max(most, std::abs(effect->time_elasticity));
  const double top = 1 - static_cast<double>(head_px) / height;
  const double bottom = static_cast<double>(foot_px) / height;
  const std::string rows = fmt::format("  set yrange [{}:-0.6]\n  unset grid\n  set grid x\n",
                                       static_cast<double>(shown.size()) - 0.4);
  const auto bars = [](const char* condition, const char* colour) {
    return fmt::format(
        "'sensitivity.dat' using ({} ? $3 : 1/0):1:($3<0?$3:0):($3<0?0:$3):($1-0.36):($1+0.36) "
        "with "
        "boxxyerror fs solid 1 noborder lc rgb '{}'",
        condition, colour);
  };
  return fmt::format(
             "{}{}  set ytics ({})\n  set xrange [{:.4g}:{:.4g}]\n"
             "  set xlabel 'per cent of time for 1 % more of it' offset 0,up\n"
             "  plot {}, \\\n    {}\n",
             rows, report::margins({0.37, 0.70, bottom, top}), names, -1.08 * most, 1.08 * most,
             bars("$3<0", shorter), bars("$3>=0", longer)) +
         fmt::format(
             "  unset ytics\n{}  set xrange [0:100]\n  set xlabel {} offset 0,up\n"
             "  plot 'sensitivity.dat' using 5:1:(0):5:($1-0.36):($1+0.36) with boxxyerror "
             "fs solid 1 noborder lc rgb '{}'\n",
             report::margins({0.74, 0.96, bottom, top}),
             report::script_text(sensitivity.of_speedup() ? "% of the speed-up interval"
                                                          : "% of the time interval"),
             share_colour);
}

}  // namespace

report::Figure sensitivity_figure(const Sensitivity& sensitivity) {
  report::Figure figure;
  figure.name = "sensitivity";
  figure.title = title_of(sensitivity);
  std::vector<const InputEffect*> shown;
  for (const InputEffect& effect : sensitivity.effects)
    if (std::abs(effect.time_elasticity) > no_effect && shown.size() < most_inputs)
      shown.push_back(&effect);
  if (shown.empty()) {
    figure.left_out = "no input moves the run";
    return figure;
  }
  const int height = head_px + foot_px + row_px * static_cast<int>(shown.size());
  figure.data = data_of(shown);
  figure.script =
      report::script(figure.name, figure.title, width, height, body_of(sensitivity, shown, height));
  return figure;
}

}  // namespace lambcast
