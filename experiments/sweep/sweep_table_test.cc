#include "experiments/sweep/sweep_table.h"

#include <catch2/catch.hpp>

#include "experiments/sweep/sweep.h"
#include "experiments/sweep/sweep_file.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

std::string table_of(WhatIf what_if, const std::vector<Axis>& axes) {
  for (const auto& [key, values] : axes) what_if.erase(key);
  const SweepPlan plan = plan_sweep(sweep_file(what_if, axes), "the test", {});
  Catalog catalog;
  CollectiveCosts costs;
  std::vector<std::string> rows;
  FindingTally findings;
  for (const WhatIf& point : plan.points) {
    const SweepRow row = sweep_row(point, catalog, costs);
    findings.add(rows.size(), row.findings);
    rows.push_back(row.text);
  }
  return sweep_table(plan, rows, findings);
}

const WhatIf onebit_sweep{
    {"model", "bert-large"}, {"cluster", "commodity-10gbe"}, {"gpus", "32"},
    {"micro_batch", "16"},   {"optimizer", "onebit_lamb"},   {"steps", "5993"},
    {"freeze_step", "1000"}};

WhatIf with_changes(WhatIf what_if, const WhatIf& changes) {
  for (const auto& [key, value] : changes) what_if.insert_or_assign(key, value);
  return what_if;
}

TEST_CASE("sweep table: runs of unequal samples are compared by the time for equal ones") {
  const std::string text = table_of(onebit_sweep, {{"global_batch", {"512", "65536"}}});
  // By run time a batch of 512 is faster, since it does a 128th of the work.
  CHECK_THAT(text, StartsWith("Fastest by global_batch: 65536, "));
  CHECK_THAT(text, Contains(" a million samples. The runs train on unequal numbers of samples"));
  const std::string equal =
      table_of(onebit_sweep, {{"gpus", {"16", "32"}}, {"global_batch", {"4096"}}});
  CHECK_THAT(equal, StartsWith("Fastest by gpus: 32, ") && !Contains("million"));
}

TEST_CASE("sweep table: points with unusual shares of warm-up are left out of the answer") {
  const std::string text =
      table_of(onebit_sweep, {{"freeze_step", {"0", "500", "800", "1000", "5900"}}});
  CHECK_THAT(text, StartsWith("Fastest by freeze_step: 800, "));
  CHECK_THAT(text, Contains("\nPays in all 2 points, most with freeze_step=800: "));
  CHECK_THAT(text, Contains("\nLeft out of these: 1 without warm-up") &&
                       Contains("; 1 that freeze in the first 10 % of their steps"));
  // Runs that freeze early are compared if no other run is.
  const std::string early = table_of(onebit_sweep, {{"freeze_step", {"0", "300", "500"}}});
  CHECK_THAT(early, StartsWith("Fastest by freeze_step: 300, "));
  CHECK_THAT(early, Contains("\nPays in all 2 points, most with freeze_step=300: ") &&
                        !Contains("that freeze in the first"));
}

TEST_CASE("sweep table: if a faster NIC makes a step longer, NCCL's choice is named") {
  const WhatIf run{{"model", "bert-large"}, {"cluster", "azure-ndv2"}, {"gpus", "16"},
                   {"optimizer", "lamb"},   {"micro_batch", "16"},     {"steps", "6000"}};
  const auto over = [&](const std::vector<std::string>& nics) {
    return table_of(run, {{"cluster.nic.bandwidth", nics}});
  };
  CHECK_THAT(
      over({"150Gbit/s", "90Gbit/s", "110Gbit/s"}),
      Contains("A step is longer on a faster NIC: ") &&
          Contains(" ms at cluster.nic.bandwidth=110Gbit/s, ") &&
          Contains(" ms at cluster.nic.bandwidth=150Gbit/s. Between them NCCL's own tuning tips"));
  CHECK_THAT(over({"25Gbit/s", "50Gbit/s"}), !Contains("longer on a faster NIC"));
}

TEST_CASE("sweep table: a key of the cluster is reported without effect if no point reads it") {
  const WhatIf run{{"model", "bert-large"},
                   {"cluster", "commodity-10gbe"},
                   {"optimizer", "lamb"},
                   {"micro_batch", "16"},
                   {"steps", "1000"}};
  const auto over = [&](const std::vector<std::string>& gpus) {
    return table_of(run, {{"gpus", gpus}, {"cluster.nic.bandwidth", {"1Gbit/s", "5Gbit/s"}}});
  };
  CHECK_THAT(over({"2", "4"}),
             Contains("all 4 points: --set cluster.nic.bandwidth: has no effect"));
  CHECK_THAT(over({"4", "8"}), !Contains("has no effect"));
}

