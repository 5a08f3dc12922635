// Physical quantities as types, so that only physical operations compile.
//
//   Duration    a span of time, 64-bit integer picoseconds (106 days at most)
//   SimTime     an instant of the simulated clock; instants cannot be added
//   Bytes       an amount of data; held as a double (exact to 2^53) because an average chunk,
//               S/n, is not always whole
//   Bandwidth   bytes per second
//   Flops       floating-point operations;  FlopRate  operations per second
//
// Integer time makes results independent of summation order; picoseconds resolve one byte at
// 1 TB/s. Text always carries its unit: "100 Gbit/s", "64 MiB", "5 us". GB is 1e9 bytes, GiB is
// 2^30, a bit is an eighth of a byte. A bare number for a dimensioned value is refused.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "sim/base/error.h"

namespace lambcast {

// Thrown (usage) if a time exceeds the range of Duration.
class TooLong : public Error {
 public:
  using Error::Error;
};

class Duration {
 public:
  constexpr Duration() = default;
  static constexpr Duration picoseconds(std::int64_t ps) { return Duration(ps); }
  // Rounds to the nearest picosecond. Throws Error if the time is not finite, negative or over 106
  // days.
  static Duration seconds(double s);
  static Duration microseconds(double us) { return seconds(us * 1e-6); }

  constexpr std::int64_t ps() const { return ps_; }
  constexpr double us() const { return static_cast<double>(ps_) * 1e-6; }
  constexpr double ms() const { return static_cast<double>(ps_) * 1e-9; }
  constexpr double s() const { return static_cast<double>(ps_) * 1e-12; }
  Duration scaled(double factor) const { return seconds(s() * factor); }

  friend Duration operator+(Duration a, Duration b);
  friend constexpr Duration operator-(Duration a, Duration b) { return Duration(a.ps_ - b.ps_); }
  friend Duration operator*(Duration a, std::int64_t n);
  friend Duration operator*(std::int64_t n, Duration a) { return a * n; }
  friend constexpr double operator/(Duration a, Duration b) {
    return static_cast<double>(a.ps_) / static_cast<double>(b.ps_);
  }
  Duration& operator+=(Duration b) { return *this = *this + b; }
  friend constexpr auto operator<=>(Duration, Duration) = default;

 private:
  explicit constexpr Duration(std::int64_t ps) : ps_(ps) {}
  std::int64_t ps_ = 0;
};

class SimTime {
 public:
  constexpr SimTime() = default;
  static constexpr SimTime at(Duration since_start) { return SimTime(since_start); }
  constexpr Duration since_start() const { return since_start_; }
  friend SimTime operator+(SimTime t, Duration d) { return SimTime(t.since_start_ + d); }
  friend constexpr Duration operator-(SimTime a, SimTime b) {
    return a.since_start_ - b.since_start_;
  }
  friend constexpr auto operator<=>(SimTime, SimTime) = default;

 private:
  explicit constexpr SimTime(Duration d) : since_start_(d) {}
  Duration since_start_;
};

// A non-negative amount. Each Tag makes a type of its own, so that units cannot be mixed.
template <typename Tag>
class Amount {
 public:
  constexpr Amount() = default;
  explicit constexpr Amount(double value) : value_(value) {}
  constexpr double value() const { return value_; }

  friend constexpr Amount operator+(Amount a, Amount b) { return Amount(a.value_ + b.value_); }
  friend constexpr Amount operator-(Amount a, Amount b) { return Amount(a.value_ - b.value_); }
  friend constexpr Amount operator*(Amount a, double f) { return Amount(a.value_ * f); }
  friend constexpr Amount operator*(double f, Amount a) { return Amount(a.value_ * f); }
  friend constexpr Amount operator/(Amount a, double f) { return Amount(a.value_ / f); }
  friend constexpr double operator/(Amount a, Amount b) { return a.value_ / b.value_; }
  constexpr Amount& operator+=(Amount b) { return *this = *this + b; }
  friend constexpr auto operator<=>(Amount, Amount) = default;

 private:
  double value_ = 0;
};

using Bytes = Amount<struct BytesTag>;
using Bandwidth = Amount<struct BandwidthTag>;  // bytes per second
using Flops = Amount<struct FlopsTag>;
using FlopRate = Amount<struct FlopRateTag>;  // operations per second

// Throws Error if the rate is zero and the amount is not.
Duration operator/(Bytes data, Bandwidth rate);
Duration operator/(Flops work, FlopRate rate);
Bandwidth operator/(Bytes data, Duration time);
FlopRate operator/(Flops work, Duration time);

// Converts text to quantities. All functions refuse a bare number, an unknown unit, NaN, infinity
// and a negative value. Only parse_duration and parse_bytes accept zero. `where` names the place in
// the error.
Duration parse_duration(std::string_view text, const Where& where);    // ps ns us ms s min h
Bytes parse_bytes(std::string_view text, const Where& where);          // B kB MB GB TB KiB MiB ...
Bandwidth parse_bandwidth(std::string_view text, const Where& where);  // Gbit/s Gbps GB/s GiB/s ...
FlopRate parse_flop_rate(std::string_view text, const Where& where);   // GFLOP/s TFLOP/s PFLOP/s

// Converts quantities to text with 4 significant digits: "36.6 ms", "672 MB", "4.10 Gbit/s".
std::string to_text(Duration d);
std::string to_text(Bytes b);
std::string to_text_bits(Bandwidth b);   // networks: Mbit/s, Gbit/s
std::string to_text_bytes(Bandwidth b);  // memories and buses: GB/s

}  // namespace lambcast
