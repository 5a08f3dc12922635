// The rounds of sharded optimizers on the GPU, with ranks one after another on one device and their
// sums added on the host, compared with the emulated world.
#include "kernels/emulated_world/sharded.h"

#include <algorithm>

#include "kernels/cuda/factored.h"
#include "kernels/cuda/gpu_test.h"
#include "kernels/cuda/lamb_tensors.h"
#include "kernels/cuda/lars.h"
#include "kernels/reference/lamb.h"

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

struct DeviceShard {
  reference::Part part;
  emulated::RankPlace place;
  DeviceBuffer<float> p, m, v, row, column, row_mean, residual_row, residual_column, residual_mean;
  DeviceBuffer<double> sums, workspace;
  DeviceBuffer<float> g = {};

  template <typename Shard>
  explicit DeviceShard(const Shard& shard)
      : part(shard.part),
        place(shard.place),
        p(upload(shard.p)),
        m(shard.p.size()),
        v(shard.p.size()),
        row(part.whole.rows),
        column(part.whole.columns),
        row_mean(1),
        residual_row(part.whole.rows),
        residual_column(part.whole.columns),
        residual_mean(1),
        sums(part.whole.rows + part.whole.columns),
        workspace(factored_workspace(part)) {}

  FactoredTensor tensor(bool momentum) const {
    return {part,
            p.data(),
            g.data(),
            momentum ? m.data() : nullptr,
            v.data(),
            {row.data(), column.data(), row_mean.data()},
            {residual_row.data(), residual_column.data(), residual_mean.data()},
            sums.data(),
            workspace.data()};
  }
  FactoredTensors tensors(bool momentum) const {
    const FactoredTensor one = tensor(momentum);
    return FactoredTensors(std::span(&one, 1));
  }
};

struct World {
  emulated::ShardedTensor tensor;
  emulated::Sharding sharding;
  std::vector<DeviceShard> shards;

  // All-reduces the first `count` sums.
  void share(std::size_t count) {
    std::vector<std::vector<double>> own;
    for (const DeviceShard& shard : shards) own.push_back(shard.sums.to_host());
    for (std::size_t r = 0; r < shards.size(); ++r) {
      std::vector<double> total(count);
      for (std::size_t other = 0; other < shards.size(); ++other) {
        const bool adds = share_sums(tensor, sharding, shards[r].place, shards[other].place);
        for (std::size_t i = 0; adds && i < count; ++i) total[i] += own[other][i];
      }
      require(cudaMemcpy(shards[r].sums.data(), total.data(), count * sizeof(double),
                         cudaMemcpyHostToDevice),
              "cudaMemcpy");
    }
  }
  template <typename Call>
  void round(std::size_t count, Call call) {
    for (DeviceShard& shard : shards) require(call(shard), "a round");
    if (count > 0) share(count);
  }
};

std::size_t factored_count(const emulated::ShardedTensor& tensor) {
  return tensor.shape.rows > 1 ? tensor.shape.rows + tensor.shape.columns : 0;
}

template <typename Rule, typename Step>
void agrees(const Rule& rule, const emulated::ShardedTensor& tensor,
            const emulated::Sharding& sharding, Step device_step) {
  const std::size_t elements = tensor.shape.elements();
  auto cpu = emulated::sharded(rule, sharding, {tensor}, {random_values(elements, 1)});
  World gpu{tensor, sharding, {}};
  for (const auto& shard : cpu.shards[0]) gpu.shards.emplace_back(shard);
  for (int k = 1; k <= int(test_steps); ++k) {
    std::vector<std::vector<float>> g;
    for (int d = 0; d < sharding.dp; ++d)
      g.push_back(random_values(elements, unsigned(10 * k + d)));
    for (DeviceShard& shard : gpu.shards) {
      const auto mean =
          emulated::mean_from(g, sharding.zero == 2 ? std::size_t(shard.place.data) : 0);
      std::vector<float> own;
      for (std::size_t e = 0; e < shard.part.size(); ++e) {
        own.push_back(mean[shard.part.row(e) * tensor.shape.columns + shard.part.column(e)]);
      }
      shard.g = upload(own);
    }
    device_step(gpu, k);
    emulated::step(cpu, {g});
  }
  for (std::size_t r = 0; r < gpu.shards.size(); ++r) {
    if (cpu.shards[0][r].p.empty()) continue;
    CHECK(relative_distance(gpu.shards[r].p.to_host(), cpu.shards[0][r].p) < 1e-5);
  }
}

// A whole tensor; cut columns, with segments that begin inside a row; cut rows; a cut vector.
const std::vector<std::pair<emulated::ShardedTensor, emulated::Sharding>> layouts{
    {{{300, 70}}, {1, 1, 0}},
    {{{37, 45}, emulated::Split::columns}, {3, 2, 1}},
    {{{270, 9}, emulated::Split::rows}, {2, 2, 2}},
    {{{1, 501}}, {2, 1, 1}}};

}  // namespace

