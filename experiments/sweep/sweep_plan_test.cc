#include "experiments/sweep/sweep_case.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "sim/base/error.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::Equals;
using Values = std::vector<std::string>;

Values scan(std::string_view text) { return expand_scan(text, {"sweep.toml", 1, "grid.x"}); }

// Returns the values of one key in every point, in order.
Values column(const SweepPlan& plan, const std::string& key) {
  Values values;
  for (const WhatIf& point : plan.points)
    values.push_back(point.contains(key) ? point.at(key) : "-");
  return values;
}

TEST_CASE("scan: geometric and arithmetic, ends included if hit, units kept") {
  CHECK(scan("8:256:x2") == Values{"8", "16", "32", "64", "128", "256"});
  CHECK(scan("8:100:x2") == Values{"8", "16", "32", "64"});
  CHECK(scan("1:8:x1.5") == Values{"1", "1.5", "2.25", "3.375", "5.0625", "7.59375"});
  CHECK(scan("0:100:25") == Values{"0", "25", "50", "75", "100"});
  CHECK(scan("-2:2:2") == Values{"-2", "0", "2"});
  CHECK(scan("0:0.3:0.1") == Values{"0", "0.1", "0.2", "0.3"});
  CHECK(scan("7:7:x2") == Values{"7"});
  CHECK(scan("64..64") == Values{"64"});
  CHECK(scan("1Gbit/s:8Gbit/s:x2") == Values{"1Gbit/s", "2Gbit/s", "4Gbit/s", "8Gbit/s"});
  CHECK(scan("0%:50%:25%") == Values{"0%", "25%", "50%"});
  CHECK(scan("0%:50%:25") == Values{"0%", "25%", "50%"});
}

TEST_CASE("scan: an invalid scan is refused") {
  struct Row {
    const char *text, *expected;
  };
  const Row rows[] = {
      {"8", "'8' is not a scan (allowed: FROM..TO, low:high:xFACTOR or low:high:STEP)"},
      {"8:256", "is not a scan"},
      {"8:256:", "is not a scan"},
      {"8:256:x", "is not a scan"},
      {"8:256:y2", "is not a scan"},
      {":256:x2", "is not a scan"},
      {"a:b:c", "is not a scan"},
      {"nan:8:x2", "is not a scan"},
      {"8:inf:x2", "is not a scan"},
      {"8:256:x2:x2", "the step has the unit ':x2' (allowed: a factor without unit)"},
      {"8:256:x2 GPUs", "the step has the unit ' GPUs'"},
      {"1Gbit/s:8Gbit/s:1Mbit/s", "the step has the unit 'Mbit/s' (allowed: a step in 'Gbit/s')"},
      {"1Gbit/s:8MB/s:x2", "mixes the units 'Gbit/s' and 'MB/s'"},
      {"256:8:x2", "does not lead from 256 to 8"},
      {"8:256:x1", "does not lead from 8 to 256"},
      {"8:256:x0.5", "does not lead"},
      {"0:256:x2", "does not lead from 0 to 256"},
      {"-8:256:x2", "does not lead"},
      {"8:256:0", "does not lead"},
      {"8:256:-1", "does not lead"},
      {"0:1000000:1", "has more than 100000 values"},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    CHECK_THROWS_WITH(scan(row.text), Contains("sweep.toml:1: grid.x: ") && Contains(row.expected));
  }
}

