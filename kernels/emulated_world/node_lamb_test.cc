#include "kernels/emulated_world/node_lamb.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "kernels/reference/lamb.h"
#include "sim/base/error.h"

using namespace lambcast;
using namespace lambcast::emulated;

namespace {

using Flat = std::vector<float>;

Flat random_values(std::size_t count, unsigned seed) {
  std::mt19937 bits(seed);
  Flat values(count);
  for (float& x : values) x = static_cast<float>(bits() * 0x1p-32 - 0.5);
  return values;
}

// Irregular sizes: one tensor is empty, and most shards are inside one.
const TensorLayout tensors = tensor_layout(std::vector<std::size_t>{91, 1, 0, 15, 397, 60});
const LambOptions options{
    .lr = 0.01, .weight_decay = 0.01, .bias_correction = BiasCorrection::in_moments};

// Returns every rank's gradient of |p - target|^2 / 2, with noise of its own.
std::vector<Flat> gradients(const Flat& p, int step, std::size_t ranks) {
  const Flat target = random_values(p.size(), 99);
  std::vector<Flat> all;
  for (std::size_t r = 0; r < ranks; ++r) {
    Flat g = random_values(p.size(), static_cast<unsigned>(1000 * step) + unsigned(r));
    for (std::size_t e = 0; e < p.size(); ++e) g[e] += p[e] - target[e];
    all.push_back(std::move(g));
  }
  return all;
}

Flat unsharded(std::size_t ranks, int steps) {
  Flat p = random_values(tensors.elements(), 1), m(p.size()), v(p.size());
  for (int k = 1; k <= steps; ++k) {
    Flat mean(p.size());
    for (const Flat& g : gradients(p, k, ranks))
      for (std::size_t e = 0; e < p.size(); ++e) mean[e] += g[e] / static_cast<float>(ranks);
    for (std::size_t t = 0; t < tensors.tensors(); ++t) {
      const auto of = [&](Flat& x) { return tensors.view(std::span(x), t); };
      reference::lamb_step(of(p), of(m), of(v), tensors.view(std::span<const float>(mean), t),
                           options, k);
    }
  }
  return p;
}

double distance(const Flat& x, const Flat& y) {
  double difference = 0, norm = 0;
  for (std::size_t e = 0; e < x.size(); ++e) {
    difference += (double(x[e]) - y[e]) * (double(x[e]) - y[e]);
    norm += double(y[e]) * y[e];
  }
  return std::sqrt(difference / norm);
}

}  // namespace

TEST_CASE("LAMB sharded within nodes, with norms in one vector, equals the unsharded one") {
  constexpr int steps = 100;
  int shardings = 0;
  for (const int nodes : {1, 2, 3}) {
    for (const int per_node : {1, 2, 3, 4, 8}) {
      const auto ranks = static_cast<std::size_t>(nodes * per_node);
      const Flat expected = unsharded(ranks, steps);
      CHECK(distance(random_values(tensors.elements(), 1), expected) > 1e-3);
      // Most of the 4 x 4 x 8 shards hold five elements, and the last none.
      for (const auto& [blocks, chunks] : {std::pair(1, 1), {4, 1}, {1, 3}, {4, 4}}) {
        INFO(nodes << " x " << per_node << " ranks, " << blocks << " x " << chunks << " chunks");
        auto o = node_lamb({options}, {nodes, per_node, blocks, chunks}, tensors,
                           random_values(tensors.elements(), 1));
        for (int k = 1; k <= steps; ++k) step(o, gradients(weights(o, 0), k, ranks));
        CHECK(distance(weights(o, 0), expected) < 1e-5);
        for (int node = 1; node < nodes; ++node) CHECK(weights(o, node) == weights(o, 0));
        CHECK(o.norm_collectives == (per_node > 1 ? 1 : 0));
        CHECK(o.summed_values == (per_node > 1 ? 2 * tensors.tensors() : 0));
        ++shardings;
      }
    }
  }
  CHECK(shardings == 60);
}

TEST_CASE("LAMB in nodes: a rank has its shard of every chunk, a node has every element once") {
  const auto o = node_lamb({options}, {2, 3, 2, 2}, tensors, random_values(tensors.elements(), 1));
  for (std::size_t node = 0; node < 2; ++node) {
    std::vector<int> seen(tensors.elements());
    for (std::size_t i = 0; i < 3; ++i)
      for (const auto& stretch : o.ranks[3 * node + i])
        for (std::size_t e = 0; e < stretch.p.size(); ++e) ++seen[stretch.begin + e];
    CHECK(seen == std::vector<int>(seen.size(), 1));
  }
  // A twelfth of 564 elements: the first rank's second shard begins in the fourth chunk of 47.
  CHECK(o.ranks[0].front().begin == 0);
  CHECK(o.ranks[1].front().begin == 47);
  CHECK_THROWS_WITH(node_lamb({options}, {1, 0}, tensors, {}), "per_node: must be at least 1");
}
