#include "models/megatron/shell_commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <utility>

#include "models/megatron/shell_lexer.h"
#include "sim/base/error.h"

namespace lambcast::megatron {
namespace {

using enum ShellStatus;

// Returns the length of "NAME=", "NAME+=" or "NAME[INDEX]="; 0 for other words.
std::size_t assigned(std::string_view source) {
  std::size_t name = variable_length(source);
  if (name == 0) return 0;
  if (source.substr(name).starts_with("[")) {
    while (name < source.size() && source[name] != ']') name = after_unit(source, name);
    if (name >= source.size()) return 0;
    ++name;
  }
  const std::string_view rest = source.substr(name);
  return rest.starts_with("+=") ? name + 2 : rest.starts_with("=") ? name + 1 : 0;
}

// Returns whether a text names a file or command that only sets up a shell, and thus assigns no
// variables of the launch.
bool sets_up_shell(std::string_view text) {
  constexpr std::array<std::string_view, 9> parts{"/activate", "conda",     "bashrc",
                                                  "profile",   "/etc/",     "modules",
                                                  "mamba",     "ssh-agent", "setvars.sh"};
  return std::ranges::any_of(parts,
                             [&](std::string_view part) { return text.find(part) != text.npos; });
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
    const auto prefix = words.first(static_cast<std::size_t>(first - words.begin()));
    if (first == words.end()) return assign(words), yes;
    words = words.subspan(prefix.size());
    if (words.size() > 1 && (words[0].text == "command" || words[0].text == "builtin"))
      words = words.subspan(1);
    if (is_declaration(words.front().text)) return declare(words), yes;
    for (const ShellSource& word : words) {
      sets_up_ = sets_up_ || sets_up_shell(word.text);
      for (std::string& field : state_.values.fields(word.text)) add(std::move(field), word.line);
    }
    if (words_.empty()) return assign(prefix), yes;
    return execute_with(prefix);
  }

 private:
  static bool is_declaration(std::string_view word) {
    static const std::set<std::string_view> all{"export", "local", "declare", "readonly",
                                                "typeset"};
    return all.contains(word);
  }

  // Values in front of a command apply only to that command.
  ShellStatus execute_with(std::span<const ShellSource> prefix) {
    if (prefix.empty()) return execute();
    const auto exported = state_.values.exported();
    state_.values.enter_function();
    for (const ShellSource& word : prefix) {
      const std::string name(word.text.substr(0, variable_length(word.text)));
      const std::string value = state_.values.whole(word.text.substr(assigned(word.text)));
      state_.values.make_local(name);
      state_.values.assign(name, {{value}}, false);
      state_.values.make_exported(name, true);
    }
    const ShellStatus status = execute();
    state_.values.leave_function();
    state_.values.set_exported(exported);
    return status;
  }

  std::string reason(std::string_view what, int line) const {
    return fmt::format("line {}: '{}' is not supported in scripts", line, what);
  }

  void add(std::string text, int line) {
    std::string unset = missing_name(text);
    // A backslash at the end of a string's line is not an argument.
    if (text == "\\") return;
    const bool branch = std::erase(text, branch_mark) > 0;
    words_.push_back({std::move(text), line, std::move(unset), branch});
  }

  void assign(std::span<const ShellSource> words) {
    for (const ShellSource& word : words)
      if (assigned(word.text) > 0) assign(word, false);
  }

  void assign(const ShellSource& word, bool local) {
    const std::size_t length = assigned(word.text);
    const bool append = word.text[length - 2] == '+';
    const std::string name(word.text.substr(0, variable_length(word.text)));
    // The shell would skip the remainder of the line, so the script is refused.
    if (state_.values.is_readonly(name))
      fail_input({state_.file, word.line, {}}, fmt::format("'{}' is readonly", name),
                 "write the arguments out, without the shell");
    if (word.list && state_.values.is_associative(name)) return assign_items(name, word, append);
    ShellValue value{{}, word.list};
    for (const std::string_view item : word.items) {
      for (std::string& field : state_.values.fields(item)) value.items.push_back(field);
      if (item.starts_with("["))
        return state_.values.forget(name, reason("([INDEX]=...)", word.line));
    }
    if (!word.list) value.items.push_back(state_.values.whole(word.text.substr(length)));
    if (local) state_.values.make_local(name);
    const std::string_view index =
        word.text.substr(name.size(), length - (append ? 2 : 1) - name.size());
    if (index.empty()) return state_.values.assign(name, std::move(value), append);
    if (word.list) return state_.values.forget(name, reason("[INDEX]=( )", word.line));
    state_.values.assign_item(name, index.substr(1, index.size() - 2), value.items.front(), append);
  }

