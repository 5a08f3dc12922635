#include "experiments/scenario/hints.h"

#include <catch2/catch.hpp>

#include "experiments/scenario/scenario_case.h"
#include "sim/base/temporary_folder.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("hints: common mistakes are refused with a correction") {
  struct Row {
    std::string key, value, expected;
  };
  for (const auto& [key, value, expected] :
       {Row{"usd_per_gpu_hour", "1.5", "write cluster.usd_per_gpu_hour"},
        {"bandwdth", "1Gbit/s", "unknown key 'bandwdth': write cluster.nic.bandwidth"},
        {"batch", "64", "write global_batch or micro_batch"},
        {"exchange", "diloco", "write local:STEPS, such as local:100"},
        {"freeze_step", "0.167", "'0.167' is not a step; as a share of the run write 16.7%"},
        // The decimal and the binary value are 2.4 % apart, and neither is usual for samples.
        {"global_batch", "64k", "'64k' is ambiguous: write 64000 or 65536"},
        {"steps", "1.5M", "'1.5M' is ambiguous: write 1500000 or 1572864"},
        {"cluster", "h100", "did you mean one of 'h100-500w-ndr', 'hgx-h100-ndr'"},
        {"global_batch", "65,536", "'65,536' has a comma: write 65536"},
        {"gpus", "16,32", "'16,32' is a list: write --list KEY=16,32 (sweep, advise)"},
        {"optimizer", "diloco", "write --exchange local:STEPS, such as local:100"},
        {"exchange", "diloco:100", "write local:STEPS, such as local:100"},
        {"optimizer", "1-bit LAMB", "unknown value '1-bit LAMB': write onebit_lamb"},
        {"optimizer", "0/1 Adam", "write zero_one_adam"},
        {"framework", "FSDP", "write torchtitan"},
        {"framework", "fsdp", "unknown value 'fsdp': write torchtitan"},
        {"nic.bandwidth", "10Gbit/s", "write cluster.nic.bandwidth"},
        {"global_batch", "many", "'many' is not a whole number in range"}}) {
    INFO(key << "=" << value);
    CHECK_THAT(refusal(with({{key, value}})), Contains(expected));
  }
  CHECK(hint_for(Typed::flag, "--gpus").empty());
  CHECK_THAT(std::string(hint_for(Typed::flag, "--epochs")), Contains("--steps"));
  CHECK(hint_for_count("0.5", false).empty());
}

TEST_CASE("hints: PyTorch with ZeRO stage 3 is refused, and the error names torchtitan") {
  CHECK_THAT(refusal(with({{"optimizer", "lamb"}, {"framework", "pytorch"}, {"zero_stage", "3"}})),
             Contains("--framework torchtitan"));
}

TEST_CASE("hints: the folder of a Hugging Face checkpoint is read by its config.json") {
  const TemporaryFolder folder;
  CHECK(
      refusal(with({{"model", folder.path().string()}})) ==
      "--model: the folder " + folder.path().string() +
          " has no config.json (allowed: a preset's name, a file, or the folder of a Hugging Face "
          "checkpoint)");
  folder.file("config.json",
              R"({"model_type": "gpt2", "n_layer": 12, "n_head": 12, "n_embd": 768,
                  "vocab_size": 50257, "n_positions": 1024})");
  const Scenario scenario = resolved(with({{"model", folder.path().string()}}));
  CHECK(scenario.asked.at("model") == folder.path().string() + "/config.json");
  CHECK(scenario.training.model->hidden == 768);
}

}  // namespace
}  // namespace lambcast
