// Fuzzes files of `collective --jobs`; a few small jobs are also forecast.
#include "sim/base/fuzz_target.h"
#include "topologies/collective_jobs.h"

FUZZ_TARGET(jobs, text) {
  using namespace lambcast;
  static const Cluster cluster = load_cluster("h200-ndr", {});
  const std::vector<CollectiveJob> jobs = decode_jobs(Table::parse(text, "jobs.toml"), cluster);
  for (const CollectiveJob& job : jobs)
    if (jobs.size() > 4 || job.group.ranks > 32 || job.times > 3 ||
        job.place.node + job.group.node_span() > 64)
      return;
  for (const JobForecast& job : forecast_jobs(cluster, jobs, Backend::nccl, false))
    if (job.together.ps() < 0 || job.alone.ps() < 0)
      throw std::logic_error("a job before its start");
}
