#include "models/launchers/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <sstream>
#include <vector>

#include "sim/base/error.h"

namespace lambcast::launchers {
namespace {

using hjson::Kind;
using hjson::Value;

// A comment that is added after the last line. yaml-cpp ends an unclosed quote at the end of the
// text, and the scalar then contains this comment.
constexpr std::string_view end_mark = "# lambcast: end of the text";
constexpr std::size_t most_keys = 2000;  // keys of one map, which are compared pairwise

[[noreturn]] void fail_yaml(const std::string& file, int line, std::string_view what) {
  fail_input({file, line, {}}, fmt::format("YAML: {}", what));
}

Value plain_scalar(const std::string& text) {
  Value value;
  value.text = text;
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  for (const auto& [word, truth] :
       {std::pair("true", true), std::pair("yes", true), std::pair("on", true),
        std::pair("false", false), std::pair("no", false), std::pair("off", false)})
    if (lower == word) {
      value.kind = Kind::boolean;
      value.boolean = truth;
      return value;
    }
  double number = 0;
  std::string plain(text);
  if (text.find_first_not_of("0123456789_") == text.npos) std::erase(plain, '_');
  const bool digits = plain.find_first_not_of("+-.eE0123456789") == plain.npos;
  const char *begin = plain.data(), *end = begin + plain.size();
  const auto read = std::from_chars(plain.starts_with('+') ? begin + 1 : begin, end, number);
  value.kind = Kind::string;
  if (!digits || read.ec != std::errc() || read.ptr != end || !std::isfinite(number)) return value;
  value.kind = Kind::number;
  value.number = number;
  if (std::floor(number) == number && std::abs(number) < 9e15)
    value.whole = static_cast<std::int64_t>(number);
  return value;
}

// Number of values in a tree (including its root), and depth of the tree.
struct Extent {
  std::size_t values = 1;
  int depth = 0;

  void add(const Extent& part) {
    values += part.values;
    depth = std::max(depth, part.depth + 1);
  }
};

Extent extent_of(const Value& value) {
  Extent extent;
  for (const Value& item : value.items) extent.add(extent_of(item));
  for (const hjson::Member& member : value.members) extent.add(extent_of(member.value));
  return extent;
}

constexpr std::string_view core_tags = "tag:yaml.org,2002:";

void check_tag(std::string_view tag, const YAML::Mark& mark, const std::string& file) {
  if (tag.empty() || tag == "?" || tag == "!" || tag.starts_with(core_tags)) return;
  fail_yaml(file, mark.line + 1, fmt::format("the tag {} is not read", tag));
}

void add_member(Value& map, hjson::Member member, const std::string& file) {
  if (map.members.size() >= most_keys) fail_yaml(file, member.line, "has too many keys");
  map.members.push_back(std::move(member));
}

// Returns the maps that a merge key names: one, or a list of them.
std::vector<Value> maps_of(Value value, int line, const std::string& file) {
  const bool several = value.kind == Kind::array;
  std::vector<Value> maps = several ? std::move(value.items) : std::vector<Value>();
  if (!several) maps.push_back(std::move(value));
  for (const Value& map : maps)
    if (map.kind != Kind::object) fail_yaml(file, line, "<< merges what is not a map");
  return maps;
}

// Adds merged keys at the end of a map. The map's own keys take precedence at any position.
void add_merged(const std::vector<Value>& merged, Value& map, const std::string& file) {
  for (const Value& source : merged)
    for (const hjson::Member& member : source.members)
      if (map.find(member.key) == nullptr) add_member(map, member, file);
}

// Builds the tree from yaml-cpp's events, since its own tree does not limit the expansion of
// aliases.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const std::string& file) : file_(file) {}

