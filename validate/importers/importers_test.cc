#include "validate/importers/importers.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "sim/base/file.h"
#include "validate/importers/fixtures.h"
#include "validate/importers/lines.h"
#include "validate/importers/rank_count.h"

using namespace lambcast;
using namespace lambcast::validate;

namespace {

template <typename Importer>
std::string refusal(Importer importer, const std::string& text, const ImportHints& hints = {}) {
  try {
    importer(text, "f", hints);
  } catch (const Error& error) {
    CHECK(error.code() == Exit::usage);
    return error.what();
  }
  return "accepted";
}

ImportHints ranks(int n) {
  ImportHints hints;
  hints.ranks = n;
  return hints;
}

}  // namespace

TEST_CASE("OSU all-reduce: whole vector, ranks from the command line, spread from -f") {
  const auto all = import_osu(fixture("osu_allreduce.txt"), "f");
  REQUIRE(all.size() == 1);
  CHECK(all[0].operation == Operation::all_reduce);
  CHECK(all[0].ranks == 16);
  REQUIRE(all[0].rows.size() == 4);
  CHECK(all[0].rows[3].size.value() == 1048576);
  CHECK(all[0].rows[3].time.us() == Approx(1576.91));
  CHECK(all[0].rows[3].spread->high.us() == Approx(1590.13));
}

TEST_CASE("OSU all-to-all: the printed size is one block of n") {
  const auto all = import_osu(fixture("osu_alltoall.txt"), "f", ranks(8));
  CHECK(all[0].rows[1].size.value() == 8 * 1048576);
  CHECK(refusal(import_osu, fixture("osu_alltoall.txt")) ==
        "f:1: OSU does not print the number of ranks: give it with --ranks");
}

TEST_CASE("OSU over NCCL is read as over MPI, and an unknown benchmark is named") {
  const std::string text = fixture("osu_nccl_allreduce.txt");
  const auto all = import_measurements(text, "f");
  REQUIRE(all.size() == 1);
  CHECK(all[0].operation == Operation::all_reduce);
  CHECK(all[0].ranks == 16);
  REQUIRE(all[0].rows.size() == 3);
  CHECK(all[0].rows[2].time.us() == Approx(8120.77));
  CHECK(import_measurements(with(text, "Allreduce", "Reduce"), "f")[0].operation ==
        Operation::reduce);
  CHECK_THAT(refusal(import_measurements, with(text, "Allreduce", "Gather")),
             Catch::StartsWith("f:10: 'OSU NCCL-CUDA Gather Latency Test v7.5' is not modelled"));
}

TEST_CASE("IMB: each table of a log has its own number of processes, and size 0 is left out") {
  const std::string text = fixture("imb_allreduce.txt");
  const auto one = import_measurements(text, "f");
  REQUIRE(one.size() == 1);
  CHECK(one[0].operation == Operation::all_reduce);
  CHECK(one[0].ranks == 144);
  CHECK(one[0].backend == Backend::mpi_host);
  REQUIRE(one[0].rows.size() == 4);
  CHECK(one[0].rows[3].size.value() == 4096);
  CHECK(one[0].rows[3].time.us() == Approx(19.67));
  CHECK(one[0].rows[3].spread->low.us() == Approx(12.02));
  CHECK(one[0].rows[3].spread->high.us() == Approx(27.01));

  const auto two =
      import_imb(text + with(with(text, "Allreduce\n# #", "Alltoall\n# #"), "= 144", "= 16"), "f");
  REQUIRE(two.size() == 2);
  CHECK(two[1].operation == Operation::all_to_all);
  CHECK(two[1].rows[0].size.value() == 8 * 16);  // a block is printed, and n of them are sent
  // Operations outside the model may appear next to others, but a log with only such operations has
  // no table.
  const std::string other = with(text, "Allreduce\n# #", "Exchange\n# #");
  CHECK(import_imb(other + text, "f").size() == 1);
  CHECK_THAT(refusal(import_imb, other), Catch::StartsWith("f: holds no table"));
  CHECK_THAT(refusal(import_imb, with(text, "processes = 144", "processes = 1")),
             Catch::StartsWith("f: holds no table"));
}

