// Reads HJSON, the relaxed JSON in which DeepSpeed reads its configuration files.
//
// On top of JSON: comments (# and // to the end of the line, /* */), keys without quotes, commas
// that may be missing at a line end or stand before a closing bracket, strings in single quotes,
// '''multiline''' strings, a root object without braces, and quoteless strings, which run to the
// end of their line, commas and comments included: `a: GB_SIZE,` is the text "GB_SIZE,".
//
// Follows hjson-py 3.1 (hjson/decoder.py) as DeepSpeed calls it (deepspeed/runtime/config.py):
// duplicate keys are an error, \r\n and \r end a line as \n does, the text must be UTF-8. It
// differs where that parser stumbles (a ''' string on the first line), in that half a surrogate
// pair becomes U+FFFD, and in that deep nesting and a root that is no object are refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lambcast::hjson {

enum class Kind { null, boolean, number, string, array, object };

// For messages.
constexpr std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return "a boolean";
    case Kind::number:
      return "a number";
    case Kind::string:
      return "text";
    case Kind::array:
      return "an array";
    case Kind::object:
      return "an object";
  }
  return "";
}

struct Member;

// One value of the tree; which members mean something depends on `kind`.
struct Value {
  Kind kind = Kind::null;
  int line = 0;  // where it starts, counted from 1
  bool boolean = false;
  double number = 0;                  // finite
  std::optional<std::int64_t> whole;  // of a number: its exact value, where it is whole and fits
  std::string text;                   // of a string: itself; of a number: as it was written
  std::vector<Value> items;           // of an array
  std::vector<Member> members;        // of an object, in the order of the file

  // The value of `key` in an object, or null if it has none.
  const Value* find(std::string_view key) const;
};

struct Member {
  std::string key;
  int line = 0;
  Value value;
};

// Nesting deeper than this is refused, so that no file can exhaust the stack.
inline constexpr int max_depth = 100;

// The root object. Throws Error naming `file` and the line for everything that is no HJSON, and
// DeepSpeed's "Duplicate keys in DeepSpeed config: ['lr']".
Value parse(std::string_view text, const std::string& file);

}  // namespace lambcast::hjson
