// Does compression pay here? The question behind most what-ifs, answered in words and numbers:
// the 1-bit optimizer against its plain kin for every backend, the NIC bandwidth at which it stops
// paying, and the most that any compression could win.
//
// With t the plain step and e the part of it in which communication is exposed, no compression can
// be faster than t / (t - e) (Amdahl). The break-even bandwidth is where the whole run takes as
// long either way; it is found by bisection over cluster.nic.bandwidth.
//
// Who runs a plain optimizer has no freeze_step yet: then a warm-up of 20 % of the run is assumed,
// from the middle of the 15 to 25 % that DeepSpeed's tutorials advise, and the verdict says so.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/scenario.h"
#include "models/training/forecast.h"

namespace lambcast {

struct BackendAdvice {
  std::string backend;  // "nccl", "mpi (host-staged)", "mpi (cuda_aware)", "compressed"
  double time_s = 0;
  double speedup = 1;
  Bytes peak;
  bool fits = false;
};

struct Advice {
  Scenario scenario;              // with the 1-bit optimizer and its fastest backend
  Forecast forecast;              // of that
  std::vector<Finding> findings;  // of both, those of judge() included
  bool warmup_assumed = false;
  std::string optimizer, baseline;
  std::vector<BackendAdvice> backends;  // fastest first
  double baseline_time_s = 0;
  double exposed_share = 0;             // of the plain step
  double most_speedup = 1;              // bound for any compression
  std::optional<Bandwidth> break_even;  // for the fastest backend; nothing: none between the bounds
  bool pays_at_any_bandwidth = false;   // meaningful without a break-even
  std::optional<double> baseline_cost_usd, cost_usd;
};

// A plain optimizer in `what_if` is taken as the question about its 1-bit kin. Throws Error (usage)
// as resolve() does.
Advice advise(const WhatIf& what_if, Catalog& catalog);

std::string advice_text(const Advice& advice);
std::string advice_json(const Advice& advice);

}  // namespace lambcast
