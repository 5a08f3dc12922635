#include "experiments/sweep/sweep_check.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "experiments/scenario/invalid_value.h"
#include "experiments/sweep/sweep_case.h"
#include "models/device/device.h"
#include "sim/base/csv_reader.h"
#include "sim/base/temporary_folder.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

constexpr std::string_view sound = R"(
[base]
model = "bert-large"
cluster = "paper-eth40-v100"
optimizer = "onebit_lamb"
micro_batch = 16
steps = 100
freeze_step = "20%"
[grid]
gpus = [8, 16]
)";

void check(const std::vector<Axis>& axes, std::string_view text = sound) {
  Catalog catalog;
  check_values(plan(text, axes).points, catalog);
}

TEST_CASE("sweep check: a value that is invalid in every combination stops the sweep") {
  struct Row {
    const char *axis, *expected;
  };
  const Row rows[] = {
      {"freeze_step=20%,0.1",
       "--freeze-step: '0.1' is not a step; as a share of the run write 10%"},
      {"freeze_step=101%", "--freeze-step: '101%' is not a percentage"},
      {"rampup_batch_size=16:16", "--rampup-batch-size: '16:16' is not a ramp of the batch"},
      {"gpus=8,many", "--gpus: 'many' is not a whole number in range"},
      {"backend=nccl,ncl", "--backend: unknown value 'ncl', did you mean 'nccl'?"},
      {"cluster=paper-eth40-v100,paper-eth40", "unknown cluster 'paper-eth40'"},
      {"cluster=paper-eth40-v100,./absent.toml", "./absent.toml: cannot be read"},
      {"model=bert-lerge", "unknown model 'bert-lerge', did you mean 'bert-large'?"},
      {"device=v100-16g,absent.toml", "absent.toml: cannot be read"},
      {"config=absent.json", "absent.json: cannot be read"},
      {"cluster.nic.bandwidth=1Gbit/s,10", "nic.bandwidth: '10' has no unit"},
      {"cluster.nic.bandwith=1Gbit/s", "unknown key 'bandwith', did you mean 'bandwidth'?"},
      {"cluster.fabric.kind=fat_trea", "unknown value 'fat_trea'"},
      {"model.layers=0", "model.layers: 0 is out of range"},
  };
  for (const Row& row : rows) {
    INFO(row.axis);
    CHECK_THROWS_AS(check({parse_list(row.axis)}), InvalidValue);
    CHECK_THROWS_WITH(check({parse_list(row.axis)}), Contains(row.expected));
  }
  CHECK_THROWS_WITH(
      check({}, "[base]\nmodel = \"bert-large\""),
      Catch::StartsWith("--cluster, --gpus, --optimizer, --global-batch: missing; try: "));
}

TEST_CASE("sweep check: an invalid combination is reported in its row") {
  for (const char* axis : {"seq_len=128,1024", "gpus=8,65536", "global_batch=7",
                           "overlap=none,zero", "cluster=paper-eth40-v100,commodity-10gbe"}) {
    INFO(axis);
    CHECK_NOTHROW(check({parse_list(axis)}));
  }
  CHECK_NOTHROW(check(
      {parse_list("gpus_per_node=4,8"), parse_list("cluster=paper-eth40-v100,paper-edr100-v100")}));
  CHECK_THROWS_WITH(
      check({parse_list("gpus_per_node=4,8")}),
      Contains("--gpus-per-node: '8' is not a whole number in range (allowed: 1 to 4)"));
  // single-switch lacks the key, and fat-tree requires it.
  CHECK_NOTHROW(check({parse_list("cluster.fabric.kind=single-switch,fat-tree"),
                       parse_list("cluster.fabric.nodes_per_leaf=4")}));
  CHECK_THROWS_WITH(check({parse_list("cluster.fabric.nodes_per_leaf=4")}),
                    Contains("nodes_per_leaf"));
}

TEST_CASE("sweep check: a ramp that does not fit the batch of a point is the reason in its row") {
  const SweepPlan sweep =
      plan(sound, {parse_list("rampup_batch_size=128:256:1000"), parse_list("optimizer=lamb"),
                   parse_list("gpus=8"), parse_list("grad_accum=1,2,3")});
  const TemporaryFolder folder;
  run_sweep(sweep, {.out = folder.path()});
  csv::Reader rows = csv::Reader::of_file(folder.path() / "results.csv");
  const auto reason = [&] {
    REQUIRE(rows.next());
    return std::string(rows.text(rows.column("status")));
  };
  const std::string refused = "infeasible: --rampup-batch-size: ";
  CHECK(reason() == refused + "starts with 128 samples, and the batch is 128 (allowed: 1 to 127)");
  CHECK(reason() == refused + "128 to 256 samples are no whole number of increments of 256");
  CHECK(reason() == "ok");
}

TEST_CASE("sweep check: a sweep that cannot begin writes nothing") {
  const TemporaryFolder folder;
  const SweepPlan sweep = plan(sound, {parse_list("freeze_step=0.1")});
  CHECK_THROWS_AS(run_sweep(sweep, {.out = folder.path() / "out"}), InvalidValue);
  CHECK_FALSE(std::filesystem::exists(folder.path() / "out"));
}

TEST_CASE("sweep check: every file is read once, before the first row") {
  const TemporaryFolder folder;
  const std::string cluster = folder.file("mine.toml", cluster_text("paper-eth40-v100"));
  const SweepPlan sweep =
      plan(fmt::format("[base]\ncluster = '{}'\nmodel = \"bert-base\"\noptimizer = \"lamb\"\n"
                       "micro_batch = 1\n[grid]\ngpus = \"1:64:1\"",
                       cluster));
  const RowOf row_of = [&](const WhatIf& point, Catalog& catalog, CollectiveCosts& costs) {
    std::filesystem::remove(cluster);
    return sweep_row(point, catalog, costs);
  };
  const SweepSummary summary =
      run_sweep(sweep, {.out = folder.path() / "out", .jobs = 2, .row_of = row_of});
  CHECK(summary.complete);
  CHECK(summary.infeasible == 0);
}

}  // namespace
}  // namespace lambcast
