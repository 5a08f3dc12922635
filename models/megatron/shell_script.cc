#include "models/megatron/shell_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>

#include "models/megatron/shell_commands.h"
#include "models/megatron/shell_reader.h"
#include "models/megatron/shell_test.h"
#include "sim/base/error.h"

namespace lambcast::megatron {
namespace {

using enum ShellStatus;
// Evaluates one text: a script, a function's body, or the argument of eval and bash -c.
class Evaluator : ShellReader {
 public:
  Evaluator(std::string_view text, int first_line, ShellState& state)
      : ShellReader(text, first_line, state) {}

  void evaluate() {
    list();
    if (at_ < text_.size()) fail(fmt::format("'{}' is not expected here", text_[at_]));
  }

 private:
  // Evaluates commands up to a word that closes them.
  ShellStatus list() {
    static const std::set<std::string_view> closers{"then", "elif", "else", "fi",
                                                    "do",   "done", "esac", "}"};
    if (++state_.depth > ShellState::most_nested) fail("is nested too deeply");
    ShellStatus status = yes;
    for (;;) {
      skip_separators();
      if (at(";&")) fail("';&' is not supported in scripts");
      if (at_ == text_.size() || text_[at_] == ')' || at(";;") || closers.contains(peek())) break;
      const ShellStop before = open_command();
      status = and_or();
      close_command(at("&"), before);
    }
    --state_.depth;
    return status;
  }

  void evaluate_in_new_shell(std::string_view text) override {
    const ShellStop before = open_command();
    state_.values.keep_exported();
    evaluate_inside(text, line());
    close_command(true, before);
  }

  void evaluate_inside(std::string_view text, int first_line) {
    count(ShellState::of_repetition);
    if (++state_.depth > ShellState::most_nested) fail("is nested too deeply");
    Evaluator(text, first_line, state_).evaluate();
    --state_.depth;
  }

  ShellStop open_command() {
    state_.values.open_scope();
    return state_.stop;
  }

  // Ends a command. A command in a subshell neither changes variables nor ends the script.
  void close_command(bool own_shell, ShellStop before) {
    if (!own_shell) return state_.values.keep_scope();
    state_.values.undo_scope();
    state_.stop = before;
  }

  ShellStatus and_or() {
    ShellStatus status = pipeline();
    for (skip_spaces(); at("&&") || at("||"); skip_spaces()) {
      const ShellStatus wanted = at("&&") ? yes : no;
      at_ += 2;
      skip_separators();
      const bool before = live_;
      if (status == unknown) {
        branches([&] { pipeline(); }, [] {});
      } else {
        live_ = live_ && status == wanted;
        const ShellStatus next = pipeline();
        if (live_) status = next;
      }
      live_ = before;
    }
    return status;
  }

  ShellStatus pipeline() {
    const bool negated = at("! ");
    if (negated) ++at_, skip_spaces();
    ShellStop before = open_command();
    ShellStatus status = command();
    skip_spaces();
    bool piped = at("|") && !at("||");
    close_command(piped, before);
    for (; piped; piped = at("|") && !at("||")) {
      at_ += at("|&") ? 2 : 1;
      skip_separators();
      before = open_command();
      status = command();
      skip_spaces();
      close_command(true, before);
    }
    return negated && status != unknown ? (status == yes ? no : yes) : status;
  }

  ShellStatus command() {
    if (at("((")) return arithmetic_command();
    if (at("(")) return subshell();
    const std::string_view word = peek();
    if (word == "{") return group("}");
    if (word == "if") return conditional();
    if (word == "case") return selection();
    if (word == "for") return repetition();
    if (word == "while" || word == "until") return conditional_loop();
    if (word == "select") fail("'select' is not supported in scripts");
    if (word == "[[") return double_test();
    if (word == "function") return raw(), skip_spaces(), function(raw());
    return simple();
  }

  ShellStatus arithmetic_command() {
    const std::string_view text = arithmetic_text();
    return live() ? status_of(state_.values.calculated(text)) : unknown;
  }

  ShellStatus status_of(const std::string& number) {
    if (!missing_name(number).empty()) return state_.doubt = missing_name(number), unknown;
    return number == "0" ? no : yes;
  }

  ShellStatus group(std::string_view close) {
    ++at_;
    const ShellStatus status = list();
    expect_close(close);
    redirections();
    return status;
  }

  ShellStatus subshell() {
    if (!live()) return group(")");
    const auto functions = state_.functions;
    const ShellStop before = open_command();
    const bool outer = std::exchange(state_.may_exit, false);
    const ShellStatus status = group(")");
    close_command(true, before);
    state_.functions = functions;
    return std::exchange(state_.may_exit, outer) ? unknown : status;
  }

