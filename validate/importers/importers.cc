#include "validate/importers/importers.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/base/csv.h"
#include "validate/importers/foreign_logs.h"
#include "validate/importers/json_text.h"
#include "validate/importers/lines.h"
#include "validate/importers/nccl_names.h"
#include "validate/importers/rank_count.h"

namespace lambcast::validate {
namespace {

// Throws Error unless the bandwidths next to a time belong to that time and number of ranks.
void check_bandwidths(const csv::Table& table, const Measurement& m) {
  if (!table.has("algbw_GBps")) return;
  std::vector<PrintedBandwidth> printed;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const std::string& algbw = table.text(i, "algbw_GBps");
    if (algbw.empty()) continue;
    check_algbw(m.rows[i].size.value(), table.text(i, "time_us"), algbw,
                {table.name, table.lines[i], {}});
    if (!table.has("busbw_GBps") || table.text(i, "busbw_GBps").empty()) continue;
    // In tables edited by hand, one bandwidth may come from the printed time, which was rounded
    // before.
    const double of_time = rounding_of(table.text(i, "time_us")) / table.number(i, "time_us");
    const double rate = table.number(i, "algbw_GBps"), bus = table.number(i, "busbw_GBps");
    const double printed_to =
        std::max(rounding_of(algbw), rounding_of(table.text(i, "busbw_GBps")));
    printed.push_back({rate, bus, printed_to + std::max(rate, bus) * of_time, table.lines[i]});
  }
  check_ratio(m.operation, m.ranks, printed, table.name);
}

// Other JSON (a DeepSpeed file, a forecast) is not a damaged log of iperf3.
std::vector<Measurement> import_other_json(std::string_view text, std::string_view name,
                                           const ImportHints& hints) {
  const std::string file(name);
  const nlohmann::json json = parse_json(text, file);
  if (json.contains("start") || json.contains("end") || json.contains("error"))
    return import_iperf3(text, name, hints);
  fail_input({file, 0, {}}, "is JSON, but no table of measurements",
             "what nccl-tests -J, iperf3 -J and lambcast measure --format json write");
}

// Returns whether lambcast measure has in-place columns for the operation with every backend.
bool always_in_place(Operation operation) {
  return operation == Operation::all_reduce || operation == Operation::all_gather ||
         operation == Operation::reduce_scatter;
}

// Throws Error for settings of lambcast measure whose times differ from those in a training step.
void check_settings(const Measurement& m, const std::string& file) {
  for (const auto& [key, flags] : m.notes) {
    const std::vector<std::string_view> words = words_of(flags);
    for (std::size_t i = 0; key == "options" && i + 1 < words.size(); ++i) {
      const auto value = as_integer(words[i + 1]);
      if (words[i] == "-w" && value == 0) fail_input({file, 0, key}, first_collectives);
      if (words[i] == "-z" && value == 1) fail_input({file, 0, key}, blocking_collectives);
      if (words[i] == "-G" && value > 0) fail_input({file, 0, key}, captured_collectives);
      if (words[i] == "-m" && value > 1) fail_input({file, 0, key}, operations_in_groups(*value));
    }
  }
}

// Hints fill in what the project's CSV leaves out; a contradicting hint is rejected.
std::vector<Measurement> import_csv(std::string_view text, std::string_view name,
                                    const ImportHints& hints) {
  const std::string file(name);
  Measurement m = read_measurement_csv(text, file, hints.operation, hints.ranks, hints.in_place);
  const csv::Table rows = csv::parse(text, name);
  if (hints.in_place && !rows.has("in_place_us") && always_in_place(m.operation))
    fail_input({file, 0, "--in-place"}, "has no in-place columns");
  check_settings(m, file);
  if (hints.operation && *hints.operation != m.operation) {
    fail_input({file, 0, "--op"}, fmt::format("is a table of {}, not of {}", name_of(m.operation),
                                              name_of(*hints.operation)));
  }
  const auto agree = [&](const char* flag, std::optional<int> said, std::optional<int> hint) {
    if (said && hint && *said != *hint) {
      fail_input({file, 0, flag}, fmt::format("the file has {}, not {}", *said, *hint));
    }
  };
  agree("--ranks", m.ranks, hints.ranks);
  agree("--nodes", m.nodes, hints.nodes);
  if (hints.nodes) m.nodes = hints.nodes;
  check_bandwidths(rows, m);
  return {m};
}

constexpr Importer table[] = {
    {true, "\"results\"", import_nccl_tests_json, true},
    {true, "", import_other_json},
    {false, "# OSU ", import_osu},
    {false, "# Benchmarking ", import_imb},
    {false, "---- Performance of ", import_deepspeed_bench},
    {false, "#bytes", import_perftest},
    {false, "MsgRate[Mpps]", import_perftest},
    {false, "Data ex. method", import_perftest},
    {false, "size_bytes,time_us", import_csv, true},
    {false, "", import_nccl_tests_text, true},
};

}  // namespace

std::span<const Importer> importers() { return table; }

std::vector<Measurement> import_measurements(std::string_view text, std::string_view name,
                                             const ImportHints& hints) {
  if (starts_with(trimmed(text), "\n") || trimmed(text).empty()) {
    text = text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  }
  const bool json = starts_with(trimmed(text), "{");
  if (json) refuse_foreign_log(text, std::string(name), json);
  const auto importer = std::ranges::find_if(table, [&](const Importer& each) {
    return each.is_json == json && contains(text, each.words);
  });
  if (hints.in_place && !importer->in_place) {
    fail_input({std::string(name), 0, "--in-place"},
               "only nccl-tests and lambcast measure print in-place columns");
  }
  return importer->read(text, name, hints);
}

}  // namespace lambcast::validate
