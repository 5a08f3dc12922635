// Formats forecasts of collectives as a log of nccl-tests (which the nccl-tests importers can
// read), as JSON (schemas/collective.schema.json) and as CSV.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "topologies/collective_jobs.h"
#include "topologies/collective_rows.h"

namespace lambcast {

struct CollectiveAnswer {
  std::string op;  // as the user wrote it
  ProcessGroup group;
  Backend backend = Backend::nccl;
  double bus_factor = 1;  // busbw / algbw, as defined by nccl-tests
  std::vector<CollectiveRow> rows;
};

std::string collective_text(const CollectiveAnswer& answer, const Cluster& cluster);
// Formats the answer as a table of 80 columns with the interval of each time.
std::string collective_table(const CollectiveAnswer& answer, const Cluster& cluster);
std::string collective_json(const CollectiveAnswer& answer, const Cluster& cluster);
std::string collective_csv(const CollectiveAnswer& answer);

// Formats forecasts of jobs that run at the same time; `forecasts` are in the order of the jobs.
std::string jobs_text(std::span<const CollectiveJob> jobs, std::span<const JobForecast> forecasts,
                      const Cluster& cluster);
std::string jobs_json(std::span<const CollectiveJob> jobs, std::span<const JobForecast> forecasts,
                      const Cluster& cluster);
std::string jobs_csv(std::span<const CollectiveJob> jobs, std::span<const JobForecast> forecasts);

}  // namespace lambcast