TEST_CASE("IMB: a contradictory log or hint is refused with its line") {
  const std::string text = fixture("imb_allreduce.txt");
  CHECK(refusal(import_imb, text, ranks(8)) == "f:22: is a table of 144 processes, not of 8");
  CHECK(refusal(import_imb, with(text, "8.73        20.20", "28.73        20.20")) ==
        "f:29: t_min is above t_max");
  CHECK(refusal(import_imb, with(text, "27.01", "x")) ==
        "f:30: does not read 'bytes repetitions time ...'");
  CHECK(refusal(import_imb, with(text, "t_avg[usec]", "t_mean[usec]")) ==
        "f:25: has neither t_avg nor t");
  CHECK(refusal(import_imb, with(text, "# #processes = 144\n", "")) ==
        "f:22: this table states no #processes");
}

TEST_CASE(
    "ds_bench: bytes come from the description, for an all-gather times the ranks; no pt2pt") {
  const std::string text = fixture("deepspeed_bench.txt");
  const auto all = import_measurements(text, "f");
  REQUIRE(all.size() == 2);
  CHECK(all[0].operation == Operation::all_reduce);
  CHECK(all[0].ranks == 8);
  CHECK(all[0].nodes == 2);
  CHECK(all[0].gpus_per_node == 4);
  CHECK(all[0].backend == Backend::nccl);
  REQUIRE(all[0].rows.size() == 3);
  CHECK(all[0].rows[0].time.us() == Approx(52.113));
  CHECK(all[0].rows[2].size.value() == 0x1p30);
  CHECK(all[0].rows[2].time.us() == Approx(103910));
  CHECK(all[1].operation == Operation::all_gather);
  CHECK(all[1].rows[0].size.value() == 8 * 0x1p20);
  // Output with --raw and --bw-unit GBps, under the names of the first releases.
  const auto raw = import_deepspeed_bench(
      "---- Performance of alltoall on 4 devices ----\n"
      "Size (Bytes)  Description  Duration (us)  Throughput (GBps)  BusBW (GBps)\n"
      "4194304  1048576x4  172.352  24.336  18.252\n",
      "f");
  CHECK(raw[0].operation == Operation::all_to_all);
  CHECK(raw[0].rows[0].time.us() == Approx(172.352));
}

TEST_CASE("ds_bench: a contradictory log is refused with its line") {
  const std::string text = fixture("deepspeed_bench.txt");
  const auto refused = [&](const char* from, const char* to) {
    return refusal(import_deepspeed_bench, with(text, from, to));
  };
  CHECK(refused("103.691", "207.382") ==
        "f:8: a throughput of 207.382 is not that of 1048576 bytes in 161.8 us");
  CHECK_THAT(refused("all_reduce on 8", "all_reduce on 2"),
             Catch::StartsWith("f:7: busbw / algbw is 1.700"));
  CHECK(refused("161.800 us", "161.800 h") ==
        "f:8: does not read 'size description duration throughput busbw'");
  CHECK(refused("on 8 devices", "on devices") == "f:4: states no number of devices of two or more");
  CHECK(refusal(import_deepspeed_bench, text, ranks(4)) ==
        "f:4: is a table of 8 devices, not of 4");
  CHECK_THAT(refusal(import_deepspeed_bench, "---- Performance of pt2pt on 2 devices ----\n"),
             Catch::StartsWith("f: holds no table"));
}

TEST_CASE("OSU pairs: latency is a ping-pong, bandwidth a stream of 1e6 bytes per second") {
  const auto all = import_osu(fixture("osu_pairs.txt"), "f");
  REQUIRE(all.size() == 2);
  CHECK(all[0].operation == Operation::ping_pong);
  REQUIRE(all[0].rows.size() == 2);  // size 0 is left out
  CHECK(all[1].operation == Operation::stream);
  CHECK(all[1].ranks == 2);
  // 65536 B / 11020.55 MB/s
  CHECK(all[1].rows[0].time.us() == Approx(65536 / 11020.55));
  CHECK(all[1].rows.size() == 2);
}

