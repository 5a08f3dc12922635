#include "kernels/cuda/singular_directions.h"

#include "kernels/cuda/gpu_test.h"
#include "kernels/reference/galore.h"

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

// Singular values that decrease by a third from one direction to the next, so that each direction
// is well defined.
std::vector<float> gradient_of(reference::MatrixShape shape) {
  std::vector<float> g(shape.elements());
  float size = 1;
  for (unsigned d = 0; d < 8; ++d, size *= 0.66f) {
    const auto left = random_values(shape.rows, 2 * d + 1),
               right = random_values(shape.columns, 2 * d + 2);
    for (std::size_t e = 0; e < g.size(); ++e) {
      g[e] += size * left[e / shape.columns] * right[e % shape.columns];
    }
  }
  return g;
}

}  // namespace

TEST_CASE("the leading singular directions on the GPU equal the reference's") {
  NEED_GPUS(1);
  constexpr int rank = 4;
  for (const reference::MatrixShape shape :
       {reference::MatrixShape{90, 37}, {37, 90}, {64, 64}, {33, 1200}}) {
    const std::size_t side = std::min(shape.rows, shape.columns);
    const auto g = gradient_of(shape);
    const auto dg = upload(g);
    const DeviceBuffer<float> basis(side * rank);
    SingularDirections directions(side, rank);
    directions.find(dg.data(), shape, basis.data(), nullptr);
    const auto found = basis.to_host();
    CHECK(relative_distance(found, reference::galore_basis(g, shape, rank)) < 1e-4);
    for (int d = 0; d < rank; ++d) {
      for (int other = 0; other <= d; ++other) {
        double along = 0;
        for (std::size_t i = 0; i < side; ++i) {
          along += double(found[i * rank + std::size_t(d)]) * found[i * rank + std::size_t(other)];
        }
        CHECK(along == Approx(d == other ? 1 : 0).margin(1e-5));
      }
    }
  }
}

TEST_CASE(
    "a gradient that is not finite does not change the basis, and impossible ranks are rejected") {
  NEED_GPUS(1);
  const reference::MatrixShape shape{50, 40};
  const auto g = gradient_of(shape);
  const DeviceBuffer<float> basis(40 * 3);
  SingularDirections directions(40, 3);
  directions.find(upload(g).data(), shape, basis.data(), nullptr);
  const auto before = basis.to_host();
  for (const float bad : {NAN, INFINITY}) {
    auto poisoned = g;
    poisoned[777] = bad;
    const auto device = upload(poisoned);
    directions.find(device.data(), shape, basis.data(), nullptr);
    CHECK((basis.to_host() == before));
  }
  CHECK_THROWS_WITH(directions.find(nullptr, {39, 50}, basis.data(), nullptr),
                    "a matrix whose smaller side is 39 (allowed: 40)");
  CHECK_THROWS_WITH(SingularDirections(40, 41), "rank: 41 (allowed: 1 to 40)");
  CHECK_THROWS_WITH(SingularDirections(40, 0), "rank: 0 (allowed: 1 to 40)");
}
