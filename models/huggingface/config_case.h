// For tests: the model that a config.json describes, and the error of a file that describes none.
#pragma once

#include <catch2/catch.hpp>
#include <string>

#include "models/huggingface/config.h"
#include "models/shape/load.h"
#include "sim/base/error.h"

namespace lambcast::huggingface {

inline ModelShape shape_of(const std::string& json) {
  const std::string text = description_of(json, "x/config.json");
  INFO(text);
  return load_model(Table::parse(text, "x.toml"), "./x.toml", {});
}

// Returns the error message for a file; empty if it is not refused.
inline std::string refusal(const std::string& json) {
  try {
    description_of(json, "config.json");
  } catch (const Error& error) {
    CHECK(error.code() == Exit::usage);
    return error.what();
  }
  return "";
}

}  // namespace lambcast::huggingface
