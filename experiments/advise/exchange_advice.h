// Every exchange of gradients on one cluster, against the all-reduce of all bits: what each sends,
// which kernels it runs, what it holds, how long step and run take, and up to which NIC bandwidth
// it pays. The plain optimizer runs them all; its 1-bit kin stands beside them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/advise/break_even.h"
#include "experiments/scenario/catalog.h"
#include "experiments/scenario/what_if.h"
#include "models/training/run/forecast.h"

namespace lambcast {

struct ExchangeAdvice {
  std::string name;          // "fp8", "topk:1%", or that of a 1-bit optimizer
  std::string refused = {};  // why it cannot run; then nothing below is set
  double wire_bytes = 0;     // a GPU sends in the mean step
  double wire_us = 0;        // communication that nothing hides
  // Around the wire; nothing where ZeRO stage 3 exchanges block by block: inside the passes.
  std::optional<double> kernels_us = 0;
  double step_us = 0;
  double run_s = 0;
  double speedup = 1;  // of the run
  Bytes peak{};
  bool fits = false;
  // Nothing: one node, the all-reduce itself, or what does not fit.
  std::optional<PayingBandwidth> pays = {};
};

// What a forecast says of itself; where it pays is left open.
ExchangeAdvice exchange_advice_of(std::string name, const Forecast& forecast);

// What `what_if` asks, with each of usual_exchanges(), a node being a site, and the row of a 1-bit
// optimizer, where given, among them. Fastest first, refused ones last. Throws Error (usage) where
// not even the all-reduce can run.
std::vector<ExchangeAdvice> advise_exchanges(const WhatIf& what_if,
                                             const std::optional<ExchangeAdvice>& onebit,
                                             Catalog& catalog);

}  // namespace lambcast
