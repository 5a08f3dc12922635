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

  // Returns the same document at its root, as parsed, with no key read: for repeated reading of one
  // text with different values set. Throws if a value was set already.
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
  // The same, absent allowed.
  template <typename T>
  std::optional<T> find(std::string_view key) const;
  template <typename T>
  T get_or(std::string_view key, T otherwise) const {
    return find<T>(key).value_or(std::move(otherwise));
  }
  // A whole number within [low, high].
  std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high) const;
  // One of a fixed set of words; returns its index.
  std::size_t choice(std::string_view key, const std::vector<std::string>& words) const;
  // The keys "kind" and "source" of the table; without either, `otherwise`.
  Provenance provenance_or(const Provenance& otherwise) const;

  // [key] and [[key]]; an absent table reads as empty, absent tables as none.
  Table table(std::string_view key) const;
  std::vector<Table> tables(std::string_view key) const;

  // Values as the words a flag would take: "8", "true", "1 Gbit/s"; one, or a list of them.
  std::vector<std::string> words(std::string_view key) const;
  // A single string as it stands, if the value is one.
  std::optional<std::string> find_text(std::string_view key) const;

  // The keys present here, in the file's order, counted as read: for maps whose keys are free.
  std::vector<std::string> keys() const;

  // Throws Error for every key, here and below, that was never read.
  void finish() const { refuse_unread(*this); }

  // The place of a key, or of the table itself.
  Where where(std::string_view key = {}) const;

 private:
  struct Document;
  struct Node;
  // Paths of the keys that were looked up, here and below; those in lists of tables have no fixed
  // path and are left out.
  std::vector<std::string> asked_keys() const;
  void refuse_unread(const Table& root) const;
  explicit Table(std::shared_ptr<Node> node) : node_(std::move(node)) {}
  std::shared_ptr<Node> node_;
};

}  // namespace lambcast
