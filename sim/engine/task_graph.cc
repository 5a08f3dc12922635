#include "sim/engine/task_graph.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/check.h"

namespace lambcast {

Duration exposed(Duration latency, double hidden, Duration transfer) {
  if (hidden == 0) return latency;
  const double cover = transfer.s() * hidden;
  return Duration::seconds(std::max(0.0, std::hypot(cover, latency.s()) - cover));
}

std::string_view name_of(Category category) {
  constexpr std::string_view names[] = {"forward",    "backward",  "gradient_comm", "compress",
                                        "decompress", "optimizer", "bubble"};
  return names[static_cast<std::size_t>(category)];
}

void TaskGraph::reserve(std::size_t tasks) {
  tasks_.reserve(tasks);
  successors_.reserve(tasks);
  predecessors_.reserve(tasks);
}

ResourceId TaskGraph::add_resource(std::string name) {
  resources_.push_back(std::move(name));
  return static_cast<ResourceId>(resources_.size() - 1);
}

TaskId TaskGraph::add_compute(std::string name, Category category, ResourceId resource,
                              Duration duration, const std::vector<TaskId>& after) {
  LAMBCAST_CHECK(duration.ps() >= 0, "task '{}' takes {} ps", name, duration.ps());
  return add({std::move(name), category, resource, duration, nullptr}, after);
}

void TaskGraph::set_duration(TaskId task, Duration duration) {
  LAMBCAST_CHECK(duration.ps() >= 0, "task '{}' takes {} ps", tasks_[task].name, duration.ps());
  tasks_[task].duration = duration;
}

TaskId TaskGraph::add_communication(std::string name, Category category, ResourceId resource,
                                    const CommProgram* program, const std::vector<TaskId>& after) {
  LAMBCAST_CHECK(program != nullptr, "task '{}' has no program", name);
  return add({std::move(name), category, resource, Duration(), program}, after);
}

TaskId TaskGraph::add(Task task, const std::vector<TaskId>& after) {
  LAMBCAST_CHECK(task.resource < resources_.size(), "task '{}' has no resource", task.name);
  const auto id = static_cast<TaskId>(tasks_.size());
  tasks_.push_back(std::move(task));
  successors_.emplace_back();
  predecessors_.push_back(0);
  for (const TaskId before : after) add_dependency(before, id);
  return id;
}

void TaskGraph::add_dependency(TaskId before, TaskId after) {
  LAMBCAST_CHECK(before < tasks_.size() && after < tasks_.size(), "no such task: {} -> {}", before,
                 after);
  successors_[before].push_back(after);
  ++predecessors_[after];
}

}  // namespace lambcast
