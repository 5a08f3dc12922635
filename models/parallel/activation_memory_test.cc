#include "models/parallel/activation_memory.h"

#include <catch2/catch.hpp>

#include "models/shape/adapters.h"
#include "models/shape/load.h"

namespace lambcast::parallel {
namespace {

constexpr double gpt_width = 12288;
constexpr double gpt_heads = 96;
constexpr double gpt_seq = 2048;

}  // namespace

TEST_CASE("activations: the table of Korthikanti et al. 2022, row by row") {
  const ModelShape shape = load_model("gpt3-175b");
  const double h = gpt_width;
  const double s = gpt_seq;
  const double scores = 5 * gpt_heads * s / h;
  for (const int t : {1, 2, 8})
    for (const std::int64_t b : {1, 4}) {
      CAPTURE(t, b);
      const double sbh = s * static_cast<double>(b) * h;
      const auto kept = [&](bool sequence_parallel, Recompute recompute) {
        return layer_activations(shape, 0,
                                 {.tp = t,
                                  .sequence_parallel = sequence_parallel,
                                  .recompute = recompute,
                                  .micro_batch = b,
                                  .seq_len = 2048})
                   .kept.value() /
               sbh;
      };
      CHECK(kept(false, Recompute::none) == Approx(10 + 24. / t + scores / t));
      CHECK(kept(true, Recompute::none) == Approx((34 + scores) / t));
      CHECK(kept(false, Recompute::selective) == Approx(10 + 24. / t));
      CHECK(kept(true, Recompute::selective) == Approx(34. / t));
      CHECK(kept(false, Recompute::full) == Approx(2));
      CHECK(kept(true, Recompute::full) == Approx(2. / t));
    }
}

TEST_CASE("activations: recomputed activations exist for one layer at a time") {
  const ModelShape shape = load_model("gpt3-175b");
  ActivationSetting setting{.tp = 8, .seq_len = 2048};
  const auto layer = [&] { return layer_activations(shape, 0, setting); };
  const LayerActivations none = layer();
  CHECK(none.recomputed == Bytes());
  setting.recompute = Recompute::selective;
  CHECK((layer().kept + layer().recomputed).value() == Approx(none.kept.value()));
  setting.recompute = Recompute::full;
  CHECK(layer().recomputed == none.kept);
  setting.divides_checkpoints = true;
  CHECK(layer().kept.value() == Approx(2 * gpt_seq * gpt_width / 8));
}

// Llama 2 70B with rank-16 adapters on attention. Bytes per token, with k = 1,024 key channels: two
// norms 4 h; two adapter inputs 3 h each; queries, context and keys 4 h + 4 k; feed-forward 4 f.
TEST_CASE("activations: products, attention and gates keep fewer bits") {
  const double h = 8192, k = 1024, f = 28672;
  const ModelShape plain = load_model("llama2-70b");
  const ModelShape adapted = with_adapters(plain, {.rank = 16}, {});
  ActivationSetting setting{.fused_attention = true, .fused_gates = true, .seq_len = 1};
  const auto kept = [&](const ModelShape& shape) {
    return layer_activations(shape, 0, setting).kept.value();
  };
  CHECK(kept(adapted) == Approx(4 * h + 6 * h + 4 * h + 4 * k + 4 * f));
  CHECK(kept(plain) == Approx(4 * h + 4 * h + 4 * h + 4 * k + 6 * f));
  // In fp8, the outputs of both norms and the input of the down projection have 8 bits. The context
  // is kept a second time, in 8 bits, for the projection.
  setting.product_bytes = 1;
  CHECK(kept(plain) == Approx(4 * h + 2 * h + 4 * h + 4 * k + h + 5 * f));
  CHECK(kept(adapted) == Approx(4 * h + 6 * h + 4 * h + 4 * k + 4 * f));
  setting.attention_bytes = 1;
  CHECK(kept(adapted) == Approx(4 * h + 6 * h + 2 * h + 2 * k + 4 * f));
  setting.fp8_gates = true;
  CHECK(kept(adapted) == Approx(4 * h + 6 * h + 2 * h + 2 * k + 2 * f));
  setting.tp = 4;
  CHECK(kept(adapted) == Approx(7 * h + (3 * h + 2 * h + 2 * k + 2 * f) / 4));
}

TEST_CASE("activations: adapters keep less than full training, also with experts") {
  for (const char* name : {"llama2-70b", "mixtral-8x7b", "gpt3-175b"}) {
    CAPTURE(name);
    const ModelShape plain = load_model(name);
    const ModelShape adapted = with_adapters(plain, {.rank = 16}, {});
    CHECK(activation_bytes(adapted, 1, 2048, false) < activation_bytes(plain, 1, 2048, false));
  }
}

// The run of Llama 3.1 8B in torchtitan keeps input, query, value, context, gate and output of each
// block.
TEST_CASE("activations: every second product of a gated block with grouped heads") {
  const ModelShape llama = load_model("llama3-8b");
  const double h = 4096, kv = 1024, f = 14336, tokens = 8192;
  ActivationSetting setting{.recompute = Recompute::alternate, .seq_len = 8192};
  const LayerActivations alternate = layer_activations(llama, 0, setting);
  CHECK(alternate.kept.value() == Approx(2 * tokens * (h + h + kv + h + f + h)));
  setting.fused_gates = true;
  CHECK(layer_activations(llama, 0, setting).kept.value() ==
        Approx(2 * tokens * (h + h + kv + h + f)));
  setting.fused_gates = false;
  setting.recompute = Recompute::none;
  const LayerActivations all = layer_activations(llama, 0, setting);
  CHECK((alternate.kept + alternate.recomputed).value() == Approx(all.kept.value()));
}

// Scores keep 5 a s^2 bytes with dropout and 2 a s^2 without, divided over t ranks. The two models
// have a = 96 and a = 32 heads.
TEST_CASE("activations: a fused kernel keeps no scores, so that none and selective are equal") {
  for (const auto& [name, scores] : {std::pair{"gpt3-175b", 5 * 96.}, {"llama3-8b", 2 * 32.}}) {
    const ModelShape model = load_model(name);
    ActivationSetting setting{.tp = 4, .recompute = Recompute::selective, .seq_len = 2048};
    const auto kept = [&] { return layer_activations(model, 0, setting).kept.value(); };
    const double selective = kept();
    setting.recompute = Recompute::none;
    CHECK(kept() - selective == Approx(scores * 2048 * 2048 / 4));
    setting.fused_attention = true;
    CHECK(kept() == selective);
  }
}

// A block keeps 32 s h bytes for its weight gradients (Qi et al. 2024, table 1), 8 s h of them
// whole on every tensor rank. A parallel block shares one input and one output gradient, so it
// keeps 28 s h and 4 s h.
TEST_CASE("activations: tensors kept for weight gradients, also in a parallel block") {
  const double sh = 2048 * 12288.;
  const ActivationSetting setting{.tp = 8, .seq_len = 2048};
  const auto awaiting = [&](const char* parallel) {
    const std::vector<ModelOverride> overrides{{"model.parallel_block", parallel}};
    const ModelShape shape = load_model("gpt3-175b", overrides);
    return layer_activations(shape, 0, setting).awaiting_weight.value();
  };
  CHECK(awaiting("false") == Approx(8 * sh + 24 * sh / 8));
  CHECK(awaiting("true") == Approx(4 * sh + 24 * sh / 8));
}

// T = 1,024 tokens and S = T k places, as in DeepSpeed moe/sharded_moe.py. With one choice the
// backward pass needs most memory (the gradient in 16 bits and in fp32), with several choices the
// forward pass does.
TEST_CASE("activations: one-hot gating needs fp32 weights while its block computes") {
  const ModelShape shape = load_model("mixtral-8x7b");
  for (const std::int64_t k : {1, 2, 3}) {
    ModelShape chosen = shape;
    chosen.experts_per_token = k;
    ActivationSetting setting{.fused_attention = true, .experts = {.one_hot = true}};
    setting.seq_len = 1024;
    const LayerActivations one_hot = layer_activations(chosen, 0, setting);
    CHECK(one_hot.recomputed.value() == Approx((k == 1 ? 6. : 4. * k) * 1024 * 1024 * k));
    setting.recompute = Recompute::full;
    const LayerActivations again = layer_activations(chosen, 0, setting);
    CHECK((again.recomputed - one_hot.recomputed).value() == Approx(one_hot.kept.value()));
    setting.experts.one_hot = false;
    setting.recompute = Recompute::none;
    CHECK(layer_activations(chosen, 0, setting).recomputed == Bytes());
  }
}

TEST_CASE("activations: context parallelism divides the sequence") {
  const ModelShape llama = load_model("llama2-70b");
  const ActivationSetting whole{.tp = 8, .sequence_parallel = true, .seq_len = 4096};
  ActivationSetting shared = whole;
  shared.cp = 4;
  CHECK(layer_activations(llama, 0, shared).kept.value() * 4 ==
        Approx(layer_activations(llama, 0, whole).kept.value()));
}

TEST_CASE("activations: first and last stage, and micro batches in flight") {
  const ModelShape shape = load_model("gpt3-175b");
  const double h = gpt_width;
  const double s = gpt_seq;
  const int p = 8;
  const Pipeline pipeline{PipelineSchedule::one_f_one_b, p, 1, 64};
  const ActivationSetting setting{
      .tp = 8, .sequence_parallel = true, .recompute = Recompute::selective, .seq_len = 2048};
  const auto stages =
      activation_memory(shape, pipeline, split_stages(SplitMethod::even, 96, p), setting);
  // Korthikanti et al. 2022, section 4.3: the first stage keeps the activations of L layers for one
  // micro batch, and s b h p / t of masks after the embedding.
  CHECK(stages[0].kept.value() == Approx(96 * 34 * s * h / 8 + s * h * p / 8));
  CHECK(stages[1].kept.value() == Approx(7 * 12 * 34 * s * h / 8));
  const double head = 4 * s * h / 8 + 4 * s * 50257 / 8;
  CHECK(stages[7].head.value() == Approx(head));
  CHECK(stages[7].kept.value() == Approx(12 * 34 * s * h / 8 + head));
  CHECK(stages[0].head == Bytes());
  CHECK(stages[3].recomputed.value() == Approx(5 * 96 * s * s / 8));
}

TEST_CASE("activations: more tensor ranks keep less of a block with experts on each") {
  const ModelShape shape = load_model("qwen3-30b-a3b");
  for (const bool sequence_parallel : {false, true})
    for (const int etp : {0, 1}) {
      const auto kept = [&](int tp) {
        return layer_activations(shape, 0,
                                 {.tp = tp,
                                  .sequence_parallel = sequence_parallel,
                                  .experts = {.tp = etp},
                                  .seq_len = 4096})
            .kept.value();
      };
      CHECK(kept(2) < kept(1));
      CHECK(kept(8) < kept(4));
    }
}

}  // namespace lambcast::parallel