TEST_CASE("Adafactor's rounds on the GPU agree with the emulated world") {
  NEED_GPUS(1);
  for (const auto& [tensor, sharding] : layouts) {
    for (const double beta1 : {0.0, 0.9}) {
      const reference::Adafactor rule{{.beta1 = beta1, .weight_decay = 0.1}};
      const std::size_t count = factored_count(tensor);
      agrees(rule, tensor, sharding, [&](World& gpu, int k) {
        const bool momentum = beta1 > 0;
        gpu.round(count, [&](auto& s) {
          return adafactor_moment(s.tensors(momentum).batch(), rule, nullptr);
        });
        gpu.round(2, [&](auto& s) {
          return adafactor_norms(s.tensors(momentum).batch(), rule, k, nullptr);
        });
        gpu.round(0, [&](auto& s) {
          return adafactor_apply(s.tensors(momentum).batch(), rule, k, nullptr);
        });
      });
    }
  }
}

TEST_CASE(
    "sums over rows, columns and all elements are within the rounding that factored.h states") {
  NEED_GPUS(1);
  // Several partial parts of rows and tiles of columns; ordinary values, and some with squares that
  // vanish next to the added eps.
  const emulated::ShardedTensor tensor{{700, 301}};
  const reference::Adafactor rule{};
  const auto p = random_values(tensor.shape.elements(), 1);
  const auto world = emulated::sharded(rule, {}, {tensor}, {p});
  DeviceShard device(world.shards[0][0]);
  const reference::Part& part = device.part;
  auto g = random_values(part.size(), 2);
  for (std::size_t e = 0; e < g.size(); e += 7) g[e] *= 1e-25f;
  device.g = upload(g);
  require(adafactor_moment(device.tensors(false).batch(), rule, nullptr), "adafactor_moment");
  std::vector<double> exact(part.whole.rows + part.whole.columns);
  for (std::size_t e = 0; e < g.size(); ++e) {
    const double square = double(g[e]) * g[e] + rule.options.eps1;
    exact[e / part.whole.columns] += square;
    exact[part.whole.rows + e % part.whole.columns] += square;
  }
  const auto sums = device.sums.to_host();
  for (std::size_t s = 0; s < sums.size(); ++s) {
    REQUIRE(std::fabs(sums[s] / exact[s] - 1) < (s < part.whole.rows ? 5.4e-7 : 1.2e-7));
  }
  require(adafactor_norms(device.tensors(false).batch(), rule, 1, nullptr), "adafactor_norms");
  double weights = 0;
  for (const float x : p) weights += double(x) * x;
  CHECK(std::fabs(device.sums.to_host()[1] / weights - 1) < 1.8e-7);

  g[5 * part.whole.columns + 3] = NAN;
  device.g = upload(g);
  require(adafactor_moment(device.tensors(false).batch(), rule, nullptr), "adafactor_moment");
  const auto poisoned = device.sums.to_host();
  for (std::size_t s = 0; s < poisoned.size(); ++s) {
    REQUIRE(std::isnan(poisoned[s]) == (s == 5 || s == part.whole.rows + 3));
  }
}

TEST_CASE("CAME's rounds on the GPU agree with the emulated world") {
  NEED_GPUS(1);
  for (const auto& [tensor, sharding] : layouts) {
    const reference::Came rule{{.lr = 0.001, .weight_decay = 0.1}};
    const std::size_t count = factored_count(tensor);
    agrees(rule, tensor, sharding, [&](World& gpu, int) {
      gpu.round(count,
                [&](auto& s) { return came_moment(s.tensors(true).batch(), rule, nullptr); });
      gpu.round(1, [&](auto& s) { return came_norm(s.tensors(true).batch(), rule, nullptr); });
      gpu.round(count,
                [&](auto& s) { return came_momentum(s.tensors(true).batch(), rule, nullptr); });
      gpu.round(0, [&](auto& s) { return came_apply(s.tensors(true).batch(), rule, nullptr); });
    });
  }
}