TEST_CASE("broken OSU tables are refused with their line") {
  const std::string good = fixture("osu_allreduce.txt");
  CHECK(refusal(import_osu, "x\n") == "f: holds no table of an OSU benchmark");
  CHECK(refusal(import_osu, good.substr(0, good.find("4  "))) == "f:3: this table has no rows");
  CHECK_THAT(refusal(import_osu, with(good, "Allreduce", "Gather")),
             Catch::StartsWith("f:3: 'OSU MPI-CUDA Gather Latency Test v5.8' is not modelled"));
  CHECK_THAT(refusal(import_osu, with(good, "17.97", "     ")),
             Catch::Contains("f:6: has no Min and Max Latency"));
  CHECK_THAT(refusal(import_osu, with(good, "17.97", "x.97")),
             Catch::Contains("f:6: '1024") && Catch::Contains("does not read 'size value'"));
  ImportHints gather;
  gather.operation = Operation::all_gather;
  CHECK(refusal(import_osu, good, gather) == "f:3: is a table of all_reduce, not of all_gather");
}

TEST_CASE("iperf3: bytes of the receiver, and the number of streams") {
  const auto all = import_iperf3(fixture("iperf3_single.json"), "f");
  CHECK(all[0].operation == Operation::stream);
  CHECK(all[0].rows[0].size.value() == 11766890496.0);
  CHECK(all[0].rows[0].time.s() == Approx(10.000182));
  CHECK(all[0].streams == 1);
  CHECK(all[0].nodes == 2);
  const auto four = import_iperf3(fixture("iperf3_parallel.json"), "f");
  CHECK(four[0].streams == 4);
}

TEST_CASE("iperf3: tests that do not show the rate of a NIC are refused") {
  const std::string good = fixture("iperf3_single.json");
  CHECK_THAT(refusal(import_iperf3, with(good, "\"target_bitrate\": 0", "\"target_bitrate\": 9")),
             Catch::Contains("limits the rate (-b)"));
  CHECK_THAT(refusal(import_iperf3, with(good, "192.0.2.2", "127.0.0.1")),
             Catch::Contains("127.0.0.1 is this host itself"));
  CHECK_THAT(refusal(import_iperf3, with(good, "192.0.2.2", "192.0.2.1")),
             Catch::Contains("192.0.2.1 is this host itself"));
  CHECK(refusal(import_measurements, "[ ID] Interval           Transfer     Bitrate\n") ==
        "f: is the text of iperf3, which rounds: run it with -J");
}

TEST_CASE("perftest reads a table that lost its '#'") {
  const std::string text = with(fixture("perftest_write_bw.txt"), "#bytes", "bytes ");
  CHECK(import_measurements(text, "f")[0].rows.size() ==
        import_measurements(fixture("perftest_write_bw.txt"), "f")[0].rows.size());
}

TEST_CASE("broken iperf3 files are refused with the key") {
  const std::string good = fixture("iperf3_single.json");
  CHECK(refusal(import_iperf3, R"({"error": "unable to connect to server"})") ==
        "f: error: unable to connect to server");
  CHECK_THAT(refusal(import_iperf3, with(good, "\"TCP\"", "\"UDP\"")),
             Catch::StartsWith("f: start.test_start.protocol: is not TCP"));
  CHECK(refusal(import_iperf3, with(good, "sum_received", "sum")) ==
        "f: end.sum_received: is missing");
  CHECK(refusal(import_iperf3, with(good, "\"bytes\": 11766890496", "\"bytes\": 0")) ==
        "f: end.sum_received.bytes: nothing was received");
  CHECK(refusal(import_iperf3, with(good, "\"bytes\": 11766890496", "\"bytes\": 1766890496")) ==
        "f: end.sum_received.bits_per_second: is not 8 * bytes / seconds");
  CHECK_THAT(refusal(import_iperf3, with(good, "\"num_streams\": 1", "\"num_streams\": 0")),
             Catch::Contains("num_streams: is 0"));
}

