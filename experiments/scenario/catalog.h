// The descriptions that what-ifs name: clusters, models, devices, DeepSpeed files.
//
// The points of a sweep use the same ones, changed by a few overrides. Each text is read once, so
// that all points use the same bytes even if the file changes. Each description is parsed once, and
// an override is set in a copy of the parsed tree (a tenth of the time). Decoded descriptions are
// cached by name and overrides, up to a limit.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "models/deepspeed/config.h"
#include "models/device/device.h"
#include "models/shape/shape.h"
#include "sim/base/overrides.h"
#include "sim/base/table.h"

namespace lambcast {

struct Cluster;

// Whether the text of a model's file is JSON: a config.json of Hugging Face.
bool is_config_json(std::string_view text);

// The texts of files and presets as they were read, by "cluster mine.toml", "device v100-16g", and
// clusters decoded from them: the values of a sweep are checked before threads forecast, which
// need not decode them again. Threads may share one.
class DescriptionTexts {
 public:
  // With what was read elsewhere.
  explicit DescriptionTexts(std::map<std::string, std::string> texts = {})
      : texts_(std::move(texts)) {}

  // Throws Error (usage) for what cannot be read, and for an unknown preset.
  const std::string& cluster(const std::string& name);
  const std::string& model(const std::string& name);
  const std::string& device(const std::string& name);
  const std::string& config(const std::string& path);
  // Adds a text contained in another file, by "config NAME" or "model NAME".
  void add(const std::string& what, const std::string& text);

  // Returns the cluster of these texts by name and overrides, and decodes it if it is not cached.
  // The first ones are cached, up to a limit, as points come in the order in which they were
  // checked.
  std::shared_ptr<const Cluster> decoded(const std::string& key,
                                         const std::function<Cluster()>& decode);

  // Returns "fnv1a64:..." of all texts read so far.
  std::map<std::string, std::string> hashes() const;
  std::map<std::string, std::string> texts() const;

 private:
  template <typename Read>
  const std::string& once(const std::string& what, Read read);
  mutable std::mutex mutex_;
  std::map<std::string, std::string> texts_;
  std::map<std::string, std::shared_ptr<const Cluster>> clusters_;
};

// For one thread; what it hands out stays valid after it is forgotten here. Throws InvalidValue for
// what cannot be read or decoded.
class Catalog {
 public:
  explicit Catalog(std::shared_ptr<DescriptionTexts> texts = std::make_shared<DescriptionTexts>())
      : texts_(std::move(texts)) {}

  std::shared_ptr<const Cluster> cluster(const std::string& name, const Overrides& overrides);
  std::shared_ptr<const ModelShape> model(const std::string& name, const Overrides& overrides);
  std::shared_ptr<const Device> device(const std::string& name, const Overrides& overrides);
  std::shared_ptr<const deepspeed::DeepSpeedConfig> config(const std::string& path);

  const std::shared_ptr<DescriptionTexts>& texts() const { return texts_; }

 private:
  std::shared_ptr<DescriptionTexts> texts_;
  std::map<std::string, Table> parsed_;
  std::map<std::string, std::shared_ptr<const Cluster>> clusters_;
  std::map<std::string, std::shared_ptr<const ModelShape>> models_;
  std::map<std::string, std::shared_ptr<const Device>> devices_;
  std::map<std::string, std::shared_ptr<const deepspeed::DeepSpeedConfig>> configs_;
};

}  // namespace lambcast
