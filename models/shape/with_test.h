// A preset with some values replaced: with("gpt2", {{"model.layers", "24"}}).
#pragma once

#include <string>
#include <vector>

#include "models/shape/load.h"

namespace lambcast {

inline ModelShape with(const std::string& name, std::vector<ModelOverride> overrides) {
  return load_model(name, overrides);
}

}  // namespace lambcast
