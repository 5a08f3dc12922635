#include "tools/refusal_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "experiments/scenario/hints.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

const CLI::App& parsed_command(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  return *command;
}

// Returns the message for a word that no flag takes; `words` are those of the command, last first.
std::string unexpected_word(const CLI::App& command, const std::string& word,
                            const std::vector<std::string>& words) {
  const auto at = std::ranges::find(words, word);
  if (at == words.end() || at + 1 == words.end() || !(at + 1)->starts_with("--"))
    return fmt::format("'{}' is not expected here: a value goes behind its flag", word);
  const std::string flag = (at + 1)->substr(0, (at + 1)->find('='));
  // A flag that needs a value takes the next word, even if that is a flag.
  const CLI::Option* option = command.get_option_no_throw(flag);
  if (option != nullptr && option->get_items_expected_max() > 0 && at + 2 != words.end())
    return fmt::format("{}: has no value: {} follows it", *(at + 2), flag);
  return fmt::format("{}: '{}' is not an allowed value (allowed: true, false, or nothing)", flag,
                     word);
}

// Returns the members of a set that CLI11 prints as "{a,b,c}".
std::vector<std::string> members_of(const std::string& set) {
  std::vector<std::string> members;
  std::size_t begin = 1;
  while (begin < set.size()) {
    const std::size_t end = std::min(set.find_first_of(",}", begin), set.size());
    members.push_back(set.substr(begin, end - begin));
    begin = end + 1;
  }
  return members;
}

// Returns the first example of the command's help on one line; empty if there is none.
std::string first_example(const CLI::App& command) {
  const std::string footer = command.get_footer();
  std::size_t begin = footer.find("Example");
  begin = footer.find(fmt::format("lambcast {} ", command.get_name()),
                      begin == std::string::npos ? 0 : begin);
  if (begin == std::string::npos) return "";
  std::string line;
  bool is_blank = false;
  for (std::size_t i = begin; i < footer.size() && footer[i] != '\n'; ++i) {
    if (footer.compare(i, 2, "\\\n") == 0) {
      ++i;
      is_blank = true;
      continue;
    }
    if (footer[i] == ' ' && (is_blank || line.ends_with(' '))) continue;
    is_blank = false;
    line += footer[i];
  }
  return line;
}

}  // namespace

std::string missing_words(const CLI::App& app, const std::string& otherwise) {
  const CLI::App& command = parsed_command(app);
  std::vector<std::string> missing;
  for (const CLI::Option* option : command.get_options())
    if (option->get_required() && option->count() == 0) missing.push_back(option->get_name());
  const std::string example = first_example(command);
  if (missing.size() < 2 && example.empty()) return otherwise;
  return fmt::format("{}: missing{}{}", fmt::join(missing, ", "),
                     example.empty() ? "" : "; try: ", example);
}

std::string unknown_words(const CLI::App& app, const std::vector<std::string>& words,
                          std::string (*commands_with)(const std::string& flag)) {
  const CLI::App* command = &parsed_command(app);
  std::vector<std::string> flags, commands;
  for (const CLI::App* of : {command, &app})
    for (const CLI::Option* option : of->get_options())
      for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  for (const CLI::App* sub : command->get_subcommands({})) commands.push_back(sub->get_name());
  for (const std::string& extra : app.remaining(true)) {
    const std::string word = extra.substr(0, extra.find('='));
    const bool is_flag = word.starts_with('-');
    if (const auto hint = hint_for(Typed::flag, word); !hint.empty())
      return fmt::format("unknown flag '{}': {}", word, hint);
    if (const std::string others = is_flag ? commands_with(word) : ""; !others.empty())
      return fmt::format("'{}' is not a flag of {}, but of {}", word,
                         command == &app ? "all commands" : command->get_name(), others);
    if (const std::string guess = closest(word, is_flag ? flags : commands); !guess.empty())
      return fmt::format("unknown {} '{}', did you mean '{}'?", is_flag ? "flag" : "command", word,
                         guess);
    if (!is_flag && command == &app)
      return fmt::format("unknown command '{}' (allowed: {})", word, fmt::join(commands, ", "));
  }
  for (const std::string& extra : app.remaining(true))
    if (extra.starts_with('-')) return fmt::format("unknown flag '{}'", extra);
  return unexpected_word(*command, app.remaining(true).front(), words);
}

std::string in_our_words(const CLI::ParseError& error) {
  const std::string said = error.what();
  const std::size_t colon = said.find(": ");
  if (colon == std::string::npos) return said;
  const std::string flag = said.substr(0, colon), rest = said.substr(colon + 2);
  if (rest.starts_with("At Most 1 required but received"))
    return describe({"", 0, flag}, "is given more than once", "once");
  if (const std::size_t at = rest.find(" not in {"); at != std::string::npos) {
    try {
      fail_unknown({"", 0, flag}, "value", rest.substr(0, at), members_of(rest.substr(at + 8)));
    } catch (const Error& ours) {
      return ours.what();
    }
  }
  if (rest.starts_with("1 required ") && rest.ends_with(" missing"))
    return describe({"", 0, flag}, "has no value");
  constexpr std::string_view range = " not in range ", value = "Value ";
  if (const std::size_t at = rest.find(range); rest.starts_with(value) && at != std::string::npos)
    return describe({"", 0, flag},
                    fmt::format("{} is out of range", rest.substr(value.size(), at - value.size())),
                    rest.substr(at + range.size()));
  return said;
}

}  // namespace lambcast
