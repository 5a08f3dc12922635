#include "experiments/report/column.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "sim/base/json.h"
#include "sim/base/printable.h"

namespace lambcast::report {
namespace {

constexpr float no_number = std::numeric_limits<float>::quiet_NaN();

constexpr std::size_t least_packed = 512;  // rows from which on cells are packed
constexpr std::size_t most_text = 12;      // bytes of the longest number, with a comma

bool same_float(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::string_view name_of(Column::Kind kind) {
  switch (kind) {
    case Column::Kind::key:
      return "key";
    case Column::Kind::figure:
      return "figure";
    case Column::Kind::detail:
      return "detail";
    case Column::Kind::fact:
      return "fact";
  }
  return {};
}

// Returns the name as JSON: a number if it is one, else text. A freeze_step of "10%" stays text.
std::string name_json(const std::string& name) {
  const auto value = number_of(name);
  return value ? fmt::format("{}", *value) : json_text(name);
}

// Appends a number with five digits; whole numbers are unchanged.
void append_number(std::string& out, float value) {
  if (std::isnan(value)) {
    out += "null";
    return;
  }
  std::array<char, 32> text;
  char* const end = text.data() + text.size();
  const bool whole = value == std::floor(value) && std::abs(value) < 1e7F;
  out.append(text.data(),
             whole ? std::to_chars(text.data(), end, static_cast<int>(value)).ptr
                   : std::to_chars(text.data(), end, value, std::chars_format::general, 5).ptr);
}

template <typename T>
void keep(std::vector<T>& values, const std::vector<bool>& wanted) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (wanted[i]) values[kept++] = values[i];
  values.resize(kept);
}

}  // namespace

std::string json_text(std::string_view text) {
  std::string json;
  for (const char c : json_string(printable(text))) {
    if (c == '<') {
      json += "\\u003c";
    } else {
      json += c;
    }
  }
  return json;
}

Column::Column(std::string title, std::string label, Kind kind, double unit)
    : title_(std::move(title)), label_(std::move(label)), kind_(kind), unit_(unit) {}

bool Column::empty() const {
  if (differs_) return false;
  return rows_ == 0 || (is_text() ? names_[place_].empty() : std::isnan(number_));
}

std::uint32_t Column::look_up(std::string_view text) {
  if (const auto place = known_.find(text); place != known_.end()) return last_ = place->second;
  last_ = static_cast<std::uint32_t>(names_.size());
  known_.emplace(text, last_);
  names_.emplace_back(text);
  return last_;
}

void Column::add(std::uint32_t place) {
  if (!differs_ && rows_ > 0 && place != place_) {
    places_.assign(rows_, place_);
    differs_ = true;
  }
  if (differs_) places_.push_back(place);
  place_ = place;
  ++rows_;
}

void Column::add(std::string_view text) {
  float number = number_;
  if (rows_ == 0 || text != said_) {
    said_ = text;
    const auto value = number_of(text);
    number = value ? static_cast<float>(*value / unit_) : no_number;
    know(number);
  }
  if (!differs_ && rows_ > 0 && !same_float(number, number_)) {
    numbers_.assign(rows_, number_);
    differs_ = true;
  }
  if (differs_) numbers_.push_back(number);
  number_ = number;
  ++rows_;
}

void Column::know(float number) {
  decimals_.add(number);
  if (values_.size() > most_values) return;
  const auto next = static_cast<std::uint32_t>(by_place_.size());
  if (!values_.try_emplace(std::bit_cast<std::uint32_t>(number), next).second) return;
  by_place_.push_back(number);
}

std::size_t Column::cell_bytes() const {
  if (!differs_) return 0;
  if (is_text()) return static_cast<std::size_t>(packed_width(names_.size()));
  if (values_.size() <= most_values) return static_cast<std::size_t>(packed_width(values_.size()));
  return decimals_.possible() ? static_cast<std::size_t>(decimals_.width()) : most_text;
}

void Column::keep_only(const std::vector<bool>& wanted) {
  rows_ = static_cast<std::size_t>(std::count(wanted.begin(), wanted.end(), true));
  if (!differs_) return;
  keep(places_, wanted);
  keep(numbers_, wanted);
}

void Column::append_json(std::string& out) const {
  out += fmt::format(R"({{"key":{},"label":{},"kind":"{}")", json_text(title_), json_text(label_),
                     name_of(kind_));
  const std::vector<std::uint32_t> shown = append_names(out);
  if (!differs_) {
    out += ",\"same\":";
    if (is_text())
      out += fmt::format_int(shown[place_]).c_str();
    else
      append_number(out, number_);
  } else if (rows_ < least_packed || cell_bytes() == most_text) {
    append_cells(out, shown);
  } else {
    append_packed_cells(out, shown);
  }
  out += '}';
}

// Appends the names that occur in kept rows. Returns the new index of each name.
std::vector<std::uint32_t> Column::append_names(std::string& out) const {
  std::vector<std::uint32_t> shown(names_.size());
  if (!is_text()) return shown;
  for (std::size_t row = 0; row < (differs_ ? rows_ : 1); ++row) shown[place(row)] = 1;
  out += ",\"names\":[";
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (shown[i] == 0) continue;
    if (count > 0) out += ',';
    out += name_json(names_[i]);
    shown[i] = count++;
  }
  out += ']';
  return shown;
}

void Column::append_cells(std::string& out, const std::vector<std::uint32_t>& shown) const {
  out += ",\"cells\":[";
  for (std::size_t row = 0; row < rows_; ++row) {
    if (row > 0) out += ',';
    if (is_text())
      out += fmt::format_int(shown[place(row)]).c_str();
    else
      append_number(out, numbers_[row]);
  }
  out += ']';
}

void Column::append_packed_cells(std::string& out, const std::vector<std::uint32_t>& shown) const {
  const bool listed = !is_text() && values_.size() <= most_values;
  const bool decimals = !is_text() && !listed;
  const int width = static_cast<int>(cell_bytes());
  if (listed) {
    out += ",\"values\":[";
    for (std::size_t i = 0; i < by_place_.size(); ++i) {
      if (i > 0) out += ',';
      append_number(out, by_place_[i]);
    }
    out += ']';
  }
  if (decimals)
    out += fmt::format(",\"least\":{},\"powers\":{}", decimals_.least(), decimals_.powers());
  out += fmt::format(",\"width\":{},\"{}\":\"", width, decimals ? "decimals" : "packed");
  for (std::size_t row = 0; row < rows_; ++row) {
    if (is_text())
      append_packed(out, shown[places_[row]], width);
    else if (listed)
      append_packed(out, values_.at(std::bit_cast<std::uint32_t>(numbers_[row])), width);
    else
      append_packed(out, decimals_.code(numbers_[row]), width);
  }
  out += '"';
}

}  // namespace lambcast::report
