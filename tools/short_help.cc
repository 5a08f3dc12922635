#include "tools/short_help.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "experiments/scenario/what_if.h"

namespace lambcast {
namespace {

constexpr std::size_t most_flags = 40;

// The keys of most runs, each with an example.
struct UsualKey {
  std::string_view flag;
  std::string_view example;
};
constexpr std::array usual_keys{UsualKey{"config", "ds.json"},
                                UsualKey{"model", "bert-large"},
                                UsualKey{"cluster", "commodity-25gbe"},
                                UsualKey{"gpus", "32"},
                                UsualKey{"set", "cluster.nic.bandwidth=10Gbit/s"},
                                UsualKey{"optimizer", "onebit_lamb"},
                                UsualKey{"exchange", "int8"},
                                UsualKey{"zero-stage", "1"},
                                UsualKey{"global-batch", "16384"},
                                UsualKey{"micro-batch", "64"},
                                UsualKey{"steps", "5993"},
                                UsualKey{"freeze-step", "20%"},
                                UsualKey{"tp", "8"},
                                UsualKey{"pp", "4"}};

// Examples of a command in which those above are refused.
struct OwnExample {
  std::string_view command, flag, example;
};
constexpr std::array own_examples{OwnExample{"advise", "exchange", "onebit"},
                                  OwnExample{"sites", "cluster", "two-data-centres"},
                                  OwnExample{"sites", "set", "wan.up=10Gbit/s"}};

std::string_view example_of(const UsualKey& key, std::string_view command) {
  for (const OwnExample& own : own_examples)
    if (own.command == command && own.flag == key.flag) return own.example;
  return key.example;
}

const UsualKey* usual_key(const std::string& flag) {
  const auto found = std::ranges::find(usual_keys, flag, &UsualKey::flag);
  return found == usual_keys.end() ? nullptr : &*found;
}

// Returns the text of a key on one line: its values without their details.
std::string shortened(const UsualKey& key, const std::string& text) {
  if (key.flag == "exchange")
    return "how gradients are averaged: all_reduce (the default), onebit, fp8, int8, powersgd:4, "
           "topk:1%, local:16, ...";
  return text;
}

}  // namespace

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  const std::string all = CLI::Formatter::make_option_opts(option);
  std::string form = all.substr(0, std::min(all.find(" Needs:"), all.find(" Excludes:")));
  // The form "KEY=VALUE ..." of a repeatable flag would look like several values after one flag.
  constexpr std::string_view several = " ...";
  const std::size_t dots = form.find(several);
  if (!option->get_allow_extra_args() && dots != std::string::npos)
    form.erase(dots, several.size());
  return form;
}

void add_help_all(CLI::App& command) {
  const bool is_listed = has_short_help(command);
  CLI::Option* flag = command.set_help_all_flag("--help-all", "all flags of this command");
  if (!is_listed) flag->group("");
  for (CLI::App* below : command.get_subcommands({})) add_help_all(*below);
}

bool has_short_help(const CLI::App& command) { return command.get_options().size() > most_flags; }

std::string short_help(CLI::App& command) {
  if (!has_short_help(command)) return command.help("lambcast");
  std::size_t hidden = 0;
  for (CLI::Option* option : command.get_options()) {
    if (option->get_lnames().empty()) continue;
    const std::string flag = option->get_lnames().front();
    std::string key = flag;
    std::ranges::replace(key, '-', '_');
    if (const UsualKey* usual = usual_key(flag)) {
      option->description(fmt::format("{}; e.g. --{} {}",
                                      shortened(*usual, option->get_description()), flag,
                                      example_of(*usual, command.get_name())));
    } else if (find_key(key) != nullptr || option->get_group() == rare_flags) {
      option->group("");
      ++hidden;
    }
  }
  command.footer(fmt::format("{} more flags: lambcast {} --help-all\n{}", hidden,
                             command.get_name(), command.get_footer()));
  return command.help("lambcast");
}

}  // namespace lambcast
