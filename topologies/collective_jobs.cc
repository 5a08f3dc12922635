#include "topologies/collective_jobs.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/engine/engine.h"
#include "sim/engine/fold.h"
#include "topologies/collective_forecast.h"

namespace lambcast {
namespace {

constexpr int max_jobs = 4096;
constexpr int max_ranks = 65536;

CollectiveJob decode_job(const Table& table, const Cluster& cluster, std::size_t number) {
  const int gpus = cluster.gpus_per_node;
  const auto whole = [&](const char* key, int low, int high, int otherwise) {
    return table.has(key) ? static_cast<int>(table.integer(key, low, high)) : otherwise;
  };
  CollectiveJob job;
  job.name = table.get_or<std::string>("name", fmt::format("{}", number));
  job.op = static_cast<Op>(table.choice("op", op_names()));
  job.size = table.get<Bytes>("size");
  if (job.size.value() < 1) fail_input(table.where("size"), "a collective needs at least one byte");
  ProcessGroup& group = job.group;
  group.ranks = whole("gpus", 1, max_ranks, 0);
  if (group.ranks == 0) fail_input(table.where("gpus"), "is missing");
  group.stride = whole("stride", 1, gpus, 1);
  group.siblings = whole("siblings", 1, gpus, 1);
  const int room = std::max(1, gpus / group.slots());
  group.per_node = std::min(group.ranks, whole("gpus_per_node", 1, room, room));
  group.node_stride = whole("node_stride", 1, max_ranks / group.nodes(), 1);
  job.place.slot = whole("first_gpu", 0, gpus - 1, 0);
  const int last = job.place.slot + group.slot_of(group.per_node - 1, group.siblings - 1);
  if (last >= gpus)
    fail_input(table.where(), fmt::format("the job uses GPU {} of a node", last),
               fmt::format("0 to {}", gpus - 1));
  job.place.node = whole("first_node", 0, max_ranks - group.node_span(), 0);
  job.start = table.get_or<Duration>("start", Duration());
  job.times = whole("times", 1, 100'000, 1);
  job.algorithm = table.get_or<std::string>("algorithm", "");
  job.protocol = table.get_or<std::string>("protocol", "");
  return job;
}

// Task graph with the repetitions of every job in sequence, and the last task of each job.
struct Queue {
  TaskGraph graph;
  std::vector<TaskId> last;

  void add(const CollectiveJob& job, const CommProgram* program, Duration start) {
    const ResourceId stream = graph.add_resource(job.name);
    TaskId before = graph.add_compute(job.name, Category::bubble, stream, start);
    for (int i = 0; i < job.times; ++i)
      before =
          graph.add_communication(job.name, Category::gradient_comm, stream, program, {before});
    last.push_back(before);
  }
  std::vector<Span> run_on(const Topology& topology) const {
    const Timeline timeline = run(graph, *make_network(NetworkModel::flow, topology));
    std::vector<Span> ends;
    for (const TaskId task : last) ends.push_back(timeline.spans[task]);
    return ends;
  }
};

FoldedPrograms programs_together(const std::vector<Collective>& planned, bool expand) {
  FoldedPrograms programs{planned.front().topology, {}};
  for (const Collective& collective : planned) programs.programs.push_back(collective.program);
  return expand || planned.size() == 1 ? programs : fold(programs.programs, programs.topology);
}

CalibratedInterval interval_of_job(const Cluster& cluster, Backend backend,
                                   const CollectiveJob& job, const Collective& planned,
                                   const JobForecast& forecast) {
  ProcessGroup group = job.group;
  if (forecast.together > forecast.alone) ++group.siblings;  // counts as a group with a sibling
  return interval_of(
      cluster, backend, job.op, job.size, group, forecast.together,
      {planned.chosen, forecast.protocol, {}, planned.traffic.network_sent_per_node});
}

}  // namespace

std::vector<CollectiveJob> decode_jobs(const Table& root, const Cluster& cluster) {
  std::vector<CollectiveJob> jobs;
  for (const Table& table : root.tables("jobs"))
    jobs.push_back(decode_job(table, cluster, jobs.size()));
  root.finish();
  if (jobs.empty() || jobs.size() > max_jobs)
    fail_input(root.where("jobs"), fmt::format("{} jobs", jobs.size()),
               fmt::format("1 to {}", max_jobs));
  return jobs;
}

std::vector<JobForecast> forecast_jobs(const Cluster& cluster,
                                       const std::vector<CollectiveJob>& jobs, Backend backend,
                                       bool expand) {
  const LibrarySpec& library = library_of(cluster, backend);
  int nodes = 1;
  for (const CollectiveJob& job : jobs)
    nodes = std::max(nodes, job.place.node + job.group.node_span());
  const int gpus = cluster.gpus_per_node;
  Machines machines = machines_of(cluster, backend, {nodes * gpus, gpus});
  const Transport transport = transport_of(cluster, backend);
  std::vector<JobForecast> forecasts;
  std::vector<Collective> planned;
  Queue together;
  for (const CollectiveJob& job : jobs) {
    CollectiveRequest request{job.op,        job.size,     job.group, library.rules,
                              job.algorithm, job.protocol, expand};
    if (request.algorithm.empty()) request.algorithm = forced_algorithm(library, job.op, job.group);
    request.beside = job.place;
    planned.push_back(plan_collective(request, machines, transport));
    Queue alone;
    alone.add(job, planned.back().program.get(), Duration());
    const Span span = alone.run_on(*planned.back().topology).front();
    forecasts.push_back(
        {planned.back().algorithm, planned.back().protocol, span.end.since_start(), Duration()});
  }
  const FoldedPrograms folded = programs_together(planned, expand);
  for (std::size_t i = 0; i < jobs.size(); ++i)
    together.add(jobs[i], folded.programs[i].get(), jobs[i].start);
  const std::vector<Span> spans = together.run_on(*folded.topology);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    JobForecast& job = forecasts[i];
    job.together = spans[i].end.since_start() - jobs[i].start;
    job.interval = interval_of_job(cluster, backend, jobs[i], planned[i], job);
  }
  return forecasts;
}

}  // namespace lambcast
