// Reads and checks the values of one what-if. Errors name the flag that gave the value.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/scenario/what_if.h"
#include "sim/base/error.h"
#include "sim/base/overrides.h"

namespace lambcast {

// Returns the place of a key on the command line: "--micro-batch".
Where flag(std::string_view key);

// Words that a command needs and was not given, each with an example of it. All are named at once.
struct Missing {
  std::vector<std::string> names;     // "--model"
  std::vector<std::string> examples;  // "--model bert-large"

  void add(std::string name, std::string example);
  void add(const Missing& more);
  // Returns "--model, --gpus: missing; try: --model bert-large --gpus 32".
  std::string text() const;
  // Throws Error (usage) if anything is missing.
  void refuse() const;
};

// Reads the values of a what-if. Every reader throws InvalidValue for an invalid value. Keeps a
// reference to the what-if, which must not change meanwhile.
class Words {
 public:
  explicit Words(const WhatIf& what_if);

  const std::string* find(std::string_view key) const;
  // Returns a value that must be given; `why` describes it in the error.
  std::string text(std::string_view key, std::string_view why) const;
  std::optional<std::int64_t> whole(std::string_view key, std::int64_t low,
                                    std::int64_t high) const;
  std::optional<double> number(std::string_view key, double low, double high) const;
  // Returns the position of the value among words_of(key), or nothing.
  std::optional<std::size_t> choice(std::string_view key) const;
  // Returns the value of an enum whose constants are in the order of those words.
  template <typename Enum>
  std::optional<Enum> chosen(std::string_view key) const {
    const auto place = choice(key);
    return place ? std::optional(static_cast<Enum>(*place)) : std::nullopt;
  }
  // Returns the dotted keys below `prefix`, without the prefix.
  Overrides below(std::string_view prefix) const;

  void refuse_unknown() const;
  // Throws Error (usage) naming all missing inputs if several are missing. Before, calls
  // `read_given`, which may find an error in a given input. A single missing input is left to its
  // reader, whose error has more details.
  void refuse_missing(const std::function<void()>& read_given = {}) const;
  // The inputs that a forecast needs and that are missing.
  Missing missing_inputs() const;
  // Throws Error (usage) if several descriptions are "-", since stdin can be read only once.
  void refuse_shared_stdin() const;

 private:
  const WhatIf& what_if_;
  // bit filter of the keys: a hundred are looked up, about ten are present
  std::uint64_t marks_ = 0;
};

}  // namespace lambcast