TEST_CASE("axes: --scan and --list") {
  CHECK(parse_scan("gpus=8:32:x2") == Axis{"gpus", {"8", "16", "32"}});
  CHECK(parse_list("optimizer=lamb,adam") == Axis{"optimizer", {"lamb", "adam"}});
  CHECK(parse_list("gpus=8") == Axis{"gpus", {"8"}});
  for (const char* text : {"gpus", "=8", "gpus=", ""}) {
    CHECK_THROWS_WITH(parse_list(text), Contains("is not KEY=VALUES"));
    CHECK_THROWS_WITH(parse_scan(text), Contains("is not KEY=VALUES"));
  }
  for (const char* text : {"gpus=8,", "gpus=,8", "gpus=8,,16"})
    CHECK_THROWS_WITH(parse_list(text),
                      Contains("--list gpus: ") && Contains("has an empty value"));
  CHECK_THROWS_WITH(parse_list("cluster.nic.bandwidth=1 Gbit/s,2Gbit/s,1Gbit/s"),
                    Contains("--list cluster.nic.bandwidth: '1Gbit/s' is listed twice"));
  CHECK_THROWS_WITH(plan("[base]\nmodel = \"bert-large\"\n[grid]\ngpus = [8, 16, 8]"),
                    Contains("'8' is listed twice"));
  CHECK_THROWS_WITH(parse_scan("gpus=8:4:x2"), Contains("--scan gpus: "));
}

TEST_CASE("plan: it has every combination, and the last axis changes fastest") {
  const SweepPlan sweep = plan(R"(
    [base]
    model = "bert-large"
    [grid]
    gpus = [8, 16]
    optimizer = ["lamb", "adam"]
    cuda_aware = true
    "cluster.nic.bandwidth" = "1 Gbit/s"
    "device.peak_half" = "100 TFLOP/s")");
  CHECK(sweep.name == "sweep");
  CHECK(column(sweep, "gpus") == Values{"8", "8", "16", "16"});
  CHECK(column(sweep, "optimizer") == Values{"lamb", "adam", "lamb", "adam"});
  CHECK(column(sweep, "model") == Values(4, "bert-large"));
  CHECK(column(sweep, "cuda_aware") == Values(4, "true"));
  CHECK(column(sweep, "cluster.nic.bandwidth") == Values(4, "1 Gbit/s"));
  CHECK(column(sweep, "device.peak_half") == Values(4, "100 TFLOP/s"));
}

TEST_CASE("plan: variants are crossed with the grid and win over it") {
  const SweepPlan sweep = plan(R"(
    [base]
    backend = "compressed"
    gpus = 4
    [grid]
    gpus = [8, 16]
    seq_len = [128]
    [[variant]]
    backend = "nccl"
    [[variant]]
    backend = "mpi"
    gpus = 64
    [[variant]]
    cuda_aware = true)");
  CHECK(column(sweep, "backend") == Values{"nccl", "nccl", "mpi", "compressed", "compressed"});
  CHECK(column(sweep, "gpus") == Values{"8", "16", "64", "8", "16"});
  CHECK(column(sweep, "cuda_aware") == Values{"-", "-", "-", "true", "true"});
}

TEST_CASE("plan: parts add to the shared keys") {
  const SweepPlan sweep = plan(R"(
    [base]
    model = "bert-large"
    [grid]
    gpus = [8, 16]
    [[part]]
    base.optimizer = "lamb"
    [[part]]
    base.model = "bert-base"
    grid.optimizer = ["adam", "onebit_adam"]
    grid.gpus = [4])");
  CHECK(column(sweep, "model") == Values{"bert-large", "bert-large", "bert-base", "bert-base"});
  CHECK(column(sweep, "gpus") == Values{"8", "16", "4", "4"});
  CHECK(column(sweep, "optimizer") == Values{"lamb", "lamb", "adam", "onebit_adam"});
}

TEST_CASE("plan: a flag's axis replaces the key in base, grid and variants") {
  const std::string_view text = R"(
    [base]
    gpus = 4
    [grid]
    optimizer = ["lamb", "adam"]
    [[part]]
    [[part.variant]]
    gpus = 8
    [[part]]
    grid.gpus = [16])";
  const SweepPlan sweep = plan(text, {{"gpus", {"32", "64"}}});
  CHECK(column(sweep, "gpus") == Values{"32", "64", "32", "64", "32", "64", "32", "64"});
  // Another axis gives another hash; the same axis gives the same hash.
  CHECK(sweep.text_hash != plan(text).text_hash);
  CHECK(sweep.text_hash != plan(text, {{"gpus", {"32"}}}).text_hash);
  CHECK(sweep.text_hash == plan(text, {{"gpus", {"32", "64"}}}).text_hash);
  CHECK_THROWS_WITH(plan(text, {{"gpu", {"8"}}}), Contains("did you mean 'gpus'"));
}