namespace {

// Steps on one rank's part of every tensor: all tensors at once, or one after another.
template <typename Rule, typename Step>
std::vector<std::vector<float>> trained(const Rule& rule, bool at_once, Step device_step) {
  std::vector<DeviceShard> shards;
  for (const auto& [tensor, sharding] : layouts) {
    const auto world =
        emulated::sharded(rule, sharding, {tensor}, {random_values(tensor.shape.elements(), 1)});
    shards.emplace_back(world.shards[0].back());
  }
  for (int k = 1; k <= 3; ++k) {
    std::vector<FactoredTensor> all;
    for (DeviceShard& shard : shards) {
      shard.g = upload(random_values(shard.part.size(), unsigned(k)));
      all.push_back(shard.tensor(true));
    }
    for (std::size_t t = 0; t < (at_once ? 1 : all.size()); ++t) {
      const auto some = at_once ? std::span(all) : std::span(all).subspan(t, 1);
      device_step(FactoredTensors(some).batch(), k);
    }
  }
  std::vector<std::vector<float>> weights;
  for (const DeviceShard& shard : shards) weights.push_back(shard.p.to_host());
  return weights;
}

}  // namespace

TEST_CASE("Adafactor and CAME on all tensors at once have the bits of steps on each tensor alone") {
  NEED_GPUS(1);
  const reference::Adafactor adafactor{{.beta1 = 0.9, .weight_decay = 0.1}};
  const auto adafactor_step = [&](const FactoredBatch& batch, int k) {
    require(adafactor_moment(batch, adafactor, nullptr), "adafactor_moment");
    require(adafactor_norms(batch, adafactor, k, nullptr), "adafactor_norms");
    require(adafactor_apply(batch, adafactor, k, nullptr), "adafactor_apply");
  };
  CHECK(trained(adafactor, true, adafactor_step) == trained(adafactor, false, adafactor_step));
  const reference::Came came{{.lr = 0.001, .weight_decay = 0.1}};
  const auto came_step = [&](const FactoredBatch& batch, int) {
    require(came_moment(batch, came, nullptr), "came_moment");
    require(came_norm(batch, came, nullptr), "came_norm");
    require(came_momentum(batch, came, nullptr), "came_momentum");
    require(came_apply(batch, came, nullptr), "came_apply");
  };
  CHECK(trained(came, true, came_step) == trained(came, false, came_step));
  // A batch without tensors is valid.
  const FactoredTensors none(std::span<const FactoredTensor>{});
  adafactor_step(none.batch(), 1);
  came_step(none.batch(), 1);
}

namespace {

// Returns the weights after five steps, with a change from outside before the fourth step. Tensors
// keep their norms or not; norms are measured anew before the steps of `measured`.
std::vector<std::vector<float>> adafactor_weights(const reference::Adafactor& rule, bool keeps,
                                                  const std::vector<int>& measured = {}) {
  std::vector<DeviceShard> shards;
  std::vector<DeviceBuffer<double>> kept;
  for (const auto& [tensor, sharding] : layouts) {
    const auto world =
        emulated::sharded(rule, sharding, {tensor}, {random_values(tensor.shape.elements(), 1)});
    shards.emplace_back(world.shards[0].back());
    kept.emplace_back(factored_kept(shards.back().part));
  }
  for (int k = 1; k <= 5; ++k) {
    std::vector<FactoredTensor> all;
    for (std::size_t t = 0; t < shards.size(); ++t) {
      if (k == 4) shards[t].p = upload(random_values(shards[t].part.size(), 50, 3));
      shards[t].g = upload(random_values(shards[t].part.size(), unsigned(k)));
      all.push_back(shards[t].tensor(rule.options.beta1 > 0));
      if (keeps) all.back().kept = kept[t].data();
    }
    const FactoredTensors tensors(all);
    if (std::ranges::find(measured, k) != measured.end())
      require(adafactor_keep(tensors.batch(), nullptr), "adafactor_keep");
    require(adafactor_moment(tensors.batch(), rule, nullptr), "adafactor_moment");
    require(adafactor_norms(tensors.batch(), rule, k, nullptr), "adafactor_norms");
    require(adafactor_apply(tensors.batch(), rule, k, nullptr), "adafactor_apply");
  }
  std::vector<std::vector<float>> weights;
  for (const DeviceShard& shard : shards) weights.push_back(shard.p.to_host());
  return weights;
}

}  // namespace

TEST_CASE("Adafactor with kept norms of the weights has the bits of Adafactor without") {
  NEED_GPUS(1);
  for (const double beta1 : {0.0, 0.9}) {
    const reference::Adafactor rule{{.beta1 = beta1, .weight_decay = 0.1}};
    const auto anew = adafactor_weights(rule, false);
    CHECK(adafactor_weights(rule, true, {1, 4}) == anew);
    // Without a new measurement after the outside change, the step uses the kept norm.
    CHECK(adafactor_weights(rule, true, {1}) != anew);
    CHECK(adafactor_weights(rule, false, {1, 4}) == anew);
  }
}

