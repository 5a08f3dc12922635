#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "validate/importers/importers.h"
#include "validate/importers/json_text.h"
#include "validate/importers/lines.h"

namespace lambcast::validate {

namespace {

using nlohmann::json;

constexpr const char* both_directions = "runs both directions at once; measure without --bidir";

bool is_loopback(std::string host) {
  if (host.starts_with("::ffff:")) host.erase(0, 7);
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

// Throws Error for a test that does not show the rate of a NIC in one direction.
void check_path(const json& start, const json& test, const std::string& file) {
  const auto above_zero = [](const json& in, const char* key) {
    const auto value = in.find(key);
    return value != in.end() && value->is_number() && value->get<double>() > 0;
  };
  if (above_zero(test, "target_bitrate") || above_zero(start, "target_bitrate"))
    fail_input({file, 0, "start.test_start.target_bitrate"},
               "limits the rate (-b) below that of the NIC; try: measure without it");
  if (above_zero(test, "fqrate") || above_zero(start, "fqrate") || above_zero(start, "fq_rate"))
    fail_input({file, 0, "start.test_start.fqrate"},
               "--fq-rate limits the rate below that of the NIC; try: measure without it");
  if (above_zero(test, "bidir")) fail_input({file, 0, "start.test_start.bidir"}, both_directions);
  if (const json to = start.value("connecting_to", json::object());
      to.is_object() && to.contains("host") && to["host"].is_string() &&
      is_loopback(to["host"].get<std::string>()))
    fail_input(
        {file, 0, "start.connecting_to.host"},
        fmt::format("{} is this host itself: no NIC was used", to["host"].get<std::string>()));
  const auto connected = start.find("connected");
  if (connected == start.end() || !connected->is_array()) return;
  for (const json& each : *connected) {
    if (!each.is_object()) continue;
    const auto host = each.find("remote_host");
    const bool named = host != each.end() && host->is_string();
    if (named &&
        (is_loopback(host->get<std::string>()) || *host == each.value("local_host", json())))
      fail_input({file, 0, "start.connected.remote_host"},
                 fmt::format("{} is this host itself: no NIC was used", host->get<std::string>()));
  }
}

}  // namespace

std::vector<Measurement> import_iperf3(std::string_view text, std::string_view name,
                                       const ImportHints&) {
  const std::string file(name);
  const nlohmann::json json = parse_json(text, file);
  if (json.is_object() && json.contains("error")) {
    const nlohmann::json& error = json["error"];
    fail_input({file, 0, "error"}, error.is_string() ? error.get<std::string>() : error.dump());
  }
  const nlohmann::json& start = member(json, "start", file, {});
  const nlohmann::json& test = member(start, "test_start", file, "start.");
  const nlohmann::json& protocol = member(test, "protocol", file, "start.test_start.");
  if (!protocol.is_string() || protocol.get<std::string>() != "TCP") {
    fail_input({file, 0, "start.test_start.protocol"},
               "is not TCP, which collectives use; try: iperf3 without -u");
  }
  const double streams = number_in(test, "num_streams", file, "start.test_start.");
  if (streams < 1 || streams > 1000) {
    fail_input({file, 0, "start.test_start.num_streams"}, fmt::format("is {}", streams));
  }
  check_path(start, test, file);
  const std::string path = "end.sum_received.";
  const nlohmann::json& end = member(json, "end", file, {});
  if (end.is_object() && end.contains("sum_received_bidir_reverse"))
    fail_input({file, 0, "end.sum_received_bidir_reverse"}, both_directions);
  const nlohmann::json& sum = member(end, "sum_received", file, "end.");
  const double bytes = number_in(sum, "bytes", file, path);
  const double seconds = number_in(sum, "seconds", file, path);
  const double rate = number_in(sum, "bits_per_second", file, path);
  if (bytes == 0 || seconds < 1e-6) fail_input({file, 0, path + "bytes"}, "nothing was received");
  if (std::abs(rate - 8 * bytes / seconds) > 0.01 * rate) {
    fail_input({file, 0, path + "bits_per_second"}, "is not 8 * bytes / seconds");
  }

  Measurement m;
  m.operation = Operation::stream;
  m.ranks = 2;
  m.nodes = 2;
  m.streams = static_cast<int>(streams);
  m.rows.push_back({Bytes(bytes), time_of(seconds * 1e6, file, 0), {}});
  m.provenance = {Kind::measured, fmt::format("iperf3 {}", file)};
  return {m};
}

}  // namespace lambcast::validate
