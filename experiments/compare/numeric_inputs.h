// The numbers that a forecast reads from descriptions of clusters and devices. Each has the key
// that sets it, its evidence, and a function that scales it.
//
// Each number changes alone. Numbers missing from a description that follow from another value
// (priors by the rate of the NIC, topologies/priors.h) do not change with it. One number under two
// names changes in both places. Examples are the GPU's path to the NIC if GPUs communicate over
// PCIe, and kernel rates that are the device's own.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "models/training/plan/training_plan.h"

namespace lambcast {

struct NumericInput {
  std::string key;    // "cluster.nic.bandwidth", "device.copy_bandwidth"
  std::string value;  // in words, with its unit
  Provenance provenance;
  std::function<void(Cluster&, Device&, double factor)> scale;
  double number = 1;  // in units of the SI; of curves, which have many, their scale
  // As `--set KEY=` takes it; of a curve, a list.
  std::function<std::string(double number)> text;
  // In words, and read again, which throws Error (usage) at `where`. Curves have neither.
  std::string (*words)(double number) = nullptr;
  double (*parse)(std::string_view text, const Where& where) = nullptr;
};

// Returns the numbers of the training's cluster and device that are not zero.
std::vector<NumericInput> numeric_inputs(const TrainingPlan& training);

// Returns the same training with `input` multiplied by `factor`.
TrainingPlan scaled(const TrainingPlan& training, const NumericInput& input, double factor);

}  // namespace lambcast