TEST_CASE("perftest bandwidth in Gb/s and in MiB/s") {
  const auto all = import_perftest(fixture("perftest_write_bw.txt"), "f");
  CHECK(all[0].operation == Operation::stream);
  REQUIRE(all[0].rows.size() == 4);
  CHECK(all[0].streams == 1);
  CHECK(import_perftest(with(fixture("perftest_write_bw.txt"), "qps   : 1 ", "qps   : 4 "), "f")[0]
            .streams == 4);
  // 65536 B at 196.85 Gb/s
  CHECK(all[0].rows[2].time.us() == Approx(65536 * 8 / 196.85e3).epsilon(1e-6));
  // 65536 B at 11030.45 * 2^20 B/s, which is 2^-4 s / 11030.45
  const auto mib = import_perftest(fixture("perftest_write_bw_mib.txt"), "f");
  CHECK(mib[0].rows[0].time.us() == Approx(1e6 / 16 / 11030.45).epsilon(1e-6));
}

TEST_CASE("perftest latency is a ping-pong with its typical time") {
  const auto all = import_perftest(fixture("perftest_write_lat.txt"), "f");
  CHECK(all[0].operation == Operation::ping_pong);
  CHECK(all[0].rows[0].time.us() == Approx(1.12));
  CHECK(all[0].rows[0].spread->high.us() == Approx(2.05));
}

TEST_CASE("broken perftest tables are refused with their line") {
  const std::string good = fixture("perftest_write_bw.txt");
  CHECK(refusal(import_perftest, "x\n") == "f: holds no row of a perftest table");
  CHECK_THAT(refusal(import_perftest, with(good, "RDMA_Write BW", "RDMA_Write Bidirectional BW")),
             Catch::StartsWith("f:2: a bidirectional test"));
  CHECK_THAT(refusal(import_perftest, with(good, ": OFF", ": ON")),
             Catch::Contains("both ports of a NIC at once"));
  CHECK_THAT(
      refusal(import_perftest, good + with(good, "mlx5_0", "mlx5_9")),
      Catch::Contains("results of several NICs, mlx5_0 and mlx5_9: give each file by itself"));
  CHECK(refusal(import_perftest, with(good, "BW average[Gb/sec]", "BW mean[Gb/sec]")) ==
        "f:19: has neither BW average nor t_typical");
  CHECK(refusal(import_perftest, with(good, " 196.85 ", " 0.00   ")) ==
        "f:23: the result is '0.00'");
  CHECK_THAT(refusal(import_perftest, with(good, " 196.85 ", " 19.685 ")),
             Catch::Contains("f:23: MsgRate times the size is not BW average"));
  CHECK_THAT(refusal(import_perftest, with(good, " 65536      5000", " 65536      many")),
             Catch::Contains("f:23: does not read 'bytes iterations ...'"));
}

TEST_CASE("the format is recognised by the content") {
  const auto kind = [](const std::string& name, const ImportHints& hints = {}) {
    return import_measurements(fixture(name), name, hints).front().provenance.source;
  };
  CHECK_THAT(kind("nccl_all_reduce.txt"), Catch::StartsWith("nccl-tests log"));
  CHECK_THAT(kind("nccl_all_reduce.json"), Catch::StartsWith("nccl-tests JSON"));
  CHECK_THAT(kind("iperf3_single.json"), Catch::StartsWith("iperf3"));
  CHECK_THAT(kind("osu_allreduce.txt"), Catch::StartsWith("OSU MPI-CUDA Allreduce"));
  CHECK_THAT(kind("perftest_write_bw.txt"), Catch::StartsWith("perftest RDMA_Write BW Test"));
  const std::string csv =
      "# collective: all_gather\n# ranks: 2\n# source: s\nsize_bytes,time_us\n8,5\n";
  CHECK(import_measurements(csv, "c").front().provenance.source == "s");
}