TEST_CASE("sweep table: the shipped kernels are named if they change the answer") {
  const WhatIf slow = with_changes(onebit_sweep, {{"cluster", "dgx-a100-80g"}, {"gpus", "64"}});
  CHECK_THAT(table_of(slow, {{"micro_batch", {"16", "64"}}}),
             Contains("With the fused kernels that ship here (--kernels fused): "));
  CHECK_THAT(table_of(with_changes(slow, {{"kernels", "fused"}}), {{"micro_batch", {"16", "64"}}}),
             !Contains("that ship here"));
}

TEST_CASE("sweep table: a finding is listed once, with the number of points that it concerns") {
  const std::string text =
      table_of(with_changes(onebit_sweep, {{"optimizer", "lamb"}}),
               {{"cluster.nic.bandwidth", {"10Gbit/s", "100Gbit/s", "200Gbit/s"}}});
  CHECK_THAT(text, Contains("note: 2 of 3 points, first of cluster.nic.bandwidth=100Gbit/s: "));
  CHECK_THAT(text, StartsWith("Fastest by cluster.nic.bandwidth: 100Gbit/s, ") &&
                       Contains(" a run; 1 other takes as long."));
  const std::size_t first = text.find("[stream-limit]");
  REQUIRE(first != std::string::npos);
  CHECK(text.find("[stream-limit]", first + 1) == std::string::npos);
}

TEST_CASE("sweep table: if more GPUs suddenly take half the time, the table says so") {
  const WhatIf plain = with_changes(
      onebit_sweep, {{"cluster", "commodity-100gbe"}, {"optimizer", "lamb"}, {"grad_accum", "1"}});
  CHECK_THAT(table_of(plain, {{"gpus", {"512", "64", "256"}}}),
             Contains("A step is not monotone in GPUs: ") && Contains(" at 256, ") &&
                 Contains(" at 512."));
  CHECK_THAT(table_of(plain, {{"gpus", {"512", "640"}}}), !Contains("monotone"));
  CHECK_THAT(table_of(plain, {{"gpus", {"512", "64", "256"}}, {"micro_batch", {"8", "16"}}}),
             Contains(" at 512 (micro_batch=16)") && Contains(" at 512 (micro_batch=8)"));
}

TEST_CASE("sweep table: times and costs have their intervals") {
  const std::string text = table_of(with_changes(onebit_sweep, {{"cluster.usd_per_gpu_hour", "2"}}),
                                    {{"gpus", {"16", "32"}}, {"global_batch", {"4096"}}});
  CHECK_THAT(text,
             Catch::Matches("Fastest by gpus: 32, [0-9.]+ (min|h) \\([0-9.]+ to "
                            "[0-9.]+ (min|h)\\) a run\\.\nCheapest: gpus=[0-9]+, [0-9.]+ USD a run "
                            "\\([0-9.]+ to [0-9.]+\\)\\.\n[^]*"));
  CHECK_THAT(
      table_of(onebit_sweep, {{"gpus", {"16", "32"}}, {"global_batch", {"4096"}}}),
      Contains("\nCost: no price is known; --set cluster.usd_per_gpu_hour=USD gives one.\n"));
}

TEST_CASE("sweep table: each key that is varied has a column of its own, however wide they are") {
  const std::string text =
      table_of(onebit_sweep, {{"cluster", {"commodity-10gbe", "commodity-100gbe"}},
                              {"global_batch", {"4096", "8192"}},
                              {"cluster.nic.bandwidth", {"8Gbit/s", "9.25Gbit/s"}},
                              {"freeze_step", {"1000", "1200"}}});
  // Each column is as wide as its longest value or heading.
  CHECK_THAT(text,
             Contains("\ncluster          nic.bandwidth freeze_step global_batch       run ") &&
                 Contains("\ncommodity-100gbe 9.25Gbit/s    1200        8192         "));
  CHECK_THAT(text, StartsWith("Fastest: cluster=commodity-"));
  // An interval is dropped after the figures without one.
  const std::string wide = table_of(onebit_sweep, {{"cluster", {"commodity-10gbe", "aws-p4d"}},
                                                   {"exchange", {"onebit", "onebit / sharded"}}});
  CHECK_THAT(wide, Contains(" run ") && Contains(" within ") && !Contains("samples/s"));
  CHECK_THAT(text, Contains(" speed-up") && !Contains("\n    "));
}

}  // namespace
}  // namespace lambcast
