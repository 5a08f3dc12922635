#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/json.h"
#include "sim/base/sort_stably.h"
#include "sim/base/whole_number.h"
#include "validate/calibrate/calibrate.h"
#include "validate/calibrate/kept_values.h"

namespace lambcast::validate {
namespace {

double rounded(double value, int digits) {
  if (value == 0) return 0;
  const double scale = std::pow(10, digits - 1 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

// Replaces or adds the value at a dotted key. Creates missing tables.
template <typename Value>
void put(toml::table& root, std::string_view key, Value value) {
  toml::table* at = &root;
  for (auto dot = key.find('.'); dot != std::string_view::npos; dot = key.find('.')) {
    const std::string_view step = key.substr(0, dot);
    if (at->get_as<toml::table>(step) == nullptr) at->insert_or_assign(step, toml::table{});
    at = at->get_as<toml::table>(step);
    at->is_inline(false);
    key.remove_prefix(dot + 1);
  }
  at->insert_or_assign(key, std::move(value));
}

toml::table evidence(const FittedParameter& parameter, const std::string& origin) {
  const Unit unit = parameter.of.unit;
  const double value = rounded(parameter.value, 4);
  toml::table table;
  if (unit == Unit::share)
    table.insert("value", value);
  else
    table.insert("value", value_text(unit, value));
  table.insert("kind", parameter.identified ? "fitted" : "assumed");
  table.insert("source", parameter.identified
                             ? fmt::format("{}, 95 % interval {} to {}", origin,
                                           value_text(unit, rounded(parameter.low, 3)),
                                           value_text(unit, rounded(parameter.high, 3)))
                         : parameter.of.prior_width == 0
                             ? origin + " has no tree: 0.3 of the change of nic_efficiency applies"
                             : origin + " does not determine it: kept near its start");
  table.is_inline(true);
  return table;
}

toml::table evidence(const KeptLatency& latency) {
  toml::table table;
  table.insert("value", value_text(Unit::microseconds, latency.value.value.us()));
  table.insert("kind", std::string(name_of(latency.value.provenance.kind)));
  table.insert("source", latency.value.provenance.source);
  table.is_inline(true);
  return table;
}

toml::array names_in(const std::vector<std::string>& names) {
  toml::array array;
  for (const std::string& name : names) array.push_back(name);
  return array;
}

toml::table section(const Calibration& calibration, const std::string& source) {
  toml::table table;
  table.insert("source", source);
  if (calibration.another_machine) table.insert("machine", "another");
  table.insert("library", std::string(traits_of(calibration.backend).word));
  toml::array operations;
  for (const Op op : calibration.operations) operations.push_back(std::string(name_of(op)));
  table.insert("operations", std::move(operations));
  if (!calibration.protocols.empty()) table.insert("protocols", names_in(calibration.protocols));
  table.insert("smallest", value_text(Unit::bytes, calibration.sizes.low));
  table.insert("largest", value_text(Unit::bytes, calibration.sizes.high));
  toml::array layouts;
  for (const auto& [gpus_per_node, nodes] : calibration.layouts) {
    toml::table entry;
    entry.insert("nodes", toml::array{static_cast<std::int64_t>(nodes.low),
                                      static_cast<std::int64_t>(nodes.high)});
    entry.insert("gpus_per_node", gpus_per_node);
    layouts.push_back(std::move(entry));
  }
  table.insert("layouts", std::move(layouts));
  toml::array bands;
  for (const Calibration::Band& band : calibration.bands) {
    toml::table entry;
    if (std::isfinite(band.below.value()))
      entry.insert("below", value_text(Unit::bytes, band.below.value()));
    entry.insert("low", rounded(band.low, 3));
    entry.insert("high", rounded(band.high, 3));
    if (!band.algorithms.empty()) entry.insert("algorithms", names_in(band.algorithms));
    bands.push_back(std::move(entry));
  }
  table.insert("bands", std::move(bands));
  return table;
}

// Returns the [calibration] section from another machine of the same hardware: the base's own
// section, or the `preset` inside it. The user's tables add to this evidence.
std::optional<toml::table> preset_of(const toml::table& root) {
  const toml::table* before = root["calibration"].as_table();
  if (before == nullptr) return std::nullopt;
  if ((*before)["machine"].value_or(std::string()) != "another")
    before = (*before)["preset"].as_table();
  if (before == nullptr) return std::nullopt;
  toml::table preset = *before;
  preset.erase("preset");
  return preset;
}

// Keys in the order of printing; other keys follow by name.
const std::vector<std::string_view> reading_order{"name",
                                                  "description",
                                                  "device",
                                                  "usd_per_gpu_hour",
                                                  "value",
                                                  "kind",
                                                  "source",
                                                  "machine",
                                                  "library",
                                                  "operations",
                                                  "algorithms",
                                                  "smallest",
                                                  "largest",
                                                  "layouts",
                                                  "nodes",
                                                  "below",
                                                  "framework",
                                                  "format",
                                                  "level",
                                                  "low",
                                                  "high",
                                                  "gpus",
                                                  "host_capacity",
                                                  "gpu_peers",
                                                  "gpu_link",
                                                  "gpu_nic",
                                                  "count",
                                                  "network",
                                                  "link_layer",
                                                  "nominal",
                                                  "bandwidth",
                                                  "protocols",
                                                  "nic_efficiency",
                                                  "base",
                                                  "local_hop",
                                                  "network_hop",
                                                  "node",
                                                  "nic",
                                                  "fabric",
                                                  "nccl",
                                                  "mpi",
                                                  "host_copy",
                                                  "stack",
                                                  "program",
                                                  "calibration"};

std::vector<std::string> ordered_keys(const toml::table& table) {
  std::vector<std::string> keys;
  for (const auto& [key, node] : table) keys.emplace_back(key.str());
  const auto place = [](const std::string& key) {
    return std::find(reading_order.begin(), reading_order.end(), key);
  };
  sort_stably(keys, {}, place);
  return keys;
}

bool is_section(const toml::node& node) {
  if (const toml::table* table = node.as_table()) return !table->is_inline();
  const toml::array* array = node.as_array();
  return array != nullptr && !array->empty() && array->front().is_table();
}

std::string value_of(const toml::node& node) {
  std::vector<std::string> parts;
  if (const toml::table* table = node.as_table()) {
    for (const std::string& key : ordered_keys(*table))
      parts.push_back(key + " = " + value_of(*table->get(key)));
    return fmt::format("{{ {} }}", fmt::join(parts, ", "));
  }
  if (const toml::array* array = node.as_array()) {
    for (const toml::node& element : *array) parts.push_back(value_of(element));
    return fmt::format("[{}]", fmt::join(parts, ", "));
  }
  if (const auto* text = node.as_string()) return json_string(text->get());
  if (const auto* real = node.as_floating_point()) return fmt::format("{}", real->get());
  if (const auto* whole = node.as_integer()) return fmt::format("{}", whole->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  throw InternalError("descriptions hold no dates");
}

// Prints a table for human readers. toml++ itself would sort tables by name and print doubles with
// seventeen digits.
void print(std::string& out, const toml::table& table, const std::string& path) {
  const std::vector<std::string> keys = ordered_keys(table);
  for (const std::string& key : keys)
    if (!is_section(*table.get(key))) out += key + " = " + value_of(*table.get(key)) + "\n";
  for (const std::string& key : keys) {
    const toml::node& node = *table.get(key);
    if (!is_section(node)) continue;
    const std::string name = path + key;
    if (const toml::array* array = node.as_array()) {
      for (const toml::node& element : *array) {
        out += fmt::format("\n[[{}]]\n", name);
        print(out, *element.as_table(), name + ".");
      }
      continue;
    }
    out += fmt::format("\n[{}]\n", name);
    print(out, *node.as_table(), name + ".");
  }
}

std::string description_text(const toml::table& root) {
  std::string out;
  print(out, root, "");
  return out;
}

}  // namespace

std::string calibrated_cluster(const std::string& base, const std::string& name,
                               const std::string& cluster_name, const FitSummary& summary,
                               const std::string& source) {
  toml::table root = toml::parse(base, name);
  root.insert_or_assign("name", cluster_name);
  // With a [calibration] section, that section states the source; otherwise each number does.
  const std::string origin = summary.calibration ? "[calibration]" : source;
  for (const FittedParameter& parameter : summary.parameters) {
    put(root, parameter.of.key, evidence(parameter, origin));
    if (!parameter.of.also.empty()) put(root, parameter.of.also, evidence(parameter, origin));
  }
  for (const KeptLatency& latency : summary.kept) put(root, latency.key, evidence(latency));
  if (summary.calibration) {
    const auto before = preset_of(root);
    toml::table now = section(*summary.calibration, source);
    now.insert("fitted_tables", names_in(summary.fitted_tables));
    if (before && !summary.calibration->another_machine) now.insert("preset", *before);
    root.insert_or_assign("calibration", std::move(now));
  } else {
    root.erase("calibration");
  }
  return description_text(root);
}

std::string cluster_with_program(const std::string& base, const std::string& name,
                                 const std::string& cluster_name, const std::string& device,
                                 const ProgramLevel& program) {
  toml::table root = toml::parse(base, name);
  root.insert_or_assign("name", cluster_name);
  if (!device.empty()) root.insert_or_assign("device", device);
  toml::table level{{"value", rounded(program.level.value, 4)},
                    {"kind", std::string(name_of(program.level.provenance.kind))},
                    {"source", program.level.provenance.source}};
  level.is_inline(true);
  toml::table section{{"framework", program.framework},
                      {"format", program.format},
                      {"level", std::move(level)},
                      {"low", rounded(program.low, 4)},
                      {"high", rounded(program.high, 4)}};
  if (program.spread > 0) section.insert("spread", rounded(program.spread, 4));
  if (program.fewest_gpus > 0) {
    section.insert("fewest_gpus", program.fewest_gpus);
    section.insert("most_gpus", program.most_gpus);
  }
  if (program.kinds != KindLevels{}) {
    section.insert("products", rounded(program.kinds.products, 4));
    section.insert("attention", rounded(program.kinds.attention, 4));
    section.insert("element_wise", rounded(program.kinds.element_wise, 4));
  }
  root.insert_or_assign("program", std::move(section));
  return description_text(root);
}

std::string cluster_with_keys(const std::string& base, const std::string& name,
                              std::span<const std::pair<std::string, std::string>> keys) {
  toml::table root = toml::parse(base, name);
  for (const auto& [key, value] : keys) {
    if (key.ends_with("algorithms") || key.ends_with("protocols"))
      put(root, key, toml::array{value});
    else if (const auto number = whole_number(value))
      put(root, key, *number);
    else if (value == "true" || value == "false")
      put(root, key, value == "true");
    else
      put(root, key, value);
  }
  return description_text(root);
}

std::string cluster_with_gpu_spread(const std::string& base, const std::string& name,
                                    const Sourced<double>& spread) {
  toml::table root = toml::parse(base, name);
  toml::table value{{"value", rounded(spread.value, 4)},
                    {"kind", std::string(name_of(spread.provenance.kind))},
                    {"source", spread.provenance.source}};
  value.is_inline(true);
  root.insert("stack", toml::table{});
  root["stack"].as_table()->insert_or_assign("gpu_spread", std::move(value));
  return description_text(root);
}

}  // namespace lambcast::validate