  // Evaluates NAME=([key]=value ...) of an associative array.
  void assign_items(const std::string& name, const ShellSource& word, bool append) {
    if (!append) state_.values.make_associative(name);
    for (const std::string_view item : word.items) {
      std::size_t close = 0;
      while (close < item.size() && item[close] != ']') close = after_unit(item, close);
      const std::size_t value = close + 2;
      if (!item.starts_with("[") || value > item.size() || item[close + 1] != '=')
        return state_.values.forget(name, reason("an item without [KEY]=", word.line));
      state_.values.assign_item(name, item.substr(1, close - 1),
                                state_.values.whole(item.substr(value)), false);
    }
  }

  // Evaluates export, readonly, local and declare.
  void declare(std::span<const ShellSource> words) {
    const std::string_view command = words.front().text;
    const bool local = command != "export" && command != "readonly";
    std::string options = command == "export" ? "x" : command == "readonly" ? "r" : "";
    for (const ShellSource& word : words.subspan(1)) {
      if (word.text.starts_with("-")) {
        options += word.text.substr(1);
      } else if (assigned(word.text) > 0 || variable_length(word.text) == word.text.size()) {
        declare(word, options, local);
      } else {
        // This word expands to assignments, as in export "$NAME=1".
        for (const std::string& field : state_.values.fields(word.text)) {
          if (!missing_name(field.substr(0, assigned(field))).empty() || assigned(field) == 0) {
            if (!missing_name(field).empty()) state_.values.forget_all(reason(command, word.line));
            continue;
          }
          const std::string name = field.substr(0, variable_length(field));
          declare({word.line, name, false, {}}, options, local);
          state_.values.assign(name, {{field.substr(assigned(field))}}, false);
        }
      }
    }
  }

  void declare(const ShellSource& word, std::string_view options, bool local) {
    const auto has = [&](char option) { return options.find(option) != options.npos; };
    const std::string name(word.text.substr(0, variable_length(word.text)));
    const bool own = local && !has('g');
    if (has('i')) state_.values.make_integer(name);
    if (has('A') && !state_.values.is_associative(name)) state_.values.make_associative(name);
    if (assigned(word.text) > 0)
      assign(word, own);
    else if (own)
      state_.values.make_local(name);
    if (has('n') && local) state_.values.forget_all(reason("declare -n", word.line));
    if (has('r')) state_.values.make_readonly(name);
    if (has('x')) state_.values.make_exported(name, !has('n'));
  }

  std::string rest_from(std::size_t begin) const {
    std::vector<std::string_view> texts;
    for (std::size_t i = begin; i < words_.size(); ++i) texts.push_back(words_[i].text);
    return fmt::format("{}", fmt::join(texts, " "));
  }

  ShellStatus execute() {
    const std::string& name = words_.front().text;
    const int line = words_.front().line;
    if (name == "eval") return evaluate_words(), unknown;
    if (name == "source" || name == ".") return source(), yes;
    if (name == "[" || name == "test") return condition(name == "[");
    if (name == "true" || name == ":") return yes;
    if (name == "false") return no;
    if (name == "unset") return drop(), yes;
    if (name == "let") return let();
    if (name == "set") return set(), yes;
    if (name == "shift") return shift(), yes;
    if (name == "printf" && words_.size() > 2 && words_[1].text == "-v") return print(), yes;
    if (name == "read" || name == "mapfile" || name == "readarray" || name == "getopts")
      return forget(), unknown;
    if (name == "sed" || name == "perl") edit_files();
    if (stops(name, line)) return words_.size() < 2 ? unknown : words_[1].text == "0" ? yes : no;
    if (const auto found = state_.functions.find(name); found != state_.functions.end())
      return call(found->second), unknown;
    return launch();
  }

