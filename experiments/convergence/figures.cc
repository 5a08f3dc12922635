#include "experiments/convergence/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "experiments/report/palette.h"

namespace lambcast::convergence {
namespace {

constexpr int width = 820, plot_px = 460;
constexpr std::array<std::string_view, 2> greys{"#505050", "#a8a8a8"};  // colours of LAMB and Adam

struct View {
  std::string name, title, x_label;
  bool hours = false;
  std::function<bool(const Run&)> shows;
};

bool is_plain(const Run& run) {
  return run.exchange == Exchange::plain &&
         (run.optimizer == Optimizer::lamb || run.optimizer == Optimizer::adam);
}

bool fewer_elements(Exchange exchange) {
  return exchange == Exchange::power_sgd_4 || exchange == Exchange::top_k_1 ||
         exchange == Exchange::random_k_1 || exchange == Exchange::chunk_top_k_64 ||
         exchange == Exchange::dct_sign_64;
}

// Returns the name of the run, with the freeze step if the monitor chose it.
std::string label_of(const Curve& curve) {
  if (curve.run.freeze_step != 0 || curve.frozen_at == 0) return curve.run.name();
  return fmt::format("{} ({})", curve.run.name(), curve.frozen_at);
}

// Returns one block per run with steps, hours and loss. Leaves out the first steps, in which the
// losses of all runs fall alike.
std::string data_of(const std::vector<const Outcome*>& shown) {
  constexpr int first_step = 200;
  std::string text;
  for (const Outcome* outcome : shown) {
    text += report::comment(outcome->curve->run.name());
    for (const Point& point : outcome->curve->points) {
      if (point.step < first_step) continue;
      const double hours = hours_at(*outcome->curve, outcome->times, point.step);
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
      if (view.shows(outcome.curve->run)) shown.push_back(&outcome);
    }
  }
  std::vector<report::LegendEntry> entries;
  std::vector<std::string> lines;
  std::size_t looks = 0, plain = 0;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const std::string place =
        fmt::format("'{}.dat' index {} using {}:3", view.name, i, view.hours ? 2 : 1);
    const Run& run = shown[i]->curve->run;
    if (is_plain(run)) {
      const std::string_view grey = greys.at(plain++);
      entries.push_back({run.name(), report::LegendEntry::Mark::dashes, grey});
      lines.push_back(fmt::format("{} with lines dt (8,6) lw 2 lc rgb '{}'", place, grey));
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
      report::margins({94.0 / width, 1 - 36.0 / width, share(legend_px + 60.0), 1 - share(50)});
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
  // Shows every freeze share except two, since there are six colours.
  const auto by_freeze = [](Optimizer plain, Optimizer compressed) {
    return [=](const Run& run) {
      const bool shown = run.freeze_step != 50 && run.freeze_step != 300;
      return (run.optimizer == compressed && shown) || (run.optimizer == plain && is_plain(run));
    };
  };
  const auto whole_tensors = [](const Run& run) {
    return run.exchange == Exchange::plain && !freezes(run.optimizer);
  };
  const auto fewer_bits = [](const Run& run) {
    return run.optimizer == Optimizer::lamb && !fewer_elements(run.exchange);
  };
  const auto sparse = [](const Run& run) {
    return run.optimizer == Optimizer::lamb && (is_plain(run) || fewer_elements(run.exchange));
  };
  const auto locals = [](const Run& run) {
    return run.optimizer == Optimizer::adam || run.optimizer == Optimizer::zero_one_adam;
  };
  struct Family {
    std::string name, title;
    std::function<bool(const Run&)> shows;
  };
  const std::vector<Family> families{
      {"lamb", "LAMB and 1-bit LAMB by freeze_step",
       by_freeze(Optimizer::lamb, Optimizer::onebit_lamb)},
      {"adam", "Adam and 1-bit Adam by freeze_step",
       by_freeze(Optimizer::adam, Optimizer::onebit_adam)},
      {"optimizer", "Optimizers that send whole gradients", whole_tensors},
      {"bits", "LAMB on gradients of fewer bits", fewer_bits},
      {"sparse", "LAMB on gradients of fewer elements", sparse},
      {"local", "Adam between meetings", locals}};
  const std::string hours = "forecast hours: BERT-Large, 64 GPUs, commodity-10gbe, batch 1,024";
  std::vector<View> views;
  for (const Family& family : families) {
    views.push_back({family.name + "_steps", family.title, "steps", false, family.shows});
    views.push_back({family.name + "_hours", family.title, hours, true, family.shows});
  }
  std::vector<report::Figure> all;
  for (const View& view : views) all.push_back(figure_of(view, studies));
  return all;
}

}  // namespace lambcast::convergence
