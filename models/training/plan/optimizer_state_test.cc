#include "models/training/plan/optimizer_state.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "models/optimizer/galore.h"
#include "models/shape/load.h"
#include "models/training/memory/memory.h"
#include "models/training/run/training_case.h"

namespace lambcast {
namespace {

TEST_CASE("optimizer states: bytes per element of a whole model") {
  const ModelShape bert = load_model("bert-large");
  const auto bytes = [&](OptimizerType type) { return state_bytes_per_element(type, bert); };
  CHECK(bytes(OptimizerType::onebit_lamb) == 8);
  CHECK(bytes(OptimizerType::lars) == 4);
  // Row and column means of matrices with 1,024 rows: at most 4 (1/1024 + 1/1024), and whole
  // vectors.
  CHECK(bytes(OptimizerType::adafactor) > 4.0 / 1024);
  CHECK(bytes(OptimizerType::adafactor) < 0.015);
  CHECK(bytes(OptimizerType::came) - 4 == Approx(2 * bytes(OptimizerType::adafactor)).epsilon(0.3));
  CHECK(bytes(OptimizerType::galore_adamw8bit) < 2);
}

TEST_CASE("optimizer states: GaLore projects in every step and decomposes in every 200th") {
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
  // There are 50 refreshes, at steps 1, 201, 401, ... of 10,000. Refreshes at a multiple of 9 (801,
  // 2601, ...) also exchange. None is at a multiple of 16.
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
  // Moments and basis are a quarter, and so are Adam's kernels and the products.
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
  // If the rank is as large as all matrices, nothing is decomposed, and no gradients are gathered.
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

TEST_CASE("optimizer states: sums of shared tensors are sent one call after another") {
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
  CHECK(sliced.calls[0].bytes == Bytes(4));  // the update's norm: 16-bit weights are on every rank
  CHECK(sliced.calls[1].bytes == Bytes(8));  // both norms, stacked
  CHECK(extras(OptimizerType::adafactor, {1, 1, 2}).calls[0].bytes == Bytes(4));
  CHECK(extras(OptimizerType::distributed_lamb, {1, 1, 1}).calls.empty());
  CHECK(extras(OptimizerType::lamb, {1, 8, 2}).calls.empty());
  CHECK(extras(OptimizerType::galore_adamw8bit, {1, 1, 1}).products.size() == 1);
  // A stage has its own part of the tensors.
  CHECK(extras(OptimizerType::distributed_lamb, {0.5, 8, 1}).calls[0].times == (tensors + 1) / 2);
}

TEST_CASE(
    "optimizer states: matrices whose rows do not divide are gathered whole, with their squares") {
  const ModelShape bert = load_model("bert-large");
  const auto extras = [&](OptimizerType type, int shards) {
    return update_extras(type, StepKind::uniform, Kernels::deepspeed, bert, {1, shards, 1}, 2);
  };
  // With 2 shards the rows of every matrix divide, with 7 shards the rows of none. Then gradient
  // and square of all matrices are gathered in fp32, for CAME once more for its residual.
  const double in_matrices = 334'897'152;  // all elements outside vectors
  CHECK(find(extras(OptimizerType::adafactor, 2), "all_gather gradients and squares") == nullptr);
  const UpdateExtras uneven = extras(OptimizerType::adafactor, 7);
  const SharedCall* gathered = find(uneven, "all_gather gradients and squares");
  REQUIRE(gathered != nullptr);
  CHECK(gathered->bytes.value() * static_cast<double>(gathered->times) ==
        Approx(2 * 4 * in_matrices).epsilon(0.01));
  const UpdateExtras came = extras(OptimizerType::came, 7);
  CHECK(find(came, "all_gather gradients and squares")->times == 2 * gathered->times);
  // Only with sums_columns is a vector of column means summed per matrix: 1,024 elements, and 4,096
  // for the 24 matrices after the inner width of the feed-forward.
  CHECK(find(extras(OptimizerType::adafactor, 2), "all_reduce columns of matrices") == nullptr);
  const UpdateExtras even = update_extras(OptimizerType::adafactor, StepKind::uniform,
                                          Kernels::deepspeed, bert, {1, 2, 1, true}, 2);
  const SharedCall* const columns = find(even, "all_reduce columns of matrices");
  CHECK(columns->bytes.value() ==
        Approx(4 * (1024 + 24. * 3072 / static_cast<double>(columns->times))));
}

// Returns a model of three matrices: 256 x 64 cut by outputs, 64 x 256 cut by inputs, 32 x 64
// whole.
ModelShape three_matrices() {
  ModelShape model;
  model.hidden = 64;
  model.groups = {"decay"};
  const auto add = [&](std::int64_t elements, TensorSplit split) {
    Tensor tensor;
    tensor.elements = elements;
    tensor.split = split;
    model.tensors.push_back(tensor);
  };
  add(256 * 64, TensorSplit::outputs);
  add(64 * 256, TensorSplit::inputs);
  add(32 * 64, TensorSplit::replicated);
  return model;
}

TEST_CASE("optimizer states: calls for factored statistics depend on the cut of each matrix") {
  const ModelShape model = three_matrices();
  const auto expect = [&](const UpdateDivision& division, const char* name, std::int64_t times,
                          double bytes_of_all) {
    for (const OptimizerType type : {OptimizerType::adafactor, OptimizerType::came}) {
      const bool per_tensor = std::string(name).find("statistics") != std::string::npos;
      const double statistics = !per_tensor && type == OptimizerType::came ? 2 : 1;
      const UpdateExtras extras =
          update_extras(type, StepKind::uniform, Kernels::deepspeed, model, division, 2);
      const SharedCall* const call = find(extras, name);
      INFO(name << " of " << name_of(type) << " on " << division.shards << " x "
                << division.tensor_ranks);
      CHECK((call == nullptr ? 0 : call->times) == statistics * times);
      if (call == nullptr) continue;
      CHECK(call->bytes.value() * static_cast<double>(call->times) ==
            Approx(statistics * bytes_of_all));
    }
  };
  const char *numbers = "all_reduce statistics of tensors",
             *sliced = "all_reduce statistics of slices", *means = "all_reduce means of slices",
             *rows = "all_gather rows of slices", *parts = "all_gather gradients and squares",
             *columns = "all_reduce columns of matrices";
  // Slices of 64 x 64 on 4 ranks with 2 shards: 64 columns, half of 64 rows, 64 columns.
  const UpdateDivision even{.shards = 2, .tensor_ranks = 4};
  expect(even, numbers, 3, 3 * 4);
  expect(even, sliced, 2, 2 * 4);
  expect(even, means, 3, 4 * (64 + 32 + 64));
  expect(even, rows, 1, 4 * 256 / 2);
  expect(even, parts, 0, 0);
  expect(even, columns, 0, 0);
  // Without shards the whole matrix needs no communication.
  const UpdateDivision unshared{.tensor_ranks = 4};
  expect(unshared, numbers, 0, 0);
  expect(unshared, means, 2, 4 * (64 + 64));
  expect(unshared, rows, 1, 4 * 256);
  // 3 divides neither 64 nor 32: everything is gathered, so rows are neither summed nor gathered.
  const UpdateDivision uneven{.shards = 3, .tensor_ranks = 4};
  expect(uneven, parts, 6, 2 * 4 * (64 * 64 + 64 * 64 + 32 * 64));
  expect(uneven, means, 2, 4 * (64 + 64));
  expect(uneven, rows, 0, 0);
  // LowLevelZero sums columns over all ranks, whether or not rows divide.
  for (const int shards : {2, 3})
    expect({.shards = shards, .sums_columns = true}, columns, 3, 4 * (64 + 256 + 64));
  // With shards, DistributedLamb also sums both norms of whole tensors.
  const auto norms = [&](int shards) {
    return find(update_extras(OptimizerType::distributed_lamb, StepKind::uniform,
                              Kernels::deepspeed, model, {.shards = shards, .tensor_ranks = 4}, 2),
                sliced)
        ->times;
  };
  CHECK(norms(1) == 2);
  CHECK(norms(2) == 3);
}

TEST_CASE(
    "optimizer states: a rank keeps all columns of a matrix, and its part of the rows if they "
    "divide") {
  const ModelShape model = three_matrices();
  const auto kept = [&](const UpdateDivision& division) {
    double updated = 0;
    for (const Tensor& tensor : model.tensors)
      updated += static_cast<double>(tensor.elements) /
                 (tensor.split == TensorSplit::replicated ? 1 : division.tensor_ranks) /
                 division.shards;
    const double adafactor = state_bytes_per_element(OptimizerType::adafactor, model, division),
                 came = state_bytes_per_element(OptimizerType::came, model, division);
    CHECK(came == Approx(4 + 2 * adafactor));
    CHECK(state_bytes_per_element(OptimizerType::lamb, model, division) == 8);
    return adafactor * updated / 4;
  };
  CHECK(kept({}) == Approx((256 + 64) + (64 + 256) + (32 + 64)));
  CHECK(kept({.shards = 2}) == Approx((128 + 64) + (32 + 256) + (16 + 64)));
  CHECK(kept({.tensor_ranks = 4}) == Approx((64 + 64) + (64 + 64) + (32 + 64)));
  CHECK(kept({.shards = 2, .tensor_ranks = 4}) == Approx((32 + 64) + (32 + 64) + (16 + 64)));
  CHECK(kept({.shards = 3, .tensor_ranks = 4}) == Approx((64 + 64) + (64 + 64) + (32 + 64)));
}

TEST_CASE("optimizer states: flat vectors are neither factored nor projected, and need no sums") {
  const ModelShape bert = load_model("bert-large");
  const UpdateDivision flat{.shards = 8, .flat = true};
  CHECK(state_bytes_per_element(OptimizerType::adafactor, bert, flat) == 4);
  CHECK(state_bytes_per_element(OptimizerType::came, bert, flat) == 8);
  CHECK(state_bytes_per_element(OptimizerType::galore_adamw8bit, bert, flat) == 2 + 8. / 256);
  for (const OptimizerType type :
       {OptimizerType::adafactor, OptimizerType::came, OptimizerType::distributed_lamb,
        OptimizerType::galore_adamw8bit}) {
    const UpdateExtras extras =
        update_extras(type, StepKind::refresh, Kernels::deepspeed, bert, flat, 2);
    CHECK(extras.calls.empty());
    CHECK(extras.products.empty());
  }
  // BF16_Optimizer, which wrapped bf16 before DeepSpeed 0.17.6, and ZeRO with an untested
  // optimizer.
  TrainingPlan training = training_of({OptimizerType::adafactor, 16});
  const auto states = [&] {
    for (const auto& [part, bytes] : forecast_memory(training).parts)
      if (part == "optimizer_states") return bytes.value();
    return 0.;
  };
  const double optimized = static_cast<double>(optimized_parameters(*training.model));
  CHECK_FALSE(training.flattens());
  CHECK(states() < 0.015 * optimized);
  training.recipe.zero.stage = 1;
  CHECK(training.flattens());
  CHECK(states() == Approx(4 * optimized / 16));
  training.recipe.zero.stage = 0;
  training.recipe.precision.weights = DataType::bf16;
  CHECK_FALSE(training.flattens());
  training.recipe.engine.wraps_bf16_as_fp16 = false;
  CHECK(training.flattens());
  CHECK(states() == Approx(4 * optimized / 16));
  training.recipe.optimizer = OptimizerType::galore_adamw8bit;
  training.steps = 1000;
  REQUIRE(distinct_steps(training).size() == 1);
  CHECK(distinct_steps(training)[0].kind == StepKind::uniform);
}

TEST_CASE("optimizer states: GaLore decomposes whole gradients on every rank, gathered before") {
  const ModelShape bert = load_model("bert-large");
  const auto refresh = [&](int tensor_ranks) {
    return update_extras(OptimizerType::galore_adamw8bit, StepKind::refresh, Kernels::deepspeed,
                         bert, {1, 1, tensor_ranks}, 2);
  };
  const UpdateExtras whole = refresh(1), divided = refresh(4);
  CHECK(whole.calls.empty());
  double replicated = 0;  // FLOPs for matrices that every tensor-parallel rank holds whole
  for (const Tensor& tensor : bert.tensors)
    if (tensor.optimized && tensor.split == TensorSplit::replicated)
      replicated += galore_flops(state_tensor(bert, tensor), {});
  CHECK(replicated > 0);
  CHECK(divided.products[0].flops - replicated ==
        Approx((whole.products[0].flops - replicated) / 4).epsilon(1e-3));
  CHECK(divided.products[1].flops == whole.products[1].flops);
  REQUIRE(divided.calls.size() == 1);
  CHECK(divided.calls[0].op == Op::all_gather);
  CHECK(divided.calls[0].bytes.value() * static_cast<double>(divided.calls[0].times) ==
        Approx(2 * 334'897'152.).epsilon(0.01));
  CHECK(update_extras(OptimizerType::galore_adamw8bit, StepKind::uniform, Kernels::deepspeed, bert,
                      {1, 1, 4}, 2)
            .calls.empty());
}

// BERT-Large, n = 1,024. FLOPs: query, key, value and output 30 n^3 each; two matrices of n x 4 n 5
// (16 + 2) n^3 each. Each of 24 blocks has 6 matrices and 12 n^2 elements.
TEST_CASE("optimizer states: Muon computes only with the matrices of blocks") {
  const ModelShape bert = load_model("bert-large");
  const auto of = [&](const UpdateDivision& division) {
    return update_extras(OptimizerType::muon, StepKind::uniform, Kernels::deepspeed, bert, division,
                         2);
  };
  const double n = 1024, flops = 24 * 300 * n * n * n, elements = 24 * 12 * n * n;
  const UpdateExtras alone = of({});
  REQUIRE(alone.products.size() == 1);
  CHECK(alone.products[0].flops == Approx(flops));
  CHECK(alone.kernels.empty());
  CHECK(alone.calls.empty());
  // Each of 8 ranks that share states computes an eighth, without further communication.
  CHECK(of({.shards = 8}).products[0].flops == Approx(flops / 8));
  CHECK(of({.shards = 8}).calls.empty());

  // Sent and returned: 2 x 144 / 8 exchanges of a matrix's elements in 16 bits.
  const UpdateExtras exchanged = of({.shards = 8, .matrices = WholeMatrices::exchanged});
  const SharedCall* shards = find(exchanged, "all_to_all shards of matrices");
  REQUIRE(shards != nullptr);
  CHECK(shards->times == 36);
  CHECK(shards->bytes.value() == Approx(2 * elements / 144));

  // 302 million elements fit one bucket; momenta are gathered twice.
  const UpdateExtras gathered = of({.shards = 8, .matrices = WholeMatrices::gathered});
  REQUIRE(find(gathered, "all_gather momenta") != nullptr);
  CHECK(find(gathered, "all_gather momenta")->times == 2);
  CHECK(find(gathered, "all_gather updates")->bytes.value() == Approx(2 * elements));

  // Each tensor-parallel rank computes whole matrices, gathered from slices of the fp32 momentum.
  const UpdateExtras sliced = of({.shards = 2, .tensor_ranks = 4});
  CHECK(sliced.products[0].flops == Approx(flops / 2));
  const SharedCall* momenta = find(sliced, "all_gather momenta of slices");
  REQUIRE(momenta != nullptr);
  CHECK(momenta->times == 72);
  CHECK(momenta->bytes.value() == Approx(4 * elements / 144));
}

// BERT-Large: r = 256, factors of r (n + m) elements; 4 matrices of n x n and 2 of n x 4 n a block.
TEST_CASE("optimizer states: Dion's ranks add up factors, and gather no matrix") {
  const ModelShape bert = load_model("bert-large");
  const UpdateExtras extras = update_extras(OptimizerType::dion, StepKind::uniform,
                                            Kernels::deepspeed, bert, {.shards = 8}, 2);
  REQUIRE(extras.calls.size() == 1);
  CHECK(extras.calls[0].times == 24 * 6 * 2);
  CHECK(extras.calls[0].bytes.value() * static_cast<double>(extras.calls[0].times) ==
        Approx(24 * 4 * 256.0 * 1024 * (4 * 2 + 2 * 5)));
}

// BERT-Large, n = 1,024. A block of the model has 4 matrices of n x n (8 n^3 FLOPs each, roots of 2
// matrices of n x n) and 2 of n x 4 n (80 n^3, roots of 65 n^3).
TEST_CASE("optimizer states: Shampoo divides its blocks over copies, and gathers directions") {
  const ModelShape bert = load_model("bert-large");
  const auto of = [&](const UpdateDivision& division, std::int64_t every) {
    return update_extras(OptimizerType::shampoo, StepKind::uniform, Kernels::deepspeed, bert,
                         division, 2, {.precondition_frequency = every});
  };
  const double n = 1024, n3 = 24 * n * n * n, elements = 24 * 12 * n * n;
  const UpdateExtras alone = of({}, 100);
  REQUIRE(alone.products.size() == 2);
  CHECK(alone.products[0].flops == Approx((192 + 2 * 1.38) * n3));
  CHECK(alone.products[1].flops == Approx(9 * 1.38 * n3));
  CHECK(alone.calls.empty());
  CHECK(of({}, 1).products[1].flops == Approx(9 * 138 * n3));
  const UpdateExtras shared = of({.copies = 8}, 100);
  CHECK(shared.products[0].flops == Approx(alone.products[0].flops / 8));
  REQUIRE(shared.calls.size() == 1);
  CHECK(shared.calls[0].op == Op::all_gather);
  CHECK(shared.calls[0].bytes.value() == Approx(4 * elements));
  CHECK(shared.calls[0].times == 1);
  // A rank has an eighth of the rows: 4 parts of n/8 x n, one of n/2 x n and one of n/8 x 4 n.
  const UpdateExtras rows = of({.shards = 8}, 1'000'000'000);
  CHECK(rows.products[0].flops == Approx((2.25 + 3 + 8.25) * n3));
  CHECK(rows.calls.empty());
  // 8 bytes for each element of a matrix and of its factors. An n x n matrix has factors of 2 n^2
  // elements, an n x 4 n matrix of 17 n^2.
  const double all = 335'184'706, others = all - elements;
  const double kept = 8 * elements + 8 * 24 * n * n * (4 * 2 + 2 * 17);
  CHECK(state_bytes_per_element(OptimizerType::shampoo, bert) == Approx((kept + 8 * others) / all));
  CHECK(state_bytes_per_element(OptimizerType::shampoo, bert, {.copies = 8}) ==
        Approx((kept / 8 + 8 * others) / all));
  TrainingPlan training = training_of({OptimizerType::shampoo});
  training.recipe.projection.precondition_frequency = 1;
  const auto often = metrics_of(training, StepKind::uniform);
  training.recipe.projection.precondition_frequency = 1000;
  CHECK(metrics_of(training, StepKind::uniform).optimizer < often.optimizer);
}

// States: 4 bytes of 302 of 335 million elements, 8 of the others.
TEST_CASE("optimizer states: Muon keeps one moment of a matrix, AdamW's two of all others") {
  const ModelShape bert = load_model("bert-large");
  const double matrices = 24 * 12 * 1024.0 * 1024, all = 335'184'706;
  CHECK(state_bytes_per_element(OptimizerType::muon, bert) ==
        Approx((4 * matrices + 8 * (all - matrices)) / all));
  TrainingPlan training = training_of({OptimizerType::muon});
  CHECK_FALSE(training.flattens());
  CHECK(metrics_of(training, StepKind::uniform).optimizer >
        metrics_of(training_of({OptimizerType::lion}), StepKind::uniform).optimizer);
}

}  // namespace
}  // namespace lambcast
