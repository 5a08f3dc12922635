// Values that no machine has, refused where they stand: a rate a thousand times beyond what is
// built, a share above one, a price without end. The forecast of one would be a number too.
#pragma once

#include <string_view>

#include "sim/base/provenance.h"
#include "sim/base/table.h"
#include "sim/base/units.h"

namespace lambcast {

template <typename T>
struct Range {
  T low, high;  // both allowed
};

// Throws Error (usage) naming the place of `key` in `table` and what is allowed there.
void require(const Table& table, std::string_view key, double value, const Range<double>& range);
void require(const Table& table, std::string_view key, Bandwidth value,
             const Range<Bandwidth>& range);
void require(const Table& table, std::string_view key, FlopRate value,
             const Range<FlopRate>& range);
void require(const Table& table, std::string_view key, Bytes value, const Range<Bytes>& range);
void require(const Table& table, std::string_view key, Duration value,
             const Range<Duration>& range);

// The value of `key`, within the range; `otherwise` where the table has none.
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

// Anything that moves or computes, with a factor of ten and more to spare on either side.
inline constexpr Range<Bandwidth> any_bandwidth{Bandwidth(1e3), Bandwidth(1e14)};
inline constexpr Range<FlopRate> any_flop_rate{FlopRate(1e9), FlopRate(1e18)};
inline constexpr Range<Duration> any_latency{Duration(), Duration::picoseconds(10'000'000'000'000)};

}  // namespace lambcast
