// Advice on whether compression pays. Compares the 1-bit optimizer with its baseline (the same
// optimizer without compression) for every backend. Finds the break-even NIC bandwidth, the upper
// bound of the speed-up of any compression, and the part of a step that gains or loses most.
// advice_output.h renders it as text.
//
// With t the plain step and e its exposed communication, no compression can be faster than t / (t -
// e) (Amdahl). At the break-even bandwidth the whole run takes equally long with and without
// compression. It is found by bisection over cluster.nic.bandwidth, and so are the bandwidths at
// which either end of the speed-up's interval (models/training/run/error_source.h) is 1. The
// verdict is that of verdict.h.
//
// A question about a plain optimizer has no freeze_step. Then a warm-up of 20 % of the run is
// assumed, and the verdict states so. DeepSpeed's tutorials advise 15 to 25 %.
//
// 1-bit optimizers reject ZeRO. For a run with ZeRO the advice states whether compression without
// ZeRO would be faster, if it fits. It also states the gain of the plain optimizer without ZeRO,
// since that gain is not due to compression. Tables of backends and exchanges are relative to the
// run with ZeRO, as their heading states; verdicts are of compression alone.
//
// Likewise, Adafactor, CAME, GaLore, LARS and DistributedLamb have no 1-bit form. They are compared
// with the 1-bit optimizer of another family (LAMB's, else Adam's). A finding states this, and the
// effect of the change of optimizer alone.
//
// A run that does not fit in memory has no break-even and no price.
//
// Other compressed exchanges that the plain optimizer can run are listed too (exchange_advice.h).
//
// The kernels decide the verdict as often as the network does. If the question names none,
// DeepSpeed's kernels are judged, and the fused ones of kernels/ in addition.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/advise/exchange_advice.h"
#include "experiments/scenario/scenario.h"
#include "experiments/verdict/verdict.h"
#include "models/training/run/compressed_share.h"
#include "models/training/run/forecast.h"

namespace lambcast {

struct BackendAdvice {
  std::string backend;  // "nccl", "mpi (host-staged)", "mpi (cuda_aware)", "compressed"
  double time_s = 0;
  RatioInterval speedup;
  Bytes peak;
  bool fits = false;
  WhatIf asked;       // the question with this backend
  Forecast forecast;  // of it, against the baseline of all
};

// NIC bandwidth at which the run takes equally long with and without compression. `low`, `high`:
// bandwidths at which that end of the speed-up is 1. Absent: not between 100 Mbit/s and 10 Tbit/s.
struct BreakEven {
  std::optional<Bandwidth> at, low, high;
  bool pays_above = false;             // else below
  bool pays_at_any_bandwidth = false;  // meaningful only if a search found no break-even
  // The same for the ends of the speed-up.
  bool low_pays_above = false, low_pays_at_any = false, high_pays_at_any = false;
  // Above it NCCL's TCP streams limit the plain run (stream_limit.h).
  std::optional<Bandwidth> streams;
  // Above it the path from one GPU to its NICs limits the plain run (nic_limit.h).
  std::optional<Bandwidth> gpu_way;
};

// The plain run that differs from the compressed one in compression alone. Set if the question is
// about another plain run: one with ZeRO, or an optimizer that has no 1-bit form.
struct PlainStep {
  std::string name;           // "adam without ZeRO"
  RatioInterval speedup;      // over the plain run of the question
  RatioInterval compression;  // of the compressed run over this one
  bool fits = false;
};

// The answer with one implementation of the kernels.
struct Answer {
  Scenario scenario;    // with the 1-bit optimizer and the recommended backend
  std::string against;  // the plain run, which has the same kernels if it is named
  // The recommended backend first, then fastest first. It is the simplest one that may be fastest.
  std::vector<BackendAdvice> backends;
  // Backends that cannot do it, by reason: "DeepSpeed's mpi backend exchanges over all ranks, ...".
  std::map<std::string, std::vector<std::string>> refused;
  PartTimes change;  // of the mean step, more (or, negative, less) than the plain optimizer's
  double compressed_share = 0;          // of the steps, silent ones included
  std::string why_not_judged;           // empty for a run that is judged
  std::optional<BreakEven> break_even;  // for the backend to take; nothing on one node
  std::optional<double> cost_usd;
  std::optional<PlainStep> plain;  // if the question is about another plain run

  // Judges compression alone: what another change gains first is not its merit.
  Verdict verdict() const;
  bool plain_gains() const { return plain && plain->fits && plain->speedup.value > 1; }
  const RatioInterval& merit() const { return plain_gains() ? plain->compression : speedup(); }
  const RatioInterval& speedup() const { return backends.front().speedup; }
  const Forecast& forecast() const { return backends.front().forecast; }
};

// The plain optimizer without ZeRO, against the run with it.
struct WithoutZero {
  double time_s = 0;
  RatioInterval speedup;
  Bytes peak;
  bool fits = false;
};

struct Advice {
  Answer answer;                // with the kernels of the question, else with DeepSpeed's
  std::optional<Answer> fused;  // set if the question names no kernels
  std::vector<ExchangeAdvice> exchanges;
  std::vector<Finding> findings;  // of the answer, those of judge() included
  bool warmup_assumed = false;
  std::string optimizer, baseline;  // of a run with ZeRO: "onebit_adam without ZeRO"
  Bytes baseline_peak;
  double baseline_time_s = 0, baseline_time_low_s = 0, baseline_time_high_s = 0;
  double exposed_share = 0;  // of the plain step
  double most_speedup = 1;   // bound for any compression
  std::optional<double> baseline_cost_usd;
  std::optional<WithoutZero> without_zero;  // of a run that shards states
  std::string plain_optimizer;              // without what it runs with: "adam"
  // Baseline of the 1-bit optimizer, if the optimizer of the question has no 1-bit form: "adam".
  std::optional<std::string> family;

  // Returns whether the run warms up and compresses often enough to be judged.
  bool judged() const { return answer.why_not_judged.empty(); }
};

inline constexpr const char* assumed_warmup = "20%";

// A plain optimizer in `what_if` is replaced by its 1-bit form. Throws Error (usage) as resolve()
// does.
Advice advise(const WhatIf& what_if, Catalog& catalog);

}  // namespace lambcast
