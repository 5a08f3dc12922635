#include "validate/replay/user_runs.h"

#include <catch2/catch.hpp>

#include "validate/replay/measured_quantity.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

std::vector<SourceFigure> runs(const std::string& text) {
  return figures_of_runs(parse_rows(text, "runs.csv"));
}

TEST_CASE("runs: columns are what-if keys and measured quantities") {
  const std::vector<SourceFigure> figures = runs(
      "# two runs of ours\ncase,model,gpus,model.layers,micro_batch,tokens_per_gpu_s,memory_gib\n"
      "a,gpt2,8,6,4,12000,31.5\nb,gpt2,16,,4,,30\n");
  REQUIRE(figures.size() == 3);
  CHECK(figures[0].source == "runs");
  CHECK(figures[0].name == "a");
  CHECK(figures[0].quantity == Quantity::tokens_per_gpu_s);
  CHECK(figures[0].measured == 12000);
  CHECK(figures[0].what_if ==
        WhatIf{{"model", "gpt2"}, {"gpus", "8"}, {"model.layers", "6"}, {"micro_batch", "4"}});
  CHECK(figures[1].quantity == Quantity::memory_gib);
  CHECK(figures[1].row == 1);
  CHECK(figures[2].row == 2);
  CHECK_FALSE(figures[2].what_if.contains("model.layers"));  // an empty cell is left out
}

TEST_CASE("runs: every word of --measured is a column, with its unit") {
  const std::vector<SourceFigure> figures =
      runs("model,step_time,memory,mfu\ngpt2,5436ms,71GiB,41%\n");
  REQUIRE(figures.size() == 3);
  CHECK(figures[0].measured == Approx(5.436));
  CHECK(figures[1].quantity == Quantity::mfu_pct);
  CHECK(figures[1].measured == Approx(41));
  CHECK(figures[1].peak_tflops == 0);  // 0: the peak of the device
  CHECK(figures[2].measured == Approx(71));
  for (const MeasuredQuantity& of : measured_quantities()) {
    const std::string value = of.example.substr(of.name.size() + 1);
    const SourceFigure figure =
        runs("model,peak_tflops," + of.name + "\ngpt2,312," + value + "\n").front();
    CHECK(figure.quantity == of.quantity);
    CHECK(figure.measured == parse_measured(of, value, {}));
  }
  CHECK_THROWS_WITH(runs("model,step_time\ngpt2,5436\n"), Contains("runs.csv:2: step_time"));
}

TEST_CASE(
    "runs: a wrong column, text for a number, and a missing measurement are refused at their "
    "place") {
  CHECK_THROWS_WITH(runs("model,gpu,step_time_s\ngpt2,8,1\n"),
                    Contains("runs.csv: gpu: unknown column 'gpu', did you mean 'gpus'"));
  CHECK_THROWS_WITH(runs("model,gpus\ngpt2,8\n"), Contains("has no measured column"));
  CHECK_THROWS_WITH(runs("model,days\ngpt2,8\n"), Contains("unknown column 'days'"));
  CHECK_THROWS_WITH(runs("model,step_time_s\ngpt2,\n"),
                    Contains("runs.csv:2: has no measured value"));
  CHECK_THROWS_WITH(runs("model,step_time_s\ngpt2,-1\n"), Contains("must be above zero"));
  CHECK_THROWS_WITH(runs("model,step_time_s\n# a comment\ngpt2,fast\n"),
                    "runs.csv:3: step_time_s: 'fast' is not a finite number");
  CHECK_THROWS_WITH(runs("model,mfu_pct\ngpt2,40\n"), Contains("needs a column peak_tflops"));
  CHECK_THROWS_WITH(runs("model,step_time_s\n"), Contains("holds no rows"));
}

}  // namespace
}  // namespace lambcast
