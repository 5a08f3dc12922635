#include "experiments/scenario/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "experiments/scenario/hints.h"
#include "experiments/scenario/invalid_value.h"

namespace lambcast {
namespace {

// Returns one of 64 bits, from the characters in which keys differ most.
std::uint64_t mark_of(std::string_view key) {
  const auto first = static_cast<unsigned char>(key.empty() ? '\0' : key.front());
  return std::uint64_t{1} << ((first + 7 * key.size()) % 64);
}

}  // namespace

Where flag(std::string_view key) {
  std::string name = "--";
  for (const char c : key) name += c == '_' ? '-' : c;
  return {"", 0, name};
}

void Missing::add(std::string name, std::string example) {
  names.push_back(std::move(name));
  examples.push_back(std::move(example));
}

void Missing::add(const Missing& more) {
  for (std::size_t i = 0; i < more.names.size(); ++i) add(more.names[i], more.examples[i]);
}

std::string Missing::text() const {
  return describe({"", 0, fmt::format("{}", fmt::join(names, ", "))},
                  fmt::format("missing; try: {}", fmt::join(examples, " ")));
}

void Missing::refuse() const {
  if (!names.empty()) throw Error(Exit::usage, text());
}

Words::Words(const WhatIf& what_if) : what_if_(what_if) {
  for (const auto& [key, value] : what_if) marks_ |= mark_of(key);
}

const std::string* Words::find(std::string_view key) const {
  if ((marks_ & mark_of(key)) == 0) return nullptr;
  const auto entry = what_if_.find(key);
  return entry == what_if_.end() ? nullptr : &entry->second;
}

std::string Words::text(std::string_view key, std::string_view why) const {
  const std::string* value = find(key);
  if (value == nullptr || value->empty())
    of_key(key, [&] { fail_input(flag(key), fmt::format("is missing: {}", why)); });
  return *value;
}

std::optional<std::int64_t> Words::whole(std::string_view key, std::int64_t low,
                                         std::int64_t high) const {
  const std::string* value = find(key);
  if (value == nullptr) return std::nullopt;
  std::int64_t number = 0;
  const auto [end, status] = std::from_chars(value->data(), value->data() + value->size(), number);
  if (status != std::errc{} || end != value->data() + value->size() || number < low ||
      number > high) {
    of_key(key, [&] {
      const WhatIfKey* row = find_key(key);
      const bool takes_share = row != nullptr && row->type == ValueType::share_or_whole;
      const std::string hint = hint_for_count(*value, takes_share);
      fail_input(flag(key),
                 hint.empty() ? fmt::format("'{}' is not a whole number in range", *value) : hint,
                 fmt::format("{} to {}", low, high));
    });
  }
  return number;
}

std::optional<double> Words::number(std::string_view key, double low, double high) const {
  const std::string* value = find(key);
  if (value == nullptr) return std::nullopt;
  double number = 0;
  const auto [end, status] = std::from_chars(value->data(), value->data() + value->size(), number);
  if (status != std::errc{} || end != value->data() + value->size() ||
      !(number >= low && number <= high)) {
    of_key(key, [&] {
      fail_input(flag(key), fmt::format("'{}' is not a number in range", *value),
                 fmt::format("{} to {}", low, high));
    });
  }
  return number;
}

std::optional<std::size_t> Words::choice(std::string_view key) const {
  const std::string* value = find(key);
  if (value == nullptr) return std::nullopt;
  const std::vector<std::string>& words = words_of(key);
  for (std::size_t i = 0; i < words.size(); ++i)
    if (words[i] == *value) return i;
  return of_key(key, [&]() -> std::optional<std::size_t> {
    const auto hint = hint_for(Typed::value, fmt::format("{}={}", key, *value));
    if (!hint.empty()) fail_input(flag(key), fmt::format("unknown value '{}': {}", *value, hint));
    fail_unknown(flag(key), "value", *value, words);
  });
}

Overrides Words::below(std::string_view prefix) const {
  Overrides overrides;
  for (const auto& [key, value] : what_if_)
    if (key.starts_with(prefix)) overrides.emplace_back(key.substr(prefix.size()), value);
  return overrides;
}

void Words::refuse_unknown() const {
  for (const auto& [key, value] : what_if_) {
    if (is_of_description(key)) continue;
    if (!hint_for(Typed::key, key).empty() || key.starts_with("wan."))
      fail_unknown_key({"", 0, key}, key, {});
    if (const std::size_t dot = key.find('.'); dot != std::string::npos) {
      static const std::vector<std::string> whose{"cluster", "device", "model"};
      if (const std::string meant = closest(key.substr(0, dot), whose); !meant.empty())
        fail_input({"", 0, key},
                   fmt::format("unknown key, did you mean '{}{}'?", meant, key.substr(dot)));
      fail_input({"", 0, key},
                 "unknown key: keys of descriptions begin with cluster., device. or model.",
                 "those that lambcast help descriptions lists");
    }
    const auto& keys = what_if_keys();
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    fail_unknown_key({"", 0, key}, key, keys);
  }
}

Missing Words::missing_inputs() const {
  // Inputs of which one key must be given. A DeepSpeed file (config) can give optimizer and batch.
  struct Input {
    std::vector<std::string_view> keys;
    std::string_view example;
  };
  static const std::vector<Input> inputs{{{"model"}, "--model bert-large"},
                                         {{"cluster"}, "--cluster commodity-25gbe"},
                                         {{"gpus", "nodes", "dp"}, "--gpus 32"},
                                         {{"optimizer", "config"}, "--optimizer lamb"},
                                         {{"global_batch", "micro_batch", "grad_accum", "config"},
                                          "--global-batch 16384 --micro-batch 64"}};
  Missing missing;
  for (const Input& input : inputs)
    if (std::ranges::none_of(input.keys, [&](std::string_view key) { return find(key); }))
      missing.add(flag(input.keys.front()).key, std::string(input.example));
  return missing;
}

void Words::refuse_missing(const std::function<void()>& read_given) const {
  const Missing missing = missing_inputs();
  if (missing.names.size() < 2) return;
  if (read_given) read_given();
  throw InvalidValue(missing.names.front().substr(2), missing.text());
}

void Words::refuse_shared_stdin() const {
  std::string_view reader;
  for (const char* key :
       {"config", "model", "cluster", "topology", "device", "megatron_args", "torchtitan"}) {
    const std::string* value = find(key);
    if (value == nullptr || *value != "-") continue;
    if (!reader.empty())
      fail_input(flag(key), fmt::format("- is stdin, which --{} reads already", reader));
    reader = key;
  }
}

}  // namespace lambcast
