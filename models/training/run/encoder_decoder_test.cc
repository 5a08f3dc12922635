#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "models/training/price/block_kernels.h"
#include "models/training/price/slowest_rank.h"
#include "models/training/run/layout_case.h"

namespace lambcast {
namespace {

// T5 large: 24 encoder blocks of 512 tokens, then 24 decoder blocks of 114, hidden size 1024.
TrainingPlan t5_training(LayoutCase of, double target = 114. / 512) {
  TrainingPlan training = layout_training(of);
  training.model = std::make_shared<const ModelShape>(load_model(
      "t5-large",
      std::vector<ModelOverride>{{"model.target_fraction", fmt::format("{:.17g}", target)}}));
  training.seq_len = 512;
  training.parallelism->attention =
      AttentionKernel::unfused;  // computes whole squares of scores, as the shape's count does
  return training;
}

PipelinePlan pipeline_of(const TrainingPlan& training) {
  return plan_step(training, {StepKind::uniform, 512, 1}).pipeline.value();
}

double products_of(const std::vector<Piece>& pieces) {
  Flops sum;
  for (const Piece& piece : pieces) sum += piece.flops;
  return sum.value();
}

TEST_CASE("encoder and decoder: the products of each block match its shape's count") {
  for (const char* gated : {"false", "true"}) {
    TrainingPlan training = t5_training({});
    training.model = std::make_shared<const ModelShape>(
        load_model("t5-large", std::vector<ModelOverride>{{"model.gated", gated}}));
    const PipelinePlan plan = pipeline_of(training);
    const std::vector<BlockKinds> kinds = kinds_of(plan, rates_of_slowest(training, 1));
    REQUIRE(kinds.size() == 2);
    for (const auto& [kind, layer] : {std::pair{0, 0}, {1, 24}}) {
      const double forward = block_forward_flops(*training.model, layer, 512).value();
      const BlockKernels& block = kinds[static_cast<std::size_t>(kind)].dense;
      CHECK(products_of(block.forward) == Approx(forward));
      CHECK(products_of(block.backward) == Approx(2 * forward));
    }
  }
}

TEST_CASE("encoder and decoder: collectives carry the tokens of their own stack") {
  const PipelinePlan plan = pipeline_of(t5_training({.tp = 2, .micro = 3}));
  const double encoder = 3 * 512 * 2 * 1024, decoder = 3 * 114 * 2 * 1024;
  REQUIRE(plan.stacks.size() == 2);
  CHECK(plan.stacks[0].activations.sum->bytes.value() == encoder);
  CHECK(plan.stacks[1].activations.sum->bytes.value() == decoder);
  CHECK(plan.activations.sum->bytes.value() == decoder);
  CHECK(plan.loss_sum->bytes.value() == 4 * 3 * 114);
}

// Each pair of products has a sum forward and one backward: 2 pairs per encoder block, 3 per
// decoder block, and one more sum of the encoder's tokens backward. Outside the blocks: 2 sums for
// embeddings, 3 for the loss, 1 for the head's input, 2 for norm and overflow. With sequence
// parallelism a pair has 2 calls forward and 3 backward, the encoder's tokens 1 and 2. Outside are
// then 2 for each embedding, 5 for the head, and one for the gradients of norms.
TEST_CASE("encoder and decoder: a decoder's block has a third pair of products") {
  CollectiveCosts costs;
  const auto calls = [&](bool sequence_parallel) {
    LayoutCase of{.tp = 2, .micro_batches = 1, .sequence_parallel = sequence_parallel};
    const TrainingPlan training = t5_training(of);
    return run_step(training, {StepKind::uniform, 512, 1}, costs).metrics.num_collectives;
  };
  CHECK(calls(false) == 24 * (2 * 2) + 24 * (2 * 3 + 1) + 2 + 3 + 1 + 2);
  CHECK(calls(true) == 24 * (2 * 5) + 24 * (3 * 5 + 3) + 2 * 2 + 5 + 2 + 1);
}

TEST_CASE("encoder and decoder: stages of a decoder receive the activations of both stacks") {
  const PipelinePlan plan = pipeline_of(t5_training({.pp = 4}));
  REQUIRE(plan.sends.size() == 3);
  const double encoder = 512 * 2 * 1024, decoder = 114 * 2 * 1024;
  CHECK(plan.sends[0].bytes.value() == encoder);
  CHECK(plan.sends[1].bytes.value() == encoder);
  CHECK(plan.sends[2].bytes.value() == Approx(encoder + decoder));
}

TEST_CASE("encoder and decoder: fewer target tokens make a shorter step, more make a longer one") {
  CollectiveCosts costs;
  const auto step_us = [&](double target) {
    return run_step(t5_training({.tp = 2}, target), {StepKind::uniform, 512, 1}, costs)
        .metrics.step_time.us();
  };
  const double usual = step_us(114. / 512);
  CHECK(step_us(0.125) < usual);
  CHECK(step_us(1) > 1.2 * usual);
}

// With an even number of stages, the encoder ends with a stage; otherwise one stage has blocks of
// both.
TEST_CASE("encoder and decoder: each stack begins in one chunk") {
  for (const int stages : {1, 2, 3, 4}) {
    const PipelinePlan plan = pipeline_of(t5_training({.pp = stages}));
    for (std::size_t stack = 0; stack < 2; ++stack) {
      int layers = 0, begun = 0;
      for (const parallel::ChunkContent& chunk : plan.chunks) {
        const parallel::ChunkContent part = part_of(chunk, plan, stack);
        layers += part.layers;
        begun += begins(part, plan.stacks[stack]) ? 1 : 0;
      }
      CHECK(layers == 24);
      CHECK(begun == 1);
    }
  }
}

}  // namespace
}  // namespace lambcast
