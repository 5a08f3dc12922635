#include "models/megatron/shell_commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <span>

#include "models/megatron/shell_lexer.h"

namespace lambcast::megatron {
namespace {

using enum ShellStatus;

// Length of "NAME=" or "NAME+="; 0 for other words.
std::size_t assigned(std::string_view source) {
  const std::size_t name = variable_length(source);
  if (name == 0) return 0;
  const std::string_view rest = source.substr(name);
  return rest.starts_with("+=") ? name + 2 : rest.starts_with("=") ? name + 1 : 0;
}

bool is_launch(const std::vector<ShellWord>& words) {
  // Commands that mention programs and arguments without launching them.
  static const std::set<std::string_view> others{
      "echo", "printf", "cat",  "sed", "ls",   "cp",   "mv",   "rm",    "mkdir", "cd",     "grep",
      "tee",  "git",    "test", "[",   "sort", "head", "tail", "touch", "chmod", "sbatch", "pkill"};
  if (others.contains(words.front().text)) return false;
  return std::ranges::any_of(words, [](const ShellWord& word) {
    return word.text.ends_with(".py") || word.text.starts_with("--num-layers") ||
           word.text.starts_with("--num_layers");
  });
}

class Command {
 public:
  Command(ShellState& state, const EvaluateText& evaluate) : state_(state), evaluate_(evaluate) {}

  ShellStatus run(std::span<const ShellSource> words) {
    const auto assigns = [](const ShellSource& word) { return assigned(word.text) > 0; };
    const auto first = std::ranges::find_if_not(words, assigns);
    if (first == words.end()) return assign(words), yes;
    words = words.subspan(static_cast<std::size_t>(first - words.begin()));
    static const std::set<std::string_view> declarations{"export", "local", "declare", "readonly",
                                                         "typeset"};
    if (declarations.contains(words.front().text)) return assign(words.subspan(1)), yes;
    for (const ShellSource& word : words)
      for (std::string& field : state_.values.fields(word.text)) add(std::move(field), word.line);
    if (words_.empty()) return yes;
    return execute();
  }

 private:
  void add(std::string text, int line) {
    std::string unset = missing_name(text);
    // A backslash that ends a line of a string is no argument.
    if (text == "\\") return;
    const bool branch = std::erase(text, branch_mark) > 0;
    words_.push_back({std::move(text), line, std::move(unset), branch});
  }

  void assign(std::span<const ShellSource> words) {
    for (const ShellSource& word : words) {
      const std::size_t length = assigned(word.text);
      if (length == 0) continue;
      const bool append = word.text[length - 2] == '+';
      const std::string name(word.text.substr(0, length - (append ? 2 : 1)));
      ShellValue value{{}, word.list};
      for (const std::string_view item : word.items)
        for (std::string& field : state_.values.fields(item)) value.items.push_back(field);
      if (!word.list) value.items.push_back(state_.values.whole(word.text.substr(length)));
      state_.values.assign(name, std::move(value), append);
    }
  }

  std::string rest_from(std::size_t begin) const {
    std::vector<std::string_view> texts;
    for (std::size_t i = begin; i < words_.size(); ++i) texts.push_back(words_[i].text);
    return fmt::format("{}", fmt::join(texts, " "));
  }

  ShellStatus execute() {
    const std::string& name = words_.front().text;
    if (name == "eval") return evaluate_(rest_from(1), words_.front().line), unknown;
    if (name == "[" || name == "test") return condition(name == "[");
    if (name == "true" || name == ":") return yes;
    if (name == "false") return no;
    if (name == "unset") return drop(), yes;
    if (name == "read") return forget(), unknown;
    if (name == "shift") return shift(), yes;
    if (stops(name)) return yes;
    if (const auto found = state_.functions.find(name); found != state_.functions.end())
      return call(found->second), unknown;
    return launch();
  }

  bool stops(const std::string& name) {
    const ShellStop stop = name == "exit"                          ? ShellStop::script
                           : name == "return"                      ? ShellStop::function
                           : name == "break" || name == "continue" ? ShellStop::loop
                                                                   : ShellStop::none;
    if (stop != ShellStop::none) state_.stop = stop;
    return stop != ShellStop::none;
  }

  ShellStatus condition(bool bracket) {
    std::vector<std::string> texts;
    for (std::size_t i = 1; i < words_.size(); ++i) texts.push_back(words_[i].text);
    if (bracket && !texts.empty()) texts.pop_back();
    return shell_test(texts, state_.doubt);
  }

  void drop() {
    for (std::size_t i = 1; i < words_.size(); ++i)
      state_.values.assign(words_[i].text, {{""}}, false);
  }

  void forget() {
    for (std::size_t i = 1; i < words_.size(); ++i)
      state_.values.assign(words_[i].text, {{without_value(words_[i].text)}}, false);
  }

  void shift() {
    auto words = state_.values.positional();
    if (!words.empty()) words.erase(words.begin());
    state_.values.set_positional(words);
  }

  void call(std::pair<std::string, int> function) {
    const std::vector<std::string> outer = state_.values.positional();
    std::vector<std::string> own;
    for (std::size_t i = 1; i < words_.size(); ++i) own.push_back(words_[i].text);
    state_.values.set_positional(own);
    evaluate_(function.first, function.second);
    state_.values.set_positional(outer);
    if (state_.stop == ShellStop::function) state_.stop = ShellStop::none;
  }

  // bash -c TEXT, and texts that other launchers pass on, are evaluated; programs are recorded.
  ShellStatus launch() {
    static const std::set<std::string_view> assumed_to_succeed{
        "mkdir", "cd", "echo", "printf", "cat", "source", ".", "set", "ulimit", "module", "sleep"};
    if (assumed_to_succeed.contains(words_.front().text)) return yes;
    state_.doubt = command_output;
    for (std::size_t i = 0; i + 2 < words_.size(); ++i) {
      const std::string& shell = words_[i].text;
      const bool is_shell = shell == "bash" || shell == "sh" || shell.ends_with("/bash");
      if (is_shell && words_[i + 1].text.starts_with("-") && words_[i + 1].text.ends_with("c"))
        return evaluate_(words_[i + 2].text, words_[i].line), unknown;
    }
    if (!is_launch(words_)) {
      if (words_.front().text.starts_with("--")) state_.strays.push_back(words_.front());
      return unknown;
    }
    const auto& conditions = state_.conditions;
    state_.launches.push_back(
        {words_.front().line, words_, conditions.empty() ? "" : conditions.front()});
    return unknown;
  }

  ShellState& state_;
  const EvaluateText& evaluate_;
  std::vector<ShellWord> words_;
};

}  // namespace

ShellStatus run_command(const std::vector<ShellSource>& words, ShellState& state,
                        const EvaluateText& evaluate) {
  return Command(state, evaluate).run(words);
}

}  // namespace lambcast::megatron
