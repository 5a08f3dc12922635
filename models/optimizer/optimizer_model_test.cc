#include "models/optimizer/optimizer_model.h"

#include <catch2/catch.hpp>

#include <set>
#include <tuple>
#include <utility>

#include "kernels/reference/muon.h"
#include "models/optimizer/galore.h"
#include "models/optimizer/muon.h"
#include "models/optimizer/shampoo.h"
#include "models/optimizer/soap.h"

namespace lambcast {
namespace {

TEST_CASE("optimizers: every type has its row, and every row is whole") {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < optimizer_models().size(); ++i) {
    const OptimizerModel& model = model_of(static_cast<OptimizerType>(i));
    INFO(model.name);
    CHECK(names.insert(model.name).second);
    CHECK(!model.title.empty());
    CHECK(!model.label.empty());
    CHECK(!model_of(model.plain).onebit);
    CHECK(model.onebit == (model.published_freeze_share > 0));
    for (const Kernels kernels : {Kernels::deepspeed, Kernels::unfused_adam, Kernels::foreach_adam,
                                  Kernels::nvidia, Kernels::fused}) {
      const Passes passes = model.update(StepKind::uniform, kernels, true);
      // An update at least reads and writes the weights and reads the gradient.
      CHECK(passes.bytes_per_element >= 12);
      CHECK(passes.launches + passes.launches_per_tensor > 0);
      // An optimizer without norms of tensors has no synchronisation.
      if (model.type == OptimizerType::adam || model.type == OptimizerType::adamw) {
        CHECK(passes.syncs + passes.syncs_per_tensor == 0);
        // Adam's launches are either per tensor or over all tensors at once.
        CHECK((kernels == Kernels::unfused_adam ? passes.launches : passes.launches_per_tensor) ==
              0);
      }
    }
    const bool keeps_state = model.type != OptimizerType::sgd;
    CHECK((model.state_bytes({1e6, 1e3, 1e3}, {}) > 0) == keeps_state);
    // The limit is two moments and factored statistics, or two moments and four square matrices of
    // bases.
    const bool bases = model.matrix_work && model.matrix_work->decomposition_flops != nullptr;
    CHECK(model.state_bytes({1e6, 1e3, 1e3}, {}) <= 8e6 + (bases ? 16e6 : 1.6e4));
    CHECK(model.same_states ==
          (model.state_bytes({1e6, 1e3, 1e3}, {}) == 1e6 * model.state_bytes({1}, {})));
  }
  CHECK(names.size() == optimizer_names().size());
}

TEST_CASE("optimizers: the phases of a run have all its steps") {
  for (const OptimizerModel* model : optimizer_models())
    for (const std::int64_t steps : {1, 2, 7, 1000})
      for (const auto& [every, gap] : {std::pair(1, 4), std::pair(3, 4), std::pair(3, 0)})
        for (const bool dry_run : {false, true}) {
          INFO(model->name << ", " << steps << " steps, " << every << ", " << gap << dry_run);
          const StepPhases phases = model->phases({.steps = steps,
                                                   .dry_run = dry_run && model->onebit,
                                                   .warmup = 5,
                                                   .steps_per_exchange = every,
                                                   .onebit = {},
                                                   .refresh_gap = gap});
          std::int64_t sum = 0;
          for (const StepPhase& phase : phases) {
            CHECK(phase.steps >= 0);
            CHECK((compresses(phase.kind) && phase.steps > 0) <= model->onebit);
            sum += phase.steps;
          }
          CHECK(sum == steps);
        }
}

TEST_CASE("optimizers: those that DeepSpeed implements") {
  std::set<std::string_view> own;
  for (const OptimizerModel* model : optimizer_models())
    if (model->of_deepspeed) own.insert(model->name);
  CHECK(own == std::set<std::string_view>{"adam", "adamw", "lamb", "lion", "muon", "onebit_adam",
                                          "onebit_lamb", "zero_one_adam"});
}

// Our kernels are launched once for all tensors; updates that need norms have several launches.
TEST_CASE("optimizers: number of kernels that each library launches") {
  const auto passes = [](OptimizerType type, StepKind step, Kernels kernels, bool decays = true) {
    return model_of(type).update(step, kernels, decays);
  };
  for (const auto& [type, step, launches] :
       {std::tuple{OptimizerType::adam, StepKind::uniform, 1},
        std::tuple{OptimizerType::lion, StepKind::uniform, 1},
        std::tuple{OptimizerType::onebit_adam, StepKind::warmup, 1},
        std::tuple{OptimizerType::onebit_adam, StepKind::compression, 1},
        std::tuple{OptimizerType::zero_one_adam, StepKind::warmup, 1},
        std::tuple{OptimizerType::zero_one_adam, StepKind::round, 1},
        std::tuple{OptimizerType::zero_one_adam, StepKind::silent, 1},
        std::tuple{OptimizerType::zero_one_adam, StepKind::compression, 2},
        std::tuple{OptimizerType::lamb, StepKind::uniform, 3},
        std::tuple{OptimizerType::galore_adamw8bit, StepKind::uniform, 3},
        std::tuple{OptimizerType::galore_adamw8bit, StepKind::refresh, 3},
        std::tuple{OptimizerType::onebit_lamb, StepKind::compression, 3}}) {
    INFO(name_of(type));
    const Passes fused = passes(type, step, Kernels::fused);
    CHECK(fused.launches == launches);
    CHECK(fused.launches_per_tensor + fused.syncs + fused.syncs_per_tensor == 0);
  }
  // The decay is two launches, a product and an addition, and so are momentum and variance.
  for (const OptimizerType type : {OptimizerType::onebit_adam, OptimizerType::zero_one_adam}) {
    const auto each = [&](StepKind step, bool decays) {
      return passes(type, step, Kernels::deepspeed, decays).launches_per_tensor;
    };
    for (const StepKind step : {StepKind::warmup, StepKind::compression})
      CHECK(each(step, true) - each(step, false) == 2);
    CHECK(each(StepKind::warmup, true) == 13);
  }
  CHECK(passes(OptimizerType::onebit_adam, StepKind::compression, Kernels::deepspeed)
            .launches_per_tensor == 13 - 2);
  // fused_lamb_cuda_kernel.cu in fp32, 4 bytes per number: part 1 reads gradient, weight and both
  // moments and writes the moments (6); part 3 reads weight and moments and writes the weight (4);
  // the weight's copy in 16 bits takes 2 bytes. Part 2 sums the partial results of the blocks.
  for (const Kernels kernels : {Kernels::deepspeed, Kernels::fused})
    CHECK(passes(OptimizerType::lamb, StepKind::uniform, kernels).bytes_per_element ==
          (6 + 4) * 4 + 2);
  CHECK(passes(OptimizerType::lamb, StepKind::uniform, Kernels::deepspeed).launches_per_tensor ==
        3);
  // Apex computes norms of weights and updates between its passes over all tensors.
  const Passes apex = passes(OptimizerType::lamb, StepKind::uniform, Kernels::nvidia);
  CHECK(apex.launches == 20);
  CHECK(apex.launches_per_tensor + apex.syncs + apex.syncs_per_tensor == 0);
  // TensorFlow starts one kernel per operation; decay is a product and a sum.
  const Passes apart = passes(OptimizerType::lamb, StepKind::uniform, Kernels::unfused_adam);
  CHECK(apart.bytes_per_element == 28 + 36 + 2 * 8 + 28 + 20 + 2 * 12 + 20 + 24);
  CHECK(apart.launches_per_tensor == 3 + 4 + 2 + 3 + 2 + 6 + 2 + 3 + 6);
  // GaLore's update in the small space needs no launches of its own.
  for (const Kernels kernels : {Kernels::fused, Kernels::deepspeed}) {
    const Passes small = galore_small_passes(kernels);
    CHECK(small.launches + small.launches_per_tensor + small.syncs + small.syncs_per_tensor == 0);
  }
}

TEST_CASE("optimizers: states as counted in their papers") {
  const StateTensor matrix{4096.0 * 4096, 4096, 4096}, vector{4096};
  const auto bytes = [](OptimizerType type, const StateTensor& tensor) {
    return model_of(type).state_bytes(tensor, {});
  };
  CHECK(bytes(OptimizerType::adam, matrix) == 8 * matrix.elements);
  CHECK(bytes(OptimizerType::lars, matrix) == 4 * matrix.elements);
  CHECK(bytes(OptimizerType::lion, matrix) == 4 * matrix.elements);
  CHECK(bytes(OptimizerType::sgd_momentum, matrix) == 4 * matrix.elements);
  CHECK(bytes(OptimizerType::muon, matrix) == 4 * matrix.elements);
  CHECK(bytes(OptimizerType::muon, vector) == 8 * 4096);
  // A matrix has its momentum and Q of 4096 x 1024.
  CHECK(bytes(OptimizerType::dion, matrix) == 4 * (matrix.elements + 4096 * 1024));
  CHECK(bytes(OptimizerType::dion, vector) == 8 * 4096);
  CHECK(bytes(OptimizerType::schedule_free_adamw, matrix) == 8 * matrix.elements);
  CHECK(bytes(OptimizerType::adam_mini, matrix) == 4 * matrix.elements + 4 * 4096);
  // A square matrix has 8 + 8 (n / m + m / n) = 24 bytes per element; a side above 10,000 has no
  // basis.
  CHECK(bytes(OptimizerType::soap, matrix) == 24 * matrix.elements);
  CHECK(bytes(OptimizerType::soap, vector) == 8 * 4096);
  CHECK(bytes(OptimizerType::soap, {4096.0 * 14336, 4096, 14336}) ==
        8 * (4096.0 * 14336 + 4096.0 * 4096));
  CHECK(bytes(OptimizerType::adafactor, matrix) == 4 * (4096 + 4096));
  CHECK(bytes(OptimizerType::adafactor, vector) == 4 * 4096);
  CHECK(bytes(OptimizerType::came, matrix) == 4 * matrix.elements + 8 * (4096 + 4096));
  // Moments of 4096 x 256 have 8 bits and block scales; a basis of the same size has 16 bits.
  CHECK(bytes(OptimizerType::galore_adamw8bit, matrix) == Approx((2 + 8.0 / 256 + 2) * 4096 * 256));
  CHECK(bytes(OptimizerType::galore_adamw8bit, {100}) == 800);  // too small for 8 bits
}

// The rank is r = 256. Products need 8 n m r + 6.5 m r^2 FLOPs, and two factors have n x r
// elements.
TEST_CASE("dion: products and factors of a quarter of the rank") {
  const StateTensor square{1024.0 * 1024, 1024, 1024}, wide{1024.0 * 4096, 1024, 4096};
  const MatrixWork& work = *model_of(OptimizerType::dion).matrix_work;
  CHECK(work.product_flops(square, 0) == (8.0 / 4 + 6.5 / 16) * 1024 * 1024 * 1024);
  CHECK(work.product_flops(wide, 0) == 4 * work.product_flops(square, 0));
  CHECK(work.decomposition_flops(wide, 0) == 2.2 * 256 * 256 * 256);
  CHECK(work.factor_elements(wide) == 256.0 * (1024 + 4096));
  CHECK(work.product_flops(square, 0) < muon_flops(square) / 12);
}

// Published added share of a step's FLOPs (kellerjordan.github.io/posts/muon, as third parties
// quote it): 5 n / B with B tokens, 0.7 % for NanoGPT's speedrun and 0.5 % for Llama 405B. Matrices
// that are not square need less, so 0.61 and 0.41 %.
TEST_CASE("muon: the added FLOPs are the published shares of a step") {
  const auto share = [](double n, double m_of_mlp, double attention, double mlps, double tokens) {
    const StateTensor square{n * n, n, n}, mlp{n * m_of_mlp, n, m_of_mlp};
    const double added = attention * muon_flops(square) + mlps * muon_flops(mlp);
    return added / (6 * (attention * square.elements + mlps * mlp.elements) * tokens);
  };
  CHECK(share(768, 4 * 768, 4, 2, 524288) == Approx(0.007).epsilon(0.25));
  CHECK(share(16384, 53248, 2, 3, 16e6) == Approx(0.005).epsilon(0.25));
}

TEST_CASE("muon: five Newton-Schulz iterations on the smaller side") {
  // 5 (4 n^2 m + 2 n^3) FLOPs are 30 n^3 for a square, and 5.50 TFLOP for a projection of
  // Llama-3-8B's block.
  CHECK(muon_flops({1024.0 * 1024, 1024, 1024}) == 30.0 * 1024 * 1024 * 1024);
  CHECK(muon_flops({4096.0 * 14336, 14336, 4096}) == Approx(5.497e12).epsilon(1e-3));
  CHECK(muon_flops({4096.0 * 14336, 4096, 14336}) == muon_flops({4096.0 * 14336, 14336, 4096}));
}

TEST_CASE("muon: the forecast counts the FLOPs and the states of the reference") {
  for (const reference::MatrixShape shape :
       {reference::MatrixShape{24, 96}, {96, 24}, {40, 40}, {1, 50}}) {
    const bool is_vector = shape.rows == 1;
    const StateTensor tensor{static_cast<double>(shape.elements()),
                             is_vector ? 0.0 : static_cast<double>(shape.rows),
                             is_vector ? 0.0 : static_cast<double>(shape.columns)};
    const reference::Muon::State state = reference::Muon{}.state(reference::whole_part(shape));
    CHECK(muon_model.state_bytes(tensor, {}) == 4.0 * double(state.m.size() + state.v.size()));
    if (is_vector) continue;
    double flops = 0;
    reference::orthogonalised(std::vector<float>(shape.elements(), 1.0F), shape, {}, &flops);
    CHECK(muon_flops(tensor) == flops);
  }
}

TEST_CASE("shampoo: blocks of at most 8,192, and roots in every hundredth step") {
  const double n = 4096, m = 14336, b = 8192, rest = m - b;
  const double squares = b * b + rest * rest,
               cubes = 2 * n * n * n + b * b * b + rest * rest * rest;
  const StateTensor matrix{n * m, n, m};
  CHECK(shampoo_product_flops(matrix, 100) ==
        Approx(4 * (n * squares + m * n * n) + 2 * cubes / 100));
  CHECK(shampoo_decomposition_flops(matrix, 100) == Approx(9 * cubes / 100));
  CHECK(shampoo_decomposition_flops(matrix, 1) == Approx(9 * cubes));
  // A block takes 4 n m (n + m) FLOPs a step, and 8 + 8 (n / m + m / n) bytes per element.
  CHECK(shampoo_product_flops({n * 1024, n, 1024}, 1e30) == Approx(4 * n * 1024 * (n + 1024)));
  const auto bytes = model_of(OptimizerType::shampoo).state_bytes;
  CHECK(bytes({n * 1024, n, 1024}, {}) == Approx(n * 1024 * (8 + 8 * (4 + 0.25))));
  CHECK(bytes({4096}, {}) == 8 * 4096);
  CHECK(model_of(OptimizerType::shampoo).matrix_work->every == 100);
}

TEST_CASE("soap: products with both bases, and a tenth of their renewal") {
  const double n = 1024, m = 4096, cubes = n * n * n + m * m * m;
  CHECK(soap_product_flops({n * m, n, m}, 10) == Approx(6 * n * m * (n + m) + 0.6 * cubes));
  CHECK(soap_decomposition_flops({n * m, n, m}, 10) == Approx(0.8 / 3 * cubes));
  CHECK(soap_product_flops({n * 20000, n, 20000}, 10) ==
        Approx(6 * n * 20000 * n + 0.6 * n * n * n));
}

TEST_CASE("galore: products of projection and of decomposition") {
  const StateTensor tall{8192.0 * 1024, 8192, 1024};
  CHECK(galore_flops(tall, {}) == 4.0 * 8192 * 1024 * 256);
  CHECK(galore_refresh_flops(tall, {}) == 4.0 * 8192 * 1024 * 1024 + 8.0 * 1024 * 1024 * 1024);
  CHECK(galore_flops({1000}, {}) == 0);
  CHECK(galore_refresh_flops({128.0 * 128, 128, 128}, {}) == 0);
}

TEST_CASE("galore: rank and min_8bit_size determine states and FLOPs") {
  const StateTensor tall{8192.0 * 1024, 8192, 1024}, vector{5000};
  const auto bytes = [](const StateTensor& tensor, const Projection& projection) {
    return model_of(OptimizerType::galore_adamw8bit).state_bytes(tensor, projection);
  };
  const Projection thin{.rank = 32}, whole{.rank = 1024};
  CHECK(galore_small_elements(tall, thin) == 8192 * 32);
  CHECK(galore_flops(tall, thin) == 4.0 * 8192 * 1024 * 32);
  CHECK(galore_refresh_flops(tall, thin) == galore_refresh_flops(tall, {}));
  CHECK(bytes(tall, thin) == Approx(bytes(tall, {}) / 8));
  // With a rank as large as the smaller side nothing is projected, and no basis is kept.
  CHECK(galore_small_elements(tall, whole) == tall.elements);
  CHECK(galore_flops(tall, whole) == 0);
  CHECK(bytes(tall, whole) == Approx((2 + 8.0 / 256) * tall.elements));
  // Whether a state has 8 bits depends on its size; for a projected matrix, on the size in its
  // small space.
  const Projection most{.rank = 32, .min_8bit_size = 8192 * 32 + 1};
  CHECK(bytes(tall, most) == 8 * 8192 * 32 + 2 * 1024 * 32);
  CHECK(bytes(vector, most) == 8 * 5000);
  CHECK(bytes(vector, {}) == Approx((2 + 8.0 / 256) * 5000));
}

}  // namespace
}  // namespace lambcast
