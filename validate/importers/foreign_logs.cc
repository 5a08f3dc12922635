#include "validate/importers/foreign_logs.h"

#include <fmt/format.h>

#include "sim/base/error.h"
#include "validate/importers/lines.h"

namespace lambcast::validate {
namespace {

struct ForeignLog {
  bool json;
  std::string_view words;  // text that identifies the tool
  std::string_view what, instead;
};

constexpr std::string_view stream = "iperf3 -J between two hosts",
                           tables = "tables of nccl-tests, OSU or IMB";

// Ordered so that messages of NCCL, which other logs contain too, come last.
constexpr ForeignLog foreign_logs[] = {
    {true, "\"event\":\"start\"", "the stream of iperf3 --json-stream", "iperf3 -J alone"},
    {true, "\"event\": \"start\"", "the stream of iperf3 --json-stream", "iperf3 -J alone"},
    {true, "\"MsgSize\"", "the JSON of perftest", "the text that perftest prints"},
    {true, "inspector_output_format_version",
     "a file of NCCL's Inspector, whose times include the wait for other ranks", tables},
    {true, "\"traceEvents\"", "a trace of a job", "--job-trace FILE"},
    {false, "Client connecting to", "the text of iperf 2, which rounds", stream},
    {false, "] Interval ", "the text of iperf3, which rounds: run it with -J", ""},
    {false, "tcp_bw:", "the output of qperf, which rounds", stream},
    {false, "TCP STREAM TEST from", "the output of netperf", stream},
    {false, "nvbandwidth Version", "the output of nvbandwidth, which runs no collective", tables},
    {false, "bandwidthTest", "the output of CUDA's bandwidthTest, which runs no collective",
     tables},
    {false, "Comm. Op", "the summary of DeepSpeed's communication logger, whose sizes are rounded",
     "ds_bench, or tables of nccl-tests"},
    {false, "elapsed time per iteration", "a log of training", "--log FILE"},
    {false, "SamplesPerSec=", "a log of training", "--log FILE"},
    {false, "NCCL INFO", "messages of NCCL without a table of times", tables}};

}  // namespace

void refuse_foreign_log(std::string_view text, const std::string& file, bool json) {
  for (const ForeignLog& log : foreign_logs)
    if (log.json == json && contains(text, log.words))
      fail_input({file, 0, {}}, fmt::format("is {}", log.what), log.instead);
  const auto lines = lines_of(text);
  const std::string_view first = lines.empty() ? "" : trimmed(lines.front());
  if (!json && starts_with(first, "size,"))
    fail_input({file, 1, {}}, "is a CSV without the columns size_bytes and time_us",
               "the text of nccl-tests, or a CSV that begins with size_bytes,time_us");
}

}  // namespace lambcast::validate
