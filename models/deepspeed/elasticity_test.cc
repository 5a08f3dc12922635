// Numbers marked [1] are from DeepSpeed's tests/unit/elasticity/test_elastic.py (0.16.5); the
// others are results of its elasticity.py for the same section.
#include "models/deepspeed/elasticity.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <set>
#include <utility>

#include "models/codes_test.h"
#include "models/deepspeed/rules.h"

namespace lambcast::deepspeed {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

DeepSpeedConfig config_with(const std::string& keys, const std::string& beside = "") {
  return parse_config(
      fmt::format("{{ {}\n\"elasticity\": {{ enabled: true, {} }} }}", beside, keys), "ds.json");
}

ElasticBatch elastic(const std::string& keys, std::int64_t world) {
  return elastic_batch(config_with(keys).elasticity.value(), world);
}

Batch batch_of(const std::string& keys, std::int64_t world) { return elastic(keys, world).batch; }

const std::string ten_thousand =
    "max_train_batch_size: 10000, micro_batch_sizes: [8, 12, 16, 17], min_gpus: 32, "
    "max_gpus: 1500, min_time: 20, ";
const std::string thirty_two = "max_train_batch_size: 32, micro_batch_sizes: [1, 2, 3, 7], ";

TEST_CASE("elasticity: one train batch for every valid GPU count") {
  const Elasticity section = config_with(ten_thousand + "version: 0.1").elasticity.value();
  std::set<std::int64_t> valid;
  for (std::int64_t world = 1; world <= 1600; ++world) {
    try {
      const Batch batch = elastic_batch(section, world).batch;
      valid.insert(world);
      CHECK(batch.train == 9792);  // [1]
    } catch (const Error& error) {
      CHECK_THAT(error.what(), Contains(fmt::format("World size ({}) is not valid", world)));
    }
  }
  CHECK(valid == std::set<std::int64_t>{32,  34,  36,  48,  51,  64,  68,  72,   // 23 of them [1]
                                        96,  102, 136, 144, 153, 192, 204, 272,  //
                                        288, 306, 408, 576, 612, 816, 1224});
  CHECK(elastic_batch(section, 64).batch == Batch{9792, 17, 9});  // [1]
  CHECK(elastic_batch(section, 1224).batch == Batch{9792, 8, 1});
  CHECK_THROWS_WITH(elastic_batch(section, 128),  // [1]
                    Equals("ds.json:2: elasticity: World size (128) is not valid with the current "
                           "list of valid GPU counts: [..., 68, 72, 96, 102, 136, 144, 153, 192, "
                           "...]"));
  CHECK_THROWS_WITH(elastic_batch(section, 2000),
                    Contains(": [..., 272, 288, 306, 408, 576, 612, 816, 1224]"));
  CHECK_THROWS_WITH(elastic_batch(section, 1), Contains(": [32, 34, 36, 48, 51, 64, 68, 72, ...]"));

  const std::vector<Finding> findings = elastic_batch(section, 64).findings;
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "batch-from-elasticity");
  CHECK(findings[0].message ==
        "ds.json:2: elasticity: train_batch_size 9792 = 17 * 9 * 64 GPUs; valid GPU counts: [..., "
        "34, 36, 48, 51, 64, 68, 72, 96, ...]");
}

TEST_CASE("elasticity: the least common multiple may exceed the limit") {
  const std::string section = thirty_two + "max_gpus: 1500, version: 0.1";
  CHECK(batch_of(section, 7) == Batch{42, 3, 2});  // [1]
  CHECK(batch_of(section, 42) == Batch{42, 1, 1});
  CHECK(codes(elastic(section, 7).findings) ==
        std::vector<std::string>{"batch-from-elasticity", "elastic-batch-above-max"});
  CHECK_THAT(elastic(section, 7).findings[1].message,
             Contains("micro batches, 42, is taken though it is above the limit, 32"));
  CHECK_THROWS_WITH(batch_of(section, 4),
                    Contains("[1, 2, 3, 6, 7, 14, 21, 42]; the least common multiple"));
  CHECK_THROWS_WITH(batch_of(section, 5), Contains("World size (5) is not valid"));
}