  // sed -i changes files, so the contents of here-documents are no longer known.
  void edit_files() {
    if (std::ranges::none_of(words_, [](const auto& word) { return word.text.starts_with("-i"); }))
      return;
    for (const ShellWord& word : words_) state_.files.erase(word.text);
  }

  void evaluate_words() {
    const std::string text = rest_from(1);
    if (missing_name(text) == command_output && !sets_up_)
      state_.values.forget_all(reason("eval", words_.front().line));
    evaluate_(text, words_.front().line);
  }

  void source() {
    const bool quiet = sets_up_ || words_.size() < 2 || sets_up_shell(words_[1].text);
    if (quiet) return;
    state_.values.forget_all(reason("source", words_.front().line));
    state_.sourced.push_back(words_[1]);
  }

  bool stops(const std::string& name, int line) {
    const ShellStop stop = name == "exit"       ? ShellStop::script
                           : name == "return"   ? ShellStop::function
                           : name == "break"    ? ShellStop::loop
                           : name == "continue" ? ShellStop::next
                                                : ShellStop::none;
    const bool of_loop = stop == ShellStop::loop || stop == ShellStop::next;
    if (of_loop && words_.size() > 1 && words_[1].text != "1")
      fail_input({state_.file, line, {}},
                 fmt::format("'{} {}' is not supported in scripts", name, words_[1].text),
                 "write the arguments out, without the shell");
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
    const bool function = words_.size() > 1 && words_[1].text == "-f";
    for (std::size_t i = 1; i < words_.size(); ++i) {
      const std::string& name = words_[i].text;
      state_.functions.erase(name);
      if (function) continue;
      const std::size_t length = variable_length(name);
      if (length == name.size() && length > 0)
        state_.values.unset(name);
      else if (length > 0)
        state_.values.forget(name.substr(0, length), reason("unset NAME[INDEX]", words_[i].line));
    }
  }

  // Removes the values of names that a command sets from unread input.
  void forget() {
    const std::string what = reason(words_.front().text, words_.front().line);
    for (const char* name : {"REPLY", "MAPFILE", "OPTARG", "OPTIND"})
      state_.values.forget(name, what);
    for (std::size_t i = 1; i < words_.size(); ++i)
      if (variable_length(words_[i].text) == words_[i].text.size())
        state_.values.forget(words_[i].text, what);
  }

  ShellStatus let() {
    std::string value;
    for (std::size_t i = 1; i < words_.size(); ++i)
      value = state_.values.calculated(words_[i].text);
    state_.doubt = missing_name(value);
    return !state_.doubt.empty() ? unknown : value == "0" ? no : yes;
  }

  // Evaluates set -- WORDS. Other options of `set` change no value.
  void set() {
    if (words_.size() > 1 && words_[1].text.size() == 2 && words_[1].text[1] == 'a')
      state_.values.export_all(words_[1].text == "-a");
    const auto dashes = std::ranges::find(words_, "--", &ShellWord::text);
    const bool plain =
        words_.size() > 1 && !words_[1].text.starts_with("-") && !words_[1].text.starts_with("+");
    if (dashes == words_.end() && !plain) return;
    std::vector<std::string> texts;
    for (auto word = plain ? words_.begin() + 1 : dashes + 1; word != words_.end(); ++word)
      texts.push_back(word->text);
    state_.values.set_positional(texts);
  }

  // Evaluates printf -v NAME with one whole number or text; with other formats the name has no
  // value.
  void print() {
    const std::string& name = words_[2].text;
    const bool one = words_.size() == 5 && (words_[3].text == "%d" || words_[3].text == "%s");
    if (one)
      state_.values.assign(name, {{words_[4].text}}, false);
    else if (words_.size() == 4 && words_[3].text.find_first_of("%\\") == std::string::npos)
      state_.values.assign(name, {{words_[3].text}}, false);
    else
      state_.values.forget(name.substr(0, variable_length(name)),
                           reason("printf -v", words_.front().line));
  }