TEST_CASE("plan: a flag's values go to the parts that have them") {
  const std::string_view text = R"(
    [[part]]
    grid.optimizer = ["lamb", "adam"]
    grid.gpus = [8, 16]
    [[part]]
    grid.optimizer = ["onebit_lamb"]
    grid.freeze_step = ["5%", "10%"]
    grid.gpus = [8, 16]
    [[part]]
    base.optimizer = "onebit_adam"
    base.freeze_step = "10%"
    base."cluster.nic.bandwidth" = "1 Gbit/s")";
  const SweepPlan lambs = plan(text, {parse_list("optimizer=lamb,onebit_lamb")});
  CHECK(column(lambs, "optimizer") ==
        Values{"lamb", "lamb", "onebit_lamb", "onebit_lamb", "onebit_lamb", "onebit_lamb"});
  CHECK(column(lambs, "freeze_step") == Values{"-", "-", "5%", "5%", "10%", "10%"});
  CHECK(lambs.notes == Values{"part 3 is left out: it has none of optimizer=lamb,onebit_lamb"});

  // Parts without the key do not change.
  const SweepPlan share = plan(text, {parse_list("freeze_step=10%")});
  CHECK(column(share, "freeze_step") == Values{"-", "-", "-", "-", "10%", "10%", "10%"});
  CHECK(share.notes.empty());

  // A value that no part has is added to every part with the key; a key that no part has is added
  // to all parts.
  const SweepPlan more = plan(text, {parse_list("gpus=32,8"), parse_list("seq_len=128")});
  CHECK(column(more, "gpus") == Values{"32", "8", "32", "8", "32", "8", "32", "8", "-"});
  CHECK(column(more, "seq_len") == Values(9, "128"));
  CHECK(more.notes == Values{"gpus=32 is in no list of the file: every part with gpus runs it"});
  CHECK(plan(text, {parse_list("gpus=8")}).notes.empty());
  CHECK(plan(text, {parse_list("cluster.nic.bandwidth=2Gbit/s")}).notes.empty());

  // A part whose list lacks some of the numbers runs fewer points than others; a note states it.
  const SweepPlan unequal = plan(R"(
    [[part]]
    grid.gpus = [8, 16]
    [[part]]
    grid.gpus = [8, 64])",
                                 {parse_list("gpus=8,16,64")});
  CHECK(column(unequal, "gpus") == Values{"8", "16", "8", "64"});
  CHECK(unequal.notes == Values{"part 1 runs gpus=8,16 alone: 64 is in lists of other parts",
                                "part 2 runs gpus=8,64 alone: 16 is in lists of other parts"});

  // The same value, written differently.
  const SweepPlan rate = plan(text, {parse_list("cluster.nic.bandwidth=1Gbit/s")});
  CHECK(column(rate, "cluster.nic.bandwidth").back() == "1Gbit/s");
  CHECK(rate.points.size() == 9);
}

TEST_CASE("plan: each variant selects among its own values") {
  const SweepPlan sweep = plan(R"(
    [grid]
    gpus = [8]
    [[variant]]
    backend = "nccl"
    [[variant]]
    backend = "mpi"
    [[variant]]
    backend = "mpi"
    cuda_aware = true)",
                               {parse_list("backend=mpi,nccl")});
  CHECK(column(sweep, "backend") == Values{"nccl", "mpi", "mpi"});
  CHECK(plan("[base]\ngpus = 8\n[[variant]]\nbackend = \"nccl\"\n[[variant]]\nbackend = \"mpi\"",
             {parse_list("backend=mpi")})
            .notes == Values{"the sweep, variant 1 is left out: it has none of backend=mpi"});
}

