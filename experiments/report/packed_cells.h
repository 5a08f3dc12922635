// Cells of long columns as printable characters, with the same number for each row. A page of
// 100,000 rows then takes a third of the bytes of numbers as text. Numbers keep five digits, as in
// text; so do whole numbers in a column with fractions.
//
//   places    index of a text among the names, or of a number among the values of its column
//   decimals  numbers of five digits m * 10^e, stored as digits, e and sign; columns with fewer
//             powers of ten take fewer characters
//
// The page's script reads both (page/rows.js).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace lambcast::report {

// Returns the number of characters for a number below `values`.
int packed_width(std::size_t values);

// Appends `value` as `width` characters, the most significant first.
void append_packed(std::string& out, std::uint32_t value, int width);

// Encodes the numbers of a column as decimals.
class Decimals {
 public:
  void add(float value);
  // Returns whether five digits suffice. They do not if all values are whole numbers and one needs
  // more digits. Precondition of width(), code(), least() and powers().
  bool possible() const { return !long_whole_ || fraction_; }
  int width() const;
  // Returns the code of a number that was added; code 0 stands for an empty cell, code 1 for zero.
  std::uint32_t code(float value) const;
  // The least exponent e, and the number of powers of ten from there on.
  int least() const { return least_; }
  int powers() const { return most_ - least_ + 1; }

 private:
  bool any_ = false, negative_ = false, fraction_ = false, long_whole_ = false;
  int least_ = 0, most_ = 0;
};

}  // namespace lambcast::report