  void shift() {
    auto words = state_.values.positional();
    const std::string count = words_.size() > 1 ? words_[1].text : "1";
    const bool number = count.size() == 1 && count[0] >= '0' && count[0] <= '9';
    if (!number)
      fail_input({state_.file, words_.front().line, {}},
                 fmt::format("'shift {}' is not supported in scripts", count),
                 "write the arguments out, without the shell");
    const auto first = static_cast<std::size_t>(count[0] - '0');
    if (first > words.size()) return;
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(first));
    state_.values.set_positional(words);
  }

  void call(std::pair<std::string, int> function) {
    const std::vector<std::string> outer = state_.values.positional();
    std::vector<std::string> own;
    for (std::size_t i = 1; i < words_.size(); ++i) own.push_back(words_[i].text);
    state_.values.set_positional(own);
    state_.values.enter_function();
    evaluate_bounded(state_, state_.undecided_return, [&] {
      evaluate_(function.first, function.second);
      if (state_.stop == ShellStop::function) state_.stop = ShellStop::none;
    });
    state_.values.leave_function();
    state_.values.set_positional(outer);
  }

  // Evaluates bash -c TEXT, ssh HOST TEXT and sbatch --wrap TEXT, and records programs.
  ShellStatus launch() {
    static const std::set<std::string_view> assumed_to_succeed{
        "mkdir", "cd", "echo", "printf", "cat", "ulimit", "module", "sleep", "trap"};
    if (assumed_to_succeed.contains(words_.front().text)) return yes;
    state_.doubt = command_output;
    for (std::size_t i = 0; i + 2 < words_.size(); ++i) {
      const std::string& shell = words_[i].text;
      const bool is_shell = shell == "bash" || shell == "sh" || shell.ends_with("/bash");
      if (is_shell && words_[i + 1].text.starts_with("-") && words_[i + 1].text.ends_with("c"))
        return in_new_shell(i + 2), unknown;
    }
    static const std::set<std::string_view> of_other_shells{"ssh", "pdsh", "clush", "sbatch"};
    for (std::size_t i = 1; i < words_.size(); ++i) {
      std::string& text = words_[i].text;
      if (text.starts_with("--wrap=")) text.erase(0, 7);
      if (of_other_shells.contains(words_.front().text) && text.find(' ') != text.npos &&
          names_program(text, ".py"))
        return in_new_shell(i), unknown;
    }
    if (!is_launch(words_)) {
      if (words_.front().text.starts_with("--")) state_.strays.push_back(words_.front());
      return unknown;
    }
    const auto& conditions = state_.conditions;
    state_.launches.push_back(
        {words_.front().line, words_, conditions.empty() ? "" : conditions.front()});
    if (words_.front().text == "exec") state_.stop = ShellStop::script;
    return unknown;
  }

  // Evaluates the text of bash -c at `place`, with the parameters that follow it.
  void in_new_shell(std::size_t place) {
    state_.values.open_scope();
    state_.values.keep_exported();
    std::vector<std::string> parameters;
    for (std::size_t i = place + 2; i < words_.size(); ++i) parameters.push_back(words_[i].text);
    state_.values.set_positional(parameters);
    evaluate_(words_[place].text, words_[place].line);
    state_.values.undo_scope();
    state_.stop = ShellStop::none;
  }

  ShellState& state_;
  const EvaluateText& evaluate_;
  std::vector<ShellWord> words_;
  bool sets_up_ = false;  // a word names a file that sets up a shell
};

}  // namespace

void evaluate_bounded(ShellState& state, std::string& undecided,
                      const std::function<void()>& body) {
  const std::string before = std::exchange(undecided, {});
  state.values.open_scope();
  body();
  const ShellValues::Changes finals = state.values.undo_scope();
  state.values.redo(finals);
  const std::string name = std::exchange(undecided, before);
  if (name.empty()) return;
  for (const auto& [changed, value] : finals)
    state.values.forget(changed, fmt::format("a loop or function whose end depends on ${}", name));
}

ShellStatus run_command(const std::vector<ShellSource>& words, ShellState& state,
                        const EvaluateText& evaluate) {
  return Command(state, evaluate).run(words);
}

}  // namespace lambcast::megatron
