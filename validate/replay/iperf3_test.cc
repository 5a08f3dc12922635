// Compares MPI with forecasts that use only two runs of iperf3 over the same network: connections
// of 20 Mbit/s on ports of 100 Mbit/s, measured by validate/emulated_ethernet/forecast-from-iperf3.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/base/file.h"
#include "sim/base/temporary_folder.h"
#include "validate/importers/importers.h"
#include "validate/replay/collective_replay.h"

namespace lambcast {
namespace {

validate::Measurement measured(const std::string& name) {
  const std::string path = std::string(LAMBCAST_CAPPED) + "/" + name;
  return validate::import_measurements(read_file(path), name).front();
}

TEST_CASE("iperf3 with one stream and with eight forecasts exchanges and rings of MPI") {
  const std::vector seen{measured("iperf3_1.json"), measured("iperf3_8.json")};
  const std::string base = cluster_text("emulated-ethernet-100mbit");
  const TemporaryFolder folder;
  const std::string file = folder.file(
      "fitted.toml", validate::calibrated_cluster(
                         base, "base", "fitted",
                         validate::calibrate(base, "base", seen, Backend::mpi_host), "iperf3"));
  std::vector<CollectiveCase> unseen;
  for (const char* name : {"all_reduce", "all_gather", "all_to_all_linear", "all_to_all_pairwise",
                           "compressed_allreduce"})
    unseen.push_back({name, file, false, measured(fmt::format("{}.csv", name)), {}});
  int rows = 0;
  for (const CollectiveResult& result : replay_collectives(unseen, {}).results) {
    for (std::size_t i = 0; i < result.forecast.size(); ++i) {
      const Duration time = result.of.measured.rows[i].time;
      INFO(result.of.name << " " << time.s() << " s");
      // Skips short times, in which latencies, which iperf3 does not measure, are a larger part.
      if (time.s() < 0.25) continue;
      ++rows;
      CHECK(std::abs(error_of(result, i)) <= 0.07);
      CHECK_FALSE(result.interval[i].calibrated);
    }
  }
  CHECK(rows == 14);
}

}  // namespace
}  // namespace lambcast
