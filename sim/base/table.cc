#include "sim/base/table.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "sim/base/asked_keys.h"
#include "sim/base/check.h"
#include "sim/base/table_faults.h"
#include "sim/base/toml_nesting.h"

namespace lambcast {

struct Table::Document {
  toml::table root;
  std::string file;
  std::map<const toml::node*, std::string> origins;  // flags that set the values
  std::map<const toml::node*, std::string> texts;    // texts of these values, as given
  std::unordered_map<const toml::node*, int> lines;  // lines, which a copy's nodes lack
};

// One table of the document, with the keys that were looked up and the child tables that were
// returned, so that finish() can find unread keys.
struct Table::Node {
  std::shared_ptr<Document> document;
  toml::table* table = nullptr;  // null if the file has no such table
  std::string path;              // dotted, empty for the root
  std::set<std::string, std::less<>> asked;
  std::vector<std::shared_ptr<Node>> children;

  bool is_asked(std::string_view key) const { return asked.contains(key); }
  void ask(std::string_view key) {
    if (!is_asked(key)) asked.emplace(key);
  }

  // Returns the same child each time, also after changes to the description.
  std::shared_ptr<Node> child(std::string child_path, toml::table* child_table) {
    for (const auto& known : children) {
      if (known->path != child_path) continue;
      known->table = child_table;
      return known;
    }
    children.push_back(
        std::make_shared<Node>(Node{document, child_table, std::move(child_path), {}, {}}));
    return children.back();
  }
};

namespace {

std::string join_path(std::string_view path, std::string_view key) {
  if (path.empty()) return std::string(key);
  if (key.empty()) return std::string(path);
  return fmt::format("{}.{}", path, key);
}

// Records the key for the generated key reference; ordinary runs have no recorder.
template <typename Words>
void note(std::string_view path, std::string_view key, Words words) {
  if (AskedKeys::anyone()) AskedKeys::note(join_path(path, key), words());
}

int line_of(const toml::node& node) { return static_cast<int>(node.source().begin.line); }

// Records the lines of the nodes of `copy`, which is a copy of `parsed`.
void note_lines(const toml::node& parsed, const toml::node& copy,
                std::unordered_map<const toml::node*, int>& lines) {
  lines.emplace(&copy, line_of(parsed));
  if (const toml::table* table = parsed.as_table()) {
    for (const auto& [key, value] : *table) note_lines(value, *copy.as_table()->get(key), lines);
  } else if (const toml::array* array = parsed.as_array()) {
    for (std::size_t i = 0; i < array->size(); ++i)
      note_lines((*array)[i], (*copy.as_array())[i], lines);
  }
}

template <typename T>
constexpr bool is_sourced = false;
template <typename T>
constexpr bool is_sourced<Sourced<T>> = true;

// Defines for each value type its description in words (asked_keys.h) and its parser.
template <typename T>
struct Reader;

template <>
struct Reader<bool> {
  static std::string words() { return "true or false"; }
  static bool read(const toml::node& node, const Where& where) {
    if (const auto value = node.value_exact<bool>()) return *value;
    fail_input(where, "is not a boolean", "true, false");
  }
};

template <>
struct Reader<std::int64_t> {
  static std::string words() { return "whole number"; }
  static std::int64_t read(const toml::node& node, const Where& where) {
    if (const auto value = node.value_exact<std::int64_t>()) return *value;
    fail_input(where, "is not a whole number", "an integer without unit");
  }
};

template <>
struct Reader<double> {
  static std::string words() { return "number"; }
  static double read(const toml::node& node, const Where& where) {
    const auto value = node.is_number() ? node.value<double>() : std::nullopt;
    if (value && std::isfinite(*value)) return *value;
    fail_input(where, "is not a finite number", "a number without unit");
  }
};

template <>
struct Reader<std::string> {
  static std::string words() { return "text"; }
  static std::string read(const toml::node& node, const Where& where) {
    const auto value = node.value_exact<std::string>();
    if (!value) fail_input(where, "is not a string", "text in quotes");
    refuse_control_characters(*value, where);
    return *value;
  }
};

template <typename Quantity, Quantity (*parse)(std::string_view, const Where&)>
struct QuantityReader {
  static Quantity read(const toml::node& node, const Where& where) {
    if (const auto value = node.value_exact<std::string>()) return parse(*value, where);
    if (const auto number = node.value<double>(); node.is_number() && number)
      return parse(fmt::format("{}", *number), where);  // throws an error with the allowed units
    fail_input(where, "is not a quantity", "text with number and unit");
  }
};

template <>
struct Reader<Duration> : QuantityReader<Duration, parse_duration> {
  static std::string words() { return "time with unit"; }
};
template <>
struct Reader<Bytes> : QuantityReader<Bytes, parse_bytes> {
  static std::string words() { return "data size with unit"; }
};
template <>
struct Reader<Bandwidth> : QuantityReader<Bandwidth, parse_bandwidth> {
  static std::string words() { return "bandwidth with unit"; }
};
template <>
struct Reader<FlopRate> : QuantityReader<FlopRate, parse_flop_rate> {
  static std::string words() { return "compute rate with unit"; }
};

template <typename T>
struct Reader<std::vector<T>> {
  static std::string words() { return "list: " + Reader<T>::words(); }
  static std::vector<T> read(const toml::node& node, const Where& where) {
    const toml::array* array = node.as_array();
    if (array == nullptr) fail_input(where, "is not a list", "[a, b, ...]");
    std::vector<T> values;
    for (const toml::node& element : *array) {
      Where place = where;
      if (line_of(element) > 0) place.line = line_of(element);
      values.push_back(Reader<T>::read(element, place));
    }
    return values;
  }
};

std::vector<std::string> kind_words() { return {kind_names.begin(), kind_names.end()}; }

template <typename T>
struct Reader<Sourced<T>> {
  static std::string words() { return Reader<T>::words() + ", with its evidence"; }
  static Sourced<T> read(const toml::node& node, const Where& where) {
    const toml::table* evidence = node.as_table();
    if (evidence == nullptr) {
      const std::string origin =
          where.line > 0 ? fmt::format("{}:{}", where.file, where.line) : where.file;
      return {Reader<T>::read(node, where), {Kind::assumed, origin}};
    }
    for (const auto& [key, value] : *evidence) {
      const std::vector<std::string> allowed{"value", "kind", "source"};
      if (std::find(allowed.begin(), allowed.end(), key.str()) == allowed.end())
        fail_unknown(where, "key", key.str(), allowed);
    }
    const toml::node* value = evidence->get("value");
    if (value == nullptr) fail_input(where, "has no 'value'");
    return {Reader<T>::read(*value, where), {kind(*evidence, where), source(*evidence, where)}};
  }

