// Runs a parser on random bytes: for every text it returns or throws Error, within a short time.
//
//   FUZZ_TARGET(units, text) { parse_bytes(text, {}); }        in units_fuzz.cc
//
// defines a libFuzzer program under clang (option LAMBCAST_FUZZ, tools/fuzz). Otherwise it defines
// a test case that reads every text kept in the folder fuzz/units/ next to the source, and the
// files that ship. All findings of the fuzzer are kept there as regression tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "sim/base/error.h"

namespace lambcast {

// Calls `read`. An Error means that the parser refused the text; any other exception is a finding.
template <typename Read>
void may_refuse(Read read) {
  try {
    read();
  } catch (const Error& error) {
    if (std::string_view(error.what()).empty()) throw std::logic_error("an error without a word");
  }
}

// Calls `read` with each line of the text, for parsers of single values.
template <typename Read>
void each_line(std::string_view text, Read read) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    may_refuse([&] { read(text.substr(0, end)); });
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace lambcast

#ifdef LAMBCAST_LIBFUZZER

#define FUZZ_TARGET(name, text)                                                       \
  static void fuzz_##name(std::string_view);                                          \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { \
    const std::string bytes(reinterpret_cast<const char*>(data), size);               \
    lambcast::may_refuse([&] { fuzz_##name(bytes); });                                \
    return 0;                                                                         \
  }                                                                                   \
  static void fuzz_##name(std::string_view text)

#else

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>

namespace lambcast {

// `list` is a file that names one text per line.
inline void replay_texts(const char* list, void (*fuzz)(std::string_view)) {
  std::ifstream paths(list);
  int texts = 0;
  for (std::string path; std::getline(paths, path); ++texts) {
    INFO(path);
    std::ifstream file(path, std::ios::binary);
    REQUIRE(file);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    CHECK_NOTHROW(may_refuse([&] { fuzz(text); }));
  }
  CHECK(texts > 0);
}

}  // namespace lambcast

#define FUZZ_TARGET(name, text)                                    \
  static void fuzz_##name(std::string_view);                       \
  TEST_CASE("fuzz: kept texts of " #name " are read or refused") { \
    lambcast::replay_texts(FUZZ_TEXTS, fuzz_##name);               \
  }                                                                \
  static void fuzz_##name(std::string_view text)

#endif
