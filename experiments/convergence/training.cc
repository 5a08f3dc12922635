#include "experiments/convergence/training.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "experiments/convergence/gradient_average.h"
#include "experiments/convergence/trainee.h"
#include "kernels/reference/freeze.h"

namespace lambcast::convergence {
namespace {

using namespace lambcast::emulated;

double schedule(const Recipe& recipe, int step) {
  if (step <= recipe.lr_warmup) return static_cast<double>(step) / recipe.lr_warmup;
  return static_cast<double>(recipe.steps - step) / (recipe.steps - recipe.lr_warmup);
}

// Ends the warm-up if the run has a monitor and it finds that the variance has settled.
void watch(Trainee& trainee, reference::FreezeMonitor& monitor, int step, const VarianceLog& log) {
  const auto ask = [&](auto& o) {
    using O = std::decay_t<decltype(o)>;
    if constexpr (std::is_same_v<O, OnebitLamb> || std::is_same_v<O, OnebitAdam>) {
      if (!measures(monitor, step)) return;
      const auto norms = reference::variance_norms(o.ranks[0].v, o.world.tensors);
      if (log) log(step, norms);
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
    case Exchange::int8:
      return "int8";
    case Exchange::onebit:
      return "1 bit";
    case Exchange::onebit_sharded:
      return "1 bit in two levels";
    case Exchange::int4:
      return "int4";
    case Exchange::int4_unowed:
      return "int4 without feedback";
    case Exchange::qgz_int4:
      return "qgz int4";
    case Exchange::power_sgd_4:
      return "PowerSGD rank 4";
    case Exchange::top_k_1:
      return "top 1 %";
    case Exchange::random_k_1:
      return "random 1 %";
    case Exchange::fp16:
      return "fp16";
    case Exchange::chunk_top_k_64:
      return "64 of 4,096";
    case Exchange::dct_sign_64:
      return "64 signs of cosines";
    case Exchange::local_steps_16:
      return "16 local steps";
    case Exchange::diloco_16:
      return "DiLoCo, 16 steps";
    case Exchange::streamed_16:
      return "DiLoCo, 16 steps in 4 fragments";
    case Exchange::neighbours_ring:
      return "neighbours in a ring";
    case Exchange::neighbours_exponential:
      return "neighbours, exponential";
  }
  return "";
}

}  // namespace

bool freezes(Optimizer optimizer) {
  return optimizer == Optimizer::onebit_lamb || optimizer == Optimizer::onebit_adam ||
         optimizer == Optimizer::zero_one_adam;
}

bool averages_weights(Exchange exchange) { return exchange >= Exchange::local_steps_16; }

const char* name_of(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::lamb:
      return "lamb";
    case Optimizer::adam:
      return "adam";
    case Optimizer::lion:
      return "lion";
    case Optimizer::onebit_lamb:
      return "onebit_lamb";
    case Optimizer::onebit_adam:
      return "onebit_adam";
    case Optimizer::zero_one_adam:
      return "zero_one_adam";
    case Optimizer::distributed_lamb:
      return "distributed_lamb";
    case Optimizer::lars:
      return "lars";
    case Optimizer::adafactor:
      return "adafactor";
    case Optimizer::came:
      return "came";
    case Optimizer::galore_adamw8bit:
      return "galore_adamw8bit";
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
    for (const double share : {0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.4})
      runs.push_back(
          {optimizer, Exchange::plain, static_cast<int>(std::lround(share * recipe.steps))});
  }
  runs.push_back({Optimizer::zero_one_adam, Exchange::plain, recipe.steps / 10});
  for (const Optimizer optimizer :
       {Optimizer::distributed_lamb, Optimizer::lars, Optimizer::adafactor, Optimizer::came,
        Optimizer::galore_adamw8bit, Optimizer::lion})
    runs.push_back({optimizer});
  for (const Exchange exchange :
       {Exchange::fp8, Exchange::int8, Exchange::int4, Exchange::int4_unowed, Exchange::qgz_int4,
        Exchange::onebit, Exchange::onebit_sharded, Exchange::power_sgd_4, Exchange::top_k_1,
        Exchange::random_k_1, Exchange::fp16, Exchange::chunk_top_k_64, Exchange::dct_sign_64})
    runs.push_back({Optimizer::lamb, exchange});
  for (const Exchange exchange :
       {Exchange::local_steps_16, Exchange::diloco_16, Exchange::streamed_16,
        Exchange::neighbours_ring, Exchange::neighbours_exponential})
    runs.push_back({Optimizer::adam, exchange});
  return runs;
}

Curve train(const text::Transformer& model, const Recipe& recipe, const Run& run,
            const VarianceLog& log) {
  Trainee trained = trainee(model, recipe, run);
  const GradientAverage average = gradient_average(model, recipe.ranks, run.exchange);
  auto monitor = reference::freeze_monitor(
      model.tensors, {.beta2 = recipe.beta2,
                      .interval = 5,
                      .earliest = recipe.lr_warmup,
                      .latest = static_cast<int>(std::lround(recipe.latest_share * recipe.steps))});
  Curve curve{.run = run, .frozen_at = 0, .points = {}};
  double sum = 0;
  for (int k = 1; k <= recipe.steps; ++k) {
    std::vector<std::vector<float>> gradients;
    for (int r = 0; r < recipe.ranks; ++r) {
      gradients.emplace_back(model.tensors.elements());
      sum += text::loss(model, weights_of(trained, r), model.train,
                        text::batch(model, k, r, recipe.sequences), gradients.back()) /
             recipe.ranks;
    }
    if (average) average(std::vector<std::span<float>>(gradients.begin(), gradients.end()));
    set_lr(trained, recipe, schedule(recipe, k));
    take_step(trained, gradients);
    if (freezes(run.optimizer) && run.freeze_step == 0) watch(trained, monitor, k, log);
    if (k % recipe.every != 0) continue;
    const bool look = k % recipe.held_out_every == 0 || k == recipe.steps;
    curve.points.push_back({k, sum / recipe.every,
                            look ? text::held_out_loss(model, weights_of(trained, 0))
                                 : std::numeric_limits<double>::quiet_NaN()});
    sum = 0;
  }
  curve.frozen_at = run.freeze_step == 0 ? monitor.frozen_at : run.freeze_step;
  return curve;
}

}  // namespace lambcast::convergence
