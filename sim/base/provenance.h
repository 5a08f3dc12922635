// Origin of a number. Every number that enters a forecast is a Sourced value, and every forecast
// reports the kinds and sources of its numbers.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace lambcast {

// Kinds of evidence, from the strongest to the weakest.
enum class Kind { measured, published, fitted, assumed };

inline constexpr std::array<std::string_view, 4> kind_names{"measured", "published", "fitted",
                                                            "assumed"};
constexpr std::string_view name_of(Kind kind) { return kind_names[static_cast<std::size_t>(kind)]; }

struct Provenance {
  Kind kind = Kind::assumed;
  std::string source;
  bool operator==(const Provenance&) const = default;
};

template <typename T>
struct Sourced {
  T value{};
  Provenance provenance;
  bool operator==(const Sourced&) const = default;
};

}  // namespace lambcast
