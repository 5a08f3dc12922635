// Complete trainings for tests. They are short to write, and a test changes only the values that it
// needs.
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "models/shape/load.h"
#include "models/training/plan/training_plan.h"
#include "models/training/price/collective_costs.h"
#include "models/training/run/forecast.h"
#include "models/training/run/step.h"

namespace lambcast {

struct TrainingCase {
  OptimizerType optimizer = OptimizerType::onebit_lamb;
  int gpus = 8;
  std::string cluster = "paper-eth40-v100";
  std::string model = "bert-large";
  Overrides settings = {};
  int gpus_per_node = 0;  // 0: the number of GPUs in the cluster's nodes
};

// Micro batch 16, no accumulation, sequence length 128, fp16, 1000 warm-up steps of 5993: the
// published 1-bit LAMB schedule.
inline TrainingPlan training_of(const TrainingCase& of) {
  TrainingPlan training;
  training.model = std::make_shared<const ModelShape>(load_model(of.model));
  training.cluster = std::make_shared<const Cluster>(load_cluster(of.cluster, of.settings));
  training.device = std::make_shared<const Device>(load_device(training.cluster->device));
  training.recipe.optimizer = of.optimizer;
  training.recipe.onebit.freeze_step = 1001;  // the first update is the dry run
  training.recipe.precision.weights = DataType::fp16;
  training.gpus = of.gpus;
  training.gpus_per_node =
      std::min(of.gpus, of.gpus_per_node > 0 ? of.gpus_per_node : training.cluster->gpus_per_node);
  training.batch = {16 * of.gpus, 16, 1};
  training.seq_len = 128;
  training.steps = 5993;
  return training;
}

inline TrainingPlan bf16_of(const TrainingCase& of) {
  TrainingPlan training = training_of(of);
  training.recipe.precision.weights = DataType::bf16;
  return training;
}

inline StepMetrics metrics_of(const TrainingPlan& training, StepKind kind) {
  CollectiveCosts costs;
  return run_step(training, {kind, training.seq_len, 1}, costs).metrics;
}

inline Forecast forecast_of(const TrainingPlan& training) {
  CollectiveCosts costs;
  return forecast(training, costs);
}

inline Duration parts_of(const StepMetrics& step) {
  return step.forward + step.backward + step.gradient_comm + step.compress + step.decompress +
         step.optimizer + step.bubble;
}

}  // namespace lambcast
