// One column of the page's rows (listing.h) in compact form: texts are stored once, and a column
// with equal rows is written once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "experiments/report/packed_cells.h"
#include "experiments/report/text_map.h"

namespace lambcast::report {

class Column {
 public:
  // Role of a column in the page's script.
  enum class Kind {
    key,     // a setting; rows are filtered by it and drawn over it if it varies
    figure,  // a forecast number
    detail,  // a number behind a figure: an end of its interval, or a part of a step
    fact,    // a text about the sources of a row
  };

  // `title` is the heading in results.csv, `label` the displayed one. Numbers are divided by
  // `unit`.
  Column(std::string title, std::string label, Kind kind, double unit);

  const std::string& title() const { return title_; }
  const std::string& label() const { return label_; }
  Kind kind() const { return kind_; }
  bool is_text() const { return kind_ == Kind::key || kind_ == Kind::fact; }
  bool differs() const { return differs_; }
  bool empty() const;

  // Returns the index of a text of a key or fact among its names, in the order of arrival.
  // Consecutive rows mostly have the same text, which is then not looked up again.
  std::uint32_t place_of(std::string_view text) {
    return last_ < names_.size() && names_[last_] == text ? last_ : look_up(text);
  }
  std::size_t names() const { return names_.size(); }

  // Adds the value of the next row; `place` is the index of a name of a key or fact.
  void add(std::uint32_t place);
  void add(std::string_view number);
  std::uint32_t place(std::size_t row) const { return differs_ ? places_[row] : place_; }
  void keep_only(const std::vector<bool>& wanted);

  // Returns the most bytes that a cell takes on a page of many rows; 0 if all rows are equal.
  std::size_t cell_bytes() const;

  // Appends {"key": title, "label": label, "kind": "figure", "cells": [...]}, or "same" in place of
  // "cells" if all rows are equal. Cells of texts are indices into "names". Many rows are packed
  // (packed_cells.h): "packed" with "width" and, for numbers, "values", or "decimals" with "least"
  // and "powers". The text cannot end the script element that contains it.
  void append_json(std::string& out) const;

 private:
  // Limit of the distinct numbers that are listed.
  static constexpr std::size_t most_values = 8000;

  std::uint32_t look_up(std::string_view text);
  void know(float number);
  std::vector<std::uint32_t> append_names(std::string& out) const;
  void append_cells(std::string& out, const std::vector<std::uint32_t>& shown) const;
  void append_packed_cells(std::string& out, const std::vector<std::uint32_t>& shown) const;

  std::string title_, label_;
  Kind kind_;
  double unit_;
  std::size_t rows_ = 0;
  bool differs_ = false;
  std::uint32_t place_ = 0;  // value of all rows while they are equal
  float number_ = 0;         // number in the last row
  std::string said_;         // text of that number
  std::vector<std::uint32_t> places_;
  std::vector<float> numbers_;
  // from the bits of numbers to their indices
  std::unordered_map<std::uint32_t, std::uint32_t> values_;
  std::vector<float> by_place_;
  Decimals decimals_;
  TextMap<std::uint32_t> known_;
  std::uint32_t last_ = 0;  // last result of place_of
  std::vector<std::string> names_;
};

// Returns a JSON string without control characters, which cannot end the script element that
// contains it.
std::string json_text(std::string_view text);

}  // namespace lambcast::report
