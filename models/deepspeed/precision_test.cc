#include "models/deepspeed/precision.h"

#include <catch2/catch.hpp>

namespace lambcast::deepspeed {
namespace {

using Catch::Matchers::Contains;

struct Settled {
  bool fp16, bf16;
  std::string message;
};

Settled settled(const std::string& blocks, const char* type = "AdamW") {
  DeepSpeedConfig config = parse_config(
      "{ \"optimizer\": { \"type\": \"" + std::string(type) + "\" },\n" + blocks + " }", "ds.json");
  for (const Finding& finding : config.findings) CHECK(finding.code != "auto-value");
  const std::vector<Finding> findings = settle_auto_precision(config);
  for (const Finding& finding : findings) CHECK(finding.code == "auto-precision");
  CHECK(findings.size() <= 1);
  return {config.fp16.enabled.value, config.bf16_enabled.value,
          findings.empty() ? "" : findings[0].message};
}

TEST_CASE("precision: \"auto\" is what the file asks the Trainer about, and is said") {
  struct Row {
    const char *blocks, *type;
    bool fp16, bf16;
  };
  const Row rows[] = {
      {R"("bf16": { "enabled": "auto" })", "AdamW", false, true},
      {R"("fp16": { "enabled": "auto" })", "AdamW", true, false},
      // Settings of Hugging Face's examples: both precisions are "auto".
      {R"("fp16": { "enabled": "auto", "loss_scale": 0 }, "bf16": { "enabled": "auto" })", "AdamW",
       false, true},
      {R"("fp16": { "enabled": "auto" }, "bf16": { "enabled": "auto" })", "Lamb", true, false},
      {R"("fp16": { "enabled": "auto" }, "bf16": { "enabled": "auto" })", "OneBitAdam", true,
       false},
      // Settings in which the file itself states one precision.
      {R"("fp16": { "enabled": true }, "bf16": { "enabled": "auto" })", "AdamW", true, false},
      {R"("fp16": { "enabled": "auto" }, "bf16": { "enabled": true })", "AdamW", false, true},
      {R"("fp16": { "enabled": false }, "bf16": { "enabled": "auto" })", "AdamW", false, true},
  };
  for (const Row& row : rows) {
    INFO(row.blocks << " with " << row.type);
    const Settled got = settled(row.blocks, row.type);
    CHECK(got.fp16 == row.fp16);
    CHECK(got.bf16 == row.bf16);
    CHECK_THAT(got.message, Contains(row.fp16 ? "computed in fp16" : "computed in bf16") &&
                                Contains("try: --precision for another"));
  }
  CHECK_THAT(settled(R"("bf16": { "enabled": "auto" })").message,
             Catch::StartsWith("ds.json:2: bf16.enabled: \"auto\" is filled in by the Trainer"));
}

TEST_CASE("precision: without \"auto\" there is nothing to settle") {
  for (const char* blocks : {R"("fp16": { "enabled": true })", R"("bf16": { "enabled": false })",
                             R"("gradient_clipping": 1.0)"}) {
    INFO(blocks);
    CHECK(settled(blocks).message.empty());
  }
  CHECK_FALSE(settled(R"("gradient_clipping": 1.0)").fp16);
}

}  // namespace
}  // namespace lambcast::deepspeed
