#include "experiments/convergence/training.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>
#include <variant>

#include "kernels/emulated_world/exchange/hierarchical_reduce_scatter.h"
#include "kernels/emulated_world/exchange/power_sgd.h"
#include "kernels/emulated_world/exchange/quantised_allreduce.h"
#include "kernels/emulated_world/exchange/sparse_allreduce.h"
#include "kernels/emulated_world/local_steps.h"
#include "kernels/emulated_world/onebit_adam.h"
#include "kernels/emulated_world/onebit_lamb.h"
#include "kernels/emulated_world/plain.h"
#include "kernels/emulated_world/zero_one_adam.h"
#include "kernels/reference/freeze.h"
#include "sim/base/check.h"

namespace lambcast::convergence {
namespace {

using namespace lambcast::emulated;
using Trainee = std::variant<Lamb, Adam, OnebitLamb, OnebitAdam, ZeroOneAdam, LocalSteps>;

constexpr int never = std::numeric_limits<int>::max();
constexpr int local_interval = 16;

World world_of(const text::Transformer& model, const Recipe& recipe) {
  World world;
  world.tensors = model.tensors;
  world.ranks = recipe.ranks;
  world.initial = model.initial;
  world.gradient_clipping = recipe.clipping;
  for (std::size_t t = 0; t < model.tensors.tensors(); ++t)
    world.group_of.push_back({1, text::decays(model, t) ? recipe.weight_decay : 0});
  return world;
}

bool averages_weights(Exchange exchange) {
  return exchange == Exchange::local_steps_16 || exchange == Exchange::diloco_16;
}

Trainee trainee(const text::Transformer& model, const Recipe& recipe, const Run& run) {
  const World world = world_of(model, recipe);
  AdamOptions adam_options;
  adam_options.beta2 = recipe.beta2;
  LambOptions lamb_options;
  lamb_options.beta2 = recipe.beta2;
  const int freeze_step = run.freeze_step == 0 ? never : run.freeze_step;
  if (averages_weights(run.exchange)) {
    LAMBCAST_CHECK(run.optimizer == Optimizer::adam, "{}", run.name());
    const bool diloco = run.exchange == Exchange::diloco_16;
    const reference::OuterOptions outer =
        diloco ? reference::OuterOptions{0.7, 0.9, true} : reference::OuterOptions{};
    return local_steps(world, Inner::adam, adam_options, local_interval, outer);
  }
  switch (run.optimizer) {
    case Optimizer::lamb:
      return lamb(world, lamb_options);
    case Optimizer::adam:
      return adam(world, adam_options);
    case Optimizer::onebit_lamb:
      return onebit_lamb(world, {.lamb = lamb_options, .freeze_step = freeze_step});
    case Optimizer::onebit_adam:
      return onebit_adam(world, {.adam = adam_options, .freeze_step = freeze_step});
    case Optimizer::zero_one_adam:
      // Both intervals grow as early in this run as the defaults let them grow in one of 125,000
      // steps.
      return zero_one_adam(world, {.adam = adam_options,
                                   .var_freeze_step = freeze_step,
                                   .var_update_scaler = 16,
                                   .local_step_scaler = recipe.steps / 4,
                                   .local_step_clipper = 16});
  }
  LAMBCAST_CHECK(false, "no such optimizer");
  return adam(world, adam_options);
}

void set_lr(Trainee& trainee, const Recipe& recipe, double share) {
  const auto set = [&](auto& o) {
    using O = std::decay_t<decltype(o)>;
    if constexpr (std::is_same_v<O, Lamb>)
      o.options.lr = share * recipe.lamb_lr;
    else if constexpr (std::is_same_v<O, OnebitLamb>)
      o.options.lamb.lr = share * recipe.lamb_lr;
    else if constexpr (std::is_same_v<O, Adam> || std::is_same_v<O, LocalSteps>)
      o.options.lr = share * recipe.adam_lr;
    else
      o.options.adam.lr = share * recipe.adam_lr;
  };
  std::visit(set, trainee);
}

double schedule(const Recipe& recipe, int step) {
  if (step <= recipe.lr_warmup) return static_cast<double>(step) / recipe.lr_warmup;
  return static_cast<double>(recipe.steps - step) / (recipe.steps - recipe.lr_warmup);
}

// The exchange of a run, with what it owes.
using Average = std::function<void(Buffers)>;

template <typename State>
Average averaging(State state) {
  return [state](Buffers buffers) mutable { average(state, buffers); };
}

// A reduce-scatter; its shards are gathered as they are.
Average hierarchical(int per_node) {
  const Quantiser int4{WireFormat::int4, 64};
  return [state = HierarchicalReduceScatter{.per_node = per_node,
                                            .in_node = int4,
                                            .between_nodes = int4,
                                            .error_feedback = true}](Buffers buffers) mutable {
    average(state, buffers);
    const std::size_t elements = buffers[0].size();
    const std::size_t shard = (elements + buffers.size() - 1) / buffers.size();
    std::vector<float> whole(elements);
    for (std::size_t e = 0; e < elements; ++e) whole[e] = buffers[e / shard][e % shard];
    hand_out(whole, buffers);
  };
}

PowerSgd power_sgd(const text::Transformer& model) {
  PowerSgd state;
  const std::size_t width = static_cast<std::size_t>(model.shape.width);
  for (std::size_t t = 0; t < model.tensors.tensors(); ++t) {
    if (!text::decays(model, t)) continue;
    state.matrices.push_back(
        {.begin = model.tensors.offsets[t], .shape = {model.tensors.size(t) / width, width}});
  }
  return state;
}

Average average_of(const text::Transformer& model, Exchange exchange) {
  const std::size_t per_cent = model.tensors.elements() / 100;
  switch (exchange) {
    case Exchange::fp8:
      return averaging(QuantisedAllreduce{.quantiser = {WireFormat::fp8_e4m3, 0}});
    case Exchange::int4:
      return averaging(
          QuantisedAllreduce{.quantiser = {WireFormat::int4, 64}, .error_feedback = true});
    case Exchange::qgz_int4:
      return hierarchical(2);
    case Exchange::power_sgd_4:
      return averaging(power_sgd(model));
    case Exchange::top_k_1:
      return averaging(SparseAllreduce{.kept = per_cent});
    case Exchange::random_k_1:
      return averaging(
          SparseAllreduce{.choice = SparseAllreduce::Choice::random, .kept = per_cent});
    case Exchange::plain:
    case Exchange::local_steps_16:
    case Exchange::diloco_16:
      break;
  }
  return {};
}

// Asks the monitor, where the run has one, whether the warm-up ends here.
void watch(Trainee& trainee, reference::FreezeMonitor& monitor, int step) {
  const auto ask = [&](auto& o) {
    using O = std::decay_t<decltype(o)>;
    if constexpr (std::is_same_v<O, OnebitLamb> || std::is_same_v<O, OnebitAdam>) {
      if (!measures(monitor, step)) return;
      const auto norms = reference::variance_norms(o.ranks[0].v, o.world.tensors);
      if (may_freeze(monitor, step, norms)) begin_compression(o);
    }
  };
  std::visit(ask, trainee);
}

const char* name_of(Exchange exchange) {
  switch (exchange) {
    case Exchange::plain:
      return "";
    case Exchange::fp8:
      return "fp8";
    case Exchange::int4:
      return "int4";
    case Exchange::qgz_int4:
      return "qgz int4";
    case Exchange::power_sgd_4:
      return "PowerSGD rank 4";
    case Exchange::top_k_1:
      return "top 1 %";
    case Exchange::random_k_1:
      return "random 1 %";
    case Exchange::local_steps_16:
      return "16 local steps";
    case Exchange::diloco_16:
      return "DiLoCo, 16 steps";
  }
  return "";
}

bool freezes(Optimizer optimizer) {
  return optimizer != Optimizer::lamb && optimizer != Optimizer::adam;
}

}  // namespace

const char* name_of(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::lamb:
      return "lamb";
    case Optimizer::adam:
      return "adam";
    case Optimizer::onebit_lamb:
      return "onebit_lamb";
    case Optimizer::onebit_adam:
      return "onebit_adam";
    case Optimizer::zero_one_adam:
      return "zero_one_adam";
  }
  return "";
}