  static Kind kind(const toml::table& evidence, const Where& where) {
    const std::vector<std::string> words = kind_words();
    const toml::node* node = evidence.get("kind");
    if (node == nullptr)
      fail_input(where, "has no 'kind'", fmt::format("{}", fmt::join(words, ", ")));
    const std::string word = Reader<std::string>::read(*node, where);
    const auto found = std::find(words.begin(), words.end(), word);
    if (found == words.end()) fail_unknown(where, "kind", word, words);
    return static_cast<Kind>(found - words.begin());
  }

  static std::string source(const toml::table& evidence, const Where& where) {
    const toml::node* node = evidence.get("source");
    if (node == nullptr) fail_input(where, "has no 'source'");
    return Reader<std::string>::read(*node, where);
  }
};

}  // namespace

Table Table::parse(std::string_view text, const std::string& file) {
  auto document = std::make_shared<Document>();
  document->file = file;
  check_nesting(text, {file, 0, {}});
  try {
    document->root = toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    fail_input({file, static_cast<int>(error.source().begin.line), {}},
               fault_of_toml(error.description()));
  }
  return Table(std::make_shared<Node>(Node{document, &document->root, {}, {}, {}}));
}

Table Table::copy() const {
  const Document& parsed = *node_->document;
  LAMBCAST_CHECK(parsed.origins.empty(), "{} has values that were set", parsed.file);
  auto node = std::make_shared<Node>();
  node->document = std::make_shared<Document>(Document{parsed.root, parsed.file, {}, {}, {}});
  note_lines(parsed.root, node->document->root, node->document->lines);
  node->table = &node->document->root;
  return Table(node);
}

void Table::set(std::string_view dotted_key, std::string_view value, std::string_view origin) {
  toml::table* table = node_->table;
  check_nesting(dotted_key, {std::string(origin), 0, {}});
  for (std::size_t dot = dotted_key.find('.'); dot != std::string_view::npos;
       dot = dotted_key.find('.')) {
    const std::string_view head = dotted_key.substr(0, dot);
    if (!table->contains(head)) table->insert(head, toml::table{});
    table = table->get(head)->as_table();
    if (table == nullptr)
      fail_input({std::string(origin), 0, std::string(dotted_key)},
                 fmt::format("'{}' is not a table", head));
    dotted_key.remove_prefix(dot + 1);
  }
  if (const toml::node* replaced = table->get(dotted_key)) {
    node_->document->origins.erase(replaced);
    node_->document->texts.erase(replaced);
  }
  check_nesting(value, {std::string(origin), 0, {}});
  try {
    toml::table parsed = toml::parse(fmt::format("x = {}", value));
    if (parsed.size() != 1) fail_input({std::string(origin), 0, {}}, "takes one value");
    parsed.get("x")->visit([&](auto&& node) { table->insert_or_assign(dotted_key, node); });
  } catch (const toml::parse_error&) {
    table->insert_or_assign(dotted_key, std::string(value));
  }
  node_->document->origins[table->get(dotted_key)] = std::string(origin);
  node_->document->texts[table->get(dotted_key)] = std::string(value);
}

Where Table::where(std::string_view key) const {
  const Document& document = *node_->document;
  Where place{document.file, 0, join_path(node_->path, key)};
  const toml::node* node = node_->table;
  if (node_->table != nullptr && !key.empty()) {
    if (const toml::node* child = node_->table->get(key)) {
      node = child;
    } else {
      // The error of a missing key names a flag that set another value in the same table.
      for (const auto& [name, beside] : *node_->table)
        if (document.origins.contains(&beside)) node = &beside;
    }
  }
  if (const auto origin = document.origins.find(node); origin != document.origins.end())
    place.file = origin->second;
  else if (const auto line = document.lines.find(node); line != document.lines.end())
    place.line = line->second;
  else if (node != nullptr)
    place.line = line_of(*node);
  return place;
}

bool Table::has(std::string_view key) const {
  node_->ask(key);
  note(node_->path, key, [&] { return ""; });
  return node_->table != nullptr && node_->table->contains(key);
}

template <typename T>
std::optional<T> Table::find(std::string_view key) const {
  note(node_->path, key, [&] { return Reader<T>::words(); });
  if (!has(key)) return std::nullopt;
  const toml::node& node = *node_->table->get(key);
  // Flags need no quotes: 2.19 is accepted as a text, and a single word as a list of one.
  if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::vector<std::string>>) {
    const auto text = node_->document->texts.find(&node);
    if (text != node_->document->texts.end() && !node.is_string() && !node.is_array() &&
        !node.is_table())
      return T{text->second};
    if constexpr (std::is_same_v<T, std::vector<std::string>>)
      if (text != node_->document->texts.end() && node.is_string())
        return T{*node.value_exact<std::string>()};
  }
  // A place is built only for errors and for the source of a number without evidence.
  if (!is_sourced<T> || node.is_table()) {
    try {
      return Reader<T>::read(node, {});
    } catch (const Error&) {
    }
  }
  return Reader<T>::read(node, where(key));
}

