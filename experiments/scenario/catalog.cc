#include "experiments/scenario/catalog.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <system_error>

#include "experiments/scenario/invalid_value.h"
#include "models/huggingface/config.h"
#include "models/megatron/arguments.h"
#include "models/shape/load.h"
#include "sim/base/file.h"
#include "sim/base/fnv.h"
#include "topologies/cluster.h"
#include "topologies/foreign_description.h"

namespace lambcast {
namespace {

// Limits of the cache: number of descriptions of each kind, number of shared clusters, tensors of
// all models. A cluster takes some ten kilobytes; a model grows with its layers, so models are
// limited by the sum of their tensors.
constexpr std::size_t most_remembered = 1024, most_shared = 4096, most_tensors = 100'000;

std::string key_of(const std::string& name, const Overrides& overrides) {
  std::string key = name;
  for (const auto& [path, value] : overrides) key += fmt::format("\n{}={}", path, value);
  return key;
}

template <typename T, typename Load>
std::shared_ptr<const T> once_shared(std::map<std::string, std::shared_ptr<const T>>& remembered,
                                     const std::string& key, Load load) {
  if (const auto known = remembered.find(key); known != remembered.end()) return known->second;
  if (remembered.size() >= most_remembered) remembered.clear();
  return remembered[key] = load();
}

template <typename T, typename Load>
std::shared_ptr<const T> once(std::map<std::string, std::shared_ptr<const T>>& remembered,
                              const std::string& key, Load load) {
  return once_shared(remembered, key, [&] { return std::make_shared<const T>(load()); });
}

std::size_t tensors_of(const std::map<std::string, std::shared_ptr<const ModelShape>>& models) {
  std::size_t tensors = 0;
  for (const auto& [key, model] : models) tensors += model->tensors.size();
  return tensors;
}

// Returns the name that messages use: a preset is named by the file from which it was compiled.
std::string file_of(const std::string& name) { return is_path(name) ? name : name + ".toml"; }

const Table& parsed(std::map<std::string, Table>& tables, const std::string& what,
                    const std::string& text, const std::string& name) {
  const auto known = tables.find(what);
  if (known != tables.end()) return known->second;
  return tables.emplace(what, Table::parse(text, file_of(name))).first->second;
}

// Throws Error (usage) if the name is a folder, such as a checkpoint of Hugging Face, and not a
// preset. A path to a folder must contain a slash.
void refuse_folder(const std::string& name) {
  std::error_code none;
  if (name.empty() || find_model_preset(name) != nullptr ||
      !std::filesystem::is_directory(name, none))
    return;
  fail_input({"", 0, "--model"}, fmt::format("'{}' is not a preset, but a folder", name),
             fmt::format("./{} to read its config.json", name));
}

// Returns the description of a model given as a file of another program: a config.json of Hugging
// Face, or arguments of Megatron-LM. Nothing if the file is a description already.
std::optional<std::string> translated(const std::string& text, const std::string& name) {
  if (is_config_json(text)) return huggingface::description_of(text, name);
  for (const char* argument : {"--num-layers", "--num_layers"})
    if (text.find(argument) != std::string::npos) return megatron::decode(text, name).model;
  return std::nullopt;
}

const Table& parsed_model(std::map<std::string, Table>& tables, const std::string& text,
                          const std::string& name) {
  const std::string what = "model " + name;
  if (const auto known = tables.find(what); known != tables.end()) return known->second;
  const auto description = is_path(name) ? translated(text, name) : std::nullopt;
  if (!description) return parsed(tables, what, text, name);
  const std::string origin = fmt::format("{} as a description", name);
  return tables.emplace(what, Table::parse(*description, origin)).first->second;
}

// Returns the key whose value the message is about. Returns `prefix` if there is none, since a
// missing key has no value.
std::string key_at_fault(const std::string& prefix, const Overrides& overrides,
                         std::string_view message) {
  for (const auto& [key, value] : overrides) {
    const std::string place = fmt::format("--set {}{}", prefix, key);
    if (message.starts_with(place + ":") || message.starts_with(place + "=")) return prefix + key;
  }
  return prefix;
}

}  // namespace

bool is_config_json(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && text[begin] == '{';
}

template <typename Read>
const std::string& DescriptionTexts::once(const std::string& what, Read read) {
  const std::lock_guard lock(mutex_);
  const auto known = texts_.find(what);
  return known != texts_.end() ? known->second : texts_.emplace(what, read()).first->second;
}

const std::string& DescriptionTexts::cluster(const std::string& name) {
  return once("cluster " + name, [&] { return cluster_description(name); });
}

const std::string& DescriptionTexts::model(const std::string& name) {
  return once("model " + name, [&] {
    if (is_path(name)) return read_file(name);
    refuse_folder(name);
    return std::string(model_preset_text(name));
  });
}

const std::string& DescriptionTexts::device(const std::string& name) {
  return once("device " + name,
              [&] { return is_path(name) ? read_file(name) : device_text(name); });
}

const std::string& DescriptionTexts::config(const std::string& path) {
  return once("config " + path, [&] { return read_file(path, 16); });
}

void DescriptionTexts::add(const std::string& what, const std::string& text) {
  once(what, [&] { return text; });
}

std::shared_ptr<const Cluster> DescriptionTexts::decoded(const std::string& key,
                                                         const std::function<Cluster()>& decode) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = clusters_.find(key); known != clusters_.end()) return known->second;
  }
  const auto cluster = std::make_shared<const Cluster>(decode());
  const std::lock_guard lock(mutex_);
  if (clusters_.size() < most_shared) clusters_.emplace(key, cluster);
  return cluster;
}

