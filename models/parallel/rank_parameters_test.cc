#include "models/parallel/rank_parameters.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "models/shape/adapters.h"
#include "models/shape/load.h"

namespace lambcast::parallel {

TEST_CASE("parameters of a rank: the closed forms of a GPT") {
  const ModelShape shape = load_model("gpt3-175b");
  const double h = 12288;
  for (const int t : {1, 2, 8})
    for (const int p : {1, 4, 16}) {
      CAPTURE(t, p);
      const ParallelLayout layout{.tp = t, .pp = p};
      const Pipeline pipeline{PipelineSchedule::one_f_one_b, p, 1, 32};
      const auto chunks =
          rank_parameters(shape, layout, pipeline, split_stages(SplitMethod::even, 96, p));
      const double layers = 96. / p;
      const double block = layers * ((12 * h * h + 7 * h) / t + 6 * h);
      const double rows = t == 1 ? 50257 : t == 2 ? 50432 : 51200;  // multiples of 128 t
      const double vocabulary = rows * h / t;
      const auto& first = chunks.front();
      const auto& last = chunks.back();
      if (p == 1) {
        CHECK(first.total() == Approx(block + vocabulary + 2048 * h + 2 * h).epsilon(1e-12));
        CHECK(first.tied == 0);
      } else {
        CHECK(first.total() == Approx(block + vocabulary + 2048 * h).epsilon(1e-12));
        CHECK(chunks[1].total() == Approx(block).epsilon(1e-12));
        CHECK(last.total() == Approx(block + vocabulary + 2 * h).epsilon(1e-12));
        CHECK(last.tied == Approx(vocabulary));
        CHECK(first.tied == Approx(vocabulary));
      }
      CHECK(first.whole == Approx(layers * 6 * h + 2048 * h + (p == 1 ? 2 * h : 0)));
      CHECK(first.vocabulary == Approx(vocabulary));
    }
  CHECK(has_tied_head(shape));
  CHECK(has_tied_head(load_model("bert-large")));
  CHECK_FALSE(has_tied_head(load_model("llama2-7b")));
  CHECK_FALSE(has_tied_head(load_model("resnet50")));
}

TEST_CASE("parameters of a rank: in zbv the embedding and its head share a stage") {
  const ModelShape shape = load_model("gpt2");
  const Pipeline pipeline{PipelineSchedule::zbv, 3, 2, 8};
  const auto chunks =
      rank_parameters(shape, {.pp = 3}, pipeline, split_stages(SplitMethod::even, 12, 6));
  double sum = 0;
  for (const RankParameters& chunk : chunks) {
    sum += chunk.total();
    CHECK(chunk.tied == 0);
  }
  CHECK(sum == static_cast<double>(parameters(shape)));
}

TEST_CASE("parameters of a rank: in every family they sum to the model") {
  for (const char* name : {"bert-large", "gpt2-xl", "llama2-70b", "mixtral-8x7b", "t5-large",
                           "switch-base-64", "vit-l16"}) {
    const ModelShape shape = load_model(name);
    CAPTURE(name);
    const auto layers = static_cast<int>(shape.layers);
    const Pipeline pipeline{PipelineSchedule::one_f_one_b, 1, 1, 1};
    const auto whole =
        rank_parameters(shape, {}, pipeline, split_stages(SplitMethod::even, layers, 1));
    CHECK(whole[0].total() == Approx(static_cast<double>(parameters(shape))).epsilon(1e-12));
    // The ranks of tp and ep together hold each tensor that is not replicated once.
    ParallelLayout layout{.tp = 4, .dp = 8};
    if (shape.experts > 0) layout.ep = 8;
    const auto parts =
        rank_parameters(shape, layout, pipeline, split_stages(SplitMethod::even, layers, 1));
    CHECK(parts[0].experts * 4 * layout.ep == Approx(whole[0].experts).epsilon(1e-12));
    CHECK(parts[0].whole == whole[0].whole);
    CHECK((parts[0].divided - parts[0].vocabulary) * 4 ==
          Approx(whole[0].divided - whole[0].vocabulary).epsilon(1e-12));
    CHECK(parts[0].vocabulary * 4 >= whole[0].vocabulary);
    CHECK(parts[0].vocabulary * 4 <=
          whole[0].vocabulary * (1 + 512. / std::max<double>(1, static_cast<double>(shape.vocab))));
  }
}

TEST_CASE("parameters of a rank: key-value heads are repeated if there are more ranks") {
  const ModelShape shape = load_model("llama2-70b");  // 64 heads, 8 of keys and values
  const Pipeline pipeline{PipelineSchedule::one_f_one_b, 1, 1, 1};
  const auto contents = split_stages(SplitMethod::even, 80, 1);
  const auto at = [&](int tp) {
    return rank_parameters(shape, {.tp = tp}, pipeline, contents)[0].divided -
           rank_parameters(shape, {.tp = tp}, pipeline, contents)[0].vocabulary;
  };
  const double keys_and_values = 80. * 2 * 8192 * 1024;
  CHECK(at(8) * 8 == Approx(at(1)).epsilon(1e-12));
  CHECK(at(16) * 16 == Approx(at(1) + keys_and_values).epsilon(1e-12));
}

TEST_CASE("parameters of a rank: frozen weights are held, and only adapters have gradients") {
  const ModelShape shape = with_adapters(load_model("gpt2-xl"), {16}, {});
  const double h = 1600, blocks = 48;
  for (const int t : {1, 5}) {
    const Pipeline pipeline{PipelineSchedule::one_f_one_b, 2, 1, 8};
    const auto chunks = rank_parameters(shape, {.tp = t, .pp = 2}, pipeline,
                                        split_stages(SplitMethod::even, 48, 2));
    const auto whole = rank_parameters(load_model("gpt2-xl"), {.tp = t, .pp = 2}, pipeline,
                                       split_stages(SplitMethod::even, 48, 2));
    for (std::size_t stage = 0; stage < 2; ++stage) {
      CHECK(chunks[stage].total() == Approx(blocks / 2 * 16 * (h + 3 * h + h + h) / t));
      CHECK(chunks[stage].frozen == Approx(whole[stage].total()));
      CHECK(chunks[stage].vocabulary == Approx(whole[stage].vocabulary));
      CHECK(chunks[stage].tied == 0);
    }
  }
}

}  // namespace lambcast::parallel
