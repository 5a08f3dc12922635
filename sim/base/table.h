// Strict reading of TOML descriptions (clusters, devices, models, sweeps).
//
// Three rules make a description trustworthy, and all three are enforced here:
//   * a key that is never read is an error with a suggestion, so no input is without effect;
//   * dimensioned values carry their unit ("100 Gbit/s"); a bare number is refused;
//   * a number may carry its evidence: { value = "4.1 Gbit/s", kind = "published",
//     source = "..." }. A plain "4.1 Gbit/s" counts as assumed, with the file and line as its
//     source.
// Every error names file:line and the dotted key.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/provenance.h"
#include "sim/base/units.h"

namespace lambcast {

class Table {
 public:
  // Throws Error (usage) with the parser's message and line.
  static Table parse(std::string_view text, const std::string& file);

  // Returns a copy of the document at its root, as parsed, without any key marked as read. The copy
  // allows one text to be read repeatedly, each time with other values set. Throws if a value was
  // set in this document already.
  Table copy() const;

  // Replaces or adds one value before reading, as `--set KEY=VALUE` does. `dotted_key` is relative
  // to this table; the value is taken as TOML if it is TOML ("8", "true", "[1, 2]"), otherwise as a
  // string. `origin` becomes the source of the number.
  void set(std::string_view dotted_key, std::string_view value, std::string_view origin);

  bool has(std::string_view key) const;

  // Required values. T is one of bool, std::int64_t, double, std::string, Duration, Bytes,
  // Bandwidth, FlopRate, std::vector<T> of those, or Sourced<T> of the scalar ones.
  template <typename T>
  T get(std::string_view key) const;
  // Optional values: nullopt if the key is absent.
  template <typename T>
  std::optional<T> find(std::string_view key) const;
  template <typename T>
  T get_or(std::string_view key, T otherwise) const {
    return find<T>(key).value_or(std::move(otherwise));
  }
  // Returns a whole number within [low, high].
  std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high) const;
  // Reads one of a fixed list of words and returns its index.
  std::size_t choice(std::string_view key, const std::vector<std::string>& words) const;
  // Returns the provenance of the table's keys "kind" and "source", or `otherwise` if both are
  // absent.
  Provenance provenance_or(const Provenance& otherwise) const;

  // Returns [key], or all [[key]]. An absent [key] gives an empty table, absent [[key]] an empty
  // list.
  Table table(std::string_view key) const;
  std::vector<Table> tables(std::string_view key) const;

  // Returns a value, or the values of a list, as a flag would give them: "8", "true", "1 Gbit/s".
  std::vector<std::string> words(std::string_view key) const;
  // Returns the value unchanged if it is a single string.
  std::optional<std::string> find_text(std::string_view key) const;

  // Returns the keys of this table in file order and marks them as read: for maps with free keys.
  std::vector<std::string> keys() const;

  // Throws Error for every key, here and below, that was never read.
  void finish() const { refuse_unread(*this); }

  // Returns the place of a key, or of the table itself.
  Where where(std::string_view key = {}) const;

 private:
  struct Document;
  struct Node;
  // Paths of the keys that were looked up in this table and below it, except keys in lists of
  // tables, which have no fixed path.
  std::vector<std::string> asked_keys() const;
  void refuse_unread(const Table& root) const;
  explicit Table(std::shared_ptr<Node> node) : node_(std::move(node)) {}
  std::shared_ptr<Node> node_;
};

}  // namespace lambcast
