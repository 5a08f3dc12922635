// Tasks that compute on a resource or communicate over the network, and the dependencies between
// them. Pure data; the engine executes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/network/network.h"

namespace lambcast {

using TaskId = std::uint32_t;
using ResourceId = std::uint32_t;

// Category of a task; StepMetrics sums spans by category.
enum class Category {
  forward,
  backward,
  gradient_comm,
  compress,
  decompress,
  optimizer,
  bubble,
};
std::string_view name_of(Category category);

// A phase of a collective: the flows of one round, then the latency before the next round may
// start, repeated `times` times in a row. If rounds overlap, the transfer hides a part of the
// latency: with c the share `hidden` of the time the flows took,
//
//   time = flows - c + sqrt(c^2 + latency^2)
//
// which is flows + latency without overlap (c = 0), and the longer of flows and (flows - c) +
// latency if one is much longer. If both are about equal, each stalls the other at times; the
// square root stands for these stalls.
struct CommPhase {
  std::shared_ptr<const FlowSet> flows;
  Duration latency;
  std::int64_t times = 1;
  double hidden = 0;  // 0 to 1
};

// Returns the exposed part of `latency` if the flows took `transfer`.
Duration exposed(Duration latency, double hidden, Duration transfer);

// The rounds of one collective, ready to run. `fixed` is paid once, before the first round. With
// `expand` every repetition is an event of its own; without it, a run of equal rounds is one event.
struct CommProgram {
  Duration fixed;
  std::vector<CommPhase> phases;
  bool expand = false;
};

struct Task {
  std::string name;
  Category category;
  ResourceId resource;
  Duration duration;                     // used by compute tasks
  const CommProgram* program = nullptr;  // used by communication tasks
};

class TaskGraph {
 public:
  void reserve(std::size_t tasks);
  // A resource executes one task at a time, in the order in which they become ready (then by id).
  ResourceId add_resource(std::string name);
  TaskId add_compute(std::string name, Category category, ResourceId resource, Duration duration,
                     const std::vector<TaskId>& after = {});
  // `program` must outlive the run.
  TaskId add_communication(std::string name, Category category, ResourceId resource,
                           const CommProgram* program, const std::vector<TaskId>& after = {});
  void add_dependency(TaskId before, TaskId after);
  // Changes the duration of a compute task, to run the same graph again with other times.
  void set_duration(TaskId task, Duration duration);

  const std::vector<Task>& tasks() const { return tasks_; }
  const std::vector<std::string>& resources() const { return resources_; }
  const std::vector<TaskId>& successors(TaskId task) const { return successors_[task]; }
  std::uint32_t predecessors(TaskId task) const { return predecessors_[task]; }

 private:
  TaskId add(Task task, const std::vector<TaskId>& after);
  std::vector<Task> tasks_;
  std::vector<std::string> resources_;
  std::vector<std::vector<TaskId>> successors_;
  std::vector<std::uint32_t> predecessors_;
};

}  // namespace lambcast
