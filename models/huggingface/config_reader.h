// Reads keys of a config.json and records which keys were read, with their places.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/deepspeed/hjson.h"
#include "sim/base/error.h"

namespace lambcast::huggingface {

class ConfigReader {
 public:
  ConfigReader(const hjson::Value& root, const std::string& file) : root_(root), file_(file) {}

  Where where(std::string_view key) const;

  // Returns the value of a key. Null counts as absent: transformers writes both.
  const hjson::Value* find(std::string_view key);
  bool has(std::string_view key) { return find(key) != nullptr; }
  bool is_null(std::string_view key);  // written as null, not absent

  // All of these throw Error (usage) with file, line and key if a value has another type or is out
  // of range. Functions without `otherwise` also throw if the key is absent.
  std::int64_t whole(std::string_view key, std::int64_t low, std::int64_t high);
  std::optional<std::int64_t> optional_whole(std::string_view key, std::int64_t low,
                                             std::int64_t high);
  bool truth(std::string_view key, bool otherwise);
  double share(std::string_view key);  // 0 if it is absent
  std::string word(std::string_view key);

  [[noreturn]] void refuse(std::string_view key, std::string_view what,
                           std::string_view allowed) const;

  const std::vector<std::string>& asked() const { return asked_; }  // keys in order of look-up
  // Returns whether the key was looked up by any function.
  bool was_asked(std::string_view key) const;

  // Throws Error for a key that is close to one that was looked up but absent: it is probably
  // misspelt.
  void refuse_misspelt() const;

 private:
  [[noreturn]] void fail_missing(std::string_view key) const;

  const hjson::Value& root_;
  const std::string& file_;
  std::vector<std::string> asked_;
};

}  // namespace lambcast::huggingface