Recipe large_recipe() {
  Recipe recipe;
  recipe.shape = {.width = 64, .layers = 4, .heads = 4, .context = 32};
  recipe.sequences = 2;
  return recipe;
}

std::string Run::name() const {
  std::string name = name_of(optimizer);
  if (exchange != Exchange::plain) name += fmt::format(", {}", name_of(exchange));
  if (!freezes(optimizer)) return name;
  return freeze_step == 0 ? name + ", monitor" : fmt::format("{}, frozen at {}", name, freeze_step);
}

std::vector<Run> study_runs(const Recipe& recipe) {
  std::vector<Run> runs{{Optimizer::lamb}, {Optimizer::adam}};
  for (const Optimizer optimizer : {Optimizer::onebit_lamb, Optimizer::onebit_adam}) {
    runs.push_back({optimizer, Exchange::plain, 0});
    for (const double share : {0.01, 0.025, 0.05, 0.1, 0.2, 0.4})
      runs.push_back(
          {optimizer, Exchange::plain, static_cast<int>(std::lround(share * recipe.steps))});
  }
  runs.push_back({Optimizer::zero_one_adam, Exchange::plain, recipe.steps / 10});
  for (const Exchange exchange : {Exchange::fp8, Exchange::int4, Exchange::qgz_int4,
                                  Exchange::power_sgd_4, Exchange::top_k_1, Exchange::random_k_1})
    runs.push_back({Optimizer::lamb, exchange});
  runs.push_back({Optimizer::adam, Exchange::local_steps_16});
  runs.push_back({Optimizer::adam, Exchange::diloco_16});
  return runs;
}