  // Evaluates both sides of a branch from the same state if it is unknown which side runs.
  void branches(const std::function<void()>& first, const std::function<void()>& second) {
    if (!live()) return first(), second();
    const std::string doubt = state_.doubt.empty() ? std::string(command_output) : state_.doubt;
    state_.conditions.push_back(doubt);
    state_.values.open_scope();
    first();
    const ShellStop one = std::exchange(state_.stop, ShellStop::none);
    const ShellValues::Changes finals = state_.values.undo_scope();
    state_.values.open_scope();
    second();
    const ShellStop other = state_.stop;
    state_.conditions.pop_back();
    state_.may_exit = state_.may_exit || one == ShellStop::script || other == ShellStop::script;
    // A side that ends the script is assumed not to run.
    if (other == ShellStop::script && one != ShellStop::script) {
      state_.values.undo_scope();
      state_.values.redo(finals);
      state_.stop = one;
    } else if (one == ShellStop::script && other != ShellStop::script) {
      state_.values.keep_scope();
    } else {
      state_.values.merge_scope(finals);
      if (one == other) return;
      state_.stop = ShellStop::none;
      const bool returns = one == ShellStop::function || other == ShellStop::function;
      (returns ? state_.undecided_return : state_.undecided_stop) = doubt;
    }
  }

  ShellStatus conditional() {
    at_ += 2;
    alternatives();
    expect("fi");
    redirections();
    return unknown;
  }

  void alternatives() {
    const ShellStatus status = list();
    expect("then");
    const auto rest = [&] {
      skip_separators();
      const std::string_view word = peek();
      if (word == "elif" || word == "else") at_ += 4;
      if (word == "elif") alternatives();
      if (word == "else") list();
    };
    decide(
        status, [&] { list(); }, rest);
  }

  // Evaluates the side selected by the status, and skips the other.
  void decide(ShellStatus status, const std::function<void()>& first,
              const std::function<void()>& second) {
    if (status == unknown) return branches(first, second);
    const bool before = live_;
    live_ = before && status == yes;
    first();
    live_ = before && status == no;
    second();
    live_ = before;
  }

  ShellStatus selection() {
    at_ += 4;
    skip_spaces();
    const std::string_view source = raw();
    const std::string subject = live() ? state_.values.whole(source) : "";
    state_.doubt = missing_name(subject);
    expect("in");
    cases(subject);
    expect("esac");
    return unknown;
  }

  void cases(const std::string& subject) {
    skip_separators();
    if (at_ == text_.size() || peek() == "esac") return;
    if (at("(")) ++at_;
    ShellStatus status = no;
    bool read = true;  // every pattern is comparable
    for (skip_spaces(); at_ < text_.size() && text_[at_] != ')'; skip_spaces()) {
      const std::size_t begin = at_;
      const std::string_view source = raw();
      const std::string pattern = state_.values.whole(source);
      if (at("|")) ++at_;
      if (at_ == begin) fail("a pattern of 'case' is not read");
      read = read && missing_name(pattern).empty() && is_plain_pattern(source) &&
             is_comparable(subject, pattern);
      if (read && matches_pattern(subject, pattern)) status = yes;
    }
    if (!read) status = unknown;
    if (!missing_name(subject).empty() || !live()) status = unknown;
    expect_close(")");
    decide(
        status, [&] { list(); },
        [&] {
          if (at(";;&")) fail("';;&' is not supported in scripts");
          if (at(";;")) at_ += 2;
          cases(subject);
        });
  }

  ShellStatus repetition() {
    at_ += 3;
    skip_spaces();
    if (at("((")) return counted();
    const std::string name(raw());
    skip_separators();
    std::vector<std::string> values = state_.values.positional();
    if (peek() == "in") {
      at_ += 2;
      values.clear();
      for (const ShellSource& word : sources())
        for (std::string& field : fields_of(word)) values.push_back(std::move(field));
    }
    expect("do");
    auto value = values.begin();
    return loop([&, body = at_] {
      at_ = body;
      if (!live() || value == values.end()) return no;
      if (value == values.begin() && !is_counted(values)) {
        state_.values.forget(name, "a loop over words that are not known");
        return unknown;
      }
      state_.values.bind(name, *value++);
      return yes;
    });
  }

  // Returns whether the number of words is known: if no word lacks a value, and none is a pattern
  // of file names.
  bool is_counted(const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      state_.doubt = missing_name(word);
      if (!state_.doubt.empty() || word.find_first_of("*?") != word.npos) return false;
    }
    return true;
  }

  // Evaluates for ((first; condition; step)).
  ShellStatus counted() {
    const std::string_view text = arithmetic_text();
    const std::size_t one = text.find(';'),
                      two = text.find(';', std::min(one, text.size() - 1) + 1);
    if (one == text.npos || two == text.npos) fail("'for ((' is not read");
    expect("do");
    const auto evaluate = [&](std::string_view part) {
      const bool blank = part.find_first_not_of(" \t\n") == part.npos;
      return blank ? yes : status_of(state_.values.calculated(part));
    };
    bool first = true;
    return loop([&, body = at_] {
      at_ = body;
      if (!live()) return no;
      evaluate(std::exchange(first, false) ? text.substr(0, one) : text.substr(two + 1));
      return evaluate(text.substr(one + 1, two - one - 1));
    });
  }

