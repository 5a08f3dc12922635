// Tests the ledger's treatment of keys whose effect other keys decide.
#include <algorithm>
#include <catch2/catch.hpp>

#include "models/launchers/launcher_file.h"
#include "sim/base/error.h"

namespace lambcast::launchers {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("launchers: a key that another key decides is not called applied") {
  const auto treatment = [](const std::string& text, const char* key) {
    const LauncherFile file = decode(text, "a.yaml");
    return std::ranges::find(file.ledger, key, &LedgerEntry::key)->treatment;
  };
  const std::string neox_model =
      "pipe_parallel_size: 1\nnum_layers: 2\nhidden_size: 8\nnum_attention_heads: 2\n"
      "seq_length: 8\n";
  CHECK(treatment(neox_model + "checkpoint_activations: true\npartition_activations: true\n",
                  "partition_activations") == Treatment::costless);
  CHECK(treatment(neox_model + "norm: rmsnorm\nuse_bias_in_norms: false\n", "norm") ==
        Treatment::costless);
  CHECK(treatment(neox_model + "precision: bfloat16\nbf16: {enabled: true}\n", "precision") ==
        Treatment::costless);
  CHECK(treatment("base_model: x\nlora_r:\nadapter: lora\n", "lora_r") == Treatment::costless);
  CHECK_THROWS_WITH(decode("base_model: x\nload_in_8bit: true\nload_in_4bit: true\n", "a.yaml"),
                    Contains("load_in_8bit: contradicts load_in_4bit"));
  const auto what_if =
      decode(neox_model + "checkpoint_activations: true\ncheckpoint_in_cpu: true\n", "n.yml")
          .what_if;
  CHECK(std::ranges::count(what_if, std::pair<std::string, std::string>("offload_activations",
                                                                        "checkpoints")) == 1);
}

}  // namespace
}  // namespace lambcast::launchers
