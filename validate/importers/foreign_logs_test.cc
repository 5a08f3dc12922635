#include "validate/importers/foreign_logs.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/base/error.h"
#include "validate/importers/fixtures.h"
#include "validate/importers/importers.h"
#include "validate/importers/log_ledger.h"

namespace lambcast::validate {
namespace {

using Catch::Matchers::Contains;

std::string refused_log(const std::string& text, const std::string& name = "f") {
  try {
    import_measurements(text, name);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST_CASE("foreign logs: each tool is named") {
  const std::pair<const char*, const char*> tools[] = {
      {"Client connecting to 10.0.0.2, TCP port 5001\n[ ID] Interval       Transfer\n",
       "the text of iperf 2"},
      {"tcp_bw:\n    bw  =  1.17 GB/sec\n", "the output of qperf"},
      {"MIGRATED TCP STREAM TEST from 0.0.0.0 port 0\n", "the output of netperf"},
      {"nvbandwidth Version: v0.5\n", "the output of nvbandwidth"},
      {"Comm. Op            Message Size        Count\n", "DeepSpeed's communication logger"},
      {"a:100:100 [0] NCCL INFO Bootstrap : Using eth0\n", "which has no measured rate"},
      {"size,count,type,time\n1,1,float,2\n", "a CSV without the columns size_bytes and time_us"},
      {"|  payload |  busbw |  algbw |\n| 32KB | 0.92GBps | 0.49GBps |\n", "in Markdown"},
      {"{\"header\":{},\"metadata\":{\"inspector_output_format_version\":\"v4.0\"}}\n{\"a\":1}\n",
       "NCCL's Inspector"},
      {"{\"event\":\"start\",\"data\":{}}\n{\"event\":\"end\"}\n", "iperf3 --json-stream"},
      {"{\"test_info\":{},\"results\":{\"MsgSize\":65536}}", "the JSON of perftest"}};
  for (const auto& [text, name] : tools) CHECK_THAT(refused_log(text), Contains(name));
  CHECK_THAT(refused_log("{\"a\":1}\n{\"a\":2}\n"), Contains("f:2: a second JSON document"));
}

TEST_CASE("nccl-tests: a failed test, and nodes with unlike numbers of ranks, are refused") {
  const std::string good = fixture("nccl_reduce_scatter_ci.txt");
  CHECK_THAT(
      refused_log(good + "gpu-b: Test NCCL failure common.cu:398 'unhandled system error'\n"),
      Contains("ended with a failure"));
  CHECK_THAT(refused_log(with(good, "on  gpu-a device  1", "on  gpu-b device  1")),
             Contains("gpu-a has 1 ranks and gpu-b has 3"));
}

TEST_CASE("iperf3: both directions, and a mapped address of the host itself, are refused") {
  const std::string good = fixture("iperf3_single.json");
  CHECK_THAT(refused_log(with(good, "\"sum_received\":",
                              "\"sum_received_bidir_reverse\": {}, \"sum_received\":")),
             Contains("both directions"));
  CHECK_THAT(refused_log(with(good, "192.0.2.2", "::ffff:127.0.0.1")),
             Contains("is this host itself"));
}

TEST_CASE("perftest: a loopback and a second test are refused") {
  const std::string good = fixture("perftest_write_bw.txt");
  CHECK_THAT(refused_log(with(good, "remote address: LID 0x02", "remote address: LID 0x01")),
             Contains("did not leave this host"));
  CHECK_THAT(refused_log(good + good), Contains("a second table, which another NIC"));
  CHECK_THAT(refused_log(good.substr(0, good.find(" local address"))),
             Contains("holds no row of a perftest table"));
}

TEST_CASE("log ledger: settings of perftest, and no name of a source file") {
  const auto treated = [](const std::string& text, const std::string& key) {
    const auto entries = log_ledger(text);
    const auto found = std::ranges::find(entries, key, &LedgerEntry::key);
    return found == entries.end() ? std::optional<Treatment>() : found->treatment;
  };
  const std::string good = fixture("perftest_write_bw.txt");
  CHECK(treated(good, "Number of qps") == Treatment::applied);
  CHECK(treated(good, "CQ Moderation") == Treatment::costless);
  CHECK(treated(with(good, "CQ Moderation   :", "Odd setting     :"), "Odd setting") ==
        Treatment::named);
  const std::string row = "[INFO] [timer.py:260:stop] epoch=0, CurrSamplesPerSec=42.0\n";
  CHECK(treated(row, "CurrSamplesPerSec") == Treatment::applied);
  CHECK_FALSE(treated(row, "py"));
}

}  // namespace
}  // namespace lambcast::validate