namespace {

// Returns the first or second half of every tensor.
std::vector<float> half_of(const std::vector<float>& flat, const TensorLayout& whole,
                           const std::vector<std::size_t>& halves, std::size_t rank) {
  std::vector<float> own;
  for (std::size_t t = 0; t < halves.size(); ++t) {
    const auto from = flat.begin() + std::ptrdiff_t(whole.offsets[t] + rank * halves[t]);
    own.insert(own.end(), from, from + std::ptrdiff_t(halves[t]));
  }
  return own;
}

}  // namespace

TEST_CASE(
    "LAMB and LARS in halves, with norms summed over ranks, agree with the unsharded references") {
  // Three tensors, and two ranks that hold a half of each.
  NEED_GPUS(1);
  const std::vector<std::size_t> halves{350, 1, 1025}, sizes{700, 2, 2050};
  const TensorLayout half = tensor_layout(halves), whole = tensor_layout(sizes);
  const LambOptions lamb{
      .lr = 0.01, .weight_decay = 0.01, .bias_correction = BiasCorrection::in_rate};
  const reference::LarsOptions lars{.lr = 0.5, .weight_decay = 0.01, .trust_coefficient = 0.02};
  const auto cut = [&](const std::vector<float>& flat, std::size_t rank) {
    return half_of(flat, whole, halves, rank);
  };
  for (const bool is_lamb : {true, false}) {
    std::vector<float> p = random_values(whole.elements(), 1), m(p.size()), v(p.size());
    std::vector<reference::Lars::State> states;
    const reference::Lars rule{lars};
    for (std::size_t t = 0; t < sizes.size(); ++t) {
      states.push_back(rule.state(reference::whole_part({1, sizes[t]})));
    }
    std::vector<DeviceBuffer<float>> dp, dm, dv;
    std::vector<LambTensors> per_tensor;
    std::vector<DeviceBuffer<double>> squares;
    for (std::size_t r = 0; r < 2; ++r) {
      dp.push_back(upload(cut(p, r)));
      dm.emplace_back(half.elements());
      dv.emplace_back(half.elements());
      per_tensor.emplace_back(half);
      squares.emplace_back(2 * sizes.size());
    }
    for (int k = 1; k <= int(test_steps); ++k) {
      const auto g = random_values(whole.elements(), unsigned(k) + 5);
      for (std::size_t t = 0; t < sizes.size(); ++t) {
        const auto of = [&](std::vector<float>& x) { return whole.view(std::span(x), t); };
        const auto gradient = whole.view(std::span(g), t);
        if (is_lamb) {
          reference::lamb_step(of(p), of(m), of(v), gradient, lamb, k);
          continue;
        }
        const auto part = reference::whole_part({1, sizes[t]});
        const reference::View x{part, of(p), gradient};
        rule.take(0, x, states[t], rule.sums(0, x, states[t], k), k);
        rule.apply(x, states[t], k);
      }
      std::vector<DeviceBuffer<float>> dg;
      std::vector<double> total(2 * sizes.size());
      for (std::size_t r = 0; r < 2; ++r) {
        dg.push_back(upload(cut(g, r)));
        const LambState state = per_tensor[r].state(dp[r].data(), dm[r].data(), dv[r].data());
        require(is_lamb ? lamb_moments(state, dg[r].data(), lamb, squares[r].data(), nullptr, k)
                        : lars_norms(state, dg[r].data(), squares[r].data(), nullptr),
                "norms");
        const auto own = squares[r].to_host();
        for (std::size_t i = 0; i < total.size(); ++i) total[i] += own[i];
      }
      const auto shared = upload(total);
      for (std::size_t r = 0; r < 2; ++r) {
        const LambState state = per_tensor[r].state(dp[r].data(), dm[r].data(), dv[r].data());
        require(is_lamb ? lamb_apply(state, lamb, shared.data(), nullptr, k)
                        : lars_apply(state, dg[r].data(), lars, shared.data(), nullptr),
                "apply");
      }
    }
    for (std::size_t r = 0; r < 2; ++r) {
      CHECK(relative_distance(dp[r].to_host(), cut(p, r)) < 1e-5);
    }
  }
}

TEST_CASE("the norms of the variance are its sums, tensor by tensor") {
  NEED_GPUS(1);
  const TensorLayout tensors = tensor_layout(std::vector<std::size_t>{3, 0, 40000, 17});
  const auto v = random_values(tensors.elements(), 1, 0.6);
  const auto dv = upload(v);
  const LambTensors per_tensor(tensors);
  const DeviceBuffer<double> norms(4);
  require(variance_norms(per_tensor.state(nullptr, nullptr, dv.data()), norms.data(), nullptr),
          "variance_norms");
  const auto back = norms.to_host();
  for (std::size_t t = 0; t < 4; ++t) {
    double sum = 0;
    for (const float x : tensors.view(std::span(v), t)) sum += std::fabs(double(x));
    CHECK(back[t] == Approx(sum).epsilon(1.3e-7));
  }
}
