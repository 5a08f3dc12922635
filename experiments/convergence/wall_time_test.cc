#include "experiments/convergence/wall_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "experiments/convergence/curves.h"
#include "experiments/convergence/figures.h"
#include "sim/base/csv.h"
#include "sim/base/file.h"

using namespace lambcast;
using namespace lambcast::convergence;

namespace {

constexpr double level_of_page =
    0.03;  // level above the plain optimizer's loss, as in convergence_study

std::vector<Study> judged(const std::vector<Curve>& curves) {
  return {judge(curves, true, level_of_page), judge(curves, false, level_of_page)};
}

std::vector<Curve> recorded(const char* file) {
  return parse_curves(read_file(file), file, study_runs(Recipe{}));
}

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

}  // namespace

TEST_CASE(
    "every recorded run is judged in one family, by the first point it stays below the level") {
  const std::vector<Curve> curves = recorded(LAMBCAST_CURVES);
  const std::vector<Study> studies = judged(curves);
  std::set<std::string> names;
  for (const Study& study : studies) {
    for (const Outcome& of : study.outcomes) {
      CAPTURE(of.curve->run.name(), study.level);
      CHECK(names.insert(of.curve->run.name()).second);
      for (const Point& point : of.curve->points) {
        const bool counts = of.steps_to_level != 0 && point.step >= of.steps_to_level;
        if (counts) CHECK(point.loss <= study.level);
      }
      if (of.steps_to_level == 0) CHECK(of.curve->points.back().loss > study.level);
      CHECK(of.hours_to_level <= of.hours);
      CHECK(of.hours >= 0.9999 * of.curve->points.back().step *
                            std::min(of.times.warm_up_s, of.times.after_s) / 3600);
      CHECK(of.hours <= 1.0001 * of.curve->points.back().step *
                            std::max(of.times.warm_up_s, of.times.after_s) / 3600);
    }
  }
  CHECK(names.size() == curves.size());
}

TEST_CASE("the recorded summaries follow from the recorded curves") {
  for (const auto& [file, summary] : {std::pair{LAMBCAST_CURVES, LAMBCAST_SUMMARY},
                                      std::pair{LAMBCAST_CURVES_LARGE, LAMBCAST_SUMMARY_LARGE}}) {
    const std::vector<Curve> curves = recorded(file);
    const csv::Table want = csv::parse(read_file(summary), summary);
    const csv::Table got = csv::parse(study_csv(judged(curves)), "study");
    REQUIRE(got.rows.size() == want.rows.size());
    for (std::size_t row = 0; row < got.rows.size(); ++row) {
      CAPTURE(summary, got.text(row, "run"));
      for (const char* exact :
           {"run", "frozen_at", "final_loss", "held_out_loss", "level", "steps_to_level"})
        CHECK(got.text(row, exact) == want.text(row, exact));
      // The README shows two digits of the hours; `convergence_study report` rewrites the file.
      for (const char* time : {"hours_to_level", "hours", "warmup_step_s", "after_step_s"}) {
        if (want.text(row, time).empty())
          CHECK(got.text(row, time).empty());
        else
          CHECK(got.number(row, time) == Approx(want.number(row, time)).epsilon(0.01));
      }
    }
  }
}

TEST_CASE("a figure draws each run that it names once, against steps and against hours") {
  const std::vector<Curve> curves = recorded(LAMBCAST_CURVES);
  const std::vector<Study> studies = judged(curves);
  const std::vector<report::Figure> all = figures(studies);
  std::set<std::string> names, drawn;
  for (const report::Figure& figure : all) {
    CAPTURE(figure.name);
    CHECK(names.insert(figure.name).second);
    CHECK(figure.left_out.empty());
    const std::size_t lines = times(figure.script, fmt::format("'{}.dat' index ", figure.name));
    CHECK(lines >= 2);
    const bool hours = figure.name.ends_with("_hours");
    CHECK(times(figure.script, hours ? " using 2:3" : " using 1:3") == lines);
    std::size_t blocks = 0;
    for (const Curve& curve : curves) {
      const std::size_t of = times(figure.data, report::comment(curve.run.name()));
      CHECK(of <= 1);
      blocks += of;
      if (of == 1) drawn.insert(curve.run.name());
    }
    CHECK(blocks == lines);
  }
  CHECK(names.contains("lamb_steps"));
  CHECK(names.contains("lamb_hours"));
  for (const Curve& curve : curves) {
    // The figure has six colours, so two of the shares are left out.
    const bool left_out = curve.run.freeze_step == 50 || curve.run.freeze_step == 300;
    CAPTURE(curve.run.name());
    CHECK(drawn.contains(curve.run.name()) == !left_out);
  }
}

TEST_CASE("points of a figure are the steps, the hours and the loss of its runs") {
  const std::vector<Curve> curves = recorded(LAMBCAST_CURVES);
  const std::vector<Study> studies = judged(curves);
  const std::vector<report::Figure> all = figures(studies);
  const auto lamb = std::ranges::find(all, "lamb_hours", &report::Figure::name);
  REQUIRE(lamb != all.end());
  const Outcome& plain = studies[0].outcomes.front();
  REQUIRE(plain.curve->run.name() == "lamb");
  std::string block = report::comment("lamb");
  for (const Point& point : plain.curve->points) {
    if (point.step >= 200)  // in earlier steps all runs fall alike
      block += fmt::format("{} {} {}\n", point.step,
                           report::data_number(hours_at(*plain.curve, plain.times, point.step)),
                           report::data_number(point.loss));
  }
  CHECK(times(lamb->data, block) == 1);
}
