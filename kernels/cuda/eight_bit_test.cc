#include "kernels/cuda/eight_bit.h"

#include "kernels/cuda/galore.h"
#include "kernels/cuda/gpu_test.h"
#include "kernels/cuda/low_rank.h"

using namespace lambcast;
using namespace lambcast::cuda;

TEST_CASE("GaLore's projection and its Adam in 8 bits on the GPU are the reference's") {
  // 90 x 70 at rank 50: R has 4500 elements, more than min_8bit_size, no multiple of the block.
  NEED_GPUS(1);
  const reference::MatrixShape shape{90, 70};
  const reference::Galore rule{
      {.lr = 0.01, .weight_decay = 0.1, .rank = 50, .gap = 3, .percentile_clipping = 50}};
  const reference::Part part = reference::whole_part(shape);
  auto state = rule.state(part);
  REQUIRE(state.m8.codes.size() == 4500);
  std::vector<float> p = random_values(shape.elements(), 1);
  const auto maps = upload(eight_bit_maps());
  const auto m = upload(state.m8.codes), v = upload(state.v8.codes);
  const DeviceBuffer<float> m_largest(18), v_largest(18), q(70 * 50), low(4500);
  const auto dp = upload(p);
  constexpr auto format = HalfFormat::bf16;
  const DeviceBuffer<std::uint16_t> half(shape.elements());
  const DeviceBuffer<double> workspace(low_rank_workspace(shape, 50));
  for (int k = 1; k <= 4; ++k) {
    const auto g = random_values(shape.elements(), unsigned(k) + 1);
    reference::View x{part, p, g};
    double clipped = 1;
    for (int round = 0; round < rule.rounds(k); ++round) {
      const auto sums = rule.sums(round, x, state, k);
      if (round == rule.rounds(k) - 1) {
        auto clipping = state.clipping;
        clipped = reference::clip(clipping, std::sqrt(sums[0]), k);
        // R is the same bits before Adam takes it.
        require(cudaMemcpy(q.data(), state.basis.data(), 4 * q.size(), cudaMemcpyHostToDevice),
                "cudaMemcpy");
        const auto dg = upload(g);
        const LowRank matrix{shape, 50, nullptr, dg.data(), low.data(), q.data(), workspace.data()};
        require(project(matrix, nullptr), "project");
        CHECK(relative_distance(low.to_host(), state.low) < 1e-6);
        CHECK((dg.to_host() == g));
        require(cudaMemcpy(low.data(), state.low.data(), 4 * low.size(), cudaMemcpyHostToDevice),
                "cudaMemcpy");
      }
      rule.take(round, x, state, sums, k);
    }
    require(eight_bit_adam({m.data(), v.data(), m_largest.data(), v_largest.data(), maps.data(),
                            low.data(), 4500},
                           rule.options, clipped, k, nullptr),
            "eight_bit_adam");
    CHECK((low.to_host() == state.low));
    CHECK((m.to_host() == state.m8.codes));
    CHECK((v.to_host() == state.v8.codes));
    CHECK((m_largest.to_host() == state.m8.largest));
    CHECK((v_largest.to_host() == state.v8.largest));
    rule.apply(x, state, k);
    require(galore_apply({shape, 50, low.data(), q.data(), dp.data(), {half.data(), format}},
                         rule.options, nullptr),
            "galore_apply");
    CHECK((dp.to_host() == p));
    const auto copy = half.to_host();
    std::size_t other = 0;
    for (std::size_t e = 0; e < p.size(); ++e) {
      other += copy[e] != reference::to_half(p[e], format);
    }
    CHECK(other == 0);
  }
}

TEST_CASE("GaLore's weights: wide matrices and vectors move as the reference's, to the bit") {
  NEED_GPUS(1);
  // Of 6 x 9 at rank 4 the basis is on the left, and R transposed behind back_project; a vector's
  // update is Adam's own.
  for (const reference::MatrixShape shape : {reference::MatrixShape{6, 9}, {1, 37}}) {
    const bool projected = shape.rows > 1;
    const reference::Galore rule{{.lr = 0.01, .weight_decay = 0.1, .rank = 4}};
    const reference::Part part = reference::whole_part(shape);
    auto state = rule.state(part);
    REQUIRE(rule.projects(part) == projected);
    std::vector<float> p = random_values(shape.elements(), 1);
    const auto g = random_values(shape.elements(), 2);
    const auto dp = upload(p);
    reference::View x{part, p, g};
    for (int round = 0; round < rule.rounds(1); ++round)
      rule.take(round, x, state, rule.sums(round, x, state, 1), 1);
    std::vector<float> transposed(state.low.size());
    for (std::size_t e = 0; projected && e < transposed.size(); ++e)
      transposed[e % shape.columns * 4 + e / shape.columns] = state.low[e];
    const auto rows = upload(projected ? state.basis : state.low), columns = upload(transposed);
    require(galore_apply({shape, projected ? 4 : 0, rows.data(), columns.data(), dp.data(), {}},
                         rule.options, nullptr),
            "galore_apply");
    rule.apply(x, state, 1);
    CHECK((dp.to_host() == p));
  }
}
