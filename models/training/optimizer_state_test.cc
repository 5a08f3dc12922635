#include "models/training/optimizer_state.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "models/shape/load.h"
#include "models/training/memory.h"
#include "models/training/training_case.h"

namespace lambcast {
namespace {

TEST_CASE("optimizer states: bytes per element of a whole model") {
  const ModelShape bert = load_model("bert-large");
  const auto bytes = [&](OptimizerType type) { return state_bytes_per_element(type, bert); };
  CHECK(bytes(OptimizerType::onebit_lamb) == 8);
  CHECK(bytes(OptimizerType::lars) == 4);
  // Rows and columns of matrices of 1,024: 4 (1/1024 + 1/1024 or less), and whole vectors.
  CHECK(bytes(OptimizerType::adafactor) > 4.0 / 1024);
  CHECK(bytes(OptimizerType::adafactor) < 0.015);
  CHECK(bytes(OptimizerType::came) - 4 == Approx(2 * bytes(OptimizerType::adafactor)).epsilon(0.3));
  CHECK(bytes(OptimizerType::galore_adamw8bit) < 2);
}

TEST_CASE("optimizer states: GaLore projects in every step and decomposes in each 200th") {
  TrainingPlan training = training_of({OptimizerType::galore_adamw8bit});
  training.steps = 1000;
  const std::vector<DistinctStep> steps = distinct_steps(training);
  REQUIRE(steps.size() == 2);
  CHECK(steps[0].steps == 995);
  CHECK(steps[1].kind == StepKind::refresh);
  CHECK(steps[1].steps == 5);
  const StepMetrics usual = metrics_of(training, StepKind::uniform);
  const StepMetrics refresh = metrics_of(training, StepKind::refresh);
  CHECK(refresh.optimizer > usual.optimizer * 10);
  CHECK(refresh.wire_bytes_per_gpu == usual.wire_bytes_per_gpu);
}

TEST_CASE("optimizer states: GaLore refreshes between and at the exchanges of local steps") {
  // Steps 1, 201, 401, ... of 10,000: of 50 those that 9 divides (801, 2601, ...) exchange too, and
  // of those that 16 would, none.
  struct Row {
    double every;
    std::int64_t exchanging, local;
  };
  for (const Row& row : {Row{9, 6, 44}, {16, 0, 50}, {1, 50, 0}, {20000, 0, 50}}) {
    TrainingPlan training = training_of({OptimizerType::galore_adamw8bit});
    training.steps = 10000;
    training.exchange = {Exchange::Kind::local, row.every};
    std::int64_t exchanging = 0, local = 0, sending = 0, replayed = 0, steps = 0;
    for (const DistinctStep& distinct : distinct_steps(training)) {
      if (distinct.kind == StepKind::refresh)
        (distinct.local ? local : exchanging) += distinct.steps;
      if (distinct.sums_gradients()) sending += distinct.steps;
      steps += distinct.steps;
    }
    for (std::int64_t step = 1; step <= training.steps; step += 200)
      replayed += step % static_cast<std::int64_t>(row.every) == 0 ? 1 : 0;
    CHECK(exchanging == row.exchanging);
    CHECK(exchanging == replayed);
    CHECK(local == row.local);
    CHECK(sending == 10000 / static_cast<std::int64_t>(row.every));
    CHECK(steps == 10000);
  }
  TrainingPlan training = training_of({OptimizerType::galore_adamw8bit});
  training.exchange = {Exchange::Kind::local, 16};
  CollectiveCosts costs;
  const auto run = [&](StepKind kind, bool local) {
    return run_step(training, {kind, training.seq_len, 1, 0, local}, costs).metrics;
  };
  const StepMetrics silent = run(StepKind::silent, false), local = run(StepKind::refresh, true),
                    refresh = run(StepKind::refresh, false);
  CHECK(local.optimizer > silent.optimizer * 10);
  CHECK(local.wire_bytes_per_gpu == silent.wire_bytes_per_gpu);
  CHECK(refresh.wire_bytes_per_gpu > local.wire_bytes_per_gpu);
}

TEST_CASE("optimizer states: every setting of GaLore has its effect") {
  TrainingPlan training = training_of({OptimizerType::galore_adamw8bit});
  training.steps = 1000;
  struct Seen {
    double memory, optimizer_s, refreshes;
  };
  const auto seen = [&](const Projection& projection) {
    training.recipe.projection = projection;
    Seen of{forecast_memory(training).peak.value(),
            metrics_of(training, StepKind::uniform).optimizer.s(), 0};
    for (const DistinctStep& step : distinct_steps(training))
      if (step.kind == StepKind::refresh) of.refreshes += static_cast<double>(step.steps);
    return of;
  };
  const Seen usual = seen({}), thin = seen({.rank = 64}), rare = seen({.update_proj_gap = 500}),
             fp32 = seen({.min_8bit_size = std::int64_t{1} << 40});
  CHECK(usual.refreshes == 5);
  CHECK(thin.refreshes == 5);
  CHECK(rare.refreshes == 2);
  // Moments and basis, and Adam's kernels and the products, are a quarter.
  CHECK(thin.memory < usual.memory);
  CHECK(thin.optimizer_s < usual.optimizer_s);
  CHECK(rare.memory == usual.memory);
  CHECK(rare.optimizer_s == usual.optimizer_s);
  CHECK(fp32.memory > usual.memory);
  const ModelShape& bert = *training.model;
  const auto extras = [&](std::int64_t rank) {
    return update_extras(training.optimizer(), StepKind::refresh, Kernels::deepspeed, bert,
                         {1, 1, 2}, 2, {.rank = rank});
  };
  const auto small = [](const UpdateExtras& of) { return of.kernels.at(0).elements; };
  CHECK(small(extras(64)) == Approx(small(extras(256)) / 4).epsilon(0.02));
  CHECK(extras(64).products.at(0).flops == Approx(extras(256).products.at(0).flops / 4));
  // Of a rank as large as all matrices nothing is decomposed, so that nothing is gathered for it.
  CHECK(extras(256).calls.size() == 1);
  CHECK(extras(1024).calls.empty());
  CHECK(extras(1024).products.empty());
  CHECK(update_extras(training.optimizer(), StepKind::uniform, Kernels::fused, bert, {1, 1, 1}, 2)
            .kernels.at(0)
            .passes.bytes_per_element == 12);
}

const SharedCall* find(const UpdateExtras& extras, const std::string& name) {
  const auto at = std::ranges::find_if(
      extras.calls, [&](const SharedCall& shared) { return shared.name == name; });
  return at == extras.calls.end() ? nullptr : &*at;
}

TEST_CASE("optimizer states: what shared tensors sum crosses one call after another") {
  const ModelShape bert = load_model("bert-large");
  const std::int64_t tensors = optimized_tensor_count(bert);
  const auto extras = [&](OptimizerType type, const UpdateDivision& division) {
    return update_extras(type, StepKind::uniform, Kernels::deepspeed, bert, division, 2);
  };
  const UpdateExtras lamb = extras(OptimizerType::distributed_lamb, {1, 8, 1});
  REQUIRE(lamb.calls.size() == 1);
  CHECK(lamb.calls[0].times == tensors);
  CHECK(lamb.calls[0].bytes == Bytes(4));
  const UpdateExtras sliced = extras(OptimizerType::distributed_lamb, {1, 8, 2});
  REQUIRE(sliced.calls.size() == 2);
  CHECK(sliced.calls[0].bytes == Bytes(4));  // the update's norm: weights are whole in 16 bits
  CHECK(sliced.calls[1].bytes == Bytes(8));  // both, stacked
  CHECK(extras(OptimizerType::adafactor, {1, 1, 2}).calls[0].bytes == Bytes(4));
  CHECK(extras(OptimizerType::distributed_lamb, {1, 1, 1}).calls.empty());
  CHECK(extras(OptimizerType::lamb, {1, 8, 2}).calls.empty());
  CHECK(extras(OptimizerType::galore_adamw8bit, {1, 1, 1}).products.size() == 1);
  // A stage has its part of the tensors.
  CHECK(extras(OptimizerType::distributed_lamb, {0.5, 8, 1}).calls[0].times == (tensors + 1) / 2);
}

TEST_CASE("optimizer states: matrices whose rows do not divide are gathered whole, and squared") {
  const ModelShape bert = load_model("bert-large");
  const auto extras = [&](OptimizerType type, int shards) {
    return update_extras(type, StepKind::uniform, Kernels::deepspeed, bert, {1, shards, 1}, 2);
  };
  // At 2 every matrix divides, at 7 none does: the square and the gradient
  // of all matrices in fp32, of CAME once more for its residual.
  const double in_matrices = 334'897'152;  // all but vectors
  CHECK(find(extras(OptimizerType::adafactor, 2), "all_gather gradients and squares") == nullptr);
  const UpdateExtras uneven = extras(OptimizerType::adafactor, 7);
  const SharedCall* gathered = find(uneven, "all_gather gradients and squares");
  REQUIRE(gathered != nullptr);
  CHECK(gathered->bytes.value() * static_cast<double>(gathered->times) ==
        Approx(2 * 4 * in_matrices).epsilon(0.01));
  const UpdateExtras came = extras(OptimizerType::came, 7);
  CHECK(find(came, "all_gather gradients and squares")->times == 2 * gathered->times);
  // The others sum a vector of 1,024 column means where the plugin has them do so, else none.
  CHECK(find(extras(OptimizerType::adafactor, 2), "all_reduce columns of matrices") == nullptr);
  const UpdateExtras even = update_extras(OptimizerType::adafactor, StepKind::uniform,
                                          Kernels::deepspeed, bert, {1, 2, 1, true}, 2);
  CHECK(find(even, "all_reduce columns of matrices")->bytes.value() == Approx(4 * 1024));
}

TEST_CASE("optimizer states: GaLore decomposes whole gradients on every rank, gathered before") {
  const ModelShape bert = load_model("bert-large");
  const auto refresh = [&](int tensor_ranks) {
    return update_extras(OptimizerType::galore_adamw8bit, StepKind::refresh, Kernels::deepspeed,
                         bert, {1, 1, tensor_ranks}, 2);
  };
  const UpdateExtras whole = refresh(1), divided = refresh(4);
  CHECK(whole.calls.empty());
  CHECK(divided.products[0].flops == Approx(whole.products[0].flops / 4));
  CHECK(divided.products[1].flops == whole.products[1].flops);
  REQUIRE(divided.calls.size() == 1);
  CHECK(divided.calls[0].op == Op::all_gather);
  CHECK(divided.calls[0].bytes.value() * static_cast<double>(divided.calls[0].times) ==
        Approx(2 * 334'897'152.).epsilon(0.01));
  CHECK(update_extras(OptimizerType::galore_adamw8bit, StepKind::uniform, Kernels::deepspeed, bert,
                      {1, 1, 4}, 2)
            .calls.empty());
}

}  // namespace
}  // namespace lambcast
