#include "experiments/report/gnuplot.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "experiments/report/contains_test.h"
#include "experiments/report/figure.h"

using namespace lambcast::report;
using lambcast::contains;

TEST_CASE("names of users cannot break scripts, data and file names") {
  CHECK(script_text("it's `x`\n") == "'it'.\"'\".'s `x` '");
  // Two quotes in a row end a text of gnuplot, and ]]> is not allowed in XML.
  CHECK(script_text("'''a''") == "''.\"'''\".'a'.\"''\".''");
  CHECK(script_text("a]]>b]]]>\x1b[m\xff") == "'a]] >b]]] > [m\uFFFD'");
  CHECK(data_text("a \"b\" \\") == "\"a 'b' /\"");
  CHECK(comment("one\ntwo\\") == "# one two/\n");
  CHECK(data_number(absent) == "?");
  CHECK(file_stem("freeze", "../a b") == "freeze____a_b");
}

TEST_CASE("a title that is too long for one line takes two, in smaller letters") {
  CHECK(title_label("Throughput: tiny, batch 4096", 820, 400) ==
        "'Throughput: tiny, batch 4096' at screen 0.5,screen 0.9500 center font ',17'");
  const std::string half(60, 'x');
  CHECK(title_label(half + ", " + half, 820, 400) ==
        "'" + half + ",'.\"\\n\".'" + half + "' at screen 0.5,screen 0.9725 center font ',13'");
  CHECK(contains(title_label(half + half, 820, 400), "'" + half + half + "' at screen 0.5"));
  CHECK(contains(title_label(half + half, 820, 400), "font ',11'"));
  CHECK(contains(title_label(half + half + half + ", b", 820, 400), "font ',8'"));
}

TEST_CASE("round axis values are above zero") {
  CHECK(round_places(0, 10).empty());
  CHECK(round_places(-1, 10).empty());
  CHECK(round_places(1, INFINITY).empty());
  CHECK(round_places(1, 10) == std::vector<double>{1, 2, 5, 10});
}

TEST_CASE("a logarithmic axis has at most the given number of tick marks") {
  CHECK(log_ticks({8, 16, 32}, 8) == "('8' 8, '16' 16, '32' 32)");
  // 8 to 256 are five doublings; with at most two marks, every third value is kept.
  CHECK(log_ticks({8, 16, 32, 64, 128, 256}, 2) == "('8' 8, '64' 64)");
}
