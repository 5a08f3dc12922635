#include "models/deepspeed/hjson.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <string>

#include "sim/base/error.h"

namespace lambcast::hjson {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

Value read(std::string_view text) { return parse(text, "ds.json"); }

TEST_CASE("hjson: strict JSON with the line of every value") {
  const Value root =
      read("{\n  \"a\": [1, -2.5,\n true],\n  \"b\": {\"c\": null, \"d\": \"x\"}\n}\n");
  REQUIRE(root.members.size() == 2);
  const Value& a = *root.find("a");
  REQUIRE(a.kind == Kind::array);
  REQUIRE(a.items.size() == 3);
  CHECK(a.line == 2);
  CHECK(a.items[0].whole == 1);
  CHECK(a.items[1].number == -2.5);
  CHECK_FALSE(a.items[1].whole);
  CHECK(a.items[2].boolean);
  CHECK(a.items[2].line == 3);
  const Value& b = *root.find("b");
  CHECK(b.find("c")->kind == Kind::null);
  CHECK(b.find("d")->text == "x");
  CHECK(b.find("e") == nullptr);
  CHECK(root.members[1].line == 4);
}

TEST_CASE("hjson: comments, trailing commas, bare keys and newlines as separators") {
  const Value root = read(R"(# first
{
  // second
  lr: 11e-3 # third
  on: true,
  'key': 'it "is"', /* fourth,
  over two lines */
  list: [1
    2,
    3,]
})");
  REQUIRE(root.members.size() == 4);
  CHECK(root.find("lr")->number == 11e-3);
  CHECK(root.find("on")->boolean);
  CHECK(root.find("key")->text == "it \"is\"");
  REQUIRE(root.find("list")->items.size() == 3);
  CHECK(root.find("list")->line == 8);
  CHECK(root.find("list")->items[2].line == 10);
  CHECK(read("{/* at once */a: 1/**/}").find("a")->whole == 1);
}

TEST_CASE("hjson: a root without braces, an empty file and one of comments only") {
  CHECK(read("a: 1\nb: 2").find("b")->whole == 2);
  CHECK(read("").members.empty());
  CHECK(read(" # nothing\n/* at all */").members.empty());
  CHECK(read("\xEF\xBB\xBF{}").kind == Kind::object);
}

TEST_CASE("hjson: a quoteless string extends to the end of its line, including a comma") {
  const Value root = read("{ \"train_batch_size\": GB_SIZE,\n path: /data, # set\n v: 007\n}");
  CHECK(root.find("train_batch_size")->text == "GB_SIZE,");
  CHECK(root.find("train_batch_size")->kind == Kind::string);
  CHECK(root.find("path")->text == "/data, # set");
  CHECK(root.find("v")->text == "007");  // hjson-py: not a number
}

TEST_CASE("hjson: numbers are read as in Python") {
  const auto whole = [](const char* text) {
    return read(fmt::format("x: {}", text)).find("x")->whole;
  };
  CHECK(whole("0") == 0);
  CHECK(whole("-1") == -1);
  CHECK(whole("1E5") == 100000);
  CHECK(whole("5e8") == 500000000);
  CHECK(whole("64.0") == 64);
  CHECK(whole("9223372036854775807") == 9223372036854775807);
  CHECK_FALSE(whole("9223372036854775808"));  // 2^63 does not fit into int64 and exceeds 2^53
  CHECK_FALSE(whole("2.5"));
  CHECK(read("x: 9223372036854775808").find("x")->number == 0x1p63);
  for (const char* text :
       {"NaN", "Infinity", "-Infinity", "+1", ".5", "1.", "0x10", "1_000", "1e"}) {
    INFO(text);
    CHECK(read(fmt::format("x: {}", text)).find("x")->kind == Kind::string);
  }
  CHECK_THROWS_WITH(read("x: 1e999"), Contains("ds.json:1: '1e999' is out of the range"));
}

TEST_CASE("hjson: quoted strings have escapes, multiline strings lose their indentation") {
  CHECK(read(R"(s: "a\n\u00e9\ud83d\ude00\ud800")").find("s")->text ==
        "a\n\xC3\xA9\xF0\x9F\x98\x80\xEF\xBF\xBD");
  const Value root = read("{\n  s:\n    '''\n    one\n      two\n    '''\n  t: 1\n}");
  CHECK(root.find("s")->text == "one\n  two");
  CHECK(root.find("t")->line == 7);
}

TEST_CASE("hjson: every line end counts once") {
  CHECK(read("{\r\na: 1\r\nb: 2\r\n}").find("b")->line == 3);
  CHECK(read("{\ra: 1\rb: 2\r}").find("b")->line == 3);
}

TEST_CASE("hjson: duplicate keys are refused with DeepSpeed's message") {
  CHECK_THROWS_WITH(read("{\n\"lr\": 1,\n\"x\": {},\n\"lr\": 2\n}"),
                    Equals("ds.json:4: lr: Duplicate keys in DeepSpeed config: ['lr']"));
  CHECK_THROWS_WITH(read("a: {b: 1\n b: 2\n c: 1\n c: 2\n c: 3\n}"),
                    Equals("ds.json:2: b: Duplicate keys in DeepSpeed config: ['b', 'c']"));
}

TEST_CASE("hjson: text that is not HJSON is refused with its line") {
  const auto refused = [](std::string_view text, const char* sentence) {
    INFO(text);
    CHECK_THROWS_WITH(read(text), Contains(sentence));
  };
  refused("{\n\"a\": 1", "ds.json:2: the '{' of line 1 is never closed");
  refused("{\"a\": [1,\n2", "ds.json:2: the '[' of line 1 is never closed");
  refused("[1]", "the root is an array (allowed: an object)");
  refused("{} x", "text after the end");
  refused("{\"a\": }", "a value is missing");
  refused("{\"a\": 1,, \"b\": 2}", "',' where a key was expected");
  refused("{\"a\" 1}", "no ':' after the key 'a'");
  refused("{: 1}", "a ':' without a key");
  refused("{two words: 1}", "a blank after 'two', inside a key");
  refused("word", "the file ends without a ':' after 'word'");
  refused("{\"a\": \"x", "a quoted string is never closed");
  refused("{\"a\": \"x\ny\"}", "a control character or line end inside a quoted string");
  refused("{\"a\": \"\\x\"}", "an unknown escape sequence");
  refused("{\"a\": \"\\u12g4\"}", "\\u needs four hexadecimal digits");
  refused("{\"a\": '''x", "a ''' string is never closed");
  refused("{ /* x", "a comment /* is never closed");
}

TEST_CASE("hjson: any bytes are read or refused") {
  CHECK_THROWS_WITH(read("{\n\"a\": \"\xFF\"}"), Equals("ds.json:2: not UTF-8 text"));
  for (const char* bytes : {"\x80", "\xC0\x80", "\xC3", "\xE0\x80\x80", "\xED\xA0\x80",
                            "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80"})
    CHECK_THROWS_WITH(read(fmt::format("a: {}", bytes)), Contains("not UTF-8"));
  CHECK(read("a: \xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80").find("a")->text.size() == 9);
  const std::string nul("a: x\0y", 6);
  CHECK(read(nul).find("a")->text == std::string("x\0y", 3));
}

TEST_CASE("hjson: nesting is limited to protect the stack") {
  const auto nested = [](int depth, char open) {
    return fmt::format("a: {}", std::string(static_cast<std::size_t>(depth), open));
  };
  CHECK_THROWS_WITH(read(nested(1'000'000, '[')), Contains("nested more than 100 levels deep"));
  CHECK_THROWS_WITH(read(fmt::format("{{{}", nested(2'000'000, '['))),
                    Contains("nested more than 100 levels"));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "a:{";
  CHECK_THROWS_WITH(read(objects), Contains("nested more than 100 levels deep"));
  // The value of a member of the root has depth 1: 99 arrays fit within the limit of 100.
  CHECK_NOTHROW(read(nested(99, '[').append(99, ']')));
  CHECK_THROWS_AS(read(nested(100, '[').append(100, ']')), Error);
}

TEST_CASE("hjson: a file without line ends is read in linear time") {
  // 200,000 values in one line of 1.2 MB: if each value searched the remainder of its line, this
  // would take 2e11 steps.
  std::string text = "{\"a\": [";
  for (int i = 0; i < 200'000; ++i) text += "12345,";
  CHECK(read(text.append("]}")).find("a")->items.size() == 200'000);
}

}  // namespace
}  // namespace lambcast::hjson
