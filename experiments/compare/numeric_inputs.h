// The numbers that a forecast reads from descriptions of clusters and devices. Each has the key
// that sets it, its evidence, and a function that scales it.
//
// Each number changes alone. Numbers missing from a description that follow from another value
// (priors by the rate of the NIC, topologies/priors.h) do not change with it. A number that appears
// in two places changes in both, for example the GPU's path to the NIC if GPUs communicate over
// PCIe, and kernel rates equal to the device's.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "models/training/plan/training_plan.h"

namespace lambcast {

struct NumericInput {
  std::string key;    // "cluster.nic.bandwidth", "device.copy_bandwidth"
  std::string value;  // value as text with its unit
  Provenance provenance;
  std::function<void(Cluster&, Device&, double factor)> scale;
  double number = 1;  // in SI units; for a curve, the scale of its values
  // Formats the number as `--set KEY=` accepts it; for a curve, a list.
  std::function<std::string(double number)> text;
  // Formats and parses the number as text with its unit. `parse` throws Error (usage) with `where`.
  // Null for curves.
  std::string (*words)(double number) = nullptr;
  double (*parse)(std::string_view text, const Where& where) = nullptr;
};

// Returns the numbers of the training's cluster and device that are not zero.
std::vector<NumericInput> numeric_inputs(const TrainingPlan& training);

// Returns the training with `input` multiplied by `factor`.
TrainingPlan scaled(const TrainingPlan& training, const NumericInput& input, double factor);

}  // namespace lambcast
