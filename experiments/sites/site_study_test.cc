#include "experiments/sites/site_study.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

double median_error(const std::string& study) {
  std::vector<double> errors;
  for (const StudyFigure& figure : site_study())
    if (study.empty() || figure.study == study) errors.push_back(figure.error());
  std::ranges::sort(errors);
  REQUIRE(!errors.empty());
  return errors[errors.size() / 2];
}

TEST_CASE("sites study: median errors stay within what was reached") {
  CHECK(median_error("intellect-1") < 0.02);
  CHECK(median_error("prime") < 0.07);
  CHECK(median_error("streaming-diloco") < 0.12);
  CHECK(median_error("data-parallel") < 0.28);
  CHECK(median_error("") < 0.17);
}

// Its peers send 1.99 GB at 110 Mbit/s, 145 s, where 70 s of communication after 20 minutes of
// computation are stated.
TEST_CASE("sites study: Covenant's own rates take longer than the time that it states") {
  const std::vector<StudyFigure> figures = site_study();
  const auto covenant = std::ranges::find(figures, "covenant-72b", &StudyFigure::study);
  REQUIRE(covenant != figures.end());
  CHECK(covenant->published == Approx(70. / (1200 + 70)).epsilon(1e-3));
  const double upload_s = 7.27e10 * 14 * 64 / 4096 / 110e6;
  CHECK(upload_s == Approx(145).epsilon(0.01));
  CHECK(covenant->forecast > upload_s / (1200 + upload_s));
}

TEST_CASE("sites study: every figure has a source, and each study its errors in the table") {
  const std::vector<StudyFigure> figures = site_study();
  const std::string table = site_study_table(figures);
  std::set<std::string> studies;
  for (const StudyFigure& figure : figures) {
    CHECK(!figure.source.empty());
    CHECK(figure.published > 0);
    CHECK(figure.forecast_high >= figure.forecast);
    CHECK(figure.error_beyond_grid() <= figure.error() + 1e-12);
    studies.insert(figure.study);
  }
  for (const std::string& study : studies) CHECK_THAT(table, Contains("\n" + study + " "));
}

}  // namespace
}  // namespace lambcast
