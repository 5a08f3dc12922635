#include "experiments/unread_keys.h"

#include <catch2/catch.hpp>

#include "experiments/scenario.h"
#include "experiments/scenario_case.h"

namespace lambcast {
namespace {

WhatIf plain() {
  return {{"model", "bert-large"}, {"cluster", "dgx-a100-80g"}, {"gpus", "8"},
          {"optimizer", "lamb"},   {"global_batch", "512"},     {"micro_batch", "16"}};
}

std::vector<std::string> unread(const WhatIf& changes) {
  std::vector<std::string> keys;
  for (const Finding& finding : resolved(with(changes, plain())).findings)
    if (finding.code == "flag-no-effect")
      keys.push_back(finding.message.substr(0, finding.message.find(':')));
  return keys;
}

using Keys = std::vector<std::string>;

TEST_CASE(
    "unread keys: fused kernels of an optimizer that has none, where nothing else runs them") {
  const WhatIf lion{{"optimizer", "lion"}, {"kernels", "fused"}};
  CHECK(unread(lion) == std::vector<std::string>{"--kernels"});
  CHECK(unread(with({{"exchange", "topk:1%"}}, lion)).empty());
  CHECK(unread({{"optimizer", "lamb"}, {"kernels", "fused"}}).empty());
}

TEST_CASE("unread keys: a flag that the run does not read is said to have no effect") {
  const WhatIf megatron{{"optimizer", "adamw"}, {"framework", "megatron"}, {"tp", "2"}};
  const auto on_megatron = [&](const WhatIf& more) {
    WhatIf all = megatron;
    all.insert(more.begin(), more.end());
    return all;
  };
  struct Case {
    WhatIf alone, read;
    std::string key;
  };
  for (const Case& c : std::vector<Case>{
           {{{"optimizer", "lamb"}, {"backend", "mpi"}},
            {{"optimizer", "onebit_lamb"}, {"backend", "mpi"}},
            "--backend"},
           {{{"optimizer", "lamb"}, {"cuda_aware", "true"}},
            {{"optimizer", "onebit_lamb"}, {"backend", "mpi"}, {"cuda_aware", "true"}},
            "--cuda-aware"},
           {{{"optimizer", "lamb"}, {"steps", "1000"}, {"freeze_step", "100"}},
            {{"optimizer", "onebit_lamb"}, {"steps", "1000"}, {"freeze_step", "100"}},
            "--freeze-step"},
           {{{"optimizer", "onebit_lamb"}, {"freeze_step", "10%"}, {"steps_done", "9"}},
            {{"optimizer", "onebit_lamb"}, {"freeze_step", "100"}, {"steps_done", "9"}},
            "--steps-done"},
           {on_megatron({{"kernels", "fused"}}),
            {{"optimizer", "adam"}, {"tp", "2"}, {"kernels", "fused"}},
            "--kernels"},
           {on_megatron({{"deepspeed_version", "0.15.4"}}),
            {{"optimizer", "adam"}, {"tp", "2"}, {"deepspeed_version", "0.15.4"}},
            "--deepspeed-version"},
           {on_megatron({{"versions", "torch=2.1"}}),
            {{"optimizer", "adam"}, {"tp", "2"}, {"versions", "torch=2.1"}},
            "--versions"},
           {{{"optimizer", "adam"}, {"gpus", "1"}, {"overlap", "ddp"}},
            {{"optimizer", "adam"}, {"gpus", "8"}, {"overlap", "ddp"}},
            "--overlap"},
           {on_megatron({{"recompute", "experts"}}), on_megatron({{"recompute", "full"}}),
            "--recompute"}}) {
    INFO(c.key);
    CHECK(unread(c.alone) == Keys{c.key});
    CHECK(unread(c.read).empty());
  }
  CHECK(unread({{"optimizer", "lamb"}, {"cuda_aware", "false"}, {"steps_done", "0"}}).empty());
}

// `choose_steps`: where nothing says how long a run is, the step that it would freeze at does.
TEST_CASE("unread keys: a freeze_step that sets the length of a plain run is read") {
  const WhatIf frozen{{"freeze_step", "1000"}};
  CHECK(resolved(with(frozen, plain())).training.steps == 5993);
  CHECK(unread(frozen).empty());
  CHECK(unread({{"freeze_step", "20%"}}) == Keys{"--freeze-step"});
}

}  // namespace
}  // namespace lambcast
