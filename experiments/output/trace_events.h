// Slices on the threads of one process, and arrows between them, as events of the Trace Event
// Format (trace.h).
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/base/json.h"
#include "sim/base/units.h"

namespace lambcast {

// Kinds of threads of a rank class, in the order in which they are shown.
enum class Lane {
  compute,
  layers,
  collectives,
  communication,
  activations_sent,
  activations_received,
  gradients_sent,
  gradients_received
};

// A slice as drawn, with times from the start of the step.
struct Slice {
  std::string name;
  std::string category;
  std::size_t thread = 0;
  Duration begin, end;
  Json args;
};

class TraceEvents {
 public:
  // `classes`: number of rank classes. A single class is not named.
  TraceEvents(int process, const std::string& name, std::size_t classes, Json& events);

  // Returns a thread of a rank class; the first call names it.
  std::size_t thread(Lane lane, std::size_t rank_class);
  // Returns the thread of micro batches, which is shown first.
  std::size_t thread_of_micro_batches();

  // Returns the number of the slice, for arrows from and to it.
  int add(Slice slice);
  std::size_t thread_of(int slice) const {
    return slices_.at(static_cast<std::size_t>(slice)).thread;
  }
  // Returns the end of the last slice of a thread.
  Duration end_of(std::size_t thread) const { return ends_.at(thread); }

  // Draws an arrow that starts inside the slice `from` at its end, since viewers bind arrows to the
  // slice around them. Draws none if the slice `to` begins earlier: stages with independent times
  // all begin at 0.
  void arrow(int from, int to);

 private:
  void metadata(const char* what, std::size_t thread, Json args);
  void name_thread(std::size_t thread, const std::string& name);

  struct Drawn {
    std::size_t thread;
    Duration begin, end;
  };
  int process_;
  std::size_t classes_;
  Json& events_;
  std::map<std::size_t, Duration> ends_;  // end of the last slice of each named thread
  std::vector<Drawn> slices_;
  int arrows_ = 0;
};

}  // namespace lambcast