  ShellStatus conditional_loop() {
    const ShellStatus wanted = peek() == "until" ? no : yes;
    raw();
    return loop([&, begin = at_] {
      at_ = begin;
      const ShellStatus status = list();
      expect("do");
      if (!live()) return no;
      return status == unknown ? unknown : status == wanted ? yes : no;
    });
  }

  // Evaluates a loop's body while `next` succeeds. `next` moves to the body.
  ShellStatus loop(const std::function<ShellStatus()>& next) {
    evaluate_bounded(state_, state_.undecided_stop, [&] {
      for (bool again = true; again;) {
        const ShellStatus status = next();
        if (status == unknown) return undecided_body();
        const bool before = live_;
        live_ = live() && status == yes;
        list();
        again = live_ && (state_.stop == ShellStop::none || state_.stop == ShellStop::next);
        live_ = before;
        end_of_body();
        count(ShellState::of_repetition);
      }
    });
    expect("done");
    redirections();
    return unknown;
  }

  void end_of_body() {
    if (state_.stop == ShellStop::next || state_.stop == ShellStop::loop)
      state_.stop = ShellStop::none;
  }

  // Evaluates a body that may run any number of times: twice as a branch, so that names changed by
  // the first repetition have no value in the second.
  void undecided_body() {
    const std::size_t body = at_;
    branches([&] { list(), end_of_body(); }, [] {});
    const std::size_t launches = state_.launches.size();
    count(ShellState::of_repetition);
    at_ = body;
    branches([&] { list(), end_of_body(); }, [] {});
    state_.launches.resize(std::min(launches, state_.launches.size()));
  }

  ShellStatus double_test() {
    at_ += 2;
    std::vector<std::string> words;
    for (skip_spaces(); !at("]]"); skip_spaces()) {
      if (at_ == text_.size() || text_[at_] == '\n') fail("'[[' is not closed");
      const bool two = at("&&") || at("||");
      if (two || std::string_view("<>()").find(text_[at_]) != std::string_view::npos) {
        words.emplace_back(text_.substr(at_, two ? 2 : 1));
        at_ += two ? 2 : 1;
      } else {
        const std::string_view source = raw();
        if (source.empty()) fail("a condition is not read");
        words.push_back(live() ? pattern_of(source) : "");
      }
    }
    at_ += 2;
    return live() ? shell_test(words, state_.doubt) : unknown;
  }

  std::string pattern_of(std::string_view source) {
    const bool variable = source.find('$') != source.npos;
    return variable || is_plain_pattern(source) ? state_.values.whole(source)
                                                : without_value(command_output);
  }

  ShellStatus function(std::string_view name) {
    skip_spaces();
    if (at("(")) ++at_, skip_spaces(), expect_close(")");
    skip_separators();
    const int first = line();
    const bool before = live_;
    const std::size_t begin = at_ + 1;
    if (!at("{")) fail("the body of a function is not read");
    ++at_;
    live_ = false;
    list();
    live_ = before;
    const std::string_view body = text_.substr(begin, at_ - begin);
    expect_close("}");
    if (live()) state_.functions[std::string(name)] = {std::string(body), first};
    return yes;
  }

  std::vector<std::string> fields_of(const ShellSource& word) {
    return live() ? state_.values.fields(word.text) : std::vector<std::string>();
  }

  void count(int steps) {
    state_.steps += steps;
    if (state_.steps > ShellState::most_steps) fail("repeats too often, or has too many words");
    if (state_.values.written() > ShellState::most_text) fail("writes too much text");
  }

  ShellStatus simple() {
    const std::size_t begin = at_;
    std::vector<ShellSource> words = sources();
    if (words.size() == 1 && at("(")) return function(words.front().text);
    if (at_ == begin)
      fail(at_ == text_.size() ? "ends where a command is expected"
                               : fmt::format("'{}' is not expected here", text_[at_]));
    if (!live()) return unknown;
    for (const ShellSource& word : words) {
      count(ShellState::of_word + static_cast<int>(word.text.size()));
      for (const std::string_view item : word.items)
        count(ShellState::of_word + static_cast<int>(item.size()));
    }
    return run_command(words, state_, [&](std::string_view text, int first_line) {
      evaluate_inside(text, first_line);
    });
  }
};

}  // namespace

Script run_script(std::string_view text, const std::string& file, const Variables& given) {
  ShellState state{file, ShellValues(given)};
  Evaluator(text, 1, state).evaluate();
  return {std::move(state.launches), std::move(state.files), std::move(state.strays),
          std::move(state.sourced), state.values.reasons()};
}

}  // namespace lambcast::megatron
