// Tests of findings on values that a description leaves open and a forecast assumes.
#include "experiments/scenario/scenario_case.h"

namespace lambcast {
namespace {

std::string assumption_in(const WhatIf& asked, std::string_view code) {
  for (const Finding& finding : resolved(asked).findings)
    if (finding.code == code) return finding.message;
  return {};
}

TEST_CASE("assumptions: a sequence length is reported for models that accept very long ones") {
  const auto assumed = [](const WhatIf& changes) {
    const WhatIf alone{{"cluster", "dgx-a100-80g"}, {"gpus", "8"},       {"optimizer", "adamw"},
                       {"micro_batch", "1"},        {"grad_accum", "1"}, {"steps", "10"}};
    return assumption_in(with(changes, alone), "seq-len-assumed");
  };
  CHECK(assumed({{"model", "mixtral-8x7b"}}) ==
        "--seq-len not given; assumed: 32768 tokens (mixtral-8x7b accepts up to 32768)");
  CHECK(assumed({{"model", "mixtral-8x7b"}, {"seq_len", "4096"}}).empty());
  CHECK(assumed({{"model", "llama2-7b"}}).empty());    // trained with this length of 4,096
  CHECK(assumed({{"model", "deepseek-v3"}}).empty());  // its description states a default length
}

TEST_CASE("assumptions: a GPU without a profile is named, unless another profile was chosen") {
  const WhatIf roce{{"cluster", "rtx6000d-roce"}};
  CHECK(assumption_in(with(roce), "device-stands-in") ==
        "compute and memory are those of a100-80g, since RTX 6000D has no profile; --device takes "
        "the profile of another GPU");
  // Stating the device that stands in changes nothing.
  CHECK_FALSE(
      assumption_in(with({{"device", "a100-80g"}}, with(roce)), "device-stands-in").empty());
  for (const char* key : {"device", "cluster.device"})
    CHECK(assumption_in(with({{key, "h20"}}, with(roce)), "device-stands-in").empty());
  CHECK(assumption_in(complete(), "device-stands-in").empty());
}

TEST_CASE("assumptions: a bandwidth that was stated over another kind of network is named") {
  const auto assumed = [](const WhatIf& changes) {
    const WhatIf ethernet{{"cluster", "commodity-10gbe"}, {"gpus", "8"}};
    return assumption_in(with(changes, with(ethernet)), "bandwidth-of-other-network");
  };
  CHECK(
      assumed({{"cluster.nic.network", "rdma"}}) ==
      "nic.bandwidth stays the 9.4 Gbit/s of commodity-10gbe, published over TCP: give yours with "
      "--set cluster.nic.bandwidth");
  CHECK(assumed({{"cluster.nic.network", "socket"}}).empty());
  CHECK(assumed({{"cluster.nic.network", "rdma"}, {"cluster.nic.bandwidth", "9 Gbit/s"}}).empty());
  CHECK(assumed({}).empty());
}

}  // namespace
}  // namespace lambcast