  Value root;

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add({}, false, anchor, mark);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) fail_yaml(file_, mark.line + 1, "an alias within its own anchor");
    check(found->second.extent, mark);
    add(found->second.value, false, 0, mark);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    check_tag(tag, mark, file_);
    if (text.find(end_mark) != text.npos) fail_yaml(file_, mark.line + 1, "a quote is not closed");
    const bool plain = tag == "?" || (tag.starts_with(core_tags) && !tag.ends_with(":str"));
    Value value;
    value.kind = Kind::string;
    value.text = text;
    if (plain) value = plain_scalar(text);
    add(std::move(value), plain, anchor, mark);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Kind::array, tag, anchor, mark);
  }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Kind::object, tag, anchor, mark);
  }

  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Value value;
    YAML::anchor_t anchor = 0;
    YAML::Mark mark;
    std::string key;
    int key_line = 0;     // line of a key without a value yet; 0: none
    bool merges = false;  // the key is <<
    std::vector<Value> merged;
  };

  struct Anchor {
    Value value;
    Extent extent;
  };

  void check(const Extent& extent, const YAML::Mark& mark) {
    values_ += extent.values;
    if (values_ > most_values) fail_yaml(file_, mark.line + 1, "has too many values");
    if (static_cast<int>(open_.size()) + extent.depth > hjson::max_depth)
      fail_yaml(file_, mark.line + 1, "is nested too deeply");
  }

  void open(Kind kind, const std::string& tag, YAML::anchor_t anchor, const YAML::Mark& mark) {
    check_tag(tag, mark, file_);
    if (!open_.empty() && open_.back().value.kind == Kind::object && open_.back().key_line == 0)
      fail_yaml(file_, mark.line + 1, "a key is a list or a map");
    check({}, mark);
    open_.push_back({});
    open_.back().value.kind = kind;
    open_.back().anchor = anchor;
    open_.back().mark = mark;
  }

  void close() {
    Open closed = std::move(open_.back());
    open_.pop_back();
    add_merged(closed.merged, closed.value, file_);
    add(std::move(closed.value), false, closed.anchor, closed.mark);
  }

  void add(Value value, bool plain, YAML::anchor_t anchor, const YAML::Mark& mark) {
    const int line = mark.line + 1;
    const bool is_key =
        !open_.empty() && open_.back().value.kind == Kind::object && open_.back().key_line == 0;
    if (value.line == 0)
      value.line = value.kind == Kind::null && !open_.empty() && open_.back().key_line > 0
                       ? open_.back().key_line
                       : line;
    if (anchor != 0) {
      const Extent extent = extent_of(value);
      check(extent, mark);  // the copy takes memory too
      anchors_[anchor] = {value, extent};
    }
    if (value.kind != Kind::array && value.kind != Kind::object) check({}, mark);
    if (open_.empty()) {
      root = std::move(value);
    } else if (open_.back().value.kind == Kind::array) {
      open_.back().value.items.push_back(std::move(value));
    } else if (is_key) {
      take_key(value, plain, line);
    } else {
      take_member(std::move(value));
    }
  }

  void take_key(const Value& key, bool plain, int line) {
    Open& map = open_.back();
    if (key.kind == Kind::null) fail_yaml(file_, line, "a key is empty");
    if (key.kind == Kind::array || key.kind == Kind::object)
      fail_yaml(file_, line, "a key is a list or a map");
    map.merges = plain && key.text == "<<";
    if (map.merges ? !map.merged.empty() : map.value.find(key.text) != nullptr)
      fail_yaml(file_, line, fmt::format("the key {} twice", key.text));
    map.key = key.text;
    map.key_line = line;
  }

  void take_member(Value value) {
    Open& map = open_.back();
    if (map.merges)
      map.merged = maps_of(std::move(value), map.key_line, file_);
    else
      add_member(map.value, {map.key, map.key_line, std::move(value)}, file_);
    map.key_line = 0;
  }

  const std::string& file_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Anchor> anchors_;
  std::size_t values_ = 0;
};

int lines_in(std::string_view text) {
  const auto ends = static_cast<int>(std::ranges::count(text, '\n'));
  return text.ends_with('\n') ? ends : ends + 1;
}

// Refuses control characters. yaml-cpp treats a byte of value 4 as the end of the text, and would
// ignore the text after it.
void refuse_control_characters(std::string_view text, const std::string& file) {
  int line = 1;
  for (const char c : text) {
    line += c == '\n' ? 1 : 0;
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7f)
      fail_yaml(file, line, fmt::format("a control character (byte {})", byte));
  }
}

}  // namespace

Value parse_yaml(std::string_view text, const std::string& file) {
  refuse_control_characters(text, file);
  std::istringstream stream(fmt::format("{}\n{}\n", text, end_mark));
  TreeBuilder builder(file);
  try {
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    TreeBuilder second(file);
    if (parser.HandleNextDocument(second))
      fail_yaml(file, second.root.line, "a second document is not read");
  } catch (const YAML::Exception& error) {
    const int line = error.mark.is_null() ? 0 : error.mark.line + 1;
    fail_yaml(file, std::min(line, lines_in(text)), error.msg);
  }
  Value root = std::move(builder.root);
  if (root.kind == Kind::null) root.kind = Kind::object;  // an empty document
  if (root.kind != Kind::object) fail_yaml(file, std::max(root.line, 1), "is not a map of keys");
  return root;
}

}  // namespace lambcast::launchers
