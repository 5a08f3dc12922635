#include <fmt/format.h>

#include <map>
#include <string>

#include "validate/importers/importers.h"
#include "validate/importers/json_text.h"
#include "validate/importers/lines.h"
#include "validate/importers/nccl_names.h"
#include "validate/importers/rank_count.h"

namespace lambcast::validate {
namespace {

using Json = nlohmann::json;

Operation operation_of(const Json& json, const Json& first_row, const std::string& file,
                       const ImportHints& hints) {
  if (hints.operation) return *hints.operation;
  if (const auto ours = json.find("collective"); ours != json.end() && ours->is_string()) {
    return parse_operation(ours->get<std::string>(), {file, 0, "collective"});
  }
  if (const auto args = json.find("args"); args != json.end() && args->is_array()) {
    for (const Json& arg : *args) {
      if (!arg.is_string()) continue;
      const auto named = operation_of_program(arg.get<std::string>(), {file, 0, "args"});
      if (named) return *named;
    }
  }
  const auto name = first_row.find("experiment_name");
  if (name != first_row.end() && name->is_string()) {
    return parse_operation(name->get<std::string>(), {file, 0, "results[0].experiment_name"});
  }
  fail_input({file, 0, {}}, "the file does not name its collective: give it with --op");
}

std::string text_or(const Json& object, const char* key, const std::string& otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

// Devices in the output of nccl-tests. If one process has several GPUs, only the first is listed.
struct Devices {
  std::map<double, int> groups;  // ranks of each communicator
  std::size_t count = 0;
  std::map<std::string, int> hosts;  // ranks of each
  std::string gpu;
};

Devices devices_of(const Json& json) {
  Devices devices;
  const auto config = json.find("config");
  if (config == json.end() || !config->is_object()) return devices;
  const auto list = config->find("devices");
  if (list == config->end() || !list->is_array()) return devices;
  for (const Json& device : *list) {
    if (!device.is_object()) continue;
    ++devices.hosts[text_or(device, "hostname", {})];
    if (const auto group = device.find("group"); group != device.end() && group->is_number())
      ++devices.groups[group->get<double>()];
    if (devices.gpu.empty()) devices.gpu = text_or(device, "device_info", {});
  }
  devices.count = list->size();
  return devices;
}

bool is_true(const Json& value) { return value == true || value == "true"; }

// Throws Error for settings whose times differ from those in a training step.
void check_settings(const Json& json, const Devices& devices, const std::string& file) {
  const Json config = json.value("config", Json::object());
  if (config.is_object() && is_true(config.value("blocking_collectives", Json())))
    fail_input({file, 0, "config.blocking_collectives"}, blocking_collectives);
  if (config.is_object()) {
    const Json graph = config.value("graph", Json());
    if (graph.is_number_integer() && graph.get<std::int64_t>() > 0)
      fail_input({file, 0, "config.graph"}, captured_collectives);
    if (config.value("warmup_iters", Json()) == 0)
      fail_input({file, 0, "config.warmup_iters"}, first_collectives);
    const Json each = config.value("aggregated_iterations", Json());
    if (each.is_number_integer() && each.get<std::int64_t>() > 1)
      fail_input({file, 0, "config.aggregated_iterations"},
                 operations_in_groups(each.get<std::int64_t>()));
  }
  if (devices.groups.size() > 1)
    fail_input({file, 0, "config.devices"},
               communicators_at_once(devices.groups.size(), devices.groups.begin()->second));
}

// Results of one data type, reduction and root, with growing sizes.
struct ResultTable {
  std::string data;
  std::vector<Row> rows;
  std::vector<PrintedBandwidth> printed;
};

// Appends one result. nccl-tests writes null if the out-of-place or the in-place half is missing.
void read_result(const Json& result, const std::string& file, const std::string& path,
                 const ImportHints& hints, std::vector<ResultTable>& tables) {
  const std::string half = hints.in_place ? "in_place" : "out_of_place";
  const double size = number_in(result, "size", file, path);
  if (size == 0) return;
  const Json& part = member(result, half.c_str(), file, path);
  if (part.is_null())
    fail_input({file, 0, path + half}, "is null, so the table has no such columns");
  const std::string inside = path + half + ".";
  if (part.is_object() && part.contains("cpu_time")) {
    fail_input({file, 0, inside + "cpu_time"}, "is CPU time (-C 1), not that of the collective");
  }
  const double time = number_in(part, "time", file, inside);
  if (time < 1e-6) fail_input({file, 0, inside + "time"}, fmt::format("{} us is not a time", time));
  const PrintedBandwidth bandwidth{number_in(part, "alg_bw", file, inside),
                                   number_in(part, "bus_bw", file, inside), 1e-6, 0};
  if (std::abs(size / time / 1e3 - bandwidth.algbw) > 0.01 * bandwidth.algbw + 1e-5) {
    fail_input({file, 0, inside + "alg_bw"}, "is not size / time");
  }
  const auto wrong = part.find("nwrong");
  if (wrong != part.end() && wrong->is_number() && wrong->get<double>() != 0) {
    fail_input({file, 0, inside + "nwrong"}, "counts wrong elements in the result");
  }
  Row row{Bytes(size), Duration::microseconds(time), {}};
  if (const auto each = result.find(half + "_per_iter"); each != result.end()) {
    const std::string where = path + half + "_per_iter.";
    row.spread = Spread{Duration::microseconds(number_in(*each, "min_us", file, where)),
                        Duration::microseconds(number_in(*each, "max_us", file, where))};
    if (row.spread->low > row.spread->high) fail_input({file, 0, where}, "min_us is above max_us");
  }
  const std::string data = fmt::format("{} {} {}", text_or(result, "type", ""),
                                       text_or(result, "redop", ""), text_or(result, "root", ""));
  if (tables.empty() || tables.back().data != data || tables.back().rows.back().size >= row.size)
    tables.push_back({data, {}, {}});
  tables.back().rows.push_back(row);
  tables.back().printed.push_back(bandwidth);
}

int ranks_of(const Measurement& m, const std::vector<PrintedBandwidth>& printed,
             const Devices& devices, const std::string& file, const ImportHints& hints) {
  if (hints.ranks) return *hints.ranks;
  if (const auto ranks = ranks_from_ratio(m.operation, printed)) return *ranks;
  if (devices.count > 1) return static_cast<int>(devices.count);
  fail_input({file, 0, {}}, "the file does not state the number of ranks: give it with --ranks");
}

}  // namespace

std::vector<Measurement> import_nccl_tests_json(std::string_view text, std::string_view name,
                                                const ImportHints& hints) {
  const std::string file(name);
  const Json json = parse_json(text, file);
  const Json& results = member(json, "results", file, {});
  if (!results.is_array() || results.empty()) fail_input({file, 0, "results"}, "has no rows");
  const Devices devices = devices_of(json);
  check_settings(json, devices, file);
  std::vector<ResultTable> tables;
  for (std::size_t i = 0; i < results.size(); ++i)
    read_result(results[i], file, fmt::format("results[{}].", i), hints, tables);
  if (tables.empty()) fail_input({file, 0, "results"}, "has no rows above size 0");
  if (const Json errors = json.value("errors", Json()); errors.is_array() && !errors.empty())
    fail_input({file, 0, "errors"}, "the test reports errors");
  const Json bounds = json.value("out_of_bounds", Json());
  if (bounds.is_object() && bounds.value("okay", Json()) == "false")
    fail_input({file, 0, "out_of_bounds.okay"}, "the test reports wrong results");
  std::vector<Measurement> found;
  for (ResultTable& table : tables) {
    Measurement m;
    m.operation = operation_of(json, results[0], file, hints);
    m.ranks = ranks_of(m, table.printed, devices, file, hints);
    check_ratio(m.operation, m.ranks, table.printed, file);
    if (devices.count == static_cast<std::size_t>(m.ranks)) {
      check_even_hosts(devices.hosts, {file, 0, "config.devices"});
      m.nodes = static_cast<int>(devices.hosts.size());
    }
    if (hints.nodes) m.nodes = hints.nodes;
    if (m.nodes && m.ranks % *m.nodes == 0) m.gpus_per_node = m.ranks / *m.nodes;
    m.rows = std::move(table.rows);
    m.provenance = {Kind::measured, fmt::format("nccl-tests JSON {}", file)};
    m.backend = parse_measured_backend(text_or(json, "backend", "nccl"), {file, 0, "backend"});
    if (json.contains("staging")) m.staging = text_or(json, "staging", {});
    if (!devices.gpu.empty()) m.notes.emplace_back("gpu", devices.gpu);
    if (tables.size() > 1) m.notes.emplace_back("data", table.data);
    m.notes.emplace_back("inplace", hints.in_place ? "in-place columns" : "out-of-place columns");
    found.push_back(std::move(m));
  }
  return found;
}

}  // namespace lambcast::validate
