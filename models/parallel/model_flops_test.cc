#include "models/parallel/model_flops.h"

#include <catch2/catch.hpp>

#include "models/parallel/published_case.h"

namespace lambcast::parallel {
namespace {

constexpr double a100_peak = 312e12;

}  // namespace

TEST_CASE("FLOPs: the closed forms of Narayanan et al. 2021 and Korthikanti et al. 2022") {
  for (const char* name : {"gpt2-xl", "gpt3-175b"}) {
    const ModelShape shape = load_model(name);
    const auto L = static_cast<double>(shape.layers);
    const auto h = static_cast<double>(shape.hidden);
    const auto V = static_cast<double>(shape.vocab);
    const std::int64_t seq_len = shape.max_seq_len;
    const auto s = static_cast<double>(seq_len);
    const double layers = L * s * h * h;
    CHECK(model_flops(shape, seq_len).value() ==
          Approx(72 * layers * (1 + s / (6 * h) + V / (12 * h * L))));
    CHECK(hardware_flops(shape, seq_len, Recompute::none) == model_flops(shape, seq_len));
    CHECK(hardware_flops(shape, seq_len, Recompute::full).value() ==
          Approx(96 * layers * (1 + s / (6 * h) + V / (16 * h * L))));
    CHECK(hardware_flops(shape, seq_len, Recompute::selective).value() ==
          Approx(72 * layers * (1 + s / (6 * h) + V / (12 * h * L) + s / (18 * h))));
    CHECK(korthikanti_selective_flops(shape, seq_len).value() ==
          Approx(72 * layers * (1 + s / (3 * h) + V / (12 * h * L))));
    // A causal mask leaves out half of scores and context: 12 L s^2 h less over the forward pass
    // and the backward pass, which counts twice.
    CHECK(model_flops(shape, seq_len, AttentionCount::causal).value() ==
          Approx(72 * layers * (1 + s / (12 * h) + V / (12 * h * L))));
    CHECK(hardware_flops(shape, seq_len, Recompute::selective, AttentionCount::causal).value() ==
          Approx(72 * layers * (1 + s / (12 * h) + V / (12 * h * L) + s / (36 * h))));
  }
}

TEST_CASE("FLOPs: utilisation as printed by Korthikanti et al.") {
  const csv::Table table = published("step_flops.csv");
  REQUIRE(table.rows.size() == 2);
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    CAPTURE(table.text(row, "model"));
    const ModelShape shape = gpt_of(table, row, 2048, 51200);
    const double per_second = table.number(row, "batch") / table.number(row, "iter_s") /
                              table.number(row, "gpus") / a100_peak * 100;
    // The time and the share are printed with three digits.
    CHECK(model_flops(shape, 2048).value() * per_second ==
          Approx(table.number(row, "mfu_pct")).epsilon(0.006));
    CHECK(korthikanti_selective_flops(shape, 2048).value() * per_second ==
          Approx(table.number(row, "hfu_pct")).epsilon(0.006));
  }
}

TEST_CASE("FLOPs: BigScience's TFLOP/s follow from its times, with recomputation") {
  const csv::Table table = published("bigscience.csv");
  REQUIRE(table.rows.size() == 28);
  int exact = 0;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    // For the two runs on 320 GPUs, the printed rates are 4 % below those that follow from time and
    // batch.
    if (integer(table, row, "gpus") == 320) continue;
    const ModelShape shape = gpt_of(table, row, 2048, 250880);
    const double tflops = hardware_flops(shape, 2048, Recompute::full).value() *
                          table.number(row, "batch") / table.number(row, "iter_s") /
                          table.number(row, "gpus") * 1e-12;
    CHECK(tflops == Approx(table.number(row, "tflops_per_gpu")).epsilon(2e-4));
    ++exact;
  }
  CHECK(exact == 26);
}

TEST_CASE("FLOPs: Llama 3.1 as counted by MLPerf's submitters") {
  // TFLOP per sequence of 8192 tokens in NVIDIA's config_common.sh of training_results_v5.0 and
  // v5.1.
  const auto llama = [](const char* layers, const char* hidden, const char* ffn,
                        const char* heads) {
    return load_model("llama2-70b", std::vector<ModelOverride>{{"model.layers", layers},
                                                               {"model.hidden", hidden},
                                                               {"model.ffn", ffn},
                                                               {"model.heads", heads},
                                                               {"model.kv_heads", "8"},
                                                               {"model.vocab", "128256"},
                                                               {"model.max_seq_len", "8192"}});
  };
  CHECK(model_flops(llama("126", "16384", "53248", "128"), 8192).value() * 1e-12 ==
        Approx(21508).epsilon(0.001));
  CHECK(model_flops(llama("32", "4096", "14336", "32"), 8192, AttentionCount::causal).value() *
            1e-12 ==
        Approx(421.6).epsilon(0.001));
}

}  // namespace lambcast::parallel
