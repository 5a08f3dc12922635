#include "experiments/report/palette.h"

#include <algorithm>

#include "models/optimizer/optimizer_model.h"
#include "models/training/plan/exchange_name.h"
#include "sim/base/check.h"

namespace lambcast::report {
namespace {

struct Known {
  OptimizerType type;
  Look look;
};

// Other optimizers get a look by their index.
constexpr std::array<Known, 5> known_optimizers = {
    {{OptimizerType::lamb, {"#E69F00", 4, 1.5}},
     {OptimizerType::onebit_lamb, {"#D55E00", 5, 1.5}},
     {OptimizerType::adam, {"#56B4E9", 6, 0.9}},
     {OptimizerType::onebit_adam, {"#0072B2", 7, 0.9}},
     {OptimizerType::zero_one_adam, {"#009E73", 9}}}};

}  // namespace

std::string display_name(std::string_view optimizer) {
  for (const OptimizerModel* model : optimizer_models())
    if (model->name == optimizer) return std::string(model->title);
  if (const auto with = optimizer.find(" with "); with != std::string_view::npos)
    return display_name(optimizer.substr(0, with)) +
           shown_name(std::string(optimizer.substr(with)));
  return std::string(optimizer);
}

Look optimizer_look(std::string_view optimizer, std::size_t index) {
  for (const Known& known : known_optimizers) {
    if (name_of(known.type) == optimizer) return known.look;
  }
  return series_look(index);
}

std::string_view adjective_of(StepKind kind) {
  switch (kind) {
    case StepKind::uniform:
      return "";
    case StepKind::warmup:
      return "warm-up";
    case StepKind::compression:
      return "compressed";
    case StepKind::silent:
      return "silent";
    case StepKind::refresh:
      return "refresh";
    case StepKind::round:
    case StepKind::dry_run:
      break;
  }
  LAMBCAST_CHECK(false, "no page tells of a {} step", name_of(kind));
  return "";
}

Look series_look(std::size_t index) {
  constexpr std::array<Look, 6> looks = {{{"#0072B2", 7},
                                          {"#E69F00", 4},
                                          {"#D55E00", 5},
                                          {"#009E73", 9},
                                          {"#CC79A7", 13},
                                          {"#56B4E9", 6}}};
  Look look = looks[index % looks.size()];
  // After the last look, the colours repeat with other marks.
  if (const std::size_t turn = index / looks.size(); turn > 0) {
    const Look& other = looks[(index + 2 * turn) % looks.size()];
    look.point = other.point;
  }
  return look;
}

Look shape_look(std::size_t index, bool filled) {
  constexpr std::array<Look, shapes + 1> hollow = {{{"#0072B2", 6, 0.9},
                                                    {"#D55E00", 4, 0.85},
                                                    {"#009E73", 8, 1},
                                                    {"#CC79A7", 12, 1.1},
                                                    {"#E69F00", 10, 1},
                                                    {"#56B4E9", 14, 1},
                                                    {"#606060", 6, 0.7}}};
  Look look = hollow[std::min(index, shapes)];
  if (filled) ++look.point;
  return look;
}

}  // namespace lambcast::report
