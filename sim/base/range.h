// Limits of plausible values: a rate a thousand times beyond existing hardware, a share above one
// or an infinite price is refused at its place in the file, since its forecast would look like any
// other.
#pragma once

#include <string_view>

#include "sim/base/provenance.h"
#include "sim/base/table.h"
#include "sim/base/units.h"

namespace lambcast {

template <typename T>
struct Range {
  T low, high;  // both ends are allowed
};

// Throws Error (usage) naming the place of `key` in `table` and the allowed range.
void require(const Table& table, std::string_view key, double value, const Range<double>& range);
void require(const Table& table, std::string_view key, Bandwidth value,
             const Range<Bandwidth>& range);
void require(const Table& table, std::string_view key, FlopRate value,
             const Range<FlopRate>& range);
void require(const Table& table, std::string_view key, Bytes value, const Range<Bytes>& range);
void require(const Table& table, std::string_view key, Duration value,
             const Range<Duration>& range);

// Returns the value of `key`, which must be within the range, or `otherwise` if the key is absent.
template <typename T>
Sourced<T> get_within(const Table& table, std::string_view key, const Range<T>& range,
                      Sourced<T> otherwise) {
  auto value = table.find<Sourced<T>>(key);
  if (!value) return otherwise;
  require(table, key, value->value, range);
  return std::move(*value);
}
template <typename T>
std::optional<Sourced<T>> find_within(const Table& table, std::string_view key,
                                      const Range<T>& range) {
  auto value = table.find<Sourced<T>>(key);
  if (value) require(table, key, value->value, range);
  return value;
}
template <typename T>
Sourced<T> get_within(const Table& table, std::string_view key, const Range<T>& range) {
  auto value = table.get<Sourced<T>>(key);
  require(table, key, value.value, range);
  return value;
}

// Ranges of all existing hardware, with a margin of at least a factor of ten at either end.
inline constexpr Range<Bandwidth> any_bandwidth{Bandwidth(1e3), Bandwidth(1e14)};
inline constexpr Range<FlopRate> any_flop_rate{FlopRate(1e9), FlopRate(1e18)};
inline constexpr Range<Duration> any_latency{Duration(), Duration::picoseconds(10'000'000'000'000)};

}  // namespace lambcast
