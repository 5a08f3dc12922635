// Cells of long columns as printable characters, of the same number for each row: a page of 100,000
// rows takes a third of what numbers as text do. Numbers keep five digits, as they do as text;
// whole numbers next to fractions do too.
//
//   places    of a text among the names, or of a number among the values of its column
//   decimals  numbers of five digits m * 10^e by the digits, e and the sign; the fewer powers of
//             ten a column has, the shorter
//
// The page's script reads both (page/rows.js).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace lambcast::report {

// Returns the characters that a number below `values` takes.
int packed_width(std::size_t values);

// Appends `value` as `width` characters, the highest first.
void append_packed(std::string& out, std::uint32_t value, int width);

// The numbers of a column as decimals.
class Decimals {
 public:
  void add(float value);
  // Whether five digits suffice: for all but columns of whole numbers with more. The rest holds
  // only then.
  bool possible() const { return !long_whole_ || fraction_; }
  int width() const;
  // A number that was added: 0 is none, 1 is zero.
  std::uint32_t code(float value) const;
  // The least e, and the powers of ten from there on.
  int least() const { return least_; }
  int powers() const { return most_ - least_ + 1; }

 private:
  bool any_ = false, negative_ = false, fraction_ = false, long_whole_ = false;
  int least_ = 0, most_ = 0;
};

}  // namespace lambcast::report
