// Executes the priced operations of a step, which gives their begins and ends.
//
// In streams: each rank class computes on one stream and communicates on another. An operation
// starts when its stream is free and all operations that it waits for have ended. Collectives take
// their time without contention, unless stages share a node's NICs (nic_sharing.h). shared_step.h
// has the other form, in which all collectives share the network.
//
// There is one communication stream, not one per kind of wire. Messages of tensor, context,
// pipeline and expert parallelism are parts of passes (pass_price.h). Engines enqueue the other
// collectives (gradients, weights and norms) one after another, mostly over the same NICs. Not
// modelled: a call within nodes that overlaps a call between nodes would end earlier than forecast.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "models/training/price/price.h"
#include "sim/engine/engine.h"

namespace lambcast {

// A smaller job that replaces one too large for the shared network. `growth` is the time of its
// step on the shared network divided by its time in streams. `gpus` is 0 if no job is small enough.
struct StandIn {
  int gpus = 0;
  double growth = 1;
};

struct Execution {
  TaskGraph graph;  // one task for each operation, with the same number
  Timeline timeline;
  Interval interval;  // interval of the step
  // Programs on a shared network or shared NICs; empty if nothing is shared.
  std::vector<std::shared_ptr<const CommProgram>> programs;
  // Additional wait of each segment of passes beyond its price, because passes of other stages are
  // longer on a shared network (shared_step.h). By operation; empty in streams.
  std::vector<Duration> waits;
  std::optional<StandIn> stand_in;  // set if streams replace a requested shared network
};

Execution execute(const StepPlan& plan, const std::vector<Price>& prices,
                  Intervals intervals = Intervals::found);

// Returns the operations on the streams of their rank classes. An operation has its program if
// there is one; otherwise it takes its price at that end plus its wait.
TaskGraph graph_of(const StepPlan& plan, const std::vector<Price>& prices, End end,
                   const std::vector<std::shared_ptr<const CommProgram>>& programs = {},
                   const std::vector<Duration>& waits = {});

// Returns the time of a step in which each operation takes its price: no network model has a
// shorter one.
Duration time_without_contention(const StepPlan& plan, const std::vector<Price>& prices);

// A step in streams that runs several times, with other times of some operations.
class StepInStreams {
 public:
  StepInStreams(const StepPlan& plan, std::vector<Price> prices);
  // Changes the expected time of an operation.
  void set(OpId op, Duration time);
  // Returns the time of the step.
  Duration lasts() const;

 private:
  const StepPlan& plan_;
  std::vector<Price> prices_;
  std::optional<TaskGraph> graph_;  // absent if stages share a node's NICs
  Duration least_;
};

// Runs the step with expected times, as the last run, and sets its timeline; finds the interval
// from the runs at the ends. No end is before `least`.
void run_at_ends(Execution& execution, Intervals intervals, Duration least,
                 const std::function<Timeline(End)>& run_at);

// Whether each operation begins when the previous one ends, so that nothing overlaps.
bool in_a_row(const Timeline& timeline);

}  // namespace lambcast
