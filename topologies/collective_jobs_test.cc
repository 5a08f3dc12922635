#include "topologies/collective_jobs.h"

#include <catch2/catch.hpp>

#include "sim/base/error.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

Cluster cluster_of(const Overrides& overrides = {}) {
  Overrides all{{"nccl.Simple.base", "0 us"},
                {"nccl.Simple.local_hop", "0 us"},
                {"nccl.Simple.network_hop", "0 us"},
                {"nccl.nic_efficiency", "1"},
                {"nic.count", "1"},
                {"nic.bandwidth", "1 GB/s"}};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return load_cluster("h200-ndr", all);
}

// A ring with one GPU per node; several rings share the single NIC of each node.
CollectiveJob ring(int slot) {
  CollectiveJob job;
  job.name = "ring";
  job.size = Bytes(8e8);
  job.group = {4, 1, 8};
  job.place.slot = slot;
  job.algorithm = "ring";
  job.protocol = "Simple";
  return job;
}

TEST_CASE("jobs: jobs that share NICs divide their rate, others are not slowed") {
  const Cluster cluster = cluster_of();
  // A ring takes 2(n-1)/n S over 1 GB/s. Three jobs at one NIC take three times as long, also if
  // every round is an event.
  const double alone = 2 * 3. / 4 * 0.8;
  for (const bool expand : {false, true}) {
    for (const JobForecast& job :
         forecast_jobs(cluster, {ring(0), ring(1), ring(2)}, Backend::nccl, expand)) {
      CHECK(job.alone.s() == Approx(alone).epsilon(1e-4));
      CHECK(job.together.s() == Approx(3 * alone).epsilon(1e-4));
    }
  }
  CollectiveJob elsewhere = ring(0);
  elsewhere.place.node = 4;
  for (const JobForecast& job : forecast_jobs(cluster, {ring(0), elsewhere}, Backend::nccl, false))
    CHECK(job.together == job.alone);
}

TEST_CASE("jobs: a job has the interval of a single collective, unless it waits for another") {
  const Cluster cluster = load_cluster("perlmutter-a100", {});
  CollectiveJob job;
  job.size = Bytes(1 << 26);
  job.group = {8, 4};
  CollectiveJob elsewhere = job;
  elsewhere.place.node = 2;
  const auto apart = forecast_jobs(cluster, {job, elsewhere}, Backend::nccl, false);
  const CalibratedInterval single =
      interval_of(cluster, Backend::nccl, job.op, job.size, job.group, apart[0].together,
                  {apart[0].algorithm, apart[0].protocol});
  CHECK(single.ground != Ground::none);
  CHECK(apart[0].interval.ground == single.ground);
  CHECK(apart[0].interval.low == single.low);
  CHECK(apart[0].interval.high == single.high);
  const auto at_once = forecast_jobs(cluster, {job, job}, Backend::nccl, false);
  CHECK(at_once[0].interval.ground == Ground::none);
  CHECK(at_once[0].interval.high / at_once[0].together > single.high / apart[0].together);
}

TEST_CASE("jobs: a later job slows the earlier one only while both run") {
  // For 0.6 of its 1.2 s, the first job runs without the second. The other half takes twice as long
  // next to the second job, so the first job takes 0.6 + 1.2 s. The second one then has 0.6 s left:
  // 1.2 + 0.6 s from its start at 0.6 s.
  std::vector<CollectiveJob> jobs{ring(0), ring(1)};
  jobs[1].start = Duration::seconds(0.6);
  const auto forecasts = forecast_jobs(cluster_of(), jobs, Backend::nccl, false);
  CHECK(forecasts[0].together.s() == Approx(1.8).epsilon(1e-4));
  CHECK(forecasts[1].together.s() == Approx(1.8).epsilon(1e-4));
  // Two repetitions take twice as long.
  jobs = {ring(0)};
  jobs[0].times = 2;
  CHECK(forecast_jobs(cluster_of(), jobs, Backend::nccl, false)[0].together.s() ==
        Approx(2.4).epsilon(1e-4));
}

TEST_CASE("jobs: each sibling counts as a job") {
  std::vector<CollectiveJob> apart;
  for (int slot = 0; slot < 8; ++slot) apart.push_back(ring(slot));
  CollectiveJob joint = ring(0);
  joint.group.siblings = 8;
  const Duration together = forecast_jobs(cluster_of(), {joint}, Backend::nccl, true)[0].together;
  for (const JobForecast& job : forecast_jobs(cluster_of(), apart, Backend::nccl, true))
    CHECK(job.together.s() == Approx(together.s()).epsilon(1e-8));
}

TEST_CASE("jobs: a file is read, and errors in it are named") {
  const Cluster cluster = cluster_of();
  const auto read = [&](const std::string& text) {
    return decode_jobs(Table::parse(text, "jobs.toml"), cluster);
  };
  const auto jobs = read(
      "[[jobs]]\nop = \"all_gather\"\nsize = \"1 MiB\"\ngpus = 16\n"
      "[[jobs]]\nname = \"dp\"\nop = \"all_reduce\"\nsize = \"2 MB\"\ngpus = 4\nstride = 8\n"
      "first_gpu = 3\nfirst_node = 5\nstart = \"2 ms\"\ntimes = 3\n");
  REQUIRE(jobs.size() == 2);
  CHECK(jobs[0].name == "0");
  CHECK(jobs[0].group == ProcessGroup{16, 8});
  CHECK(jobs[1].name == "dp");
  CHECK(jobs[1].group == ProcessGroup{4, 1, 8});
  CHECK(jobs[1].place.node == 5);
  CHECK(jobs[1].place.slot == 3);
  CHECK(jobs[1].times == 3);
  CHECK_THROWS_WITH(read(""), Contains("0 jobs"));
  const std::string job = "[[jobs]]\nop = \"all_reduce\"\nsize = \"1 MB\"\n";
  CHECK_THROWS_WITH(read(job), Contains("gpus"));
  CHECK_THROWS_WITH(read(job + "gpus = 8\nfirst_gpu = 1\n"), Contains("GPU 8 of a node"));
  CHECK_THROWS_WITH(read(job + "gpus = 8\nsiblings = 9\n"), Contains("siblings"));
  CHECK_THROWS_WITH(read(job + "gpus = 8\ncolour = 1\n"), Contains("colour"));
}

}  // namespace
}  // namespace lambcast
