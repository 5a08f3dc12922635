// Does compression pay here? The question behind most what-ifs, answered in numbers: the 1-bit
// optimizer against its plain kin for every backend, the NIC bandwidth at which it stops paying,
// the most that any compression could win, and which part of a step wins or loses. advice_output.h
// puts it into words.
//
// With t the plain step and e the part of it in which communication is exposed, no compression can
// be faster than t / (t - e) (Amdahl). The break-even bandwidth is where the whole run takes as
// long either way; it is found by bisection over cluster.nic.bandwidth, and so are the bandwidths
// where either end of the speed-up's interval (models/training/run/error_source.h) is 1. The
// verdict is that of verdict.h.
//
// Who runs a plain optimizer has no freeze_step yet: then a warm-up of 20 % of the run is assumed,
// from the middle of the 15 to 25 % that DeepSpeed's tutorials advise, and the verdict says so.
// 1-bit optimizers refuse ZeRO. Who shards states with it is told whether compression without ZeRO
// would be faster, if it fits; and beside it what the plain optimizer without ZeRO does, since what
// leaving ZeRO wins is no merit of compression. Tables of backends and exchanges are against the
// run with ZeRO, and their heading says so; verdicts are of compression alone. Likewise, Adafactor,
// CAME, GaLore, LARS and DistributedLamb have no 1-bit form: whether the 1-bit optimizer of another
// family (LAMB's, else Adam's) is faster than they are is answered, and a finding says so and what
// the change of optimizer does by itself.
//
// A run that does not fit in memory has no break-even and no price.
//
// Other ways of sending less, which the plain optimizer can run, stand beside (exchange_advice.h).
//
// Whose kernels run decides as often as the network does. Where nobody chose them, DeepSpeed's are
// judged, and the fused ones of kernels/ beside them.
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

// The bandwidth of the NIC where the run takes as long with compression as without, and where the
// low and the high end of the speed-up say so. None: not between 100 Mbit/s and 10 Tbit/s.
struct BreakEven {
  std::optional<Bandwidth> at, low, high;
  bool pays_above = false;             // else below
  bool pays_at_any_bandwidth = false;  // meaningful where it was asked for, and there is none
  // The same of the ends of the speed-up.
  bool low_pays_above = false, low_pays_at_any = false, high_pays_at_any = false;
  // From it on NCCL's TCP streams are the limit of the plain run (stream_limit.h).
  std::optional<Bandwidth> streams;
  // From it on the way of one GPU to its NICs is (nic_limit.h).
  std::optional<Bandwidth> gpu_way;
};

// The plain run that differs from the compressed one in compression alone, of a question that asks
// about another plain run: one with ZeRO, or with an optimizer that has no 1-bit form.
struct PlainStep {
  std::string name;           // "adam without ZeRO"
  RatioInterval speedup;      // over the run that is asked about
  RatioInterval compression;  // of the compressed run over this one
  bool fits = false;
};

// The answer with one implementation of the kernels.
struct Answer {
  Scenario scenario;    // with the 1-bit optimizer and the backend to take
  std::string against;  // the plain run, which has the same kernels if it is named
  // The backend to take first, then fastest first. It is the simplest one that may be the fastest.
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
  Answer answer;                // with the kernels asked for, else with DeepSpeed's
  std::optional<Answer> fused;  // where nobody asked for kernels
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
  // The plain kin of the 1-bit optimizer, where the plain one has no 1-bit form: "adam".
  std::optional<std::string> family;

  // Whether the run warms up, and compresses often enough to say anything.
  bool judged() const { return answer.why_not_judged.empty(); }
};

inline constexpr const char* assumed_warmup = "20%";

// A plain optimizer in `what_if` is taken as the question about its 1-bit kin. Throws Error (usage)
// as resolve() does.
Advice advise(const WhatIf& what_if, Catalog& catalog);

}  // namespace lambcast