std::map<std::string, std::string> DescriptionTexts::texts() const {
  const std::lock_guard lock(mutex_);
  return texts_;
}

std::map<std::string, std::string> DescriptionTexts::hashes() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, std::string> hashes;
  for (const auto& [what, text] : texts_) hashes[what] = "fnv1a64:" + fnv1a64(text);
  return hashes;
}

std::shared_ptr<const Cluster> Catalog::cluster(const std::string& name,
                                                const Overrides& overrides) {
  const auto load = [&](const Overrides& changes) {
    const std::string key = key_of(name, changes);
    const auto decode = [&] {
      return load_cluster(parsed(parsed_, "cluster " + name, texts_->cluster(name), name), name,
                          changes);
    };
    return once_shared(clusters_, key, [&] { return texts_->decoded(key, decode); });
  };
  return of_key("cluster", [&] {
    try {
      return load(overrides);
    } catch (const Error& error) {
      if (overrides.empty()) throw;
      load({});  // throws if the description itself is invalid
      throw InvalidValue(key_at_fault("cluster.", overrides, error.what()), error.what());
    }
  });
}

std::shared_ptr<const ModelShape> Catalog::model(const std::string& name,
                                                 const Overrides& overrides) {
  const auto load = [&](const Overrides& changes) {
    return once(models_, key_of(name, changes), [&] {
      if (tensors_of(models_) > most_tensors) models_.clear();
      std::vector<ModelOverride> of_model;
      for (const auto& [key, value] : changes) of_model.push_back({"model." + key, value});
      return load_model(parsed_model(parsed_, texts_->model(name), name).copy(), name, of_model);
    });
  };
  return of_key("model", [&] {
    try {
      return load(overrides);
    } catch (const Error& error) {
      if (overrides.empty()) throw;
      load({});
      throw InvalidValue(key_at_fault("model.", overrides, error.what()), error.what());
    }
  });
}

std::shared_ptr<const Device> Catalog::device(const std::string& name, const Overrides& overrides) {
  const auto load = [&](const Overrides& changes) {
    return once(devices_, key_of(name, changes), [&] {
      return load_device(parsed(parsed_, "device " + name, texts_->device(name), name), name,
                         changes);
    });
  };
  return of_key("device", [&] {
    try {
      return load(overrides);
    } catch (const Error& error) {
      if (overrides.empty()) throw;
      load({});
      throw InvalidValue(key_at_fault("device.", overrides, error.what()), error.what());
    }
  });
}

std::shared_ptr<const deepspeed::DeepSpeedConfig> Catalog::config(const std::string& path) {
  return of_key("config", [&] {
    return once(configs_, path,
                [&] { return deepspeed::parse_config(texts_->config(path), path); });
  });
}

}  // namespace lambcast
