// Reads typed values of keys from a launcher's file and records the effect of each key.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/deepspeed/hjson.h"
#include "models/launchers/launcher_file.h"

namespace lambcast::launchers {

class KeyReader {
 public:
  // `prefix`, "" or "section.", precedes keys in messages and in the ledger.
  KeyReader(const hjson::Value& map, std::string prefix, const std::string& file,
            LauncherFile& result)
      : map_(map), prefix_(std::move(prefix)), file_(file), result_(result) {}

  // Returns `other` if the file has that key, else `key`.
  std::string_view either(std::string_view key, std::string_view other) {
    result_.keys.applied.insert(full(other));
    return map_.find(other) == nullptr ? key : other;
  }

  // Returns the value of a key, and marks it as applied. Null counts as absent.
  const hjson::Value* find(std::string_view key);
  std::optional<KeyReader> section(std::string_view key);
  // All throw Error (usage) with file, line and key for a value of another type.
  std::optional<std::int64_t> whole(std::string_view key, std::int64_t low = 1);
  std::optional<double> number(std::string_view key);
  bool truth(std::string_view key, bool otherwise);
  std::string word(std::string_view key, std::string_view otherwise = "");  // text in lower case
  std::string text(std::string_view key);                                   // text as written

  // Returns whether a key has the value `word`; if so, marks the key as applied.
  bool says(std::string_view key, std::string_view word);

  // Sets a what-if key to a whole number if the file has the key.
  void copy(std::string_view key, const char* what_if);
  void set(const char* what_if, std::string_view value);
  // Adds a note on a part of the file that costs time and is not in the forecast.
  void leave_out(std::string_view key, std::string_view what);
  [[noreturn]] void refuse(std::string_view key, std::string_view what, std::string_view allowed);

  // Sets the effect of a key.
  LedgerEntry& entry(std::string_view key, Treatment treatment, std::string_view reason);

  // Adds the keys that were not looked up to the ledger: costless with the reason of their group,
  // or named in one finding.
  void finish(const std::vector<CostlessKeys>& costless);

 private:
  Where where(std::string_view key) const;
  std::string full(std::string_view key) const { return prefix_ + std::string(key); }

  const hjson::Value& map_;
  std::string prefix_;
  const std::string& file_;
  LauncherFile& result_;
};

}  // namespace lambcast::launchers
