// Loads the descriptions that what-ifs name: clusters, models, devices, DeepSpeed files.
//
// The points of a sweep use the same descriptions, changed by a few overrides. Each text is read
// once, so that all points use the same bytes even if the file changes. Each description is parsed
// once, and an override is set in a copy of the parsed tree (a tenth of the time). Decoded
// descriptions are cached by name and overrides, up to a limit.
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

// Returns whether the text of a model's file is JSON, that is, a config.json of Hugging Face.
bool is_config_json(std::string_view text);

// The texts of files and presets, by "cluster mine.toml" or "device v100-16g", and clusters decoded
// from them. The values of a sweep are checked before threads forecast, so that the threads need
// not decode the clusters again. Threads may share one object.
class DescriptionTexts {
 public:
  // Starts with texts that were read elsewhere.
  explicit DescriptionTexts(std::map<std::string, std::string> texts = {})
      : texts_(std::move(texts)) {}

  // Return the text. Throw Error (usage) if it cannot be read, and for an unknown preset.
  const std::string& cluster(const std::string& name);
  const std::string& model(const std::string& name);
  const std::string& device(const std::string& name);
  const std::string& config(const std::string& path);
  // Adds a text contained in another file, as "config NAME" or "model NAME".
  void add(const std::string& what, const std::string& text);

  // Returns the cluster of these texts by name and overrides; decodes it if it is not cached. The
  // first clusters are cached, up to a limit, since points come in the order in which they were
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

// The catalog of one thread. Returned descriptions stay valid after the catalog drops them. Throws
// InvalidValue for a description that cannot be read or decoded.
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