TEST_CASE("every importer reads a fixture that contains its words") {
  for (const Importer& importer : importers()) {
    // Skips the importer that accepts any text, and that of the project's CSV.
    if (importer.words.empty() || importer.words == "size_bytes,time_us") continue;
    INFO(importer.words);
    bool read = false;
    for (const auto& file : std::filesystem::directory_iterator(LAMBCAST_FIXTURES)) {
      const std::string text = read_file(file.path().string());
      if (text.find(importer.words) != std::string::npos)
        read |= refusal(importer.read, text) == "accepted";
    }
    CHECK(read);
  }
}

TEST_CASE("a hint fills what our CSV leaves out and may not contradict it") {
  const std::string csv = "# collective: all_gather\n# ranks: 4\nsize_bytes,time_us\n16,5\n";
  ImportHints hints;
  hints.operation = Operation::all_gather;
  hints.ranks = 4;
  hints.nodes = 2;
  CHECK(import_measurements(csv, "f", hints).front().nodes == 2);
  CHECK(refusal(import_measurements, csv, ranks(8)) == "f: --ranks: the file has 4, not 8");
  CHECK(refusal(import_measurements, "# nodes: 1\n" + csv, hints) ==
        "f: --nodes: the file has 1, not 2");
  hints.operation = Operation::all_reduce;
  CHECK(refusal(import_measurements, csv, hints) ==
        "f: --op: is a table of all_gather, not of all_reduce");
}

TEST_CASE("hints replace the lines that a CSV lacks") {
  const std::string csv = "size_bytes,time_us\n16,5\n";
  ImportHints hints = ranks(4);
  CHECK(refusal(import_measurements, csv, hints) ==
        "f: has no '# collective: ...' line: name it with --op");
  hints.operation = Operation::all_gather;
  hints.nodes = 2;
  const Measurement m = import_measurements(csv, "f", hints).front();
  CHECK(m.operation == Operation::all_gather);
  CHECK(m.ranks == 4);
  CHECK(m.nodes == 2);
  hints.ranks.reset();
  CHECK(refusal(import_measurements, csv, hints) ==
        "f: has no '# ranks: ...' line: give them with --ranks");
}

TEST_CASE("bandwidths of a CSV are refused if they contradict its times or ranks") {
  const auto table = [](const char* count, const char* rows) {
    return fmt::format(
        "# collective: all_reduce\n# ranks: {}\n"
        "size_bytes,time_us,algbw_GBps,busbw_GBps\n{}",
        count, rows);
  };
  // With 16 ranks the ratio is 2 * 15 / 16 = 1.875.
  const char* good = "1048576,100,10.49,19.66\n4194304,200.0,20.97,39.32\n";
  CHECK(import_measurements(table("16", good), "f").front().rows.size() == 2);
  CHECK(refusal(import_measurements, table("8", good)) ==
        "f:4: busbw / algbw is 1.874 where all_reduce over 8 ranks has 1.750: the collective or "
        "the number of ranks is another");
  CHECK(refusal(import_measurements,
                table("16", "1048576,100,10.49,19.66\n4194304,0.200,20.97,39.32\n")) ==
        "f:5: size / time is 20971.52 GB/s but algbw is 20.97: the columns do not line up");
  // Rounding as in published tables: a coarse time, bandwidths of one digit, no bandwidths.
  for (const char* rows :
       {"8,29,0.00,0.00\n", "1024,24.6,0.04,0.08\n", "1048576,1e2,10,20\n", "1048576,100,,\n",
        "1048576,100,10.5,\n", "8388608,151.6,55.33,103.78\n",
        // algbw is from the printed time, busbw from the exact one: three roundings apart.
        "262144,61.9,4.23,7.95\n"})
    CHECK(import_measurements(table("16", rows), "f").front().rows.size() == 1);
  // Columns may be missing; a word is not a bandwidth.
  CHECK(import_measurements("# collective: all_reduce\n# ranks: 8\nsize_bytes,time_us,algbw_GBps\n"
                            "1048576,100,10.5\n",
                            "f")
            .front()
            .rows.size() == 1);
  CHECK_THAT(refusal(import_measurements, table("16", "1048576,100,fast,19.66\n")),
             Catch::StartsWith("f:4"));
}

