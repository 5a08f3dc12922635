#include "experiments/sweep/common_length.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <set>

#include "experiments/advise/advice_list.h"
#include "experiments/compare/solve_output.h"
#include "experiments/sweep/sweep.h"
#include "experiments/sweep/sweep_table.h"
#include "sim/base/temporary_folder.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

WhatIf base_question(const WhatIf& changes = {}) {
  WhatIf what_if{{"model", "bert-large"},      {"cluster", "dgx-a100-80g"}, {"nodes", "16"},
                 {"optimizer", "onebit_lamb"}, {"global_batch", "65536"},   {"micro_batch", "64"}};
  for (const auto& [key, value] : changes) what_if.insert_or_assign(key, value);
  return what_if;
}

std::set<std::int64_t> lengths_of_points(const WhatIf& what_if, const std::vector<Axis>& axes) {
  Catalog catalog;
  const SweepPlan plan = with_common_length(plan_sweep_of_flags(what_if, axes), catalog);
  std::set<std::int64_t> lengths;
  for (const WhatIf& point : plan.points) lengths.insert(resolve(point, catalog).training.steps);
  return lengths;
}

// Published 1-bit LAMB warms up for 1000 of 5993 steps. With the same share, 600 steps belong to
// 3596, and 2000 to 11986.
TEST_CASE("common length: a list of freeze steps has one length, that of the largest") {
  using Lengths = std::set<std::int64_t>;
  CHECK(lengths_of_points(base_question(), {{"freeze_step", {"600", "1000", "2000"}}}) ==
        Lengths{11986});
  CHECK(lengths_of_points(base_question(), {{"freeze_step", {"600"}}}) == Lengths{3596});
  CHECK(lengths_of_points(base_question(), {{"freeze_step", {"10%", "20%"}}}) == Lengths{1000});
  CHECK(lengths_of_points(base_question({{"steps", "5993"}}), {{"freeze_step", {"600", "2000"}}}) ==
        Lengths{5993});
  // The published share of 1-bit Adam is 15 %, so 1000 steps belong to 6667.
  WhatIf any = base_question({{"freeze_step", "1000"}});
  any.erase("optimizer");
  CHECK(lengths_of_points(any, {{"optimizer", {"lamb", "onebit_lamb", "onebit_adam"}}}) ==
        Lengths{6667});
}

TEST_CASE("common length: the freeze step of the base question's file decides") {
  const TemporaryFolder folder;
  WhatIf asked = base_question({{"config", folder.file("ds.json", R"({ "fp16": { "enabled": true },
    "optimizer": { "type": "OneBitLamb", "params": { "freeze_step": 1000 } } })")}});
  asked.erase("optimizer");
  const std::vector<Axis> axes{{"freeze_step", {"600", "1000", "2000"}}};
  CHECK(lengths_of_points(asked, axes) == std::set<std::int64_t>{5993});
  // Every answer states it in its first line, even if all questions would have this length anyway.
  Catalog catalog;
  const auto first_line = [](const std::string& text) { return text.substr(0, text.find('\n')); };
  CHECK_THAT(first_line(advice_list_text(advise_all(asked, axes, catalog))),
             Contains("in runs of 5993 steps (assumed)?"));
  const SweepPlan plan = with_common_length(plan_sweep_of_flags(asked, axes), catalog);
  const auto texts = std::make_shared<DescriptionTexts>();
  CHECK_THAT(first_line(sweep_table(plan, sweep_in_memory(plan, {}, texts).rows)),
             Contains("a run of 5993 steps (assumed)"));
}

TEST_CASE("common length: the plan states it, and its flags repeat it") {
  Catalog catalog;
  const std::vector<Axis> axes{{"freeze_step", {"600", "2000"}}};
  const SweepPlan asked = plan_sweep_of_flags(base_question(), axes);
  const SweepPlan plan = with_common_length(asked, catalog);
  REQUIRE_FALSE(plan.notes.empty());
  CHECK(plan.notes.front() == "--steps not given: every run has 11986 optimizer steps");
  CHECK(plan.command == asked.command);
  const SweepPlan again = plan_sweep(plan.text, "again", plan.flags);
  CHECK(again.points[1].at("steps") == "11986");
  CHECK(again.text_hash == plan.text_hash);
}

TEST_CASE("common length: speed-ups of unequal freeze steps differ") {
  Catalog catalog;
  const AdviceList list =
      advise_all(base_question({{"cluster", "commodity-10gbe"}, {"kernels", "deepspeed"}}),
                 {{"freeze_step", {"1000", "2000"}}}, catalog);
  CHECK_THAT(advice_list_text(list), Contains("in runs of 11986 steps (assumed)?"));
  CHECK(list.points[0].advice->answer.speedup().value >
        1.01 * list.points[1].advice->answer.speedup().value);
}

TEST_CASE("common length: solve keeps the length of the base question") {
  Catalog catalog;
  const WhatIf asked = base_question({{"freeze_step", "1000"}});
  const Solution solution = solve({asked, "freeze_step", "run_time", "60 s", {}, {}}, catalog);
  CHECK(solution.kind() == Solution::Kind::never);
  CHECK(solution.points.back().x <= 5993);
  CHECK_THAT(solution_table(solution), Contains("every run has 5993 optimizer steps"));
  WhatIf said = asked;
  said["steps"] = "5993";
  const Solution same = solve({said, "freeze_step", "run_time", "60 s", {}, {}}, catalog);
  CHECK(same.points.back().metric.value == solution.points.back().metric.value);
}

}  // namespace
}  // namespace lambcast
