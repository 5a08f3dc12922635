#include "models/deepspeed/key_ledger.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace lambcast::deepspeed {
namespace {

TEST_CASE("ledger: keys of a DeepSpeed file are applied, costless for a reason, or named") {
  const std::vector<LedgerEntry> entries = key_ledger(
      R"({"train_batch_size": 64, "steps_per_print": 10, "sparse_gradients": true, "mine": 1,
          "zero_optimization": {"stage": 1, "stage3_max_live_parameters": 5},
          "optimizer": {"type": "Adam", "params": {"lr": 1e-4}}})",
      "ds.json");
  const auto entry = [&](const char* key) {
    const auto found = std::ranges::find(entries, key, &LedgerEntry::key);
    REQUIRE(found != entries.end());
    return *found;
  };
  CHECK(entry("train_batch_size").treatment == Treatment::applied);
  CHECK(entry("zero_optimization.stage").treatment == Treatment::applied);
  CHECK(entry("optimizer.type").treatment == Treatment::applied);
  CHECK(entry("steps_per_print").treatment == Treatment::costless);
  CHECK(entry("zero_optimization.stage3_max_live_parameters").treatment == Treatment::named);
  CHECK(entry("optimizer.params.lr").reason == "a factor of the update");
  CHECK(entry("sparse_gradients").treatment == Treatment::named);
  CHECK(entry("mine").treatment == Treatment::named);
  const auto offload = key_ledger(
      "{\"zero_optimization\": {\"stage\": 3, \"offload_param\": {\n"
      "\"device\": \"cpu\"}}}",
      "ds.json");
  CHECK(offload.back().key == "zero_optimization.offload_param.device");
  CHECK(offload.back().treatment == Treatment::named);
}

}  // namespace
}  // namespace lambcast::deepspeed