TEST_CASE("every shipped table is accepted, and refused with its times divided by a thousand") {
  int tables = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(LAMBCAST_FIXTURES "/../../replay/collectives")) {
    const std::string name = entry.path().filename().string();
    const std::string text = read_file(entry.path().string());
    if (text.find("size_bytes,time_us") == std::string::npos) continue;
    INFO(name);
    ++tables;
    CHECK(import_measurements(text, name).size() == 1);
    std::string wrong;
    for (const std::string_view line : lines_of(text)) {
      const std::size_t from = line.find(','), to = line.find(',', from + 1);
      const auto us = line.empty() || line[0] == '#' || from == std::string_view::npos
                          ? std::nullopt
                          : as_number(line.substr(from + 1, to - from - 1));
      wrong += us ? fmt::format("{},{}{}\n", line.substr(0, from), *us / 1000, line.substr(to))
                  : fmt::format("{}\n", line);
    }
    CHECK_THAT(refusal(import_measurements, wrong), Catch::Contains("do not line up"));
  }
  CHECK(tables == 53);
}

TEST_CASE("JSON without a table is named as such") {
  for (const char* text : {"{\"train_batch_size\": 64}", "{}", "{\"fp16\": {\"enabled\": true}}"})
    CHECK_THAT(refusal(import_measurements, text),
               Catch::StartsWith("f: is JSON, but no table of measurements (allowed: "));
}

TEST_CASE("an invalid time is refused with its line") {
  CHECK(refusal(import_measurements,
                "# collective: all_gather\n# ranks: 8\nsize_bytes,time_us\n64,1e13\n") ==
        "f:4: time_us: 10000000000000 us is over 104 days");
}

TEST_CASE("in-place columns can be chosen only for formats that have them") {
  ImportHints hints = ranks(16);
  hints.in_place = true;
  const std::string csv = "# collective: all_gather\n# ranks: 16\nsize_bytes,time_us\n64,5\n";
  for (const std::string& text : {fixture("osu_allreduce.txt"), fixture("iperf3_single.json"),
                                  fixture("perftest_write_bw.txt")}) {
    CHECK(refusal(import_measurements, text, hints) ==
          "f: --in-place: only nccl-tests and lambcast measure print in-place columns");
  }
  CHECK(refusal(import_measurements, csv, hints) == "f: --in-place: has no in-place columns");
  // An all-to-all of NCCL has no in-place form.
  const std::string apart = "# collective: all_to_all\n# ranks: 16\nsize_bytes,time_us\n64,5\n";
  CHECK(import_measurements(apart, "f", hints)[0].rows[0].time == Duration::microseconds(5));
  CHECK(refusal(import_measurements, "# options: -d float -w 0\n" + apart, {}) ==
        "f: options: times of the first calls (-w 0), in which connections are made; measure with "
        "-w 1 and more");
}

TEST_CASE("the ratio determines the ranks only as far as rounding allows") {
  // 256 ranks at 100.00 GB/s: 199.22 means 1.9922 +- 0.0002, which fits both 255 ranks (1.99216)
  // and 256 (1.99219).
  CHECK_FALSE(ranks_from_ratio(Operation::all_reduce, {{100, 199.22, 0.005, 1}}));
  CHECK(ranks_from_ratio(Operation::all_reduce, {{100, 175, 0.005, 1}}) == 8);
  CHECK(ranks_from_ratio(Operation::all_gather, {{100, 87.5, 0.005, 1}}) == 8);
  CHECK_FALSE(ranks_from_ratio(Operation::broadcast, {{100, 100, 0.005, 1}}));
  CHECK_FALSE(ranks_from_ratio(Operation::all_reduce, {{0.01, 0.02, 0.005, 1}}));
  // 2(n-1)/n is 1.5 for 4 ranks and 1.6 for 5; no number of ranks gives 1.55.
  CHECK(ranks_from_ratio(Operation::all_reduce, {{100, 160, 0.005, 1}}) == 5);
  CHECK_FALSE(ranks_from_ratio(Operation::all_reduce, {{100, 155, 0.005, 1}}));
}
