// Runs the measurement in one thread: a process of a launcher, the only process for all GPUs, or
// one of several threads that share a GPU.
#pragma once

#include <functional>
#include <ostream>

#include "validate/measure/gpu.h"
#include "validate/measure/options.h"
#include "validate/measure/rendezvous.h"
#include "validate/measure/report.h"
#include "validate/measure/survey.h"

namespace lambcast::validate {

struct LocalRanks {
  const cuda::NcclApi& nccl;
  std::vector<int> devices;  // one per rank
  int first_rank = 0;
  int ranks = 0;                    // of all threads
  bool hosts_of_their_own = false;  // whether claim_host() was called for them
};

// Connects the ranks, measures all sizes and returns the exit code. `head` has the facts about the
// table that are not determined here; the ranks' places come from `others`. Rank 0 writes to `out`.
int measure_ranks(MeasuredTable head, const LocalRanks& local, Rendezvous& others,
                  std::ostream& out);

// Captures what `enqueue` enqueues on the streams of `gpus`, which must be idle, in CUDA graphs, as
// -G of nccl-tests does; nothing runs yet. Returns a function that enqueues the captured work;
// `gpus` must outlive it. Both throw Error{Exit::failure} naming the call that failed.
std::function<void()> captured_work(const Gpus& gpus, const std::function<void()>& enqueue);

// Times the steps of nccl_steps.h on `weights` weights. Rank 0 writes CSV to `out`: optimizer,
// exchange, gradient, weights, ranks, step_us. If a GPU has too little memory, the CSV has only a
// comment and the header.
void measure_steps(const MeasureOptions& options, std::uint64_t weights, const LocalRanks& local,
                   Rendezvous& others, std::ostream& out);

// Returns the places of all ranks; all threads call it. Throws Error (failure) if they do not hold
// `local.ranks` ranks together.
std::vector<RankPlace> gather_places(Rendezvous& others, const LocalRanks& local);

// Returns the ranks of a survey. For each table, its processes connect anew at the port after that
// of `launch`, with a token that the first process generates; the other processes wait.
std::unique_ptr<SurveyedRanks> surveyed_nccl_ranks(const MeasuredTable& head,
                                                   const LocalRanks& local, const Launch& launch);

}  // namespace lambcast::validate
