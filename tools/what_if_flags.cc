#include "tools/what_if_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include "sim/base/error.h"

namespace lambcast {
namespace {

std::string flag_of(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return "--" + key;
}

const std::vector<std::string>* only_words = nullptr;

bool is_wanted(const std::string& flag) {
  return only_words == nullptr || std::ranges::any_of(*only_words, [&](const std::string& word) {
           return word.starts_with(flag) &&
                  (word.size() == flag.size() || word[flag.size()] == '=');
         });
}

// Returns whether a word is meant as the value of a switch. Includes invalid values, so that the
// error names the switch.
bool is_meant_as_value(std::string word) {
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  constexpr std::string_view values[] = {"true", "false", "yes", "no", "on", "off", "1", "0"};
  return std::ranges::find(values, word) != std::end(values);
}

// --set-var is repeated; its entries are joined by ';'.
void add_script_variables(CLI::App& command, WhatIf& what_if, const WhatIfKey& row) {
  command
      .add_option_function<std::vector<std::string>>(
          flag_of("set_var"),
          [&what_if](const std::vector<std::string>& entries) {
            what_if["set_var"] = fmt::format("{}", fmt::join(entries, ";"));
          },
          help_of(row))
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE")
      ->group(std::string(row.group));
}

}  // namespace

void declare_only(const std::vector<std::string>* words) { only_words = words; }

void add_what_if_flags(CLI::App& command, WhatIf& what_if) {
  for (const WhatIfKey& row : what_if_table()) {
    const std::string key(row.name);
    if (!is_wanted(flag_of(key))) continue;
    const std::string group(row.group);
    if (key == "set_var") {
      add_script_variables(command, what_if, row);
      continue;
    }
    command
        .add_option_function<std::string>(
            flag_of(key), [&what_if, key](const std::string& value) { what_if[key] = value; },
            help_of(row))
        ->type_name(row.is_switch() ? "[true|false]" : std::string(name_of(row.type)))
        ->group(group);
  }
  command
      .add_option_function<std::vector<std::string>>(
          "--set",
          [&what_if](const std::vector<std::string>& settings) {
            for (const std::string& setting : settings) {
              const auto equals = setting.find('=');
              if (equals == std::string::npos || equals == 0)
                fail_input({"", 0, "--set"}, "'" + setting + "' is not KEY=VALUE",
                           "cluster.KEY=VALUE, device.KEY=VALUE, model.KEY=VALUE or run.KEY=VALUE");
              std::string key = setting.substr(0, equals);
              if (key.starts_with("run.")) key = key.substr(4);
              const std::string value = setting.substr(equals + 1);
              const auto [said, added] = what_if.emplace(key, value);
              if (!added && said->second != value)
                fail_input({"", 0, "--set"}, "'" + setting + "' contradicts " +
                                                 (key.find('.') == std::string::npos
                                                      ? flag_of(key) + " " + said->second
                                                      : "--set " + key + "=" + said->second));
            }
          },
          "change any key of the cluster, device, model or run: cluster.nic.bandwidth=10Gbit/s")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE")
      ->group("What runs where");
}

std::vector<std::string> with_switches_spelled_out(std::vector<std::string> words) {
  const auto is_switch = [](const std::string& word) {
    return std::ranges::any_of(what_if_table(), [&](const WhatIfKey& row) {
      return row.is_switch() && word == flag_of(std::string(row.name));
    });
  };
  std::vector<std::string> spelled;
  for (const std::string& word : words) {
    if (is_meant_as_value(word) && !spelled.empty() && is_switch(spelled.back()))
      spelled.back() += "=" + word;
    else
      spelled.push_back(word);
  }
  for (std::string& word : spelled)
    if (is_switch(word)) word += "=true";
  return spelled;
}

}  // namespace lambcast
