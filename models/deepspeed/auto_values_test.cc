#include "models/deepspeed/auto_values.h"

#include <catch2/catch.hpp>

namespace lambcast::deepspeed {
namespace {

using Catch::Matchers::Contains;

const std::string text = R"({"train_batch_size": "auto", "gradient_clipping": "auto",
  "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto",
    "stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto"}})";

TEST_CASE("auto values: buckets follow from the hidden size, as set by Hugging Face") {
  DeepSpeedConfig config = parse_config(text, "ds.json");
  settle_auto_values(config, 896, [](std::string_view key) { return key == "train_batch_size"; });
  // Qwen2-0.5B has a hidden size of 896: 896 x 896, 0.9 of it rounded down, and 10 x 896.
  CHECK(config.zero.reduce_bucket_size.value == 802'816);
  CHECK(config.zero.prefetch_bucket_size.value == 722'534);
  CHECK(config.zero.param_persistence_threshold.value == 8960);
  CHECK(config.gradient_clipping.value == 1);
  int filled = 0;
  for (const Finding& finding : config.findings) {
    CHECK(finding.code != "auto-value");
    filled += finding.code == "auto-filled" ? 1 : 0;
  }
  CHECK(filled == 4);
}

TEST_CASE("auto values: without a hidden size buckets keep DeepSpeed's values, and are named") {
  DeepSpeedConfig config = parse_config(text, "ds.json");
  settle_auto_values(config, 0, [](std::string_view) { return false; });
  CHECK(config.zero.reduce_bucket_size.value == 500'000'000);
  int named = 0;
  for (const Finding& finding : config.findings) named += finding.code == "auto-value" ? 1 : 0;
  CHECK(named == 4);
}

}  // namespace
}  // namespace lambcast::deepspeed
