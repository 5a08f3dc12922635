#include <fmt/format.h>

#include <algorithm>

#include "models/device/device.h"
#include "sim/base/error.h"
#include "sim/base/file.h"

namespace lambcast {
namespace {

std::string flag_of(const std::string& key) { return "--set device." + key; }

// A key of a curve: the index of the curve in its list, and the name of the key.
struct OfCurve {
  std::size_t index;
  std::string key;
};

template <typename Curve>
OfCurve find_curve(const std::vector<Curve>& curves, const std::string& list,
                   const std::string& key) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    names.push_back(curve_name(curves[i]));
    if (key.starts_with(names.back() + ".")) return {i, key.substr(names.back().size() + 1)};
  }
  if (names.empty()) fail_input({flag_of(key), 0, {}}, fmt::format("the device has no {}", list));
  fail_unknown({flag_of(key), 0, {}}, list, key.substr(0, key.rfind('.')), names);
}

OfCurve find_curve(const Device& device, const std::string& list, const std::string& key) {
  if (list == "kernel") return find_curve(device.kernels, list, key);
  if (list == "layer") return find_curve(device.layers, list, key);
  return find_curve(device.training_curves, list, key);
}

// Sets a key of a curve. A curve has one kind and source for all its values.
void set_curve(const Table& root, const OfCurve& of, const std::string& list,
               const std::string& key, const std::string& value) {
  Table curve = root.tables(list)[of.index];
  curve.set(of.key, value, flag_of(key));
  curve.set("kind", "assumed", flag_of(key));
  curve.set("source", flag_of(key), flag_of(key));
}

// If --set gives a copy_bandwidth above the preset's memory_bandwidth, and not memory_bandwidth
// itself, raises memory_bandwidth to it: the GPU then has faster memory than the preset.
void raise_name_plate(Table& root, const Overrides& said) {
  const auto is_said = [&](std::string_view key) {
    return std::ranges::find(said, key, &Overrides::value_type::first) != said.end();
  };
  if (!is_said("copy_bandwidth") || is_said("memory_bandwidth")) return;
  const Table device = root.table("device");
  const auto plate = device.find<Sourced<Bandwidth>>("memory_bandwidth");
  const auto copy = device.find<Sourced<Bandwidth>>("copy_bandwidth");
  if (plate && copy && plate->provenance.kind != Kind::measured && copy->value > plate->value)
    root.set("device.memory_bandwidth", fmt::format("{} B/s", copy->value.value()),
             flag_of("copy_bandwidth"));
}

}  // namespace

std::string curve_name(const TrainingCurve& curve) {
  return fmt::format("training_curve.{}.{}.{}", curve.model, curve.implementation, curve.seq_len);
}

std::string curve_name(const KernelCurve& curve) { return "kernel." + curve.name; }

std::string curve_name(const LayerCurve& curve) {
  return fmt::format("layer.{}.{}.{}.{}", curve.hidden, curve.heads, curve.ffn, curve.seq_len);
}

Device load_device(const Table& parsed, const std::string& name_or_path, const Overrides& said) {
  Table root = parsed.copy();
  if (said.empty()) return decode_device(root);
  // Overrides find curves by name in the unchanged description, and values that repeat it keep
  // their evidence.
  const Device described = decode_device(parsed.copy());
  // Values are compared with the parsed text, since keys read from `root` could no longer be set.
  const std::vector<std::string> sections{"rates", "kernel", "layer", "training_curve"};
  std::vector<std::string> flags;
  for (const auto& [key, value] : said) {
    flags.push_back(flag_of(key));
    const std::string section = key.substr(0, key.find('.'));
    if (section == key || parsed.table("device").has(section)) {
      if (!says(parsed, "device." + key, value)) root.set("device." + key, value, flags.back());
    } else if (section == "rates") {
      if (described.rates && !parsed.has("rates"))
        fail_input({flags.back(), 0, {}},
                   fmt::format("the rates of {} follow from its timed kernels", described.name),
                   "keys of a file with a section [rates]");
      if (!says(parsed, key, value)) root.set(key, value, flags.back());
    } else if (std::ranges::find(sections, section) != sections.end()) {
      const OfCurve of = find_curve(described, section, key);
      if (!says(parsed.tables(section)[of.index], of.key, value))
        set_curve(root, of, section, key, value);
    } else {
      fail_unknown({flags.back(), 0, {}}, "section", section, sections);
    }
  }
  const std::string preset = is_path(name_or_path) ? "" : name_or_path + ".toml";
  Device device = decode_overridden(preset, flags, [&] {
    raise_name_plate(root, said);
    return decode_device(root, described.copy_bandwidth.provenance);
  });
  device.timed_rates = described.rates;
  return device;
}

}  // namespace lambcast
