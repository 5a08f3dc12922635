// Checks of internal invariants. They stay on in release builds: a simulator that continues after a
// broken invariant prints useless numbers.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace lambcast {

// Thrown for a broken invariant of lambcast itself, never for a user's mistake.
class InternalError : public std::logic_error {
  using std::logic_error::logic_error;
};

[[noreturn]] inline void fail_check(const char* condition, const char* file, int line,
                                    const std::string& detail) {
  throw InternalError(fmt::format("{}:{}: {} does not hold: {}", file, line, condition, detail));
}

}  // namespace lambcast

// Example: LAMBCAST_CHECK(rank < ranks, "rank {} of {}", rank, ranks);
#define LAMBCAST_CHECK(condition, ...)                                                  \
  do {                                                                                  \
    if (!(condition)) [[unlikely]]                                                      \
      ::lambcast::fail_check(#condition, __FILE__, __LINE__, fmt::format(__VA_ARGS__)); \
  } while (false)
