// For tests: a complete what-if, changes of it, and the resulting scenario.
#pragma once

#include <catch2/catch.hpp>

#include "experiments/scenario/scenario.h"
#include "sim/base/error.h"

namespace lambcast {

inline WhatIf complete() {
  return {{"model", "bert-large"},
          {"cluster", "paper-eth40-v100"},
          {"gpus", "64"},
          {"optimizer", "onebit_lamb"},
          {"global_batch", "65536"},
          {"micro_batch", "16"},
          {"steps", "5993"},
          {"freeze_step", "1001"}};
}

inline WhatIf with(const WhatIf& changes, WhatIf base = complete()) {
  for (const auto& [key, value] : changes) base.insert_or_assign(key, value);
  return base;
}

inline WhatIf without(const std::vector<std::string>& keys, const WhatIf& changes = {}) {
  WhatIf what_if = with(changes);
  for (const std::string& key : keys) what_if.erase(key);
  return what_if;
}

inline Scenario resolved(const WhatIf& what_if) {
  Catalog catalog;
  return resolve(what_if, catalog);
}

// Returns the error message of a what-if; empty if it is accepted.
inline std::string refusal(const WhatIf& what_if) {
  try {
    resolved(what_if);
    return {};
  } catch (const Error& error) {
    CHECK(error.code() == Exit::usage);
    return error.what();
  }
}

}  // namespace lambcast
