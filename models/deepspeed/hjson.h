// Reads HJSON, the relaxed form of JSON that DeepSpeed accepts for configuration files.
//
// In addition to JSON: comments (# and // to the end of the line, /* */), keys without quotes,
// optional commas at line ends and before closing brackets, strings in single quotes,
// '''multiline''' strings, a root object without braces, and quoteless strings, which extend to the
// end of their line, including commas and comments: `a: GB_SIZE,` is the text "GB_SIZE,".
//
// Follows hjson-py 3.1 (hjson/decoder.py) as DeepSpeed calls it (deepspeed/runtime/config.py):
// duplicate keys are an error, \r\n and \r end a line like \n, the text must be UTF-8. Differences:
// errors of that parser (a ''' string on the first line) are not reproduced, half a surrogate pair
// becomes U+FFFD, and deep nesting and a root that is not an object are refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lambcast::hjson {

enum class Kind { null, boolean, number, string, array, object };

// Returns the name of a kind for messages.
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

// One value of the tree. `kind` determines which members are used.
struct Value {
  Kind kind = Kind::null;
  int line = 0;  // where it starts, counted from 1
  bool boolean = false;
  double number = 0;                  // finite
  std::optional<std::int64_t> whole;  // exact value of a number, if it is whole and fits
  std::string text;                   // a string's value; a number as written
  std::vector<Value> items;           // items of an array
  std::vector<Member> members;        // members of an object, in file order

  // Returns the value of `key` in an object, or null if the key is absent.
  const Value* find(std::string_view key) const;
};

struct Member {
  std::string key;
  int line = 0;
  Value value;
};

// Limit of nesting, so that no file can overflow the stack.
inline constexpr int max_depth = 100;

// Returns the root object. Throws Error naming `file` and the line for text that is not HJSON, and
// DeepSpeed's "Duplicate keys in DeepSpeed config: ['lr']".
Value parse(std::string_view text, const std::string& file);

}  // namespace lambcast::hjson