template <typename T>
T Table::get(std::string_view key) const {
  if (auto value = find<T>(key)) return std::move(*value);
  fail_input(where(key), "is missing");
}

#define LAMBCAST_INSTANTIATE(T)                                     \
  template std::optional<T> Table::find<T>(std::string_view) const; \
  template T Table::get<T>(std::string_view) const;
#define LAMBCAST_INSTANTIATE_ALL(T) \
  LAMBCAST_INSTANTIATE(T)           \
  LAMBCAST_INSTANTIATE(std::vector<T>) LAMBCAST_INSTANTIATE(Sourced<T>)
LAMBCAST_INSTANTIATE_ALL(bool)
LAMBCAST_INSTANTIATE_ALL(std::int64_t)
LAMBCAST_INSTANTIATE_ALL(double)
LAMBCAST_INSTANTIATE_ALL(std::string)
LAMBCAST_INSTANTIATE_ALL(Duration)
LAMBCAST_INSTANTIATE_ALL(Bytes)
LAMBCAST_INSTANTIATE_ALL(Bandwidth)
LAMBCAST_INSTANTIATE_ALL(FlopRate)

std::int64_t Table::integer(std::string_view key, std::int64_t low, std::int64_t high) const {
  note(node_->path, key, [&] { return fmt::format("whole number, {} to {}", low, high); });
  const auto value = get<std::int64_t>(key);
  if (value < low || value > high)
    fail_input(where(key), fmt::format("{} is out of range", value),
               fmt::format("{} to {}", low, high));
  return value;
}

