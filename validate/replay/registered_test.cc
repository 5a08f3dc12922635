#include "validate/replay/registered.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "sim/base/csv.h"
#include "sim/base/error.h"
#include "sim/base/file.h"

namespace lambcast {
namespace {

using Catch::Contains;

const std::string questions =
    "# two of many\n"
    "case,model,cluster,gpus,optimizer,global_batch,micro_batch\n"
    "small,bert-large,dgx-a100-80g,8,lamb,512,32\n"
    "large,bert-large,dgx-a100-80g,16,lamb,512,32\n";

TEST_CASE("registered: the recorded forecast is compared, not one of the current program") {
  const std::string file = register_forecasts(questions, "questions.csv", "registered today");
  const csv::Table table = csv::parse(file, "registered.csv");
  REQUIRE(table.comments.size() == 2);
  CHECK(table.comments.front() == "# registered today");
  CHECK(table.comments.back() == "# two of many");
  const double step = table.number(0, "step_time_s");
  CHECK(table.number(0, "low_s") < step);
  CHECK(step < table.number(0, "high_s"));
  // This file has numbers that the current program would not forecast.
  const std::string old =
      "# registered long ago\ncase,model,step_time_s,low_s,high_s\nsmall,bert-large,2,1.5,3\n"
      "large,bert-large,4,3,5\nlarger,bert-large,8,7,9\n";
  const RegisteredScore score =
      score_registered(old, "registered.csv", "case,step_time_s\nlarge,5\nsmall,4\n", "truth.csv");
  REQUIRE(score.results.size() == 2);
  CHECK(score.results[0].error == Approx(-0.5));
  CHECK_FALSE(score.results[0].inside());
  CHECK(score.results[1].error == Approx(-0.2));
  CHECK(score.results[1].inside());
  CHECK(score.score.median == Approx(0.35));
  CHECK(score.score.inside == 1);
  CHECK(score.waiting == std::vector<std::string>{"larger"});
  const std::string said = registered_table(score);
  CHECK_THAT(said, Catch::StartsWith("# registered long ago\n"));
  CHECK_THAT(said, Contains("-50.0 %  outside") && Contains("-20.0 %\n"));
  CHECK_THAT(said, Contains("2 registered forecasts (grade F): median error 35.0 %, 1 inside"));
  CHECK_THAT(said, Contains("1 case not measured yet"));
}

TEST_CASE("registered: the shipped files can be compared") {
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(LAMBCAST_REGISTERED)) {
    if (file.path().extension() != ".csv") continue;
    ++files;
    const RegisteredScore score = score_registered(read_file(file.path().string()),
                                                   file.path().string(), "case,step_time_s\n", "");
    CHECK_THAT(score.stamp, Catch::StartsWith("# registered 20"));
    CHECK(score.waiting.size() > 10);
  }
  CHECK(files > 0);
}

TEST_CASE("registered: a wrong file is refused by its line") {
  const auto registers = [](const std::string& text) {
    return register_forecasts(text, "questions.csv", "");
  };
  CHECK_THROWS_WITH(registers("case,model,stepz\na,bert-large,1\n"), Contains("stepz"));
  CHECK_THROWS_WITH(registers(questions + "small,bert-large,dgx-a100-80g,8,lamb,512,32\n"),
                    Contains("questions.csv:5: case: 'small' occurs twice"));
  CHECK_THROWS_WITH(registers("case,model,step_time_s\na,bert-large,1\n"),
                    Contains("step_time_s: is added when a forecast is registered"));
  CHECK_THROWS_AS(registers("case,model,cluster\na,no-model,dgx-a100-80g\n"), Error);
  const std::string known = "case,step_time_s,low_s,high_s\na,1,0.5,2\n";
  CHECK_THROWS_WITH(score_registered(known, "r.csv", "case,step_time_s\nb,1\n", "truth.csv"),
                    Contains("truth.csv:2: case: unknown registered case 'b'"));
  CHECK_THROWS_WITH(score_registered(known, "r.csv", "case,step_time_s\na,0\n", "truth.csv"),
                    Contains("must be above zero"));
}

}  // namespace
}  // namespace lambcast
