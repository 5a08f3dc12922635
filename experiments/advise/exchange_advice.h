// Compares every gradient exchange on one cluster with the uncompressed all-reduce. Reports bytes
// sent, kernels, memory, step and run time, and the NIC bandwidth up to which it pays. The plain
// optimizer runs them all; its 1-bit form is listed with them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/advise/break_even.h"
#include "experiments/scenario/catalog.h"
#include "experiments/scenario/what_if.h"
#include "models/training/run/error_source.h"
#include "models/training/run/forecast.h"

namespace lambcast {

struct ExchangeAdvice {
  std::string name;          // "fp8", "topk:1%", or the name of a 1-bit optimizer
  std::string refused = {};  // why it cannot run; if set, all fields below are unset
  double wire_bytes = 0;     // bytes that a GPU sends in the mean step
  double wire_us = 0;        // exposed communication
  // Kernels before and after communication. Absent if ZeRO stage 3 exchanges block by block inside
  // the passes.
  std::optional<double> kernels_us = 0;
  double step_us = 0;
  double run_s = 0, run_low_s = 0, run_high_s = 0;
  RatioInterval speedup = {};  // of the run; 1 for the all-reduce itself
  Bytes peak{};
  bool fits = false;
  // NIC bandwidth up to which the exchange pays. Absent on one node, for the all-reduce itself, and
  // for runs that do not fit.
  std::optional<PayingBandwidth> pays = {};
};

// Returns the row of a forecast; `pays` is left empty.
ExchangeAdvice exchange_advice_of(std::string name, const Forecast& forecast);

// Returns the row of a question. `fastest` is the largest NIC bandwidth considered.
ExchangeAdvice advise_exchange(const std::string& name, const WhatIf& asked, Bandwidth fastest,
                               Catalog& catalog, CollectiveCosts& costs);

// Returns one row for the question with each of usual_exchanges(), plus the rows `onebit` of a
// 1-bit optimizer. For exchanges between sites, each node is a site. Rows are sorted fastest first,
// rejected ones last. Throws Error (usage) if not even the all-reduce can run.
std::vector<ExchangeAdvice> advise_exchanges(const WhatIf& what_if,
                                             const std::vector<ExchangeAdvice>& onebit,
                                             Catalog& catalog, CollectiveCosts& costs);

}  // namespace lambcast
