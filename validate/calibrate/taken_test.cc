// Tests the evidence claimed by a calibration: rows given twice add none, and algorithms that no
// row used have none.
#include "validate/calibrate/taken.h"

#include <catch2/catch.hpp>

#include "sim/base/file.h"
#include "validate/calibrate/calibrate.h"
#include "validate/calibrate/carried_table.h"

namespace lambcast::validate {
namespace {

using Catch::Matchers::Contains;

std::string base_of(const std::string& fabric) {
  return read_file(std::string(LAMBCAST_VALIDATE) + "/calibrate/bases/" + fabric + ".toml");
}

const char* const forced_rings = "allreduce_a100_2n16r_ibhdr1600_deepops.csv";

TEST_CASE("taken: a repeated row narrows nothing") {
  const Measurement once = carried("allreduce_v100_2n16r_ibedr100_azure.csv");
  Measurement often = once;
  for (int copy = 0; copy < 5; ++copy)
    often.rows.insert(often.rows.end(), once.rows.begin(), once.rows.end());
  const std::string base = base_of("azure-ndv2");
  const FitSummary of_once = calibrate(base, "azure-ndv2", std::vector{once});
  const FitSummary of_often = calibrate(base, "azure-ndv2", std::vector{often, often, once});
  CHECK(of_often.rows == of_once.rows);
  CHECK(of_often.calibration->bands == of_once.calibration->bands);
}

TEST_CASE("taken: a calibration names the algorithms of its rows, and trees keep their values") {
  const std::string base = base_of("dgx-a100-80g");
  const FitSummary summary = calibrate(base, "dgx-a100-80g", std::vector{carried(forced_rings)});
  REQUIRE(summary.calibration);
  for (const Calibration::Band& band : summary.calibration->bands)
    CHECK(band.algorithms == std::vector<std::string>{"ring"});
  const std::string text = calibrated_cluster(base, "dgx-a100-80g", "mine", summary, "a log");
  CHECK_THAT(text, Contains("algorithms = [\"ring\"]") && Contains("tree_network_hop"));
  const Cluster before = decode_cluster(Table::parse(base, "base"), "base");
  const Cluster after = decode_cluster(Table::parse(text, "mine"), "mine");
  CHECK(after.calibration->bands.front().algorithms == std::vector<std::string>{"ring"});
  CHECK(after.calibration->protocols == summary.calibration->protocols);
  for (std::size_t i = 0; i < before.nccl.protocols.size(); ++i)
    CHECK(after.nccl.protocols[i].tree_network_hop.value ==
          before.nccl.protocols[i].tree_network_hop.value);
}

TEST_CASE("taken: measured trees count as known, and rings if they were measured") {
  const Measurement table = carried("allreduce_gh200_2n8r_slingshot_cscs.csv");
  const Cluster cluster = decode_cluster(Table::parse(base_of("alps-gh200"), "alps"), "alps");
  const auto rows = taken_by(std::vector{table}, cluster, Backend::nccl);
  REQUIRE(rows.size() == table.rows.size());
  CHECK(algorithms_of(rows, 0, small_below) == std::vector<std::string>{"tree"});
  CHECK(taken_by(std::vector{table}, cluster, Backend::mpi_host).empty());
}

}  // namespace
}  // namespace lambcast::validate
