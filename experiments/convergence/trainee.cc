#include "experiments/convergence/trainee.h"

#include <limits>

#include "sim/base/check.h"

namespace lambcast::convergence {
namespace {

using namespace lambcast::emulated;

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

template <typename Rule>
OfRule<Rule> of_rule(const text::Transformer& model, const World& world, const Rule& rule) {
  std::vector<ShardedTensor> tensors;
  std::vector<std::vector<float>> initial;
  for (std::size_t t = 0; t < model.tensors.tensors(); ++t) {
    tensors.push_back({text::shape_of(model, t)});
    const auto own = model.tensors.view(std::span<const float>(model.initial), t);
    initial.emplace_back(own.begin(), own.end());
  }
  OfRule<Rule> o{world, sharded(rule, {.dp = world.ranks, .zero = 1}, tensors, initial),
                 world.initial};
  o.sharded.group_of = world.group_of;
  return o;
}

template <typename Rule>
Step step(OfRule<Rule>& o, Gradients gradients) {
  const auto averaged = reduce(o.world, gradients, true);
  if (!averaged) return Step::skipped;
  const TensorLayout& tensors = o.world.tensors;
  std::vector<std::vector<std::vector<float>>> of_tensors;
  for (std::size_t t = 0; t < tensors.tensors(); ++t) {
    const auto own = tensors.view(std::span<const float>(averaged->front()), t);
    of_tensors.push_back({{own.begin(), own.end()}});
  }
  emulated::step(o.sharded, of_tensors);
  for (std::size_t t = 0; t < tensors.tensors(); ++t) {
    const std::vector<float> own = weights(o.sharded, t);
    std::copy(own.begin(), own.end(), tensors.view(std::span(o.p), t).begin());
  }
  return Step::full;
}

template <typename Rule>
std::span<const float> weights(const OfRule<Rule>& o, int) {
  return o.p;
}

LocalSteps meeting(const World& world, const AdamOptions& options, Exchange exchange) {
  switch (exchange) {
    case Exchange::neighbours_ring:
      return neighbour_steps(world, Inner::adam, options, Graph::ring);
    case Exchange::neighbours_exponential:
      return neighbour_steps(world, Inner::adam, options, Graph::one_peer_exponential);
    case Exchange::diloco_16:
      return local_steps(world, Inner::adam, options, local_interval, {0.7, 0.9, true});
    case Exchange::streamed_16:
      return streamed_steps(world, Inner::adam, options, local_interval, {0.7, 0.9, true}, 4, 2);
    default:
      return local_steps(world, Inner::adam, options, local_interval, {});
  }
}

World thrice_decaying(World world) {
  for (ParameterGroup& group : world.group_of) group.weight_decay *= 3;
  return world;
}

reference::ShardedLamb colossal_lamb(const Recipe& recipe) {
  return {{.beta2 = recipe.beta2,
           .eps = 1e-6,
           .max_coeff = std::numeric_limits<double>::infinity(),
           .min_coeff = 0,
           .bias_correction = BiasCorrection::in_rate}};
}

// Returns CAME with the averaging length of beta3 shortened by the same factor as that of beta2.
reference::Came came(const Recipe& recipe) {
  reference::CameOptions options;
  options.beta3 = 1 - (1 - options.beta3) * (1 - recipe.beta2) / (1 - options.beta2);
  options.beta2 = recipe.beta2;
  return {options};
}

reference::Galore galore(const Recipe& recipe) {
  reference::GaloreOptions options;
  options.beta2 = recipe.beta2;
  options.rank = recipe.shape.width / 4;
  options.min_8bit_size = 256;
  return {options};
}

}  // namespace

Trainee trainee(const text::Transformer& model, const Recipe& recipe, const Run& run) {
  const World world = world_of(model, recipe);
  AdamOptions adam_options;
  adam_options.beta2 = recipe.beta2;
  LambOptions lamb_options;
  lamb_options.beta2 = recipe.beta2;
  const int freeze_step = run.freeze_step == 0 ? never : run.freeze_step;
  if (averages_weights(run.exchange)) {
    LAMBCAST_CHECK(run.optimizer == Optimizer::adam, "{}", run.name());
    return meeting(world, adam_options, run.exchange);
  }
  switch (run.optimizer) {
    case Optimizer::lamb:
      return lamb(world, lamb_options);
    case Optimizer::adam:
      return adam(world, adam_options);
    case Optimizer::lion:
      return lion(thrice_decaying(world), {});
    case Optimizer::onebit_lamb:
      return onebit_lamb(world, {.lamb = lamb_options, .freeze_step = freeze_step});
    case Optimizer::onebit_adam:
      return onebit_adam(world, {.adam = adam_options, .freeze_step = freeze_step});
    case Optimizer::zero_one_adam:
      // Scales both intervals so that they grow as early in this run as the defaults do in a run of
      // 125,000 steps.
      return zero_one_adam(world, {.adam = adam_options,
                                   .var_freeze_step = freeze_step,
                                   .var_update_scaler = 16,
                                   .local_step_scaler = recipe.steps / 4,
                                   .local_step_clipper = 16});
    case Optimizer::distributed_lamb:
      return of_rule(model, world, colossal_lamb(recipe));
    case Optimizer::lars:
      return of_rule(model, world, reference::Lars{});
    case Optimizer::adafactor:
      return of_rule(model, world, reference::Adafactor{{.relative_step = false}});
    case Optimizer::came:
      return of_rule(model, world, came(recipe));
    case Optimizer::galore_adamw8bit:
      return of_rule(model, world, galore(recipe));
  }
  LAMBCAST_CHECK(false, "no such optimizer");
  return adam(world, adam_options);
}

void set_lr(Trainee& trainee, const Recipe& recipe, double share) {
  const double of_norm = share * recipe.lamb_lr, of_element = share * recipe.adam_lr;
  const auto set = [&](auto& o) {
    using O = std::decay_t<decltype(o)>;
    if constexpr (std::is_same_v<O, Lamb>) {
      o.options.lr = of_norm;
    } else if constexpr (std::is_same_v<O, OnebitLamb>) {
      o.options.lamb.lr = of_norm;
    } else if constexpr (std::is_same_v<O, Lion>) {
      o.options.lr = share * recipe.lion_lr;
    } else if constexpr (std::is_same_v<O, Adam> || std::is_same_v<O, LocalSteps>) {
      o.options.lr = of_element;
    } else if constexpr (std::is_same_v<O, OnebitAdam> || std::is_same_v<O, ZeroOneAdam>) {
      o.options.adam.lr = of_element;
    } else {
      auto& options = o.sharded.rule.options;
      if constexpr (std::is_same_v<O, OfRule<reference::Lars>>)
        options.lr = of_norm * (1 - options.momentum) / options.trust_coefficient;
      else if constexpr (std::is_same_v<O, OfRule<reference::Galore>>)
        options.lr = of_element / options.scale;
      else
        options.lr = std::is_same_v<O, OfRule<reference::Came>> ? of_element : of_norm;
    }
  };
  std::visit(set, trainee);
}

void take_step(Trainee& trainee, Gradients gradients) {
  std::visit([&](auto& o) { step(o, gradients); }, trainee);
}

std::span<const float> weights_of(const Trainee& trainee, int rank) {
  return std::visit([&](const auto& o) { return std::span<const float>(weights(o, rank)); },
                    trainee);
}

}  // namespace lambcast::convergence
