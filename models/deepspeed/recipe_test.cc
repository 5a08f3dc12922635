#include "models/deepspeed/recipe.h"

#include <catch2/catch.hpp>

#include "models/recipe/wrapper.h"

namespace lambcast::deepspeed {
namespace {

Wrapper of(OptimizerType type, const char* text, const Version& release = release::newest) {
  DeepSpeedConfig config = parse_config(text, "ds.json");
  config.release.value = release;
  config.optimizer.emplace().type = type;
  return wrapper_of(recipe_of(config));
}

TEST_CASE("recipe: precision, ZeRO stage and optimizer select the wrapper, as in the engine") {
  const auto adam = OptimizerType::adamw, onebit = OptimizerType::onebit_adam;
  for (const auto type : {adam, onebit, OptimizerType::zero_one_adam})
    CHECK(of(type, "fp16: {enabled: true}") == Wrapper::fp16);
  for (const auto type :
       {OptimizerType::lamb, OptimizerType::onebit_lamb, OptimizerType::lion, OptimizerType::lars,
        OptimizerType::distributed_lamb, OptimizerType::adafactor, OptimizerType::came,
        OptimizerType::galore_adamw8bit})
    CHECK(of(type, "fp16: {enabled: true}") == Wrapper::fp16_unfused);
  CHECK(of(adam, "") == Wrapper::none);
  const Version sharding{0, 17, 5}, whole{0, 17, 6};
  for (const auto type : {adam, onebit}) {
    CHECK(of(type, "bf16: {enabled: true}", sharding) == Wrapper::bf16);
    CHECK(of(type, "bf16: {enabled: true}", whole) == Wrapper::fp16);
  }
  CHECK(of(OptimizerType::lamb, "bf16: {enabled: true}", whole) == Wrapper::fp16_unfused);
  CHECK(of(adam, "bf16: {enabled: true}\ndata_types: {grad_accum_dtype: \"fp32\"}", whole) ==
        Wrapper::bf16);

  const char* sharded[] = {"fp16: {enabled: true}\nzero_optimization: {stage: 1}",
                           "zero_optimization: {stage: 2}",
                           "bf16: {enabled: true}\nzero_optimization: {stage: 1}",
                           "bf16: {enabled: true}\nzero_optimization: {stage: 2}",
                           "bf16: {enabled: true}\nzero_optimization: {stage: 2}\ndata_types: "
                           "{grad_accum_dtype: \"fp32\"}"};
  for (const char* text : sharded) CHECK(of(adam, text) == Wrapper::zero);
  for (const char* name : {"fp32", "float32", "float", "torch.float32"}) {
    const std::string text = std::string("bf16: {enabled: true}\nzero_optimization: {stage: 1}\n") +
                             "data_types: {grad_accum_dtype: \"" + name + "\"}";
    CHECK(of(adam, text.c_str()) == Wrapper::bf16);
  }
}

TEST_CASE(
    "recipe: gradients accumulate in the weights' type; before 0.17.6, bf16 without ZeRO in fp32") {
  const auto sums = [](const char* text, const Version& release = release::newest) {
    DeepSpeedConfig config = parse_config(text, "ds.json");
    config.release.value = release;
    return accumulation_data_type(recipe_of(config));
  };
  CHECK(sums("fp16: {enabled: true}") == DataType::fp16);
  CHECK(sums("") == DataType::fp32);
  CHECK(sums("bf16: {enabled: true}", {0, 17, 5}) == DataType::fp32);
  CHECK(sums("bf16: {enabled: true}") == DataType::bf16);
  CHECK(sums("bf16: {enabled: true}\nzero_optimization: {stage: 1}") == DataType::bf16);
  CHECK(sums("fp16: {enabled: true}\ndata_types: {grad_accum_dtype: \"float\"}") == DataType::fp32);
  CHECK_THROWS_WITH(sums("data_types: {\n grad_accum_dtype: \"int4\"\n}"),
                    Catch::Contains("ds.json:2: data_types.grad_accum_dtype: 'int4' is not a valid "
                                    "DtypeEnum"));
}

}  // namespace
}  // namespace lambcast::deepspeed
