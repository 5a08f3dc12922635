#include "experiments/convergence/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "experiments/report/palette.h"

namespace lambcast::convergence {
namespace {

constexpr int width = 820, plot_px = 460;

struct View {
  std::string name, title, x_label;
  bool hours = false;
  std::function<bool(const Run&)> shows;
};

bool is_plain(const Run& run) {
  return run.exchange == Exchange::plain &&
         (run.optimizer == Optimizer::lamb || run.optimizer == Optimizer::adam);
}

// With the step that the monitor chose.
std::string label_of(const Curve& curve) {
  if (curve.run.freeze_step != 0 || curve.frozen_at == 0) return curve.run.name();
  return fmt::format("{} ({})", curve.run.name(), curve.frozen_at);
}

// A block per run: steps, hours, loss; from where the first steps, in which all fall alike, end.
std::string data_of(const std::vector<const Outcome*>& shown) {
  constexpr int first_step = 200;
  std::string text;
  for (const Outcome* outcome : shown) {
    text += report::comment(outcome->curve->run.name());
    for (const Point& point : outcome->curve->points) {
      if (point.step < first_step) continue;
      const double hours =
          outcome->times ? hours_at(*outcome->curve, *outcome->times, point.step) : NAN;
      text += fmt::format("{} {} {}\n", point.step, report::data_number(hours),
                          report::data_number(point.loss));
    }
    text += "\n\n";
  }
  return text;
}

report::Figure figure_of(const View& view, const std::vector<Study>& studies) {
  std::vector<const Outcome*> shown;
  for (const Study& study : studies) {
    for (const Outcome& outcome : study.outcomes) {
      if (view.shows(outcome.curve->run) && (!view.hours || outcome.times))
        shown.push_back(&outcome);
    }
  }
  std::vector<report::LegendEntry> entries;
  std::vector<std::string> lines;
  std::size_t looks = 0;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const std::string place =
        fmt::format("'{}.dat' index {} using {}:3", view.name, i, view.hours ? 2 : 1);
    const Run& run = shown[i]->curve->run;
    if (is_plain(run)) {
      entries.push_back({run.name(), report::LegendEntry::Mark::dashes, "#606060"});
      lines.push_back(place + " with lines dt (8,6) lw 2 lc rgb '#606060'");
      continue;
    }
    const report::Look look = report::series_look(looks++);
    entries.push_back({label_of(*shown[i]->curve), report::LegendEntry::Mark::line, look.colour,
                       look.point, look.size});
    lines.push_back(fmt::format("{} with linespoints lw 2 lc rgb '{}' pt {} ps {}*mark pi 4", place,
                                look.colour, look.point, look.size));
  }
  const int legend_px = report::legend_height(entries, width), height = plot_px + legend_px;
  const auto share = [&](double px) { return px / height; };
  std::string body =
      report::margins({94.0 / width, 1 - 20.0 / width, share(legend_px + 60.0), 1 - share(50)});
  body += fmt::format("  set xlabel {} offset 0,up\n", report::script_text(view.x_label));
  body += report::y_label("training loss, nats a character", 0.03);
  body += "  set yrange [:2.6]\n";
  body += report::legend(entries, width, height);
  body += fmt::format("  plot {}\n", fmt::join(lines, ", \\\n    "));
  return {.name = view.name,
          .title = view.title,
          .caption = "",
          .data = data_of(shown),
          .script = report::script(view.name, view.title, width, height, body),
          .left_out = ""};
}

}  // namespace

std::vector<report::Figure> figures(const std::vector<Study>& studies) {
  // Every share but one, for there are six colours.
  const auto freezes = [](Optimizer plain, Optimizer compressed) {
    return [=](const Run& run) {
      return (run.optimizer == compressed && run.freeze_step != 50) ||
             (run.optimizer == plain && run.exchange == Exchange::plain);
    };
  };
  const auto exchanges = [](const Run& run) { return run.optimizer == Optimizer::lamb; };
  const auto locals = [](const Run& run) {
    return run.optimizer == Optimizer::adam || run.optimizer == Optimizer::zero_one_adam;
  };
  const std::string hours = "forecast hours: BERT-Large, 64 GPUs, commodity-10gbe, batch 1,024";
  const auto lamb = freezes(Optimizer::lamb, Optimizer::onebit_lamb);
  const auto adam = freezes(Optimizer::adam, Optimizer::onebit_adam);
  const std::vector<View> views{
      {"lamb_steps", "LAMB and 1-bit LAMB by freeze_step", "steps", false, lamb},
      {"lamb_hours", "LAMB and 1-bit LAMB by freeze_step", hours, true, lamb},
      {"adam_steps", "Adam and 1-bit Adam by freeze_step", "steps", false, adam},
      {"adam_hours", "Adam and 1-bit Adam by freeze_step", hours, true, adam},
      {"exchange_steps", "Gradients that send less", "steps", false, exchanges},
      {"exchange_hours", "Gradients that send less", hours, true, exchanges},
      {"local_steps", "Steps between meetings", "steps", false, locals},
      {"local_hours", "Steps between meetings", hours, true, locals}};
  std::vector<report::Figure> all;
  for (const View& view : views) all.push_back(figure_of(view, studies));
  return all;
}

}  // namespace lambcast::convergence
