// Damaged files: for any bytes, reading gives a configuration or throws Error, and a configuration
// can be checked.
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

#include "models/deepspeed/rules.h"

namespace lambcast::deepspeed {
namespace {

// splitmix64 (Steele et al., 2014) gives the same files on every machine.
struct Random {
  std::uint64_t state;
  std::size_t below(std::size_t bound) {
    std::uint64_t z = (state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return static_cast<std::size_t>((z ^ (z >> 31)) % bound);
  }
};

constexpr const char* seed_file = R"(# a little of everything
{
  "train_batch_size": 4096, train_micro_batch_size_per_gpu: 16,
  "optimizer": { "type": "OneBitLamb", "params": { "lr": 11e-3, "betas": [0.9, 0.999],
    "freeze_step": 1000, "comm_backend_name": "nccl", cuda_aware: false } }, // comment
  'zero_optimization': { "stage": 0, "overlap_comm": true, offload_param: { device: 'none' } }
  "fp16": { "enabled": true, "loss_scale": 0 } /* comment */, "bf16": { "enabled": "auto" },
  "curriculum_learning": { "enabled": true, "curriculum_type": "seqlen", "min_difficulty": 8,
    "max_difficulty": 1024, "schedule_type": "fixed_root", "schedule_config": {
    "total_curriculum_step": 15000, "difficulty_step": 8, "root_degree": 2 } },
  "elasticity": { enabled: true, "max_train_batch_size": 4000, "micro_batch_sizes": [4, 6, 16],
    "min_gpus": 1, "max_gpus": 64, "ignore_non_elastic_batch_info": true, num_gpus_per_node: 4,
    "version": 0.2, prefer_larger_batch: true, min_time: 20, model_parallel_size: 1 },
  "communication_data_type": "fp16", note: '''
    several
    lines''', "text": "\u00e9\ud83d\ude00\n",
}
)";

constexpr std::string_view snippets[] = {"{",
                                         "}",
                                         "[",
                                         "]",
                                         ":",
                                         ",",
                                         "\"",
                                         "'''",
                                         "\\u12",
                                         "\n",
                                         "\r",
                                         "#",
                                         "//",
                                         "/*",
                                         "*/",
                                         "null",
                                         "true",
                                         "auto",
                                         "-1",
                                         "0",
                                         "1e99",
                                         "1e999",
                                         "0.5",
                                         "\xFF",
                                         "\xC3\xA9",
                                         "\x01",
                                         "\\",
                                         "[[[[[[",
                                         "{a:{a:{",
                                         "2.5",
                                         "99999999999999999999",
                                         "\"lr\": 1,",
                                         "\"type\": \"Lamb\",",
                                         " "};

std::string mutated(Random& random) {
  std::string text = seed_file;
  for (std::size_t edits = 1 + random.below(4); edits > 0; --edits) {
    const std::size_t at = random.below(text.size() + 1);
    switch (random.below(5)) {
      case 0:  // replaces one byte by any byte, including NUL
        if (at < text.size()) text[at] = static_cast<char>(random.below(256));
        break;
      case 1:
        text.erase(at, random.below(30));
        break;
      case 2:
        text.insert(at, snippets[random.below(std::size(snippets))]);
        break;
      case 3:  // repeats a part of the file
        text.insert(at, text.substr(random.below(text.size() + 1), random.below(60)));
        break;
      default:  // a number becomes another
        if (const std::size_t digit = text.find_first_of("0123456789", at);
            digit != std::string::npos)
          text.replace(digit, 1, snippets[random.below(std::size(snippets))]);
    }
  }
  return text;
}

TEST_CASE("mutation: only Error is thrown, and a configuration can be checked") {
  Random random{2021};
  int read = 0;
  int elastic = 0;
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = mutated(random);
    try {
      const DeepSpeedConfig config = parse_config(text, "mutated.json");
      check_config(config);
      check_run(config, 1000);
      if (config.curriculum) {
        std::int64_t steps = 0;
        for (const SeqLenPhase& phase : length_phases(*config.curriculum, 1000))
          steps += phase.steps;
        REQUIRE(steps == 1000);
      }
      const Batch batch = resolve_batch(config.batch, 8);
      REQUIRE(batch.train == batch.micro * batch.gas * 8);
      if (config.elasticity) {
        const Batch of_world = elastic_batch(*config.elasticity, 8).batch;
        REQUIRE(of_world.train == of_world.micro * of_world.gas * 8);
        ++elastic;
      }
      ++read;
    } catch (const Error& error) {
      REQUIRE(error.code() == Exit::usage);
      REQUIRE(std::string(error.what()).size() > 10);
      ++refused;
    } catch (...) {
      FAIL("something other than Error on:\n" << text);
    }
  }
  // Both outcomes must be frequent, or the mutations would test little.
  CHECK(read > 1000);
  CHECK(elastic > 1000);
  CHECK(refused > 1000);
}

}  // namespace
}  // namespace lambcast::deepspeed
