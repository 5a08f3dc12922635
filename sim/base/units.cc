#include "sim/base/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include "sim/base/check.h"

namespace lambcast {
namespace {

struct Unit {
  std::string_view name;
  double scale;
};

constexpr std::array<Unit, 7> duration_units{
    {{"ps", 1e-12}, {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}}};
constexpr std::array<Unit, 10> byte_units{{{"B", 1},
                                           {"kB", 1e3},
                                           {"MB", 1e6},
                                           {"GB", 1e9},
                                           {"TB", 1e12},
                                           {"KiB", 0x1p10},
                                           {"MiB", 0x1p20},
                                           {"GiB", 0x1p30},
                                           {"TiB", 0x1p40},
                                           {"PB", 1e15}}};
constexpr std::array<Unit, 14> bandwidth_units{{{"Gbit/s", 1e9 / 8},
                                                {"Mbit/s", 1e6 / 8},
                                                {"Tbit/s", 1e12 / 8},
                                                {"kbit/s", 1e3 / 8},
                                                {"bit/s", 1.0 / 8},
                                                {"GB/s", 1e9},
                                                {"MB/s", 1e6},
                                                {"TB/s", 1e12},
                                                {"GiB/s", 0x1p30},
                                                {"MiB/s", 0x1p20},
                                                {"B/s", 1},
                                                {"Gbps", 1e9 / 8},
                                                {"Mbps", 1e6 / 8},
                                                {"kB/s", 1e3}}};
constexpr std::array<Unit, 4> flop_rate_units{
    {{"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}, {"FLOP/s", 1}}};

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

double parse_quantity(std::string_view text, std::span<const Unit> units, std::string_view what,
                      const Where& where) {
  std::string allowed = "a number and a unit, one of";
  for (const Unit& unit : units) allowed += fmt::format(" {}", unit.name);
  const std::string_view trimmed = trim(text);
  double number = 0;
  const auto [end, status] =
      std::from_chars(trimmed.data(), trimmed.data() + trimmed.size(), number);
  if (status != std::errc{} || !std::isfinite(number))
    fail_input(where, fmt::format("'{}' is not a {}", text, what), allowed);
  const std::string_view unit_text =
      trim(trimmed.substr(static_cast<std::size_t>(end - trimmed.data())));
  if (unit_text.empty())
    fail_input(where, fmt::format("'{}' has no unit for a {}", text, what), allowed);
  for (const Unit& unit : units) {
    if (unit.name != unit_text) continue;
    if (number < 0) fail_input(where, fmt::format("a {} cannot be negative: '{}'", what, text));
    const double value = number * unit.scale;
    if (!std::isfinite(value)) fail_input(where, fmt::format("'{}' is out of range", text));
    return value;
  }
  fail_input(where, fmt::format("'{}' is not a unit of {}", unit_text, what), allowed);
}

double positive(double value, std::string_view text, std::string_view what, const Where& where) {
  if (!(value > 0)) fail_input(where, fmt::format("a {} must be above zero: '{}'", what, text));
  return value;
}

// Formats four significant digits, without trailing zeros; larger whole numbers have all digits.
std::string digits(double value) {
  return value >= 9999.5 && value < 1e15 ? fmt::format("{:.0f}", value)
                                         : fmt::format("{:.4g}", value);
}

}  // namespace

Duration Duration::seconds(double s) {
  constexpr double longest_s = 9.2e6;  // 2^63 ps
  if (!std::isfinite(s) || s < 0 || s > longest_s)
    throw TooLong(
        Exit::usage,
        fmt::format("a time of {} s is outside what can be simulated (0 s to 106 days)", s));
  return picoseconds(std::llround(s * 1e12));
}

Duration operator+(Duration a, Duration b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a.ps_, b.ps_, &sum)) [[unlikely]]
    throw TooLong(Exit::usage, "the simulated time passes 106 days, more than can be simulated");
  return Duration(sum);
}

Duration operator*(Duration a, std::int64_t n) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a.ps_, n, &product)) [[unlikely]]
    throw TooLong(Exit::usage, "the simulated time passes 106 days, more than can be simulated");
  return Duration(product);
}

Duration operator/(Bytes data, Bandwidth rate) {
  if (data.value() == 0) return Duration();
  LAMBCAST_CHECK(rate.value() > 0, "{} B over a bandwidth of {} B/s", data.value(), rate.value());
  return Duration::seconds(data.value() / rate.value());
}

Duration operator/(Flops work, FlopRate rate) {
  if (work.value() == 0) return Duration();
  LAMBCAST_CHECK(rate.value() > 0, "{} FLOP at {} FLOP/s", work.value(), rate.value());
  return Duration::seconds(work.value() / rate.value());
}

Bandwidth operator/(Bytes data, Duration time) {
  LAMBCAST_CHECK(time.ps() > 0, "{} B in no time", data.value());
  return Bandwidth(data.value() / time.s());
}

FlopRate operator/(Flops work, Duration time) {
  LAMBCAST_CHECK(time.ps() > 0, "{} FLOP in no time", work.value());
  return FlopRate(work.value() / time.s());
}

Duration parse_duration(std::string_view text, const Where& where) {
  const double s = parse_quantity(text, duration_units, "time", where);
  if (s > 9.2e6) fail_input(where, fmt::format("'{}' is over 106 days", text));
  return Duration::seconds(s);
}

Bytes parse_bytes(std::string_view text, const Where& where) {
  return Bytes(parse_quantity(text, byte_units, "data size", where));
}

Bandwidth parse_bandwidth(std::string_view text, const Where& where) {
  const double value = parse_quantity(text, bandwidth_units, "bandwidth", where);
  return Bandwidth(positive(value, text, "bandwidth", where));
}

FlopRate parse_flop_rate(std::string_view text, const Where& where) {
  const double value = parse_quantity(text, flop_rate_units, "compute rate", where);
  return FlopRate(positive(value, text, "compute rate", where));
}

std::string to_text(Duration d) {
  const double s = d.s();
  if (s == 0) return "0 s";
  if (s < 1e-6) return digits(s * 1e9) + " ns";
  if (s < 1e-3) return digits(s * 1e6) + " us";
  if (s < 1) return digits(s * 1e3) + " ms";
  if (s < 600) return digits(s) + " s";
  if (s < 7200) return digits(s / 60) + " min";
  return digits(s / 3600) + " h";
}

std::string to_text(Bytes b) {
  const double v = b.value();
  if (v < 1e3) return digits(v) + " B";
  if (v < 1e6) return digits(v / 1e3) + " kB";
  if (v < 1e9) return digits(v / 1e6) + " MB";
  if (v < 1e12) return digits(v / 1e9) + " GB";
  return digits(v / 1e12) + " TB";
}

std::string to_text_bits(Bandwidth b) {
  const double bits = b.value() * 8;
  if (bits < 1e9) return digits(bits / 1e6) + " Mbit/s";
  return digits(bits / 1e9) + " Gbit/s";
}

std::string to_text_bytes(Bandwidth b) {
  if (b.value() < 1e9) return digits(b.value() / 1e6) + " MB/s";
  return digits(b.value() / 1e9) + " GB/s";
}

}  // namespace lambcast
