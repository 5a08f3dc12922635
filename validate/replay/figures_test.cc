#include "validate/replay/figures.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "validate/replay/axes.h"
#include "validate/replay/made_up_validation.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;
using report::Figure;

TEST_CASE("training figure: the diagonal, 10% either way, hollow fitted and filled unseen marks") {
  const Figure figure = training_figure(made_up_training());
  CHECK_THAT(figure.data, Contains("paper, fitted") && Contains("100 102 \"calm\""));
  CHECK_THAT(figure.data, Contains("blog, unseen") && Contains("100 92 \"wild\""));
  // Values range from 92 to 102, and the axes leave a factor of 1.3 at both ends.
  CHECK_THAT(figure.script, Contains(fmt::format("set xrange [{:.8g}:{:.8g}]", 92 / 1.3, 132.6)));
  CHECK_THAT(figure.data, Contains(fmt::format("{} {}\n{} {}\n", 92 / 1.3, 92 / 1.3 * 1.1,
                                               102 * 1.3, 102 * 1.3 * 1.1)));
  CHECK_THAT(figure.script, Contains("hollow: fitted") && Contains("filled: unseen"));
  // Equally frequent names are in alphabetical order: blog has the first look (a circle, filled
  // since it is unseen), paper the second (a hollow square).
  CHECK_THAT(figure.script, Contains("with points pt 7 ") && Contains("with points pt 4 "));
  CHECK_THAT(figure.script, !Contains("with points pt 6 ") && !Contains("with points pt 5 "));
}

TEST_CASE("training figure: rates have a panel of their own") {
  ReplaySummary summary = made_up_training();
  CHECK_THAT(training_figure(summary).script, !Contains("samples per second"));
  summary.results[1].of.quantity = "samples_per_s";
  CHECK_THAT(training_figure(summary).script,
             Contains("'measured samples per second'") && Contains("'measured step time (ms)'"));
}

TEST_CASE("training errors: a bar as wide as the limit, and at most sixty cases") {
  ReplaySummary summary = made_up_training();
  const Figure few = training_error_figure(summary);
  CHECK_THAT(few.script, Contains("'calm' 2") && Contains("'wild' 1"));
  CHECK_THAT(few.data, Contains("0.1 2.36\n-0.1 2.36\n"));
  CHECK_THAT(few.caption, !Contains("largest errors"));
  for (int i = 0; i < 70; ++i)
    summary.results.push_back(made_up_case(fmt::format("case{}", i), 1.05, false, 0.1));
  const Figure many = training_error_figure(summary);
  CHECK_THAT(many.caption, Contains("The 60 largest errors of 72 cases."));
  CHECK_THAT(many.script, Contains("'wild'") && !Contains("'calm'") && Contains("'case0'"));
}

TEST_CASE("collective figure: times of every row, 25% either way") {
  const Figure figure = collective_figure(made_up_collectives());
  // 1 KiB takes 1 us, forecast at 1.125 times that; 16 MiB take 16384 us, forecast at 0.75 times
  // that.
  CHECK_THAT(figure.data, Contains("InfiniBand, fitted") && Contains("1 1.125 \"seen\""));
  CHECK_THAT(figure.data, Contains("Ethernet, unseen") && Contains("16384 12288 \"new\""));
  CHECK_THAT(figure.script, Contains("'1 us' 1,") && Contains("'10 ms' 10000"));
  CHECK_THAT(figure.caption, Contains("4 in all") && Contains("25%"));
}

TEST_CASE("error over size: band edges and the median of each band as a shaded range") {
  const Figure figure = collective_error_figure(made_up_collectives());
  CHECK_THAT(figure.data, Contains("65536 ") && Contains("4194304 "));
  // Sizes begin at 1 KiB, and the axis at half of that; the range is 12.5% either way up to 64 KiB.
  CHECK_THAT(figure.data, Contains("512 0.875\n65536 0.875\n65536 1.125\n512 1.125\n"));
  CHECK_THAT(figure.script, Contains("'median 12.5%'") && Contains("'median 25.0%'"));
  const Figure apart = cluster_error_figure(made_up_collectives());
  CHECK_THAT(apart.script, Contains("'box, 1 table'") && Contains("'other-box, 1 table'"));
  CHECK_THAT(apart.script, Contains("'all_reduce'"));
}

TEST_CASE("NCCL's own model: its errors and those of the forecast, or a reason for no figure") {
  CollectiveSummary summary = made_up_collectives();
  const Figure figure = own_model_figure(summary);
  CHECK_THAT(figure.data, Contains("50 12.5") && Contains("\"seen\"") && !Contains("\"new\""));
  CHECK_THAT(figure.caption, Contains("on 1 of 1 tables") && Contains("while 1 of the tables"));
  summary.results[0].nccl_median.reset();
  CHECK_THAT(own_model_figure(summary).left_out, Contains("covers none of these tables"));
}

TEST_CASE("axes: every value lies inside, and a short range has ticks too") {
  const auto marks = [](const ScatterAxis& axis) {
    std::vector<std::string> texts;
    for (const AxisTick& tick : axis.ticks)
      if (tick.place >= axis.low && tick.place <= axis.high) texts.push_back(tick.text);
    return texts;
  };
  using Texts = std::vector<std::string>;
  CHECK(marks(time_axis("", {5, 5e5})) == Texts{"10 us", "100 us", "1 ms", "10 ms", "100 ms"});
  CHECK(marks(time_axis("", {90, 2500})) == Texts{"100 us", "200 us", "500 us", "1 ms", "2 ms"});
  CHECK(marks(size_axis("", {64, 0x1p33}, true)) == Texts{"64", "2K", "64K", "4M", "4G"});
  CHECK(marks(size_axis("", {0x1p20, 0x1p21}, false)) == Texts{"1 MiB", "4 MiB"});
  CHECK(marks(round_axis("", {1, 40}, "%", 9)) == Texts{"1%", "2%", "5%", "10%", "20%", "50%"});
  CHECK(marks(round_axis("", {1, 40}, "%", 5)) == Texts{"1%", "10%"});
  const ScatterAxis ratio = ratio_axis("", {0.98, 1.01});
  CHECK(marks(ratio) == Texts{"-25%", "0", "+25%"});
  CHECK(ratio.low <= 0.7);
  CHECK(ratio.high >= 1.4);
}

TEST_CASE("figures: only those with data") {
  const auto names = [](const Validation& validation) {
    std::vector<std::string> all;
    for (const Figure& figure : validation_figures(validation)) all.push_back(figure.name);
    return all;
  };
  CHECK(names({made_up_training(), std::nullopt}) ==
        std::vector<std::string>{"training", "training_error"});
  CHECK(names({std::nullopt, made_up_collectives()}) ==
        std::vector<std::string>{"collectives", "collective_error", "collective_error_by_cluster",
                                 "nccl_own_model"});
  CollectiveSummary one = made_up_collectives();
  one.results.pop_back();
  CHECK(names({std::nullopt, one}).size() == 3);  // one cluster is no comparison of clusters
}

TEST_CASE("figures: kinds beyond the six looks are merged into a grey one") {
  CollectiveSummary summary = made_up_collectives();
  for (int i = 0; i < 7; ++i)
    summary.results.push_back(
        made_up_table("t.csv", "c", fmt::format("net{}", i), true, 1, {1024}));
  // Nine fabrics have one table each; six of them have their own look.
  const Figure figure = collective_figure(summary);
  CHECK_THAT(figure.script, Contains("'3 others'"));
  CHECK_THAT(figure.data, Contains("others, fitted") && !Contains("net6, fitted"));
}

}  // namespace
}  // namespace lambcast
