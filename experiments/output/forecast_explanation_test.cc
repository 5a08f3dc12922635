#include "experiments/output/forecast_explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "experiments/output/forecast_output.h"
#include "experiments/output/plain_name.h"
#include "experiments/scenario/scenario_case.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

struct Explained {
  Scenario scenario;
  Forecast forecast;
  Judgement judgement;
  std::string by(std::string_view word) const {
    return explain_forecast(scenario.training, forecast, judgement, word);
  }
};

Explained explained_run() {
  Explained run{resolved(complete()), {}, {}};
  CollectiveCosts costs;
  run.forecast = forecast(run.scenario.training, costs);
  run.judgement = judgement_of(run.scenario, run.forecast);
  return run;
}

TEST_CASE("explanation: the answer fits one screen, and one word shows its details") {
  const Explained run = explained_run();
  const std::string answer = forecast_table(run.scenario, run.forecast, run.judgement);
  CHECK(std::ranges::count(answer, '\n') <= 24);
  // Each figure of the run has its interval.
  for (const char* line : {"run: ", "tokens: "}) {
    const std::size_t begin = answer.find(line);
    REQUIRE(begin != std::string::npos);
    std::istringstream parts(answer.substr(begin, answer.find('\n', begin) - begin));
    INFO(parts.str());
    int figures = 0, intervals = 0;
    for (std::string word; parts >> word; intervals += word == "to")
      for (const char* unit :
           {"in", "samples/s", "GPU-hours", "USD", "second", "TFLOP/s", "MFU", "take"})
        figures += word == unit;
    CHECK(figures >= 3);
    CHECK(intervals == figures);
  }
  const auto sources = run.forecast.sources.shares();
  const auto matter =
      std::ranges::count_if(sources, [](const CostSource& source) { return source.share >= 0.01; });
  CHECK_THAT(answer, Contains("rests on " + std::to_string(matter) + " numbers, "));
  for (const std::string& word : forecast_explanation_names()) {
    INFO(word);
    CHECK_FALSE(run.by(word).empty());
  }
  // Each cost is listed with its share of the time, as in JSON.
  const auto json = nlohmann::json::parse(forecast_json(run.scenario, run.forecast, run.judgement));
  CHECK(json.at("provenance").size() == sources.size());
  for (const auto& [cost, of] : json.at("provenance").items()) {
    const auto share = of.at("share").get<double>();
    INFO(cost);
    CHECK((share >= 0 && share <= 1 + 1e-9));
    CHECK_THAT(run.by("sources"),
               Contains(fmt::format("  {:<27} {:>3.0f} % {}", plain_cost(cost), 100 * share,
                                    of.at("kind").get<std::string>())));
  }
  for (const auto& [part, bytes] : run.forecast.memory.parts)
    if (bytes > run.forecast.memory.peak * 0.02) CHECK_THAT(run.by("parts"), Contains(part));
}

TEST_CASE("explanation: what ends a run stands first") {
  const std::string text = findings_text({{Severity::note, "a-note", "n"},
                                          {Severity::warning, "memory-tight", "m"},
                                          {Severity::warning, "backend-fails", "b"}});
  CHECK(text.find("[backend-fails]") < text.find("[memory-tight]"));
  CHECK(text.find("[memory-tight]") < text.find("[a-note]"));
}

TEST_CASE("explanation: each finding has its remedy") {
  Explained run = explained_run();
  run.judgement.findings = {{Severity::warning, "incast", "flows meet"}};
  CHECK_THAT(run.by("notes"), Contains("warning: flows meet [incast]\n  "));
  CHECK(run.by("notes").size() > 40);
  run.judgement.findings.clear();
  CHECK(run.by("notes") == "no findings\n");
}

TEST_CASE("explanation: the line on sources counts the assumed numbers") {
  const std::vector<CostSource> sources{{"published", {Kind::published, "sheet"}, 0.9},
                                        {"small", {Kind::assumed, "guess"}, 0.1},
                                        {"large", {Kind::assumed, "guess"}, 0.5},
                                        {"middle", {Kind::assumed, "guess"}, 0.3},
                                        {"felt by nobody", {Kind::assumed, "guess"}, 0.009}};
  CHECK(sources_line(sources) == "rests on 4 numbers, 3 of them assumed (--explain sources)\n");
  CHECK(sources_line({sources.front()}) ==
        "rests on 1 number, 0 of them assumed (--explain sources)\n");
}

}  // namespace
}  // namespace lambcast
