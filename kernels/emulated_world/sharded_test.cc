// For any layout, the distributed form of each rule equals the unsharded one.
#include "kernels/emulated_world/sharded.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <random>
#include <tuple>

#include "kernels/reference/adafactor.h"
#include "kernels/reference/came.h"
#include "kernels/reference/galore.h"
#include "kernels/reference/lars.h"
#include "kernels/reference/muon.h"
#include "kernels/reference/sharded_lamb.h"
#include "sim/base/error.h"

using namespace lambcast;
using namespace lambcast::emulated;

namespace {

using Flat = std::vector<float>;
using PerTensor = std::vector<Flat>;

// Irregular sizes: neither 2 nor 4 ranks divide them evenly, nor do 5 to 8 data ranks.
const std::vector<ShardedTensor> tensors{{{13, 7}, Split::columns}, {{9, 11}, Split::rows},
                                         {{6, 10}, Split::none},    {{1, 15}, Split::none},
                                         {{1, 9}, Split::columns},  {{2, 5}, Split::none}};

Flat random_values(std::size_t count, unsigned seed) {
  std::mt19937 bits(seed);
  Flat values(count);
  for (float& x : values) x = static_cast<float>(bits() * 0x1p-32 - 0.5);
  return values;
}

PerTensor initial_weights() {
  PerTensor all;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    all.push_back(random_values(tensors[t].shape.elements(), unsigned(t) + 1));
  }
  return all;
}

// Returns the noise of a rank's gradient, which is the same for all layouts.
const Flat& noise(int step, int data_rank, std::size_t tensor) {
  static std::map<std::tuple<int, int, std::size_t>, Flat> drawn;
  Flat& values = drawn[{step, data_rank, tensor}];
  if (values.empty()) {
    values = random_values(tensors[tensor].shape.elements(),
                           unsigned(1000 * step + 10 * data_rank) + unsigned(tensor));
  }
  return values;
}

// Returns every data rank's gradient of |p - target|^2 / 2, with noise of its own.
template <typename Rule>
std::vector<std::vector<Flat>> gradients(const Sharded<Rule>& o, int dp) {
  std::vector<std::vector<Flat>> all;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const Flat p = weights(o, t);
    const Flat& target = noise(-1, 0, t);
    auto& ranks = all.emplace_back();
    for (int d = 0; d < dp; ++d) {
      Flat g = noise(o.step, d, t);
      for (std::size_t e = 0; e < p.size(); ++e) g[e] += p[e] - target[e];
      ranks.push_back(g);
    }
  }
  return all;
}

template <typename Rule>
Sharded<Rule> trained(const Rule& rule, const Sharding& sharding, int dp, int steps) {
  auto o = sharded(rule, sharding, tensors, initial_weights());
  for (int k = 0; k < steps; ++k) step(o, gradients(o, dp));
  return o;
}

template <typename A, typename B>
double distance(const A& a, const B& b) {
  double difference = 0, norm = 0;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const Flat x = weights(a, t), y = weights(b, t);
    for (std::size_t e = 0; e < x.size(); ++e) {
      difference += (double(x[e]) - y[e]) * (double(x[e]) - y[e]);
      norm += double(y[e]) * y[e];
    }
  }
  return std::sqrt(difference / norm);
}

// Checks all 96 layouts of 1 to 8 data and 1 to 4 tensor-parallel ranks and ZeRO 0 to 2.
template <typename Rule>
void agrees_for_every_sharding(const Rule& rule, int steps = 100) {
  int layouts = 0;
  for (int dp = 1; dp <= 8; ++dp) {
    const auto unsharded = trained(rule, {}, dp, steps);
    CHECK(distance(sharded(rule, {}, tensors, initial_weights()), unsharded) > 1e-3);
    for (int tp = 1; tp <= 4; ++tp) {
      for (int zero = 0; zero <= 2; ++zero) {
        INFO("dp " << dp << ", tp " << tp << ", ZeRO " << zero);
        CHECK(distance(trained(rule, {dp, tp, zero}, dp, steps), unsharded) < 1e-5);
        ++layouts;
      }
    }
  }
  CHECK(layouts == 96);
}

}  // namespace

TEST_CASE("parts cover every element once per replica") {
  for (const ShardedTensor& tensor : tensors) {
    for (int dp = 1; dp <= 8; ++dp) {
      for (int tp = 1; tp <= 4; ++tp) {
        for (int zero = 0; zero <= 2; ++zero) {
          std::vector<int> seen(tensor.shape.elements());
          for (int d = 0; d < dp; ++d) {
            for (int r = 0; r < tp; ++r) {
              const auto part = part_of(tensor, {dp, tp, zero}, d, r);
              for (std::size_t k = 0; k < part.size(); ++k) {
                ++seen[part.row(k) * tensor.shape.columns + part.column(k)];
              }
            }
          }
          const int copies = (zero > 0 ? 1 : dp) * (tensor.split == Split::none ? tp : 1);
          REQUIRE(seen == std::vector<int>(seen.size(), copies));
        }
      }
    }
  }
  CHECK_THROWS_WITH(check(Sharding{1, 1, 3}), "zero: must be 0, 1 or 2");
  CHECK_THROWS_WITH(check(Sharding{0, 1, 0}), "dp: must be at least 1");
  CHECK_THROWS_WITH(check(Sharding{1, 0, 0}), "tp: must be at least 1");
}

