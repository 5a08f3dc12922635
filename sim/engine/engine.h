// Executes a task graph on resources and a network and returns when each task began and ended.
//
// A task becomes ready when all its predecessors have ended and starts when its resource is free.
// The engine owns its clock and queue; nothing is static, so one engine per thread is safe.
//
// Throws Error (failure) naming the stuck tasks if tasks are left but no events: an unfinished
// simulation never counts as a success.
#pragma once

#include <vector>

#include "sim/engine/task_graph.h"
#include "sim/network/network.h"

namespace lambcast {

struct Span {
  SimTime begin;
  SimTime end;
};

struct Timeline {
  std::vector<Span> spans;  // indexed by TaskId
  SimTime end;
  std::uint64_t events = 0;
};

Timeline run(const TaskGraph& graph, Network& network);

// Returns the time during which a task of a `wanted` category runs and none of a `covering`
// category does: exposed communication is communication not covered by computation.
Duration exposed_time(const TaskGraph& graph, const Timeline& timeline,
                      const std::vector<Category>& wanted, const std::vector<Category>& covering);

}  // namespace lambcast
