#include "models/deepspeed/rules.h"
#include "models/deepspeed/recipe.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

namespace lambcast::deepspeed {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

constexpr const char* fp16 = "fp16: {enabled: true}";

// Returns a configuration with one optimizer, its params and additional lines.
DeepSpeedConfig of(const char* type, const char* params, const char* more = fp16) {
  return parse_config(
      fmt::format("optimizer: {{type: \"{}\", params: {{{}}}}}\n{}", type, params, more),
      "ds.json");
}

// Returns the only finding with this code; fails the test if there is none, or several.
Finding the_only(const std::vector<Finding>& findings, const char* code) {
  Finding found;
  int count = 0;
  for (const Finding& finding : findings) {
    if (finding.code != code) continue;
    found = finding;
    ++count;
  }
  INFO("findings of code " << code);
  CHECK(count == 1);
  return found;
}

bool has(const std::vector<Finding>& findings, const char* code) {
  for (const Finding& finding : findings)
    if (finding.code == code) return true;
  return false;
}

void check_error(const DeepSpeedConfig& config, const char* code, const char* sentence) {
  const Finding finding = the_only(check_config(config), code);
  CHECK(finding.severity == Severity::error);
  CHECK_THAT(finding.message, Contains(sentence));
  CHECK_THROWS_WITH(refuse_errors(check_config(config)), Contains(sentence));
}

TEST_CASE("rules: no 1-bit optimizer under ZeRO, each with its own message") {
  for (const int stage : {1, 2, 3}) {
    const std::string zero = fmt::format("{}\nzero_optimization: {{stage: {}}}", fp16, stage);
    check_error(of("OneBitAdam", "freeze_step: 5", zero.c_str()), "onebit-with-zero",
                "ds.json:3: zero_optimization.stage: 1bit-Adam is not compatible with ZeRO");
    check_error(of("OneBitLamb", "freeze_step: 5", zero.c_str()), "onebit-with-zero",
                "1bit-Lamb is not compatible with ZeRO");
    check_error(of("ZeroOneAdam", "var_freeze_step: 5", zero.c_str()), "onebit-with-zero",
                "0/1 Adam is not compatible with ZeRO");
    CHECK_NOTHROW(refuse_errors(check_config(of("Adam", "", zero.c_str()))));
  }
  CHECK_FALSE(has(check_config(of("OneBitAdam", "freeze_step: 5", "zero_optimization: {stage: 0}")),
                  "onebit-with-zero"));
}

TEST_CASE("rules: under ZeRO all optimizers except Adam must be allowed by the file") {
  const std::string zero = fmt::format("{}\nzero_optimization: {{stage: 1}}", fp16);
  check_error(
      of("Lamb", "", zero.c_str()), "untested-zero-optimizer",
      "ds.json:3: zero_optimization.stage: You are using an untested ZeRO Optimizer. Please "
      "add <\"zero_allow_untested_optimizer\": true>");
  DeepSpeedConfig came;
  came.optimizer.emplace().type = OptimizerType::came;
  came.zero.stage = {1, true, 0};
  CHECK_THAT(the_only(check_config(came), "untested-zero-optimizer").message,
             Contains("came is not in DeepSpeed: --framework names one"));
  const std::string allowed = zero + "\nzero_allow_untested_optimizer: true";
  CHECK_NOTHROW(refuse_errors(check_config(of("Lamb", "", allowed.c_str()))));
  CHECK_NOTHROW(refuse_errors(check_config(of("AdamW", "", zero.c_str()))));
  // Optimizers that only a training script can create are refused as well.
  for (const OptimizerType type : {OptimizerType::came, OptimizerType::adafactor,
                                   OptimizerType::lars, OptimizerType::distributed_lamb}) {
    for (const auto& [text, refused] : {std::pair{zero, true}, {allowed, false}}) {
      DeepSpeedConfig config = of("AdamW", "", text.c_str());
      config.optimizer->type = type;
      CHECK(has(check_config(config), "untested-zero-optimizer") == refused);
    }
  }
}

DeepSpeedConfig at(const Version& release, DeepSpeedConfig config) {
  config.release = {release, true, 0};
  return config;
}

TEST_CASE("rules: the LAMBs need a dynamic loss scale") {
  const char* bf16 = "bf16: {enabled: true}";
  const char* fixed = "fp16: {enabled: true, loss_scale: 128}";
  const Version before{0, 17, 0}, from{0, 17, 1};
  check_error(at(before, of("Lamb", "", bf16)), "static-loss-scale",
              "DeepSpeed lamb optimizer requires dynamic loss scaling");
  check_error(at(before, of("OneBitLamb", "freeze_step: 5", bf16)), "static-loss-scale",
              "DeepSpeed onebitlamb optimizer requires dynamic loss scaling");
  CHECK_FALSE(has(check_config(at(from, of("Lamb", "", bf16))), "static-loss-scale"));
  check_error(of("OneBitLamb", "freeze_step: 5", fixed), "static-loss-scale",
              "ds.json:2: fp16.loss_scale: DeepSpeed onebitlamb optimizer requires dynamic loss");
  CHECK_FALSE(has(check_config(of("Adam", "", fixed)), "static-loss-scale"));
  // Loss scale without fp16: older releases ignore it, later ones refuse it.
  const char* off = "fp16: {enabled: false, loss_scale: 128}";
  CHECK_FALSE(has(check_config(at(before, of("Lamb", "", off))), "static-loss-scale"));
  check_error(at(from, of("Lamb", "", off)), "static-loss-scale", "fp16.loss_scale");
}

TEST_CASE("rules: precisions that exclude each other") {
  check_error(of("Adam", "", "fp16: {enabled: true}\nbf16: {enabled: true}"), "fp16-with-bf16",
              "bfloat16 and fp16 modes cannot be simultaneously enabled");
  check_error(of("Adam", "", "fp16: {enabled: true, fp16_master_weights_and_grads: true}"),
              "fp16-master-weights", "only supported with ZeRO Stage 2");
}

TEST_CASE("rules: types in which gradients may accumulate without ZeRO") {
  const std::string bf16 = "bf16: {enabled: true}\n";
  const char* sums_bf16 = "data_types: {grad_accum_dtype: \"bf16\"}";
  const char* sums_fp32 = "data_types: {grad_accum_dtype: \"fp32\"}";
  const Version sharding{0, 17, 5}, either{0, 18, 4}, whole{0, 18, 5};
  const auto with = [&](const Version& release, const std::string& text) {
    return at(release, of("Adam", "", text.c_str()));
  };
  check_error(with(sharding, bf16 + sums_bf16), "grad-accum-dtype",
              "ds.json:3: data_types.grad_accum_dtype: Bfloat16 wrapper must use a gradient "
              "accumulation type of fp32, enable ZeRO to use Bfloat16 gradient accumulation");
  check_error(with(whole, bf16 + sums_fp32), "grad-accum-dtype",
              "unsupported mix of model_dtype=torch.bfloat16 and grad_accum_dtype=torch.float32: "
              "DeepSpeed from 0.18.5 on sums bf16 gradients in fp32 with ZeRO stage 1 alone");
  for (const std::string& text : {bf16 + sums_bf16, bf16 + sums_fp32})
    CHECK_FALSE(has(check_config(with(either, text)), "grad-accum-dtype"));
  for (const std::string& text : {std::string(fp16) + "\n" + sums_fp32, std::string(sums_bf16)}) {
    check_error(with(sharding, text), "grad-accum-dtype",
                "unsupported mix of model dtype and gradient accumulation type");
    check_error(with(whole, text), "grad-accum-dtype", "unsupported mix of model_dtype=torch.");
  }
  const std::string zero = bf16 + "zero_optimization: {stage: 1}\n";
  CHECK_FALSE(has(check_config(with(sharding, bf16 + sums_fp32)), "grad-accum-dtype"));
  CHECK_FALSE(has(check_config(with(whole, bf16)), "grad-accum-dtype"));
  for (const std::string& text : {zero + sums_bf16, zero + sums_fp32})
    CHECK_FALSE(has(check_config(of("Adam", "", text.c_str())), "grad-accum-dtype"));
}

TEST_CASE("rules: settings that the constructors of the optimizers refuse") {
  check_error(of("OneBitLamb", "max_grad_norm: 1.0, freeze_step: 5"), "max-grad-norm",
              "'max_grad_norm' is not supported as an optimizer parameter, please switch to using "
              "the deepspeed parameter 'gradient_clipping'");
  check_error(of("Adam", "max_grad_norm: 0"), "max-grad-norm", "optimizer.params.max_grad_norm");
  check_error(of("OneBitAdam", "amsgrad: true"), "amsgrad",
              "1-bit Adam does not support the AMSGrad variant.");
  check_error(of("OneBitLamb", "amsgrad: true"), "amsgrad",
              "1-bit Lamb does not support the AMSGrad variant.");
  check_error(of("ZeroOneAdam", "amsgrad: true"), "amsgrad",
              "0/1 Adam does not support the AMSGrad variant.");
  check_error(of("Lamb", "amsgrad: true"), "amsgrad",
              "FusedLamb does not support the AMSGrad variant.");
  CHECK_FALSE(has(check_config(of("Adam", "amsgrad: true, torch_adam: true")), "amsgrad"));
  check_error(of("ZeroOneAdam", "freeze_step: 5"), "unknown-optimizer-param",
              "__init__() got an unexpected keyword argument 'freeze_step'");
  check_error(of("OneBitAdam", "coeff_beta: 0.9"), "unknown-optimizer-param", "'coeff_beta'");
}

TEST_CASE("rules: settings with an unexpected effect") {
  CHECK_THAT(the_only(check_config(of("OneBitLamb", "")), "freeze-step-missing").message,
             Equals("ds.json:1: optimizer.params.freeze_step: not given: nothing is compressed "
                    "before DeepSpeed's default, step 100000"));
  the_only(check_config(of("ZeroOneAdam", "")), "var-freeze-step-missing");
  CHECK_THAT(
      the_only(check_config(of("OneBitLamb", "freeze_step: 9", "")), "onebit-without-fp16").message,
      Contains("Currently the convergence of 1-bit Lamb is only verified under FP16"));
  const DeepSpeedConfig bf16 = of("OneBitAdam", "freeze_step: 9", "bf16: {enabled: true}");
  the_only(check_config(at({0, 17, 5}, bf16)), "onebit-with-bf16");
  CHECK_FALSE(has(check_config(bf16), "onebit-with-bf16"));  // 0.17.6 does not shard states
  CHECK_THAT(the_only(check_config(
                          of("Adam", "", "prescale_gradients: true\ngradient_predivide_factor: 8")),
                      "no-effect")
                 .message,
             Contains("ds.json:3: gradient_predivide_factor: has no effect"));
  CHECK(check_config(of("Adam", "", "gradient_predivide_factor: 8")).empty());
  CHECK_THAT(
      the_only(check_config(of("OneBitLamb", "freeze_step: 9, bias_correction: true")), "no-effect")
          .message,
      Contains("1-bit Lamb has no bias correction"));
  the_only(check_config(of("Adam", "",
                           "zero_optimization: {stage: 2, offload_optimizer: {device: "
                           "\"nvme\"}}")),
           "not-modelled");
  the_only(check_config(of("Adam", "",
                           "zero_optimization: {stage: 3, offload_param: {device: "
                           "\"cpu\"}}")),
           "not-modelled");
  CHECK(check_config(of("Adam", "",
                        "zero_optimization: {stage: 2, overlap_comm: true, "
                        "offload_optimizer: {device: \"none\"}}"))
            .empty());
  CHECK(check_config(of("Adam", "", "zero_optimization: {stage: 2, cpu_offload: true}")).empty());
  the_only(check_config(of("Adam", "",
                           "zero_optimization: {stage: 3, offload_optimizer: {device: \"cpu\", "
                           "ratio: 0.3}}")),
           "not-modelled");
  the_only(check_config(of("OneBitLamb", "freeze_step: 1")), "freeze-step-tiny");
  the_only(check_config(of("Lamb", "min_coeff: 0.5, max_coeff: 0.1")), "coeff-bounds");
  the_only(check_config(of("OneBitLamb", "freeze_step: 9, factor_max: 0.1")), "factor-bounds");
}

TEST_CASE("rules: bf16 states of 0.19 are reported as not modelled") {
  for (const char* key : {"bf16_master_weights_and_grads", "bf16_optimizer_states"}) {
    const auto with = [&](const char* value) {
      return check_config(
          of("Adam", "", fmt::format("bf16: {{enabled: true, {}: {}}}", key, value).c_str()));
    };
    CHECK_THAT(the_only(with("true"), "not-modelled").message,
               Contains(fmt::format("ds.json:2: bf16.{}: lambcast has no model of this", key)));
    CHECK(with("false").empty());
  }
}

TEST_CASE("rules: every key of ZeRO has an effect or a note") {
  const auto notes = [](const char* block, const char* more = "") {
    std::string said;
    const std::string root = fmt::format("zero_optimization: {{{}}}\n{}", block, more);
    for (const Finding& finding : check_config(of("Adam", "", root.c_str()))) {
      CHECK(finding.severity == Severity::note);
      said += finding.code + " " + finding.message + "\n";
    }
    return said;
  };
  const char* keys[] = {"overlap_comm: true",
                        "reduce_bucket_size: 5e7",
                        "reduce_scatter: false",
                        "contiguous_gradients: true",
                        "use_multi_rank_bucket_allreduce: true",
                        "allgather_bucket_size: 5e7"};
  for (const std::string key : keys) {
    const std::string name = key.substr(0, key.find(':'));
    CHECK_THAT(notes((key + ", stage: 0").c_str()),
               Contains(fmt::format("no-effect ds.json:2: zero_optimization.{}: has no effect: it "
                                    "belongs to ZeRO, which is off at stage 0",
                                    name)));
    if (name == "allgather_bucket_size") continue;
    // At stages 1 and 2 these keys are modelled.
    for (const char* stage : {", stage: 1", ", stage: 2"})
      CHECK_THAT(notes((key + stage).c_str()), Equals(""));
    CHECK_THAT(notes((key + ", stage: 1").c_str(),
                     "bf16: {enabled: true}\ndata_types: {grad_accum_dtype: \"fp32\"}"),
               Contains("BF16_Optimizer takes ZeRO's place"));
  }
  for (const char* stage : {"stage: 1", "stage: 2"}) {
    const auto with = [&](const char* key) {
      return notes(fmt::format("{}, {}", stage, key).c_str());
    };
    CHECK_THAT(with("allgather_bucket_size: 5e7"),
               Contains("no-effect") && Contains("gathers every parameter group at once"));
    CHECK_THAT(with("round_robin_gradients: true"),
               Contains("no-effect") && Contains("copies of gradients to the host"));
    CHECK_THAT(with("round_robin_gradients: false"), Equals(""));
    CHECK_THAT(with("contiguous_gradients: false"),
               Contains("not-modelled") && Contains("false is not modelled"));
    CHECK_THAT(with("use_multi_rank_bucket_allreduce: false"), Contains("not-modelled"));
    CHECK_THAT(with("use_multi_rank_bucket_allreduce: false, reduce_scatter: false"), Equals(""));
    CHECK_THAT(with("zero_quantized_weights: true"),
               Equals("no-effect ds.json:2: zero_optimization.zero_quantized_weights: has no "
                      "effect: only ZeRO stage 3 uses it\n"));
    CHECK_THAT(with("zenflow: {topk_ratio: 0.1}"), Contains("not-modelled"));
  }
  // Keys that affect only stage 3: they are read there without a finding, or reported.
  const auto at_3 = [&](const char* key) {
    return notes(fmt::format("stage: 3, {}", key).c_str());
  };
  for (const char* read :
       {"zero_quantized_gradients: true", "zero_quantized_weights: true",
        "zero_hpz_partition_size: 8", "mics_shard_size: 8",
        "zeropp_loco_param: {err_beta: 0.8, reset_T: 1024}", "stage3_max_live_parameters: 1e8",
        "prefetch_bucket_size: 1e6", "stage3_prefetch_bucket_size: 1e6", "reduce_bucket_size: 1e6",
        "stage3_param_persistence_threshold: 1e6", "stage3_max_reuse_distance: 1e8",
        "overlap_comm: true"})
    CHECK_THAT(at_3(read), Equals(""));
  CHECK_THAT(at_3("overlap_comm: false"), Contains("no-effect") && Contains("nothing is taken to"));
  CHECK_THAT(at_3("stage3_module_granularity_threshold: 1e9"), Contains("not-modelled"));
}

TEST_CASE("rules: a curriculum that starts with empty sequences is refused") {
  const auto curriculum = [](int min, int max, int step) {
    return of("Adam", "",
              fmt::format("curriculum_learning: {{enabled: true, curriculum_type: \"seqlen\", "
                          "min_difficulty: {}, max_difficulty: {}, schedule_type: "
                          "\"fixed_linear\", schedule_config: {{total_curriculum_step: 1000, "
                          "difficulty_step: {}}}}}",
                          min, max, step)
                  .c_str());
  };
  check_error(curriculum(8, 1024, 64), "curriculum-zero-length", "sequences of 0 tokens");
  the_only(check_config(curriculum(10, 1024, 8)), "curriculum-below-min");
  the_only(check_config(curriculum(64, 1000, 64)), "curriculum-late-max");
  the_only(check_config(curriculum(10, 100, 10)), "curriculum-not-multiple-of-8");
  CHECK(check_config(curriculum(64, 1024, 64)).empty());
}

TEST_CASE("rules: warm-up steps, with and without the dry run of the fp16 wrapper") {
  // The wrapper's dry run counts as a step, so the freeze follows step F - 1.
  CHECK(warmup_steps(recipe_of(of("OneBitAdam", "freeze_step: 1000"))) == 999);
  CHECK(warmup_steps(recipe_of(of("OneBitAdam", "freeze_step: 1000", ""))) == 1000);
  for (const char* freeze : {"freeze_step: 0", "freeze_step: 1", "freeze_step: 2"})
    CHECK(warmup_steps(recipe_of(of("OneBitLamb", freeze))) == 1);
}

TEST_CASE("rules: the freeze step compared with the length of the run") {
  const DeepSpeedConfig config = of("OneBitLamb", "freeze_step: 1000");
  CHECK_THAT(the_only(check_run(config, 999), "never-compressed").message,
             Equals("ds.json:1: optimizer.params.freeze_step: 999 warm-up steps in a run of 999: "
                    "compression never starts"));
  CHECK(check_run(config, 1000).empty());
  CHECK(check_run(config, 9999).empty());  // 9999 / 10 = 999
  the_only(check_run(config, 10000), "freeze-early");
  CHECK(check_run(of("Adam", ""), 10).empty());
  // With coeff_beta 0.9 the average needs 1 / (1 - 0.9) = 10 warm-up steps; 9 are too few.
  the_only(check_run(of("OneBitLamb", "freeze_step: 10"), 50), "coeff-beta-slow");
  CHECK(check_run(of("OneBitLamb", "freeze_step: 11"), 50).empty());
  the_only(check_run(of("OneBitLamb", "freeze_step: 500, coeff_beta: 1"), 1000), "coeff-beta-slow");
  CHECK_FALSE(has(check_run(of("OneBitAdam", "freeze_step: 10"), 50), "coeff-beta-slow"));
}

}  // namespace
}  // namespace lambcast::deepspeed
