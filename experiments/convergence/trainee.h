// The optimizers of the study on the tensors of a model.
#pragma once

#include <variant>

#include "experiments/convergence/training.h"
#include "kernels/emulated_world/local_steps.h"
#include "kernels/emulated_world/onebit_adam.h"
#include "kernels/emulated_world/onebit_lamb.h"
#include "kernels/emulated_world/plain.h"
#include "kernels/emulated_world/sharded.h"
#include "kernels/emulated_world/zero_one_adam.h"
#include "kernels/reference/adafactor.h"
#include "kernels/reference/came.h"
#include "kernels/reference/galore.h"
#include "kernels/reference/lars.h"
#include "kernels/reference/sharded_lamb.h"

namespace lambcast::convergence {

// An optimizer defined by a rule of kernels/reference/part.h. The engine averages and clips the
// gradients, and ZeRO-1 shards the states.
template <typename Rule>
struct OfRule {
  emulated::World world;
  emulated::Sharded<Rule> sharded;
  std::vector<float> p;  // gathered weights
};

using Trainee =
    std::variant<emulated::Lamb, emulated::Adam, emulated::Lion, emulated::OnebitLamb,
                 emulated::OnebitAdam, emulated::ZeroOneAdam, emulated::LocalSteps,
                 OfRule<reference::ShardedLamb>, OfRule<reference::Lars>,
                 OfRule<reference::Adafactor>, OfRule<reference::Came>, OfRule<reference::Galore>>;

// Creates the trainee of a run. With a freeze_step of 0 only the monitor ends the warm-up.
Trainee trainee(const text::Transformer& model, const Recipe& recipe, const Run& run);
// Sets the learning rate to `share` of its peak.
void set_lr(Trainee& trainee, const Recipe& recipe, double share);
void take_step(Trainee& trainee, emulated::Gradients gradients);
std::span<const float> weights_of(const Trainee& trainee, int rank);

}  // namespace lambcast::convergence
