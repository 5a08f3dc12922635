#include "models/deepspeed/batch.h"

#include <catch2/catch.hpp>
#include <limits>

namespace lambcast::deepspeed {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::Equals;
constexpr auto none = std::nullopt;

TEST_CASE("batch: missing numbers are inferred in DeepSpeed's order") {
  struct Row {
    BatchNumbers given;
    std::int64_t world;
    Batch expected;
  };
  const Row rows[] = {
      // The recipe of 1-bit LAMB with 64k samples per step: gas = 65536 / 64 / world.
      {{65536, 64, none}, 8, {65536, 64, 128}},
      {{65536, 64, none}, 64, {65536, 64, 16}},
      {{65536, 64, none}, 128, {65536, 64, 8}},
      {{65536, 64, none}, 256, {65536, 64, 4}},
      {{32768, 16, none}, 128, {32768, 16, 16}},
      {{256, none, 1}, 8, {256, 32, 1}},     // micro = 256 / 8 / 1
      {{1280, none, 80}, 8, {1280, 2, 80}},  // micro = 1280 / 8 / 80
      {{none, 8, 3}, 4, {96, 8, 3}},         // train = 8 * 3 * 4
      {{96, none, none}, 32, {96, 3, 1}},
      {{none, 4, none}, 16, {64, 4, 1}},
      {{64, 4, 2}, 8, {64, 4, 2}},
      {{1, 1, 1}, 1, {1, 1, 1}},
      {{max_batch, none, none}, 1, {max_batch, max_batch, 1}},
  };
  for (const Row& row : rows) {
    INFO("train " << row.expected.train << " world " << row.world);
    CHECK(resolve_batch(row.given, row.world) == row.expected);
    // The expected numbers satisfy the equation.
    CHECK(row.expected.micro * row.expected.gas * row.world == row.expected.train);
  }
}

TEST_CASE("batch: DeepSpeed's assertions in its own words") {
  CHECK_THROWS_WITH(resolve_batch({}, 8),
                    Equals("Either train_batch_size or train_micro_batch_size_per_gpu needs to be "
                           "provided"));
  CHECK_THROWS_WITH(resolve_batch({none, none, 4}, 8), Contains("needs to be provided"));
  CHECK_THROWS_WITH(resolve_batch({0, none, none}, 8),
                    Equals("Train batch size: 0 has to be greater than 0"));
  CHECK_THROWS_WITH(resolve_batch({-8, 1, none}, 8),
                    Equals("Train batch size: -8 has to be greater than 0"));
  CHECK_THROWS_WITH(resolve_batch({8, 0, none}, 8),
                    Equals("Micro batch size per gpu: 0 has to be greater than 0"));
  CHECK_THROWS_WITH(resolve_batch({8, none, -2}, 1),
                    Equals("Gradient accumulation steps: -2 has to be greater than 0"));
  // 96 / 3 / 128 rounds down to 0: there are fewer samples than one micro batch per GPU.
  CHECK_THROWS_WITH(resolve_batch({96, 3, none}, 128),
                    Equals("Gradient accumulation steps: 0 has to be greater than 0 (allowed: a "
                           "train batch size that is a multiple of 384 = micro batch 3 * 128 "
                           "GPUs)"));
  // The micro batch of 4 / 8 rounds down to 0.
  CHECK_THROWS_WITH(resolve_batch({4, none, none}, 8),
                    Equals("Micro batch size per gpu: 0 has to be greater than 0 (allowed: a train "
                           "batch size that is a multiple of 8 = 8 GPUs)"));
  // The numbers fit 4 ranks, but the world size is 1.
  CHECK_THROWS_WITH(resolve_batch({8, 2, 1}, 1),
                    Equals("Check batch related parameters. train_batch_size is not equal to "
                           "micro_batch_per_gpu * gradient_acc_step * world_size 8 != 2 * 1 * 1 "
                           "(allowed: a train batch size that is a multiple of 2 = micro batch 2 * "
                           "accumulation 1 * 1 GPUs)"));
  // 100 / 3 / 8 rounds down to 4, and 3 * 4 * 8 = 96 is not 100.
  CHECK_THROWS_WITH(resolve_batch({100, 3, none}, 8), Contains("100 != 3 * 4 * 8"));
}

TEST_CASE("batch: numbers that are too large are refused before they overflow") {
  constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  CHECK_THROWS_WITH(resolve_batch({huge, none, none}, 1),
                    Contains("is too large (allowed: up to 1000000000000)"));
  CHECK_THROWS_WITH(resolve_batch({none, max_batch, max_batch}, 1),
                    Contains("is too large (allowed: up to 1000000000000)"));
  CHECK_THROWS_WITH(resolve_batch({none, max_batch, 1}, 2),
                    Contains("is too large (allowed: up to 1000000000000)"));
  CHECK_THROWS_WITH(resolve_batch({64, max_batch, max_batch}, 1),
                    Contains("is too large (allowed: up to 1000000000000)"));
  CHECK_THROWS_WITH(resolve_batch({none, 1, 1}, huge), Contains("World size"));
  CHECK_THROWS_WITH(resolve_batch({8, none, none}, 0),
                    Equals("World size: 0 has to be greater than 0"));
  const Where where{"ds.json", 3, "train_batch_size"};
  CHECK_THROWS_WITH(resolve_batch({0, none, none}, 8, where),
                    Contains("ds.json:3: train_batch_size: Train batch size: 0"));
}

}  // namespace
}  // namespace lambcast::deepspeed
