// Runs the priced operations of a step: when each begins and ends.
//
// In streams: each rank class computes on one stream and communicates on another, an operation
// starts when its stream is free and all that it waits for has ended, and collectives last as long
// as they do alone on the network, unless stages meet on a node's NICs (nic_sharing.h).
// shared_step.h has the other form, in which all collectives meet on the network.
//
// There is one communication stream, not one per kind of wire. Messages of tensor, context,
// pipeline and expert parallelism are parts of passes (pass_price.h). Engines enqueue the rest
// (gradients, weights and norms) one behind the other, mostly over the same NICs. Left out: a call
// within nodes that overlaps one between them, and would end earlier than forecast.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "models/training/price/price.h"
#include "sim/engine/engine.h"

namespace lambcast {

// A smaller job that is like one too large for a shared network, and how many times as long its
// step is there as in streams. No GPUs: none is small enough.
struct StandIn {
  int gpus = 0;
  double growth = 1;
};

struct Execution {
  TaskGraph graph;  // a task for each operation, of the same number
  Timeline timeline;
  Interval interval;  // of the step
  // Programs on a shared network or shared NICs; empty if nothing is shared.
  std::vector<std::shared_ptr<const CommProgram>> programs;
  // Additional wait of each segment of passes for other stages beyond its price, because theirs are
  // longer on a shared network (shared_step.h). By operation; empty in streams.
  std::vector<Duration> waits;
  std::optional<StandIn> stand_in;  // in streams although a shared network was requested
};

Execution execute(const StepPlan& plan, const std::vector<Price>& prices,
                  Intervals intervals = Intervals::found);

// The operations on the streams of their rank classes, each with its program if it has one, else as
// long as its price is at that end and it waits longer.
TaskGraph graph_of(const StepPlan& plan, const std::vector<Price>& prices, End end,
                   const std::vector<std::shared_ptr<const CommProgram>>& programs = {},
                   const std::vector<Duration>& waits = {});

// Finds the timeline of the expected times, last, and the interval from the runs at the ends. None
// ends before `least`.
void run_at_ends(Execution& execution, Intervals intervals, Duration least,
                 const std::function<Timeline(End)>& run_at);

// Whether each operation begins when the one before it ends, so that nothing overlaps.
bool in_a_row(const Timeline& timeline);

}  // namespace lambcast