TEST_CASE("LAMB equals the unsharded one for every sharding") {
  agrees_for_every_sharding(reference::ShardedLamb{
      {.lr = 0.01, .weight_decay = 0.01, .bias_correction = BiasCorrection::in_rate}});
}

TEST_CASE("LARS equals the unsharded one for every sharding") {
  agrees_for_every_sharding(
      reference::Lars{{.lr = 0.5, .weight_decay = 1e-4, .trust_coefficient = 0.02}});
}

TEST_CASE("Adafactor equals the unsharded one for every sharding") {
  agrees_for_every_sharding(reference::Adafactor{});
  agrees_for_every_sharding(
      reference::Adafactor{
          {.lr = 0.01, .beta1 = 0.9, .weight_decay = 0.01, .relative_step = false}},
      20);
}

TEST_CASE("CAME equals the unsharded one for every sharding") {
  agrees_for_every_sharding(reference::Came{{.lr = 0.002, .weight_decay = 0.01}});
}

TEST_CASE("GaLore equals the unsharded one for every sharding") {
  agrees_for_every_sharding(
      reference::Galore{{.rank = 3, .gap = 20, .eight_bit = false, .percentile_clipping = 90}});
}

// The iterations run in fp32, since the order of summation occasionally changes a digit in bf16.
TEST_CASE("Muon equals the unsharded one for every sharding, and gathers each matrix once") {
  const reference::Muon rule{{.lr = 0.02, .iterations = {.in_bf16 = false}}};
  agrees_for_every_sharding(rule, 20);
  auto o = sharded(rule, {2, 1, 1}, tensors, initial_weights());
  step(o, gradients(o, 2));
  // One collective for each of the four matrices; the two vectors need none.
  CHECK(o.collectives == 4);
  CHECK(o.summed_values == 13 * 7 + 9 * 11 + 6 * 10 + 2 * 5);
}

TEST_CASE("a tensor has the rate and the decay of its group") {
  const std::vector<ShardedTensor> two{{{3, 4}}, {{3, 4}}};
  const Flat p = random_values(12, 3), g = random_values(12, 1);
  const auto stepped = [&](const LambOptions& options, std::vector<ParameterGroup> group_of) {
    auto o = sharded(reference::ShardedLamb{options}, {2, 1, 1}, two, {p, p});
    o.group_of = std::move(group_of);
    for (int k = 0; k < 3; ++k) step(o, {{g, g}, {g, g}});
    return std::pair{weights(o, 0), weights(o, 1)};
  };
  const auto groups = stepped({.lr = 0.1, .weight_decay = 5}, {{1, 0.5}, {2, 0}});
  CHECK(groups.first == stepped({.lr = 0.1, .weight_decay = 0.5}, {}).first);
  CHECK(groups.second == stepped({.lr = 0.2}, {}).second);
  CHECK(groups.first != groups.second);
}

TEST_CASE("GaLore's states in 8 bits equal the unsharded ones, for blocks across any shards") {
  // A projected matrix of 350 elements in two blocks; unprojected ones of 903 and 701 in four and
  // three, the last one partial; 15 in fp32. No shard ends at the end of a block.
  const std::vector<ShardedTensor> large{{{70, 33}, Split::columns},
                                         {{3, 301}, Split::rows},
                                         {{1, 701}, Split::columns},
                                         {{1, 15}, Split::none}};
  const reference::Galore rule{{.rank = 5, .gap = 4, .min_8bit_size = 300}};
  PerTensor initial;
  for (std::size_t t = 0; t < large.size(); ++t)
    initial.push_back(random_values(large[t].shape.elements(), unsigned(t) + 1));
  const auto trained_on = [&](const Sharding& sharding, int dp) {
    auto o = sharded(rule, sharding, large, initial);
    for (unsigned k = 0; k < 12; ++k) {
      std::vector<std::vector<Flat>> g(large.size());
      for (std::size_t t = 0; t < large.size(); ++t)
        for (int d = 0; d < dp; ++d)
          g[t].push_back(
              random_values(large[t].shape.elements(), 100 * k + 10 * unsigned(d) + unsigned(t)));
      step(o, g);
    }
    return o;
  };
  for (const int dp : {1, 3, 8}) {
    const auto unsharded = trained_on({}, dp);
    for (std::size_t t = 0; t < large.size(); ++t)
      CHECK(unsharded.shards[t][0].state.m8.codes.size() ==
            std::vector<std::size_t>{350, 903, 701, 0}[t]);
    for (const int tp : {1, 2, 3, 4}) {
      for (int zero = 0; zero <= 2; ++zero) {
        INFO("dp " << dp << ", tp " << tp << ", ZeRO " << zero);
        const auto o = trained_on({dp, tp, zero}, dp);
        for (std::size_t t = 0; t < large.size(); ++t) {
          const Flat x = weights(o, t), y = weights(unsharded, t);
          double difference = 0, norm = 0;
          for (std::size_t e = 0; e < x.size(); ++e) {
            difference += (double(x[e]) - y[e]) * (double(x[e]) - y[e]);
            norm += double(y[e]) * y[e];
          }
          CHECK(std::sqrt(difference / norm) < 1e-5);
        }
      }
    }
  }
}