std::size_t Table::choice(std::string_view key, const std::vector<std::string>& words) const {
  note(node_->path, key, [&] { return fmt::format("{}", fmt::join(words, ", ")); });
  const auto word = get<std::string>(key);
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end()) fail_unknown(where(key), "value", word, words);
  return static_cast<std::size_t>(found - words.begin());
}

Provenance Table::provenance_or(const Provenance& otherwise) const {
  if (!has("kind") && !has("source")) return otherwise;
  const auto kind = static_cast<Kind>(choice("kind", kind_words()));
  return {kind, get<std::string>("source")};
}

Table Table::table(std::string_view key) const {
  toml::table* section = nullptr;
  note(node_->path, key, [&] { return "table"; });
  if (has(key)) {
    section = node_->table->get(key)->as_table();
    if (section == nullptr) fail_input(where(key), "is not a table", "a [section]");
  }
  return Table(node_->child(join_path(node_->path, key), section));
}

std::vector<Table> Table::tables(std::string_view key) const {
  std::vector<Table> tables;
  note(node_->path, key, [&] { return "list of tables"; });
  if (!has(key)) return tables;
  toml::array* array = node_->table->get(key)->as_array();
  if (array == nullptr) fail_input(where(key), "is not a list of tables", "[[sections]]");
  for (std::size_t i = 0; i < array->size(); ++i) {
    toml::table* section = array->get(i)->as_table();
    if (section == nullptr) fail_input(where(key), "is not a list of tables", "[[sections]]");
    tables.push_back(
        Table(node_->child(fmt::format("{}[{}]", join_path(node_->path, key), i), section)));
  }
  return tables;
}

std::optional<std::string> Table::find_text(std::string_view key) const {
  if (!has(key)) return std::nullopt;
  return node_->table->get(key)->value_exact<std::string>();
}

std::vector<std::string> Table::words(std::string_view key) const {
  if (!has(key)) fail_input(where(key), "is missing");
  const auto word = [&](const toml::node& node) {
    if (const auto text = node.value_exact<std::string>()) return *text;
    if (const auto whole = node.value_exact<std::int64_t>()) return fmt::format("{}", *whole);
    if (const auto real = node.value_exact<double>()) return fmt::format("{}", *real);
    if (const auto flag = node.value_exact<bool>()) return std::string(*flag ? "true" : "false");
    fail_input(where(key), "is not a value", "a string, a number, true, false, or a list of them");
  };
  const toml::node& node = *node_->table->get(key);
  std::vector<std::string> words;
  if (const toml::array* list = node.as_array()) {
    for (const toml::node& element : *list) words.push_back(word(element));
  } else {
    words.push_back(word(node));
  }
  return words;
}

std::vector<std::string> Table::keys() const {
  std::vector<std::pair<std::pair<int, int>, std::string>> found;
  if (node_->table == nullptr) return {};
  for (const auto& [key, value] : *node_->table) {
    const auto begin = key.source().begin;
    found.push_back(
        {{static_cast<int>(begin.line), static_cast<int>(begin.column)}, std::string(key.str())});
    node_->ask(key.str());
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (auto& [place, name] : found) names.push_back(std::move(name));
  return names;
}

std::vector<std::string> Table::asked_keys() const {
  std::vector<std::string> found;
  if (node_->path.find('[') != std::string::npos) return found;
  for (const std::string& key : node_->asked) found.push_back(join_path(node_->path, key));
  for (const auto& child : node_->children)
    for (std::string& key : Table(child).asked_keys()) found.push_back(std::move(key));
  return found;
}

void Table::refuse_unread(const Table& root) const {
  if (node_->table != nullptr)
    for (const auto& [key, value] : *node_->table) {
      if (node_->is_asked(key.str())) continue;
      const std::vector<std::string> allowed(node_->asked.begin(), node_->asked.end());
      fail_unread_key(where(key.str()), key.str(), allowed, root.asked_keys());
    }
  for (const auto& child : node_->children) Table(child).refuse_unread(root);
}

}  // namespace lambcast
