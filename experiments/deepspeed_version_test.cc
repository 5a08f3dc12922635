#include "experiments/scenario_case.h"

namespace lambcast {
namespace {

using Catch::Contains;

TEST_CASE("scenario: one release of DeepSpeed, however it is said") {
  const auto release = [](const WhatIf& more) {
    WhatIf asked = with(more);
    return resolved(asked).config.release.value;
  };
  const WhatIf newest{{"cluster", "commodity-10gbe"}};
  CHECK(release(newest) == deepspeed::release::newest);
  CHECK(release({{"deepspeed_version", "0.15.4"}}) == Version{0, 15, 4});
  CHECK(release({{"versions", "torch=2.1,deepspeed=0.15.4"}}) == Version{0, 15, 4});
  CHECK(release({{"cluster", "paper-eth40-v100"}}) == Version{0, 3, 0});  // what ran there
  CHECK(release({{"cluster", "paper-eth40-v100"}, {"deepspeed_version", "0.19"}}) ==
        Version{0, 19, 0});
  CHECK_THAT(refusal(with({{"deepspeed_version", "0.15"}, {"versions", "deepspeed=0.16"}})),
             Contains("--deepspeed-version: 0.15.0 is not the 0.16.0 of --versions"));
  CHECK_THAT(refusal(with({{"deepspeed_version", "new"}})), Contains("'new' is no version"));
}

}  // namespace
}  // namespace lambcast
