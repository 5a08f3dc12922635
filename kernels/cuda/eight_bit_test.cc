#include "kernels/cuda/eight_bit.h"

#include "kernels/cuda/gpu_test.h"
#include "kernels/cuda/low_rank.h"

using namespace lambcast;
using namespace lambcast::cuda;

TEST_CASE("GaLore's projection and its Adam in 8 bits on the GPU are the reference's") {
  // 90 x 70 at rank 50: R has 4500 elements, more than min_8bit_size, no multiple of the block.
  NEED_GPUS(1);
  const reference::MatrixShape shape{90, 70};
  const reference::Galore rule{
      {.lr = 0.01, .weight_decay = 0, .rank = 50, .gap = 3, .percentile_clipping = 50}};
  const reference::Part part = reference::whole_part(shape);
  auto state = rule.state(part);
  REQUIRE(state.m8.codes.size() == 4500);
  std::vector<float> p = random_values(shape.elements(), 1);
  const auto maps = upload(eight_bit_maps());
  const auto m = upload(state.m8.codes), v = upload(state.v8.codes);
  const DeviceBuffer<float> m_largest(18), v_largest(18), q(70 * 50), low(4500),
      moved(shape.elements());
  const DeviceBuffer<float> zero(shape.elements());
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
        const auto dg = upload(g), owed = upload(zero.to_host());
        const LowRank matrix{shape,      50,       dg.data(),       owed.data(),
                             low.data(), q.data(), workspace.data()};
        require(project(matrix, nullptr), "project");
        CHECK(relative_distance(low.to_host(), state.low) < 1e-6);
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
    const DeviceBuffer<float> unused(shape.elements());
    const LowRank back{shape, 50, nullptr, unused.data(), low.data(), q.data(), nullptr};
    require(expand(back, moved.data(), nullptr), "expand");
    const auto update = moved.to_host();
    const auto before = p;
    rule.apply(x, state, k);
    std::vector<float> expected(p.size());
    for (std::size_t e = 0; e < p.size(); ++e) expected[e] = before[e] - 0.0025f * update[e];
    CHECK(relative_distance(expected, p) < 1e-6);
  }
}
