#include "validate/survey/step_speedups.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "sim/base/error.h"
#include "sim/base/temporary_folder.h"

using namespace lambcast;

TEST_CASE("measured steps are printed next to their forecasts, with the speed-ups of both") {
  const TemporaryFolder folder;
  const auto steps = folder.path() / "steps.csv";
  const WhatIf question{{"model", "bert-large"}};
  CHECK(steps_side_by_side(steps, "dgx-a100-80g", question).empty());
  std::ofstream(steps) << "optimizer,exchange,gradient,weights,ranks,step_us\n"
                          "adam,all_reduce,fp16,335184706,16,20000\n"
                          "onebit_adam,one_bit,fp16,335184706,16,8000\n"
                          "zero_one_adam,one_bit,fp16,335184706,16,10000\n"
                          "lamb,all_reduce,fp16,335184706,16,30000\n"
                          "onebit_lamb,one_bit,fp16,335184706,16,15000\n"
                          "adam,all_reduce,fp32,335184706,16,40000\n"
                          "adam,int4+ef,fp32,335184706,16,16000\n"
                          "adam,powersgd:4,fp32,335184706,16,8000\n";
  const std::string text = steps_side_by_side(steps, "dgx-a100-80g", question);
  CHECK_THAT(text, Catch::StartsWith("Steps of 335184706 weights over 16 ranks"));
  // Each step is compared with the baseline above it, both as measured and as forecast.
  for (const char* speedup : {"1.00x", "2.50x", "2.00x", "5.00x"})
    CHECK_THAT(text, Catch::Contains(speedup));
  CHECK_THAT(text,
             Catch::Matches("[^]*\nonebit_lamb +one_bit +fp16 +15\\.000 ms +[0-9.]+ ms +2\\.00x "
                            "+1\\.[0-9]+x\n[^]*"));
  CHECK(steps_side_by_side(steps, "dgx-a100-80g", {}).empty());  // the question has no model

  std::ofstream(steps)
      << "# a GPU has too little memory\noptimizer,exchange,gradient,weights,ranks,"
         "step_us\n";
  CHECK(steps_side_by_side(steps, "dgx-a100-80g", question).empty());
}

TEST_CASE("the weights of a question are those that its optimizer updates") {
  CHECK(weights_of({{"model", "bert-large"}}) == 335184706);
  CHECK(weights_of({}) == 0);
  CHECK_THROWS_AS(weights_of({{"model", "bert-larg"}}), Error);
}