TEST_CASE(
    "sums per tensor: one collective for LAMB, two for Adafactor, three for CAME on matrices") {
  const std::vector<std::vector<Flat>> g{{random_values(12, 1), random_values(12, 2)}};
  const auto counted = [&](const auto& rule) {
    auto o = sharded(rule, {2, 1, 1}, {{{3, 4}}}, {random_values(12, 3)});
    step(o, g);
    return std::pair{o.collectives, o.summed_values};
  };
  CHECK(counted(reference::ShardedLamb{}) == std::pair<std::size_t, std::size_t>{1, 2});
  CHECK(counted(reference::Adafactor{}) == std::pair<std::size_t, std::size_t>{2, 3 + 4 + 2});
  CHECK(counted(reference::Came{}) == std::pair<std::size_t, std::size_t>{3, 2 * (3 + 4) + 1});
}

TEST_CASE("quirks of the originals differ from the unsharded optimizer") {
  // Column means of a rank's own rows, only under ZeRO.
  reference::Adafactor adafactor;
  adafactor.options.columns_stay_local = true;
  const auto parts_by = [&](const auto& quirky, const auto& right, const Sharding& sharding) {
    auto a = sharded(quirky, sharding, {{{12, 5}}}, {random_values(60, 1)});
    auto b = sharded(right, sharding, {{{12, 5}}}, {random_values(60, 1)});
    for (unsigned k = 0; k < 10; ++k) {
      std::vector<std::vector<Flat>> g(1);
      for (int d = 0; d < sharding.dp; ++d) g[0].push_back(random_values(60, 10 * k + unsigned(d)));
      step(a, g);
      step(b, g);
    }
    const Flat x = weights(a, 0), y = weights(b, 0);
    double furthest = 0;
    for (std::size_t e = 0; e < 60; ++e)
      furthest = std::max(furthest, std::fabs(double(x[e]) - y[e]));
    return furthest;
  };
  CHECK(parts_by(adafactor, reference::Adafactor{}, {1, 1, 0}) == 0);
  CHECK(parts_by(adafactor, reference::Adafactor{}, {3, 1, 0}) == 0);
  CHECK(parts_by(adafactor, reference::Adafactor{}, {3, 1, 1}) > 1e-5);
  // Column states summed over all ranks grow by the number of ranks in every step.
  reference::Adafactor summed;
  summed.options.columns_summed = true;
  CHECK(parts_by(summed, reference::Adafactor{}, {3, 1, 0}) == 0);
  CHECK(parts_by(summed, reference::Adafactor{}, {3, 1, 1}) > 1e-5);
  auto growing = sharded(summed, {3, 1, 1}, {{{12, 5}}}, {random_values(60, 1)});
  for (int k = 0; k < 8; ++k)
    step(growing, {{random_values(60, 1), random_values(60, 1), random_values(60, 1)}});
  auto right = sharded(reference::Adafactor{}, {3, 1, 1}, {{{12, 5}}}, {random_values(60, 1)});
  for (int k = 0; k < 8; ++k)
    step(right, {{random_values(60, 1), random_values(60, 1), random_values(60, 1)}});
  CHECK(growing.shards[0][0].state.moment.column[0] >
        100 * right.shards[0][0].state.moment.column[0]);
  CHECK(growing.shards[0][0].state.moment.row == right.shards[0][0].state.moment.row);
  reference::Came came_summed;
  came_summed.options.columns_summed = true;
  CHECK(parts_by(came_summed, reference::Came{}, {3, 1, 1}) > 1e-5);
  reference::Came came, aliased;
  came.options.columns_stay_local = true;
  CHECK(parts_by(came, reference::Came{}, {3, 1, 2}) > 1e-5);
  aliased.options.residual_in_moment = true;
  CHECK(parts_by(aliased, reference::Came{}, {1, 1, 0}) > 1e-5);
  reference::ShardedLamb lamb{{.lr = 0.1}}, half{{.lr = 0.1}, true};
  CHECK(parts_by(half, lamb, {2, 1, 1}) > 1e-7);
  // GaLore with ZeRO switched off although the sharding has it: each data rank keeps all.
  reference::Galore galore{{.rank = 2, .zero_switched_off = true}};
  auto o = sharded(galore, {4, 1, 2}, {{{8, 6}}}, {random_values(48, 1)});
  CHECK(o.sharding.zero == 0);
  CHECK(o.shards[0][3].p.size() == 48);
}
