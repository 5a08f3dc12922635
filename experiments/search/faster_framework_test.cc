#include "experiments/search/faster_framework.h"

#include <catch2/catch.hpp>
#include <limits>

#include "experiments/search/layout_judge.h"

namespace lambcast {
namespace {

WhatIf layouts_of(const char* model, const char* cluster, const char* gpus, const char* framework) {
  return {{"model", model},       {"cluster", cluster},    {"gpus", gpus},
          {"global_batch", "64"}, {"optimizer", "adam"},   {"precision", "bf16"},
          {"seq_len", "512"},     {"framework", framework}};
}

TEST_CASE("faster framework: the search by bounds finds the layout of the search of all") {
  const auto texts = std::make_shared<DescriptionTexts>();
  const double no_limit = std::numeric_limits<double>::infinity();
  for (const WhatIf& asked : {layouts_of("gpt2-xl", "dgx-a100-80g", "16", "megatron"),
                              layouts_of("mixtral-8x7b", "hgx-h100-ndr", "16", "megatron"),
                              layouts_of("llama2-7b", "commodity-100gbe", "32", "megatron"),
                              layouts_of("llama2-7b", "hgx-h100-ndr", "16", "torchtitan")}) {
    INFO(asked.at("model") << " as " << asked.at("framework") << " does it");
    SearchOptions options;
    options.best = 1;
    options.compression = false;
    const LayoutSearch all = search_layouts(asked, options, texts);
    REQUIRE(all.best.size() == 1);
    LayoutJudge judge(all.space, texts);
    const auto fastest = fastest_layout(all.space, no_limit, judge, [] { return true; });
    REQUIRE(fastest);
    CHECK(with_layout(all.space, *fastest) == all.best.front().what_if);
    // No layout is faster than the fastest one.
    const double time_us = all.best.front().step.step_time.us();
    CHECK_FALSE(fastest_layout(all.space, time_us, judge, [] { return true; }));
    CHECK_FALSE(fastest_layout(all.space, no_limit, judge, [] { return false; }));
  }
}

TEST_CASE("faster framework: one is named only if the question names none") {
  WhatIf asked = layouts_of("gpt2-xl", "dgx-a100-80g", "8", "deepspeed");
  const auto texts = std::make_shared<DescriptionTexts>();
  SearchOptions options;
  LayoutSearch chosen = search_layouts(asked, options, texts);
  add_faster_framework(asked, options, texts, chosen);
  CHECK_FALSE(chosen.faster);
  asked.erase("framework");
  LayoutSearch free = search_layouts(asked, options, texts);
  add_faster_framework(asked, options, texts, free);
  REQUIRE(free.faster);
  CHECK(free.faster->speedup.low > 1);
  CHECK(free.faster->found.step.step_time < free.best.front().step.step_time);
  CHECK(free.faster->found.what_if.at("framework") != "deepspeed");
}

}  // namespace
}  // namespace lambcast
