#include <catch2/catch.hpp>
#include <filesystem>
#include <sstream>

#include "validate/importers/fixtures.h"
#include "validate/importers/gpu_of_log.h"
#include "validate/importers/importers.h"
#include "validate/importers/log_ledger.h"

using namespace lambcast;
using namespace lambcast::validate;

namespace {

Measurement one(const std::string& text, const std::string& name, const ImportHints& hints = {}) {
  const auto all = import_nccl_tests_text(text, name, hints);
  REQUIRE(all.size() == 1);
  return all[0];
}

std::string refusal(const std::string& text, const ImportHints& hints = {}) {
  try {
    import_nccl_tests_text(text, "log", hints);
  } catch (const Error& error) {
    CHECK(error.code() == Exit::usage);
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("nccl-tests: settings with times that no training step has are refused by name") {
  const auto text_refused = [](const char* from, const char* to, const char* sentence) {
    CHECK_THROWS_WITH(import_measurements(with(fixture("nccl_all_reduce.txt"), from, to), "f"),
                      Catch::Contains(sentence));
  };
  text_refused("agg iters: 1 ", "agg iters: 16 ", "f:3: operations in groups of 16 (-m)");
  text_refused("warmup iters: 1", "warmup iters: 0", "times of the first calls (-w 0)");
  text_refused("graph: 0", "graph: 20", "captured in a CUDA graph (-G)");
  text_refused("# Using devices", "# Blocking Enabled: wait\n# Using devices", "block (-z 1)");
  text_refused("Rank  1 Group  0", "Rank  1 Group  1", "2 communicators of");
  const auto json_refused = [](const char* from, const char* to, const char* sentence) {
    CHECK_THROWS_WITH(import_measurements(with(fixture("nccl_all_reduce.json"), from, to), "f"),
                      Catch::Contains(sentence));
  };
  json_refused("\"warmup_iters\": 1", "\"warmup_iters\": 0", "(-w 0)");
  json_refused("\"errors\": []", "\"errors\": [\"hang\"]", "the test reports errors");
  json_refused("\"aggregated_iterations\": 1", "\"aggregated_iterations\": 16", "(-m)");
  json_refused("\"blocking_collectives\": \"false\"", "\"blocking_collectives\": \"true\"",
               "block (-z 1)");
  json_refused("\"graph\": 0", "\"graph\": 20", "captured in a CUDA graph (-G)");
  json_refused("\"okay\": \"true\"", "\"okay\": \"false\"", "wrong results");
}

TEST_CASE("the current format: operation, ranks, host and GPU from the header") {
  const Measurement m = one(fixture("nccl_all_reduce.txt"), "log");
  CHECK(m.operation == Operation::all_reduce);
  CHECK(m.ranks == 8);
  CHECK(m.nodes == 1);
  CHECK(m.gpus_per_node == 8);
  REQUIRE(m.rows.size() == 9);  // 1 KiB to 64 MiB, by factors of 4
  CHECK(m.rows.front().size.value() == 1024);
  // The fixture was generated as 25 us + 1.75 S / 340 GB/s, printed with two decimals.
  CHECK(m.rows.back().time.us() == Approx(25 + 1.75 * 67108864 / 340e3).margin(0.006));
  CHECK(m.notes[0] == std::pair<std::string, std::string>("gpu", "NVIDIA H100 80GB HBM3"));
  CHECK(m.notes[1].second == "float sum -1");
  CHECK(m.notes.back().first == "options");
  CHECK(m.notes.back().second.starts_with("nThread 1 "));
  CHECK(m.provenance.kind == Kind::measured);
}

TEST_CASE("in-place columns on demand") {
  ImportHints hints;
  hints.in_place = true;
  const Measurement m = one(fixture("nccl_all_reduce.txt"), "log", hints);
  CHECK(m.rows.back().time.us() == Approx(0.98 * (25 + 1.75 * 67108864 / 340e3)).margin(0.006));
}

TEST_CASE("prefixes of mpirun, NCCL messages between and inside rows, size 0") {
  const Measurement m = one(fixture("nccl_all_gather_mpirun.txt"), "log");
  CHECK(m.operation == Operation::all_gather);  // from the command line
  CHECK(m.ranks == 4);
  CHECK(m.nodes == 2);
  REQUIRE(m.rows.size() == 3);
  CHECK(m.rows[0].size.value() == 65536);  // NCCL wrote a message into this row
  CHECK(m.rows[0].time.us() == Approx(20.61));
}

TEST_CASE("a log is read alike with any prefix of a launcher, a container or CI") {
  const std::string plain = fixture("nccl_all_reduce.txt");
  const Measurement bare = one(plain, "log");
  const auto prefixed = [&](const std::string& prefix, const std::string& end) {
    std::istringstream lines(plain);
    std::string text;
    for (std::string line; std::getline(lines, line);) text += prefix + line + end;
    return text;
  };
  for (const std::string& prefix :
       {std::string("2026-11-21T14:20:03.1234567Z "), std::string("nccl-test-launcher-x7k2p: "),
        std::string("[0] "), std::string("[1,0]<stdout>:"), std::string("0: "), std::string("> "),
        std::string("worker-1  | "), std::string("[pod/nccl-launcher/main] "),
        std::string("Nov 21 14:20:03 gpu7 nccl[4120]: "),
        std::string("2026-11-21 14:20:03,123 INFO "), std::string("\x1b[32mlauncher#1\x1b[0m ")}) {
    INFO(prefix);
    const Measurement m = one(prefixed(prefix, "\n"), "log");
    CHECK(m.operation == bare.operation);
    CHECK(m.ranks == 8);
    CHECK(m.nodes == 1);
    CHECK(m.notes == bare.notes);
    REQUIRE(m.rows.size() == bare.rows.size());
    for (std::size_t i = 0; i < m.rows.size(); ++i) CHECK(m.rows[i].time == bare.rows[i].time);
  }
  CHECK(one(prefixed("\x1b[1;32m", "\x1b[0m\r\n"), "log").rows.size() == bare.rows.size());
}

TEST_CASE("a CI log with time stamps, colours and a row that NCCL wrote into") {
  const Measurement m = one(fixture("nccl_reduce_scatter_ci.txt"), "log");
  CHECK(m.operation == Operation::reduce_scatter);
  CHECK(m.ranks == 4);
  CHECK(m.nodes == 2);
  REQUIRE(m.rows.size() == 3);
  CHECK(m.rows[1].size.value() == 1048576);
  CHECK(m.rows[1].time.us() == Approx(43.68));
}

TEST_CASE("an unknown word is named with its line") {
  const std::string good = fixture("nccl_all_reduce.txt");
  CHECK(refusal(with(good, "float     sum", " fp4x     sum")) ==
        "log:18: 'fp4x' is not a known data type");
  CHECK(refusal(with(good, "float     sum", "float premulx")) ==
        "log:18: 'premulx' is neither a reduction known nor a number");
}

TEST_CASE("the old format in Markdown under srun: no root, error instead of #wrong") {
  const std::string text = fixture("nccl_all_reduce_old.txt");
  // The operation comes from the file's name.
  const Measurement m = one(text, "posts/allreduce-p3dn.md");
  CHECK(m.operation == Operation::all_reduce);
  CHECK(m.ranks == 16);
  CHECK(m.nodes == 2);
  CHECK(m.gpus_per_node == 8);
  REQUIRE(m.rows.size() == 4);
  CHECK(m.rows.back().time.us() == 24117);
  CHECK(refusal(text) == "log:27: the file does not name its collective: give it with --op");
}

TEST_CASE("without device lines the ranks come from busbw / algbw") {
  const Measurement m = one(fixture("nccl_alltoall_bare.txt"), "log");
  CHECK(m.operation == Operation::all_to_all);
  CHECK(m.ranks == 32);  // at 47 GB/s, 31/32 = 0.96875 can be distinguished from 30/31 and 32/33
  CHECK_FALSE(m.nodes);
  ImportHints hints;
  hints.nodes = 4;
  CHECK(one(fixture("nccl_alltoall_bare.txt"), "log", hints).gpus_per_node == 8);
}

TEST_CASE("with neither device lines nor large sizes the ranks come from NCCL's messages") {
  const std::string row = "./all_reduce_perf\n 8 2 float sum -1 16.75 0.00 0.00 0\n";
  CHECK(refusal(row) == "log:2: the file does not state the number of ranks: give it with --ranks");
  CHECK(one("h:26:67 [0] NCCL INFO comm 0x7f rank 0 nranks 16 - Init COMPLETE\n" + row, "log")
            .ranks == 16);
}

TEST_CASE("per-iteration statistics become the spread") {
  const Measurement m = one(fixture("nccl_broadcast_iterations.txt"), "log");
  CHECK(m.operation == Operation::broadcast);
  REQUIRE(m.rows.size() == 3);
  const double time = 12 + 1048576 / 20e3;  // the formula that generated the fixture
  CHECK(m.rows[0].time.us() == Approx(time).margin(0.006));
  CHECK(m.rows[0].spread->low.us() == Approx(0.97 * time).margin(0.006));
  CHECK(m.rows[0].spread->high.us() == Approx(1.2 * time).margin(0.006));
}

TEST_CASE("several tests in one log, and several types in one test, are several tables") {
  const std::string both =
      fixture("nccl_all_reduce.txt") + fixture("nccl_broadcast_iterations.txt");
  const auto all = import_nccl_tests_text(both, "log");
  REQUIRE(all.size() == 2);
  CHECK(all[0].ranks == 8);
  CHECK(all[1].ranks == 2);
  CHECK(all[1].operation == Operation::broadcast);
  // A row of another type ends the table, and so does a smaller size.
  const std::string types =
      with(fixture("nccl_all_reduce.txt"), "4096     float", "4096      half");
  CHECK(import_nccl_tests_text(types, "log").size() == 3);
}

TEST_CASE("a log that contradicts itself is refused") {
  const std::string good = fixture("nccl_all_reduce.txt");
  ImportHints sixteen;
  sixteen.ranks = 16;
  CHECK_THAT(refusal(good, sixteen), Catch::Contains("where all_reduce over 16 ranks has 1.875"));
  ImportHints gather;
  gather.operation = Operation::all_gather;
  CHECK_THAT(refusal(good, gather), Catch::Contains("all_gather over 8 ranks has 0.875"));
  CHECK_THAT(refusal(with(good, "370.41", "170.41")),
             Catch::Contains("the columns do not line up"));
}

TEST_CASE("broken rows are refused with their line") {
  const std::string good = fixture("nccl_all_reduce.txt");
  CHECK_THAT(refusal("nothing here\n"),
             Catch::StartsWith("log: holds no row of an nccl-tests table"));
  CHECK(refusal(with(good, "OK", "FAILED")) == "log:27: the test reports wrong results");
  CHECK(refusal(good.substr(0, good.find("float") + 20)) == "log:18: this row is cut off");
  CHECK_THAT(refusal(with(good, "   25.01", "     nan")),
             Catch::Contains("log:18: time is 'nan', which is not a finite number"));
  CHECK_THAT(refusal(with(good, "       0    24.51", "       3    24.51")),
             Catch::Contains("log:18: 3 elements of the result are wrong"));
  CHECK_THAT(refusal(with(good, "       0    24.51", "            24.51")),
             Catch::Contains("has 7 numbers after the type"));
  CHECK_THAT(refusal(with(good, "time   algbw", "cputime algbw")), Catch::Contains("CPU time"));
  CHECK_THAT(refusal(with(good, "Rank  3 Group  0", "Rank  x Group  0")),
             Catch::Contains("log:9: this device line does not read"));
  // The program is reduce_perf, whose name is part of longer ones.
  CHECK(one(with(fixture("nccl_broadcast_iterations.txt"), "broadcast_perf", "reduce_perf"), "log")
            .operation == Operation::reduce);
  CHECK(refusal(with(good, "all_reduce_perf", "hypercube_perf")).substr(0, 73) ==
        "log:2: hypercube_perf measures a collective that is not modelled (allowed");
  ImportHints in_place;
  in_place.in_place = true;
  CHECK_THAT(refusal("./broadcast_perf\n 64 16 float none 0 5.00 0.01 0.01 0\n", in_place),
             Catch::Contains("log:2: has no in-place columns"));
  CHECK(refusal("./broadcast_perf\n 64 16 float none 0 5.00 0.01 0.01 0\n") ==
        "log:2: the file does not state the number of ranks: give it with --ranks");
}

TEST_CASE("the JSON of nccl-tests") {
  const auto all = import_nccl_tests_json(fixture("nccl_all_reduce.json"), "j");
  REQUIRE(all.size() == 1);
  CHECK(all[0].operation == Operation::all_reduce);
  CHECK(all[0].ranks == 8);   // from the ratio, since `devices` has only the first of 8 GPUs
  CHECK_FALSE(all[0].nodes);  // the hosts are unknown
  REQUIRE(all[0].rows.size() == 3);
  CHECK(all[0].rows[0].time.us() == Approx(25 + 1.75 * 1048576 / 340e3).margin(1e-5));
  for (const auto& [key, value] : all[0].notes)
    CHECK(value.find("never-read") == std::string::npos);
}

TEST_CASE("JSON of several data types gives a table for each, and no mean") {
  std::string text = fixture("nccl_all_reduce.json");
  const std::size_t begin = text.find("{", text.find("\"results\"")), end = text.rfind("\n ]");
  const std::string rows = text.substr(begin, end - begin);
  std::string half = rows;
  for (std::size_t at = half.find("\"float\""); at != std::string::npos;
       at = half.find("\"float\""))
    half.replace(at, 7, "\"half\"");
  const auto all = import_nccl_tests_json(text.insert(end, ",\n" + half), "j");
  REQUIRE(all.size() == 2);
  for (const Measurement& table : all) CHECK(table.rows.size() == 3);
  CHECK(all[0].notes[1] == std::pair<std::string, std::string>("data", "float sum     -1"));
}

TEST_CASE("a description of a cluster is no log") {
  CHECK_THROWS_WITH(import_measurements("SwitchName=s0 Nodes=n[1-8]\n", "f"),
                    Catch::Contains("f: is Slurm's topology.conf"));
}

TEST_CASE("a Markdown table is refused by its name") {
  CHECK_THROWS_WITH(
      import_measurements("| size | time | algbw |\n|---|---|---|\n| 1024 | 29.5 | 0.03 |\n", "f"),
      "f:3: is a table in Markdown, which drops columns: give what nccl-tests printed");
}

TEST_CASE("broken JSON is refused with line or key") {
  const auto refused = [](const std::string& text) {
    try {
      import_nccl_tests_json(text, "j");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const std::string good = fixture("nccl_all_reduce.json");
  CHECK_THAT(refused(with(good, "\"args\": [", "\"args\": [,")),
             Catch::StartsWith("j:4: is not JSON: "));
  CHECK(refused("{}") == "j: results: is missing");
  CHECK(refused("{\"results\": []}") == "j: results: has no rows");
  CHECK(refused(with(good, "\"time\"", "\"tame\"")) ==
        "j: results[0].out_of_place.time: is missing");
  CHECK_THAT(refused(with(good, "\"time\"", "\"cpu_time\"")), Catch::Contains("is CPU time"));
  CHECK(refused(with(good, "\"nwrong\": 0.0", "\"nwrong\": 2.0")) ==
        "j: results[0].out_of_place.nwrong: counts wrong elements in the result");
  CHECK(refused(with(good, "\"results\"", "\"backend\": \"gloo\", \"results\"")) ==
        "j: backend: unknown backend 'gloo' (allowed: nccl, mpi)");
  CHECK_THAT(refused(with(good, "\"size\": 1048576", "\"size\": 2097152")),
             Catch::Contains("is not size / time"));
}

TEST_CASE("importers: a log of another GPU than the description's is recognised") {
  Measurement log;
  CHECK(other_gpu(log, "h100").empty());
  log.notes.emplace_back("gpu", "NVIDIA A100-SXM4-80GB");
  CHECK(other_gpu(log, "h100") == "NVIDIA A100-SXM4-80GB");
  CHECK(other_gpu(log, "a100-80g").empty());
  CHECK(other_gpu(log, "").empty());
}

TEST_CASE("logs: each key of a fixture is applied, or without cost for a reason") {
  for (const auto& entry : std::filesystem::directory_iterator(LAMBCAST_FIXTURES)) {
    INFO(entry.path());
    const auto ledger = log_ledger(fixture(entry.path().filename()));
    CHECK(ledger.size() >= 2);
    for (const LedgerEntry& key : ledger) {
      INFO(key.key);
      CHECK(key.treatment != Treatment::named);
      CHECK((key.treatment == Treatment::applied) == key.reason.empty());
      CHECK(key.line > 0);
    }
  }
}

TEST_CASE("logs: keys of training steps are found in each program's rows") {
  const std::pair<const char*, std::vector<std::string>> rows[] = {
      {" [2026-05-04 10:11:12] iteration       50/    1000 | elapsed time per iteration (ms): 3.1 "
       "| "
       "throughput per GPU (TFLOP/s/GPU): 4 | lm loss: 5.1E+00 | new field: 3 |",
       {"iteration", "elapsed time per iteration (ms)", "throughput per GPU (TFLOP/s/GPU)",
        "lm loss", "new field"}},
      {"step: 20  loss:  5.1  memory: 60.11GiB(75.93%)  tps: 10,845  mfu: 47.14%",
       {"step", "loss", "memory", "tps", "mfu"}},
      {"steps: 10 loss: 5.1 iter time (s): 3.021 samples/sec: 21.1",
       {"steps", "loss", "iter time (s)", "samples/sec"}},
      {"{'train_runtime': 100.0, 'train_samples_per_second': 10.2}",
       {"train_runtime", "train_samples_per_second"}}};
  for (const auto& [row, keys] : rows) {
    std::vector<std::string> found;
    for (const LedgerEntry& entry : log_ledger(row)) {
      found.push_back(entry.key);
      CHECK((entry.treatment == Treatment::named) == (entry.key == "new field"));
    }
    CHECK(found == keys);
  }
}

TEST_CASE("iperf3: a rate limited by the sender is refused") {
  CHECK_THROWS_WITH(import_measurements(
                        with(fixture("iperf3_single.json"), "\"tos\": 0", "\"fqrate\": 1e9"), "f"),
                    Catch::Contains("--fq-rate"));
}
