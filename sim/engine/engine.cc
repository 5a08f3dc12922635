#include "sim/engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "sim/base/check.h"
#include "sim/engine/event_queue.h"
#include "sim/network/effort.h"

namespace lambcast {
namespace {

// State of one run. Events in the queue are the ends of compute tasks and of latencies between
// rounds; the network reports the ends of flows.
class Run {
 public:
  Run(const TaskGraph& graph, Network& network)
      : graph_(graph),
        network_(network),
        waiting_for_(graph.tasks().size()),
        rounds_(graph.tasks().size()),
        resources_(graph.resources().size()) {
    timeline_.spans.resize(graph.tasks().size());
    for (TaskId task = 0; task < waiting_for_.size(); ++task) {
      waiting_for_[task] = graph.predecessors(task);
      if (waiting_for_[task] == 0) make_ready(task);
    }
  }

  Timeline finish() {
    while (true) {
      const auto flow_end = network_.next_event();
      if (queue_.empty() && !flow_end) break;
      ++timeline_.events;
      // Ends of flows come first at an instant, so that a task starting then sees a free network.
      if (flow_end && (queue_.empty() || *flow_end <= queue_.next())) {
        now_ = *flow_end;
        finished_.clear();
        network_.advance(now_, finished_);
        for (const Ticket ticket : finished_) end_flows(ticket);
      } else {
        now_ = queue_.next();
        const TaskId task = queue_.pop();
        if (graph_.tasks()[task].program != nullptr)
          next_round(task);
        else
          end_task(task);
      }
    }
    if (ended_ < waiting_for_.size()) fail_stuck();
    timeline_.end = now_;
    effort().events += static_cast<std::int64_t>(timeline_.events);
    return std::move(timeline_);
  }

 private:
  struct Resource {
    bool busy = false;
    std::deque<TaskId> ready;
  };
  struct Rounds {
    std::size_t phase = 0;
    std::int64_t done = 0;
    SimTime began;  // start of the flows in flight
  };

  void make_ready(TaskId task) {
    Resource& resource = resources_[graph_.tasks()[task].resource];
    if (resource.busy) {
      resource.ready.push_back(task);
      return;
    }
    resource.busy = true;
    start(task);
  }

  void start(TaskId id) {
    const Task& task = graph_.tasks()[id];
    timeline_.spans[id].begin = now_;
    const Duration first = task.program != nullptr ? task.program->fixed : task.duration;
    queue_.push(now_ + first, 0, id);
  }

  void next_round(TaskId id) {
    const CommProgram& program = *graph_.tasks()[id].program;
    Rounds& at = rounds_[id];
    if (at.phase == program.phases.size()) {
      end_task(id);
      return;
    }
    const CommPhase& phase = program.phases[at.phase];
    at.began = now_;
    effort().flows += static_cast<std::int64_t>(phase.flows->size());
    network_.start(id, *phase.flows, program.expand ? 1 : phase.times, now_);
  }

  void end_flows(TaskId id) {
    const CommProgram& program = *graph_.tasks()[id].program;
    Rounds& at = rounds_[id];
    const CommPhase& phase = program.phases[at.phase];
    const std::int64_t times = program.expand ? 1 : phase.times;
    const Duration latency = exposed(phase.latency * times, phase.hidden, now_ - at.began);
    at.done += times;
    if (at.done == phase.times) at = {at.phase + 1, 0, now_};
    if (latency.ps() == 0)
      next_round(id);
    else
      queue_.push(now_ + latency, 0, id);
  }

  void end_task(TaskId id) {
    timeline_.spans[id].end = now_;
    ++ended_;
    for (const TaskId next : graph_.successors(id)) {
      if (--waiting_for_[next] == 0) make_ready(next);
    }
    Resource& resource = resources_[graph_.tasks()[id].resource];
    resource.busy = false;
    if (resource.ready.empty()) return;
    const TaskId next = resource.ready.front();
    resource.ready.pop_front();
    resource.busy = true;
    start(next);
  }

  [[noreturn]] void fail_stuck() const {
    std::string names;
    std::size_t stuck = 0;
    for (TaskId task = 0; task < waiting_for_.size(); ++task) {
      if (waiting_for_[task] == 0) continue;
      if (++stuck <= 5)
        names += fmt::format("{}'{}' (waits for {})", stuck > 1 ? ", " : "",
                             graph_.tasks()[task].name, waiting_for_[task]);
    }
    throw Error(Exit::failure,
                fmt::format("the simulation is stuck at {} with {} of {} tasks unfinished: {}{}",
                            to_text(now_.since_start()), waiting_for_.size() - ended_,
                            waiting_for_.size(), names, stuck > 5 ? ", ..." : ""));
  }

  const TaskGraph& graph_;
  Network& network_;
  SimTime now_;
  EventQueue<TaskId> queue_;
  std::vector<std::uint32_t> waiting_for_;
  std::vector<Rounds> rounds_;
  std::vector<Resource> resources_;
  std::vector<Ticket> finished_;
  std::size_t ended_ = 0;
  Timeline timeline_;
};

}  // namespace

Timeline run(const TaskGraph& graph, Network& network) { return Run(graph, network).finish(); }

Duration exposed_time(const TaskGraph& graph, const Timeline& timeline,
                      const std::vector<Category>& wanted, const std::vector<Category>& covering) {
  // Sweeps over the edges of all spans and counts the open spans of both kinds.
  struct Edge {
    SimTime at;
    int wanted, covering;
  };
  std::vector<Edge> edges;
  const auto contains = [](const std::vector<Category>& set, Category category) {
    return std::find(set.begin(), set.end(), category) != set.end();
  };
  for (TaskId task = 0; task < timeline.spans.size(); ++task) {
    const Category category = graph.tasks()[task].category;
    const int is_wanted = contains(wanted, category) ? 1 : 0;
    const int is_covering = contains(covering, category) ? 1 : 0;
    if (is_wanted + is_covering == 0) continue;
    edges.push_back({timeline.spans[task].begin, is_wanted, is_covering});
    edges.push_back({timeline.spans[task].end, -is_wanted, -is_covering});
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.at < b.at; });
  Duration exposed;
  int open_wanted = 0, open_covering = 0;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (i > 0 && open_wanted > 0 && open_covering == 0) exposed += edges[i].at - edges[i - 1].at;
    open_wanted += edges[i].wanted;
    open_covering += edges[i].covering;
  }
  return exposed;
}

}  // namespace lambcast