TEST_CASE("elasticity: of two candidates with equal counts, the larger or the smaller is chosen") {
  // 24 = 24 * 1 and 42 have eight valid counts each.
  const std::string smaller = thirty_two + "version: 0.1, prefer_larger_batch: false";
  CHECK(batch_of(smaller, 4) == Batch{24, 3, 2});
  CHECK(batch_of(smaller, 1) == Batch{24, 3, 8});
  CHECK_THROWS_WITH(batch_of(smaller, 7), Contains("[1, 2, 3, 4, 6, 8, 12, 24]"));
  CHECK(codes(elastic(smaller, 4).findings) == std::vector<std::string>{"batch-from-elasticity"});
  // Neither the order of the list nor a duplicate entry changes the result.
  for (const char* sizes : {"[1, 2, 3, 7]", "[7, 3, 2, 1]", "[3, 1, 7, 2, 7, 1]"}) {
    const std::string section = fmt::format(
        "max_train_batch_size: 32, micro_batch_sizes: {}, version: 0.1, prefer_larger_batch: ",
        sizes);
    CHECK(batch_of(section + "true", 1).train == 42);
    CHECK(batch_of(section + "false", 1).train == 24);
  }
}

TEST_CASE("elasticity: version 0.2 counts nodes, and gives any other world size a separate batch") {
  struct Row {
    int gpus_per_node;
    std::int64_t world;
    bool prefer_larger;
    Batch expected;
    bool valid;
  };
  const Row rows[] = {
      {1, 64, true, {9792, 17, 9}, true},   {8, 64, true, {7680, 12, 10}, true},
      {8, 128, true, {7680, 12, 5}, true},  {8, 64, false, {7680, 12, 10}, true},
      {8, 12, true, {9996, 17, 49}, false}, {8, 12, false, {9936, 12, 69}, false},
      {4, 96, true, {9984, 8, 13}, false},  {4, 96, false, {7680, 16, 5}, true},
      {8, 1000, true, {8000, 8, 1}, false},
  };
  for (const Row& row : rows) {
    INFO(row.gpus_per_node << " a node, world " << row.world);
    const ElasticBatch got =
        elastic(ten_thousand + fmt::format("num_gpus_per_node: {}, prefer_larger_batch: {}",
                                           row.gpus_per_node, row.prefer_larger),
                row.world);
    CHECK(got.batch == row.expected);
    CHECK(codes(got.findings) == std::vector<std::string>{row.valid ? "batch-from-elasticity"
                                                                    : "elastic-batch-of-its-own"});
  }
  // A max_gpus below the GPUs of one node means no limit.
  const std::string part =
      "max_train_batch_size: 480, micro_batch_sizes: [2, 3], max_gpus: 4, "
      "num_gpus_per_node: 8";
  CHECK(batch_of(part, 8) == Batch{384, 3, 16});
  CHECK(batch_of(part, 24) == Batch{384, 2, 8});
  CHECK(batch_of(part, 40) == Batch{480, 3, 4});
  // In the first case no micro batch fits this number of ranks; in the second, one of them does
  // not.
  CHECK_THROWS_WITH(batch_of(ten_thousand + "num_gpus_per_node: 8", 20000),
                    Equals("ds.json:2: elasticity: Train batch size: 0 has to be greater than 0"));
  CHECK_THROWS_WITH(
      batch_of(ten_thousand + "num_gpus_per_node: 8, prefer_larger_batch: false", 1000),
      Contains("Train batch size: 0"));
  // In doubles 1.0 / 49 * 49 is below 1, so DeepSpeed counts 0 ranks.
  CHECK_THROWS_WITH(batch_of(ten_thousand + "num_gpus_per_node: 49", 1),
                    Contains("World size (1) is not valid"));
  // No candidate has a valid count, and the smaller batch is preferred. DeepSpeed then stops with
  // an error about its own value None, in both versions.
  const std::string none =
      "max_train_batch_size: 8, micro_batch_sizes: [4], min_gpus: 100, max_gpus: 200, "
      "prefer_larger_batch: false, version: ";
  CHECK_THROWS_WITH(batch_of(none + "0.2", 2), Contains("valid GPU counts: []"));
  CHECK_THROWS_WITH(batch_of(none + "0.1", 2), Contains("valid GPU counts: []"));
  // num_gpus_per_node has no effect in version 0.1.
  CHECK(batch_of(ten_thousand + "num_gpus_per_node: 8, version: 0.1", 64) == Batch{9792, 17, 9});
}

