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
  WhatIf asked;       // the question with this backend set
  Forecast forecast;  // the forecast, relative to the baseline of all backends
};

// NIC bandwidth at which the run takes equally long with and without compression. `low`, `high`:
// bandwidths at which the low or the high end of the speed-up's interval is 1. Each is absent if it
// is not between 100 Mbit/s and 10 Tbit/s.
struct BreakEven {
  std::optional<Bandwidth> at, low, high;
  bool pays_above = false;             // false: compression pays below `at`
  bool pays_at_any_bandwidth = false;  // meaningful only if a search found no break-even
  // The same two flags for the low and the high end of the speed-up's interval.
  bool low_pays_above = false, low_pays_at_any = false, high_pays_at_any = false;
  // NIC bandwidth above which NCCL's TCP streams limit the plain run (stream_limit.h).
  std::optional<Bandwidth> streams;
  // NIC bandwidth above which the path from one GPU to its NICs limits the plain run (nic_limit.h).
  std::optional<Bandwidth> gpu_way;
};

// The plain run that differs from the compressed one only in compression. Set if the question is
// about another plain run: one with ZeRO, or with an optimizer that has no 1-bit form.
struct PlainStep {
  std::string name;           // "adam without ZeRO"
  RatioInterval speedup;      // relative to the plain run of the question
  RatioInterval compression;  // speed-up of the compressed run relative to this one
  bool fits = false;
};

// Answer to the question with one implementation of the kernels.
struct Answer {
  Scenario scenario;    // with the 1-bit optimizer and the recommended backend
  std::string against;  // name of the plain run; it uses the same kernels if they are named
  // The recommended backend comes first, then the others, fastest first. The recommended one is the
  // simplest that may be the fastest.
  std::vector<BackendAdvice> backends;
  // Backends that cannot run the question, by reason: "DeepSpeed's mpi backend exchanges over all
  // ranks, ...".
  std::map<std::string, std::vector<std::string>> refused;
  PartTimes change;  // change of the mean step relative to the plain optimizer (negative: shorter)
  double compressed_share = 0;          // share of the steps that compress, silent steps included
  std::string why_not_judged;           // empty for a run that is judged
  std::optional<BreakEven> break_even;  // for the recommended backend; absent on one node
  std::optional<double> cost_usd;
  std::optional<PlainStep> plain;  // if the question is about another plain run

  // Returns the verdict on compression only, without the gain of any other change.
  Verdict verdict() const;
  bool plain_gains() const { return plain && plain->fits && plain->speedup.value > 1; }
  const RatioInterval& merit() const { return plain_gains() ? plain->compression : speedup(); }
  const RatioInterval& speedup() const { return backends.front().speedup; }
  const Forecast& forecast() const { return backends.front().forecast; }
};

// The plain optimizer without ZeRO, compared with the run with ZeRO.
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
  std::vector<Finding> findings;  // findings of the answer, including those of judge()
  bool warmup_assumed = false;
  std::string optimizer, baseline;  // names, such as "onebit_adam without ZeRO"
  Bytes baseline_peak;
  double baseline_time_s = 0, baseline_time_low_s = 0, baseline_time_high_s = 0;
  double exposed_share = 0;  // exposed communication as a share of the plain step
  double most_speedup = 1;   // upper bound for any compression
  std::optional<double> baseline_cost_usd;
  std::optional<WithoutZero> without_zero;  // set if the run shards its states
  std::string plain_optimizer;              // only the name of the optimizer: "adam"
  // Baseline of the 1-bit optimizer, if the optimizer of the question has no 1-bit form: "adam".
  std::optional<std::string> family;

  // Returns whether the run warms up and compresses often enough to be judged.
  bool judged() const { return answer.why_not_judged.empty(); }
};

inline constexpr const char* assumed_warmup = "20%";

// Advises on a question. Replaces a plain optimizer by its 1-bit form. Throws Error (usage) as
// resolve() does.
Advice advise(const WhatIf& what_if, Catalog& catalog);

}  // namespace lambcast