TEST_CASE("plan: the study's own values are not crossed with those of other parts") {
  const SweepPlan sweep =
      plan(study_text("bert_large"),
           {parse_scan("gpus=8:64:x2"), parse_list("optimizer=lamb,onebit_lamb")});
  // Plain LAMB: 2 clusters x 4 batches x 4 GPU counts. 1-bit LAMB: the same x 8 freeze steps x 4
  // backends. Scan: 2 clusters x 4 GPU counts x 9 bandwidths.
  CHECK(sweep.points.size() == 32 + 1024 + 72);
  std::size_t plain = 0;
  for (const WhatIf& point : sweep.points) {
    plain += point.at("optimizer") == "lamb" ? 1 : 0;
    CHECK((point.at("optimizer") == "onebit_lamb") == point.contains("freeze_step"));
  }
  CHECK(plain == 32);
}

TEST_CASE("plan: ten million points are a few lists") {
  const SweepPlan sweep =
      plan("[grid]\ngpus = \"1:1000:1\"\nseq_len = \"1:1000:1\"\nmicro_batch = \"1:10:1\"");
  REQUIRE(sweep.points.size() == 10'000'000);
  CHECK(sweep.points[0] == WhatIf{{"gpus", "1"}, {"micro_batch", "1"}, {"seq_len", "1"}});
  CHECK(sweep.points[9'999'999] ==
        WhatIf{{"gpus", "1000"}, {"micro_batch", "10"}, {"seq_len", "1000"}});
  CHECK(sweep.points[1'234'567] ==
        WhatIf{{"gpus", "124"}, {"micro_batch", "8"}, {"seq_len", "457"}});
  CHECK(axes_of(sweep.points).size() == 3);
}

TEST_CASE("plan: a flag's steps replace the file's samples, and the other way round") {
  const SweepPlan steps = plan("[base]\nsamples = 1000", {parse_list("steps=10,20")});
  CHECK(column(steps, "steps") == Values{"10", "20"});
  CHECK(column(steps, "samples") == Values(2, "-"));
  const SweepPlan samples = plan("[grid]\nsteps = [10, 20]", {parse_list("samples=1000")});
  CHECK(column(samples, "samples") == Values{"1000"});
  CHECK(column(samples, "steps") == Values{"-"});
}

TEST_CASE("plan: an invalid sweep is refused at its place") {
  struct Row {
    const char *text, *expected;
  };
  const Row rows[] = {
      {"[grid]\ngpu = 8", "sweep.toml:2: grid.gpu: unknown key 'gpu', did you mean 'gpus'?"},
      {"[base]\ngpus = [8, 16]", "sweep.toml:2: base.gpus: takes one value here; lists go to"},
      {"[[variant]]\ngpus = [8, 16]", "takes one value here"},
      {"[grid]\ngpus = []", "sweep.toml:2: grid.gpus: is empty"},
      {"[grid]\ngpus = {a = 1}", "sweep.toml:2: grid.gpus: is not a value"},
      {"[grid]\ngpus = \"8:4:x2\"", "sweep.toml:2: grid.gpus: '8:4:x2' does not lead"},
      {"[gird]\ngpus = 8", "unknown key 'gird', did you mean 'grid'?"},
      {"grid = 8", "grid: is not a table"},
      {"variant = 8", "variant: is not a list of tables"},
      {"name = 8", "name: is not a string"},
      {"[grid]\ngpus = [8\n", "sweep.toml:"},
      {"[[part]]\nparts = 1", "unknown key 'parts'"},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    CHECK_THROWS_WITH(plan(row.text), Contains(row.expected));
  }
  CHECK_THROWS_WITH(plan("[grid]\ngpus = \"1:99999:1\"\nseq_len = \"1:200:1\""),
                    Equals("the sweep has more than 10000000 points"));
}

TEST_CASE("plan: a key that only some points have is an axis") {
  const SweepPlan sweep = plan(R"(
    [base]
    gpus = 8
    [[variant]]
    optimizer = "lamb"
    [[variant]]
    optimizer = "onebit_lamb"
    freeze_step = 10)");
  CHECK(axes_of(sweep.points) ==
        std::vector<Axis>{{"freeze_step", {"10"}}, {"optimizer", {"lamb", "onebit_lamb"}}});
}

}  // namespace
}  // namespace lambcast