Curve train(const text::Transformer& model, const Recipe& recipe, const Run& run,
            const std::function<void(const Point&)>& progress) {
  Trainee trained = trainee(model, recipe, run);
  const Average average = average_of(model, run.exchange);
  auto monitor = reference::freeze_monitor(
      model.tensors, {.beta2 = recipe.beta2, .interval = 5, .earliest = recipe.lr_warmup});
  const auto weights_of = [&](int rank) {
    return std::visit([&](const auto& o) { return weights(o, rank); }, trained);
  };
  Curve curve{.run = run, .frozen_at = 0, .points = {}};
  double sum = 0;
  for (int k = 1; k <= recipe.steps; ++k) {
    std::vector<std::vector<float>> gradients;
    for (int r = 0; r < recipe.ranks; ++r) {
      gradients.emplace_back(model.tensors.elements());
      sum += text::loss(model, weights_of(r), model.train,
                        text::batch(model, k, r, recipe.sequences), gradients.back()) /
             recipe.ranks;
    }
    if (average) average(std::vector<std::span<float>>(gradients.begin(), gradients.end()));
    set_lr(trained, recipe, schedule(recipe, k));
    std::visit([&](auto& o) { step(o, gradients); }, trained);
    if (freezes(run.optimizer) && run.freeze_step == 0) watch(trained, monitor, k);
    if (k % recipe.every != 0) continue;
    const bool look = k % recipe.held_out_every == 0 || k == recipe.steps;
    curve.points.push_back({k, sum / recipe.every,
                            look ? text::held_out_loss(model, weights_of(0))
                                 : std::numeric_limits<double>::quiet_NaN()});
    sum = 0;
    if (progress) progress(curve.points.back());
  }
  curve.frozen_at = run.freeze_step == 0 ? monitor.frozen_at : run.freeze_step;
  return curve;
}

}  // namespace lambcast::convergence
