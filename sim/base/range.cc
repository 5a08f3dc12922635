#include "sim/base/range.h"

#include <fmt/format.h>

#include <string>

namespace lambcast {
namespace {

std::string text_of(double value) { return fmt::format("{}", value); }
std::string text_of(Bandwidth value) {
  constexpr struct {
    double unit;
    const char* name;
  } units[] = {{1e12, "TB/s"}, {1e9, "GB/s"}, {1e6, "MB/s"}, {1e3, "kB/s"}};
  for (const auto& [unit, name] : units)
    if (value.value() >= unit) return fmt::format("{:.6g} {}", value.value() / unit, name);
  return fmt::format("{:.6g} B/s", value.value());
}
std::string text_of(Bytes value) { return to_text(value); }
std::string text_of(Duration value) { return to_text(value); }
std::string text_of(FlopRate value) { return fmt::format("{:.4g} TFLOP/s", value.value() * 1e-12); }

template <typename T>
void refuse_outside(const Table& table, std::string_view key, T value, const Range<T>& range) {
  if (value >= range.low && value <= range.high) return;
  fail_input(table.where(key), fmt::format("{} is out of range", text_of(value)),
             fmt::format("{} to {}", text_of(range.low), text_of(range.high)));
}

}  // namespace

void require(const Table& table, std::string_view key, double value, const Range<double>& range) {
  refuse_outside(table, key, value, range);
}
void require(const Table& table, std::string_view key, Bandwidth value,
             const Range<Bandwidth>& range) {
  refuse_outside(table, key, value, range);
}
void require(const Table& table, std::string_view key, FlopRate value,
             const Range<FlopRate>& range) {
  refuse_outside(table, key, value, range);
}
void require(const Table& table, std::string_view key, Bytes value, const Range<Bytes>& range) {
  refuse_outside(table, key, value, range);
}
void require(const Table& table, std::string_view key, Duration value,
             const Range<Duration>& range) {
  refuse_outside(table, key, value, range);
}

}  // namespace lambcast
