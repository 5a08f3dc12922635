#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "sim/base/error.h"
#include "sim/base/printable.h"
#include "sim/base/shell_word.h"
#include "sim/base/shortened.h"
#include "sim/base/sort_stably.h"
#include "sim/base/units.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

TEST_CASE("shell words: texts with special characters are quoted") {
  CHECK(shell_word("gpus=16,64") == "gpus=16,64");
  CHECK(shell_word("my file") == "'my file'");
  CHECK(shell_word("it's") == "'it'\\''s'");
  CHECK(shell_word("") == "''");
}

TEST_CASE("messages: long quotations are shortened") {
  // Three bytes per character: no character is split at any length.
  std::string wide;
  for (int i = 0; i < 1'000'000; ++i) wide += "\u20ac";
  const std::string narrow(3'000'000, 'k');
  const std::vector<std::string> known{"lamb", "adam"};
  for (const std::string& value : {narrow, wide}) {
    const std::string message = describe({value, 1, value}, "'" + value + "' is wrong", value);
    CHECK(message.size() < 16'000);
    CHECK(printable(message) == message);
    CHECK_THAT(message, Contains("bytes left out]") && Contains(" is wrong"));
    CHECK(closest(value, known).empty());
    CHECK(one_line(value).size() < 21'000);
  }
  CHECK(describe({"a.toml", 2, "gpus"}, "is missing") == "a.toml:2: gpus: is missing");
  CHECK(shortened("abcdefghi", 9) == "abcdefghi");
  CHECK(shortened("abcdefghij", 9) == "abcdef [1 bytes left out] hij");
}

TEST_CASE("sort_stably: by a key or a comparison, and equal elements keep their order") {
  struct Named {
    int key;
    std::string name;
  };
  std::vector<Named> list{{2, "a"}, {1, "b"}, {2, "c"}, {1, "d"}};
  const auto names = [&] {
    std::string all;
    for (const Named& each : list) all += each.name;
    return all;
  };
  sort_stably(list, {}, &Named::key);
  CHECK(names() == "bdac");
  sort_stably(list, std::ranges::greater(), &Named::key);
  CHECK(names() == "acbd");
  sort_stably(list, [](const Named& a, const Named& b) { return a.name > b.name; });
  CHECK(names() == "dcba");
  list.clear();
  sort_stably(list, {}, &Named::key);
  CHECK(names().empty());
  CHECK(stable_order(3, [](std::size_t a, std::size_t b) { return a > b; }) ==
        std::vector<std::size_t>{2, 1, 0});
}

TEST_CASE("units: GB is decimal, GiB is binary, a bit is an eighth of a byte") {
  CHECK(parse_bytes("1 GB", {}).value() == 1e9);
  CHECK(parse_bytes("1GiB", {}).value() == 1073741824.0);
  CHECK(parse_bandwidth("10 Gbit/s", {}).value() == 1.25e9);
  CHECK(parse_bandwidth("10Gbps", {}).value() == 1.25e9);
  CHECK(parse_bandwidth("12.5 GB/s", {}).value() == 12.5e9);
  CHECK(parse_duration("5 us", {}).ps() == 5'000'000);
  CHECK(parse_flop_rate("125 TFLOP/s", {}).value() == 125e12);
}

TEST_CASE("units: a text that is not a quantity is refused with the allowed units") {
  const Where where{"cluster.toml", 12, "nic.bandwidth"};
  CHECK_THROWS_WITH(
      parse_bandwidth("100", where),
      Contains("cluster.toml:12: nic.bandwidth: '100' has no unit") && Contains("Gbit/s"));
  CHECK_THROWS_WITH(parse_bandwidth("100 GiBit", where), Contains("not a unit of bandwidth"));
  CHECK_THROWS_WITH(parse_bandwidth("-1 GB/s", where), Contains("negative"));
  CHECK_THROWS_WITH(parse_bandwidth("0 GB/s", where), Contains("above zero"));
  for (const char* text : {"nan GB", "inf GB", "", "GB", "1e999 GB", "0x10 GB"})
    CHECK_THROWS_AS(parse_bytes(text, where), Error);
  CHECK_THROWS_WITH(parse_duration("1e9 h", where), Contains("106 days"));
}

TEST_CASE("units: time is whole picoseconds and never wraps around") {
  CHECK((Bytes(1e9) / Bandwidth(1e9)).ps() == 1'000'000'000'000);
  CHECK((Bytes(0) / Bandwidth(0)).ps() == 0);
  const Duration longest = Duration::picoseconds(std::numeric_limits<std::int64_t>::max());
  CHECK_THROWS_AS(longest + Duration::picoseconds(1), Error);
  CHECK_THROWS_AS(longest * 2, Error);
  CHECK_THROWS_AS(Duration::seconds(std::nan("")), Error);
  CHECK_THROWS_AS(Duration::seconds(-1), Error);
}

TEST_CASE("units: text for people has four significant digits") {
  CHECK(to_text(Duration::microseconds(36600)) == "36.6 ms");
  CHECK(to_text(Bytes(672468612)) == "672.5 MB");
  CHECK(to_text_bits(Bandwidth(4.1e9 / 8)) == "4.1 Gbit/s");
}

TEST_CASE("errors: an unknown word gets a suggestion only if one is close") {
  const std::vector<std::string> names{"lamb", "onebit_lamb", "adam"};
  CHECK_THROWS_WITH(fail_unknown({"", 0, "--optimizer"}, "optimizer", "onebit_lam", names),
                    Equals("--optimizer: unknown optimizer 'onebit_lam', did you mean "
                           "'onebit_lamb'? (allowed: lamb, onebit_lamb, adam)"));
  // A guess replaces a list that would fill a screen.
  std::vector<std::string> many(100, "key");
  many.emplace_back("micro_batch");
  CHECK_THROWS_WITH(fail_unknown({"", 0, "--list"}, "key", "micro_bach", many),
                    Equals("--list: unknown key 'micro_bach', did you mean 'micro_batch'?"));
  CHECK_THROWS_WITH(fail_unknown({"", 0, "--list"}, "key", "zzzzzz", many),
                    Contains("(allowed: key, key"));
  CHECK(closest("sgd", names).empty());
  CHECK(closest("LAMB", names) == "lamb");
}

TEST_CASE("printable text is one line of UTF-8 without control characters") {
  CHECK(printable("a\x1b[31mb\x7f\n\tc\r") == "a [31mb   c ");
  CHECK(printable("\xc2\x9b"
                  "31m é ✓ 😀") == " 31m é ✓ 😀");
  CHECK(one_line("gpus: 0\nnodes: \x1b") == "gpus: 0; nodes:  ");
  // The invalid bytes are stray and missing continuation bytes, overlong forms, surrogates, and a
  // code point above the last one.
  CHECK(printable("\x80|\xc3|\xc0\xaf|\xed\xa0\x80|\xf5\x80\x80\x80|\xe2\x82") ==
        "\uFFFD|\uFFFD|\uFFFD\uFFFD|\uFFFD\uFFFD\uFFFD|\uFFFD\uFFFD\uFFFD\uFFFD|\uFFFD\uFFFD");
}

}  // namespace
}  // namespace lambcast