TEST_CASE("elasticity: a micro batch is scaled by highly composite numbers") {
  // Highly composite numbers have more divisors than any smaller number.
  constexpr std::size_t last = 720'720;
  std::vector<int> divisors(last + 1, 0);
  for (std::size_t d = 1; d <= last; ++d)
    for (std::size_t multiple = d; multiple <= last; multiple += d) ++divisors[multiple];
  int most = 0;
  std::int64_t before = 0;
  const auto train = [](std::int64_t limit) {
    return batch_of(fmt::format("max_train_batch_size: {}, micro_batch_sizes: [1]", limit), 1)
        .train;
  };
  for (std::size_t n = 1; n <= last; ++n) {
    if (divisors[n] <= most) continue;
    most = divisors[n];
    const auto number = static_cast<std::int64_t>(n);
    CHECK(train(number) == number);
    if (number > 1) CHECK(train(number - 1) == before);
    before = number;
  }
  CHECK(before == last);
  CHECK(train(1'000'000'000) == last);
}

TEST_CASE("elasticity: a section that is absent or not enabled leaves the batch unchanged") {
  for (const char* text : {"train_batch_size: 8", "train_batch_size: 8\nelasticity: null",
                           "train_batch_size: 8\nelasticity: {}",
                           "train_batch_size: 8\nelasticity: {enabled: false, max_gpus: -1}"}) {
    const DeepSpeedConfig config = parse_config(text, "ds.json");
    CHECK_FALSE(config.elasticity);
    CHECK(codes(check_config(config)) == std::vector<std::string>{"no-optimizer"});
  }
}

TEST_CASE("elasticity: batch numbers next to it are refused, or ignored if it says so") {
  const std::string adam = "optimizer: {type: \"Adam\"},\n";
  for (const char* key :
       {"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"}) {
    const std::string beside = adam + fmt::format("{}: 2,", key);
    const DeepSpeedConfig strict = config_with(thirty_two, beside);
    const std::vector<Finding> refused = check_config(strict);
    REQUIRE(codes(refused) == std::vector<std::string>{"batch-beside-elasticity"});
    CHECK(refused[0].severity == Severity::error);
    CHECK_THAT(refused[0].message,
               Contains(fmt::format("ds.json:2: {}: One or more batch related parameters were "
                                    "found in your ds_config (train_batch_size, "
                                    "train_micro_batch_size_per_gpu, and/or "
                                    "gradient_accumulation_steps). These parameters *will not be "
                                    "used* since elastic training is enabled",
                                    key)));
    const DeepSpeedConfig ignoring =
        config_with(thirty_two + "ignore_non_elastic_batch_info: true", beside);
    CHECK(codes(check_config(ignoring)) == std::vector<std::string>{"no-effect"});
    CHECK(elastic_batch(ignoring.elasticity.value(), 7).batch == Batch{42, 3, 2});
  }
  // The presence of the key matters, regardless of its value.
  CHECK(codes(check_config(config_with(thirty_two, adam + "train_batch_size: null,"))) ==
        std::vector<std::string>{"batch-beside-elasticity"});
}

TEST_CASE("elasticity: sections that DeepSpeed refuses, in its own words") {
  const auto refused = [](const std::string& keys, const char* sentence) {
    INFO(keys);
    CHECK_THROWS_WITH(config_with(keys), Contains(sentence));
  };
  const std::string limit = "max_train_batch_size: 100, ";
  refused("version: 0.1", "ds.json:2: elasticity: Elasticity config missing max_train_batch_size");
  refused(limit, "ds.json:2: elasticity: Elasticity config missing micro_batch_sizes");
  refused(limit + "\nmicro_batch_sizes: 5",
          "ds.json:3: elasticity.micro_batch_sizes: Elasticity expected value of "
          "micro_batch_sizes to be a list of micro batches, instead is: 5");
  refused(limit + "micro_batch_sizes: \"auto\"", "instead is: auto");
  refused(limit + "micro_batch_sizes: []", "micro_batch_sizes: is an empty list");
  for (const char* item : {"\"a\"", "null", "0.5", "true"})
    refused(limit + fmt::format("micro_batch_sizes: [2, {}, 4]", item),
            "Elasticity expected micro_batch_sizes to only contain a list of integers, instead "
            "contains: ");
  for (const char* item : {"-1", "0"})
    refused(limit + fmt::format("micro_batch_sizes: [2, {}, 4]", item),
            "Elasticity expected micro_batch_sizes to only contain positive integers, instead "
            "contains: ");
  refused("max_train_batch_size: 10, micro_batch_sizes: [4, 11], version: 0.1",
          "elasticity.micro_batch_sizes: All micro batches must be less than or equal to "
          "max_acceptable_batch_size: 10");
  refused("max_train_batch_size: 40, micro_batch_sizes: [4, 11], num_gpus_per_node: 4",
          "max_acceptable_batch_size: 10");
  refused("max_train_batch_size: -40, micro_batch_sizes: [1]", "max_acceptable_batch_size: -40");

  refused(thirty_two + "min_gpus: -1",
          "elasticity.min_gpus: Elasticity min/max gpus must be > 0, given min_gpus: -1, max_gpus: "
          "10000");
  refused(thirty_two + "max_gpus: 0",
          "elasticity.max_gpus: Elasticity min/max gpus must be > 0, given min_gpus: 1, max_gpus: "
          "0");
  refused(thirty_two + "min_gpus: 5, max_gpus: 4",
          "Elasticity min_gpus cannot be greater than max_gpus, given min_gpus: 5, max_gpus: 4");
  refused(thirty_two + "num_gpus_per_node: 0", "Number of GPUs per node cannot be less than 1");
  refused(thirty_two + "model_parallel_size: 0",
          "Model-Parallel size cannot be less than 1, given model-parallel size: 0");
  refused(thirty_two + "min_time: -1", "Elasticity min time needs to be >= 0: given -1");
  for (const char* version : {"0.3", "'0.3'", "1", "1e99"})
    refused(thirty_two + fmt::format("version: {}", version),
            "elasticity.version: Attempting to run elasticity version ");
  for (const char* version : {"0.15", "0", "-1"})
    refused(thirty_two + fmt::format("version: {}", version),
            "Unable to find elastic logic for version: ");
  refused(thirty_two + "version: \"latest\"", "could not convert string to float: 'latest'");
  refused(thirty_two + "version: null", "could not convert string to float");
  refused(thirty_two + "version: 0.1, model_parallel_size: 4",
          "Elasticity V0.1 does not support model-parallel training. Given model-parallel size: 4");
}

TEST_CASE("elasticity: model parallelism is refused, misspelt names are found") {
  CHECK_THROWS_WITH(config_with(thirty_two + "model_parallel_size: 4, num_gpus_per_node: 8"),
                    Equals("ds.json:2: elasticity.model_parallel_size: only data parallelism is "
                           "modelled (allowed: 1)"));
  CHECK(batch_of(thirty_two + "model_parallel_size: 1, version: '0.1'", 7) == Batch{42, 3, 2});
  const DeepSpeedConfig slip = config_with(thirty_two + "prefer_large_batch: false");
  REQUIRE(slip.findings.size() == 1);
  CHECK_THAT(slip.findings[0].message,
             Contains("elasticity.prefer_large_batch: DeepSpeed has no such key, did you "
                      "mean 'prefer_larger_batch'?"));
}

TEST_CASE("elasticity: numbers that are too large are refused before they overflow or last") {
  CHECK_THROWS_WITH(config_with("max_train_batch_size: 1000000000001, micro_batch_sizes: [1]"),
                    Contains("is not a whole number of at most 1000000000000"));
  std::string many = "1";
  for (int size = 2; size <= 65; ++size) many += fmt::format(", {}", size);
  CHECK_THROWS_WITH(
      config_with(fmt::format("max_train_batch_size: 100, micro_batch_sizes: [{}]", many)),
      Contains("more than 64 different micro batches"));
  CHECK_THROWS_WITH(
      config_with("max_train_batch_size: 1e12, micro_batch_sizes: [999999999989, 999999999961]"),
      Contains("the least common multiple of the micro batches is too large"));
  // The least common multiple of 1 to 20 is 232792560; times the GPUs of a node it is too large.
  CHECK_THROWS_WITH(
      batch_of("max_train_batch_size: 1e12, num_gpus_per_node: 50000000000, max_gpus: 1e12, "
               "micro_batch_sizes: [11, 12, 13, 14, 15, 16, 17, 18, 19, 20]",
               50'000'000'000),
      Equals("ds.json:2: elasticity: Train batch size: 232792560 * 50000000000 is too large "
             "(allowed: up to 1000000000000)"));
  // Ten candidates are about 10^12. DeepSpeed's own loops would try every number up to them.
  std::string millions = "1e6";
  for (int size = 2; size <= 10; ++size) millions += fmt::format(", {}e6", size);
  CHECK(batch_of(fmt::format("max_train_batch_size: 1e12, max_gpus: 1e12, version: 0.1, "
                             "micro_batch_sizes: [{}]",
                             millions),
                 720)
            .train > 1'000'000'000'000 / 2);
}

}  // namespace
}  // namespace lambcast::deepspeed
