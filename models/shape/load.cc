#include "models/shape/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>

#include "embedded/model_preset_files.h"
#include "models/shape/families.h"
#include "sim/base/file.h"
#include "sim/base/overrides.h"
#include "sim/base/required_keys.h"
#include "sim/base/table.h"

namespace lambcast {
namespace {

constexpr double max_parameters = 1e15;

// Turns "presets/bert-base.toml" into "bert-base".
std::string_view preset_name(std::string_view file) {
  file.remove_prefix(file.rfind('/') + 1);
  return file.substr(0, file.rfind('.'));
}

Table parse(const std::string& name_or_path) {
  if (is_path(name_or_path)) return Table::parse(read_file(name_or_path), name_or_path);
  return Table::parse(model_preset_text(name_or_path), name_or_path + ".toml");
}

void refuse_missing(const Table& file) {
  std::vector<RequiredKey> required{{"model", "name"}, {"model", "family"}};
  std::string_view preset = "bert-large";
  const auto word = file.table("model").find_text("family");
  const auto family = std::ranges::find(families(), word.value_or(""), &Family::name);
  if (family != families().end()) {
    for (const std::string_view key : family->required) required.push_back({"model", key});
    preset = family->preset;
  }
  refuse_missing_keys(file, required, preset);
}

ModelShape build(const Table& file) {
  refuse_missing(file);
  const Table model = file.table("model");
  ModelShape shape;
  shape.name = model.get<std::string>("name");
  if (shape.name.empty()) fail_input(model.where("name"), "is empty");
  shape.provenance = model.provenance_or({Kind::assumed, model.where().file});
  std::vector<std::string> names;
  for (const Family& family : families()) names.emplace_back(family.name);
  const Family& family = families()[model.choice("family", names)];
  shape.family = family.name;
  family.build(file, model, shape);
  shape.quantized_bits = model.get_or<double>("quantized_bits", 0);
  if (shape.quantized_bits < 0 || shape.quantized_bits > 16)
    fail_input(model.where("quantized_bits"),
               fmt::format("{} is out of range", shape.quantized_bits), "0 to 16");
  file.finish();

  double total = 0;
  for (const Tensor& tensor : shape.tensors) total += static_cast<double>(tensor.elements);
  if (total > max_parameters)
    fail_input(model.where(), fmt::format("{:.3g} parameters are too many", total),
               fmt::format("up to {:.0e}", max_parameters));
  return shape;
}

}  // namespace

std::vector<std::string> model_presets() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : model_preset_files()) names.emplace_back(preset_name(file.name));
  return names;
}

std::string_view model_preset_text(std::string_view name) {
  for (const EmbeddedFile& file : model_preset_files())
    if (preset_name(file.name) == name) return file.text;
  fail_unknown({{}, 0, "--model"}, "model", name, model_presets());
}

ModelShape load_model(const std::string& name_or_path, std::span<const ModelOverride> overrides) {
  return load_model(parse(name_or_path), name_or_path, overrides);
}

ModelShape load_model(Table file, const std::string& name_or_path,
                      std::span<const ModelOverride> overrides) {
  std::vector<std::string> flags;
  for (const ModelOverride& override : overrides) {
    const std::string origin = fmt::format("--set {}={}", override.key, override.value);
    flags.push_back(fmt::format("--set {}", override.key));
    if (!override.key.starts_with("model."))
      fail_input({origin, 0, override.key}, "is not a key of a model", "model.KEY");
    file.set(override.key, override.value, origin);
  }
  const std::string preset = is_path(name_or_path) ? "" : name_or_path + ".toml";
  return decode_overridden(preset, flags, [&] { return build(file); });
}

const ModelShape* find_model_preset(std::string_view name) {
  struct Preset {
    std::once_flag is_built;
    ModelShape shape;
  };
  static std::map<std::string, Preset, std::less<>> presets = [] {
    std::map<std::string, Preset, std::less<>> unbuilt;
    for (const std::string& preset : model_presets()) unbuilt.try_emplace(preset);
    return unbuilt;
  }();
  const auto found = presets.find(name);
  if (found == presets.end()) return nullptr;
  Preset& preset = found->second;
  std::call_once(preset.is_built, [&] { preset.shape = load_model(found->first); });
  return &preset.shape;
}

const ModelShape& model_preset(std::string_view name) {
  if (const ModelShape* preset = find_model_preset(name)) return *preset;
  fail_unknown({{}, 0, "--model"}, "model", name, model_presets());
}

}  // namespace lambcast
