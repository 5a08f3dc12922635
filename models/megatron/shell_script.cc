#include "models/megatron/shell_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>

#include "models/megatron/shell_commands.h"
#include "models/megatron/shell_lexer.h"
#include "models/megatron/shell_test.h"
#include "sim/base/error.h"

namespace lambcast::megatron {
namespace {

using enum ShellStatus;
// Evaluates one text: a script, a function's body, or the argument of eval and bash -c.
class Evaluator : ShellCursor {
 public:
  Evaluator(std::string_view text, int first_line, ShellState& state)
      : ShellCursor(text, first_line), state_(state) {}

  void evaluate() {
    list();
    if (at_ < text_.size()) fail(fmt::format("'{}' is out of place", text_[at_]));
  }

 private:
  bool live() const { return live_ && state_.stop == ShellStop::none; }
  [[noreturn]] void fail(std::string_view what) const {
    fail_input({state_.file, line(), {}}, what, "write the arguments out, without the shell");
  }

  void skip_separators() {
    for (;;) {
      skip_spaces();
      if (at_ == text_.size() || at(";;")) return;
      if (text_[at_] == '\n') {
        ++at_;
        here_documents();
      } else if (text_[at_] == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_[at_] == ';' || text_[at_] == '&') {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string_view raw() {
    const std::size_t begin = at_, end = after_word(text_, at_);
    if (end == text_.npos) fail("a quote or bracket is not closed");
    at_ = end;
    return text_.substr(begin, end - begin);
  }

  std::string_view peek() {
    const std::size_t begin = at_;
    const std::string_view word = raw();
    at_ = begin;
    return word;
  }

  void expect(std::string_view word) {
    skip_separators();
    if (peek() != word) fail(fmt::format("'{}' is missing", word));
    at_ += word.size();
  }

  // Commands up to a word that closes them.
  ShellStatus list() {
    static const std::set<std::string_view> closers{"then", "elif", "else", "fi",
                                                    "do",   "done", "esac", "}"};
    if (++state_.depth > ShellState::most_nested) fail("is nested too deeply");
    ShellStatus status = yes;
    for (;;) {
      skip_separators();
      if (at_ == text_.size() || text_[at_] == ')' || at(";;") || closers.contains(peek())) break;
      status = and_or();
    }
    --state_.depth;
    return status;
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
    ShellStatus status = command();
    for (skip_spaces(); at("|") && !at("||"); skip_spaces()) {
      at_ += at("|&") ? 2 : 1;
      skip_separators();
      status = command();
    }
    return negated && status != unknown ? (status == yes ? no : yes) : status;
  }

  ShellStatus command() {
    if (at("((")) return arithmetic_command();
    if (at("(")) return group(")");
    const std::string_view word = peek();
    if (word == "{") return group("}");
    if (word == "if") return conditional();
    if (word == "case") return selection();
    if (word == "for") return repetition();
    if (word == "while" || word == "until") return loop();
    if (word == "[[") return double_test();
    if (word == "function") return raw(), skip_spaces(), function(raw());
    return simple();
  }

  ShellStatus arithmetic_command() {
    const std::string source = "$" + std::string(text_.substr(at_));
    const std::size_t end = after_unit(source, 0);
    if (end == source.npos) fail("'((' is not closed");
    at_ += end - 1;
    if (!live()) return unknown;
    const std::string value = state_.values.whole(source.substr(0, end));
    if (!missing_name(value).empty()) return state_.doubt = missing_name(value), unknown;
    return value == "0" ? no : yes;
  }

  ShellStatus group(std::string_view close) {
    ++at_;
    const ShellStatus status = list();
    expect_close(close);
    redirections();
    return status;
  }

  void expect_close(std::string_view close) {
    skip_separators();
    if (!at(close)) fail(fmt::format("'{}' is missing", close));
    at_ += close.size();
  }

  // Evaluates both sides from the same state, if it is not known which of them runs.
  void branches(const std::function<void()>& first, const std::function<void()>& second) {
    if (!live()) return first(), second();
    const ShellValues::State before = state_.values.state();
    const std::string doubt = state_.doubt;
    state_.conditions.push_back(doubt);
    first();
    const ShellStop stop = std::exchange(state_.stop, ShellStop::none);
    const ShellValues::State after = state_.values.state();
    state_.values.restore(before);
    second();
    state_.conditions.pop_back();
    if (stop == ShellStop::none && state_.stop != ShellStop::none) {
      state_.values.restore(after);
      state_.stop = ShellStop::none;
    } else if (stop == ShellStop::none) {
      state_.values.merge(after);
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

  // Evaluates the side that the status names, and passes over the other.
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
    for (skip_spaces(); at_ < text_.size() && text_[at_] != ')'; skip_spaces()) {
      const std::size_t begin = at_;
      const std::string pattern = state_.values.whole(raw());
      if (at("|")) ++at_;
      if (at_ == begin) fail("a pattern of 'case' is not read");
      if (matches_pattern(subject, pattern)) status = yes;
    }
    if (!missing_name(subject).empty() || !live()) status = unknown;
    expect_close(")");
    decide(
        status, [&] { list(); },
        [&] {
          if (at(";;")) at_ += 2;
          cases(subject);
        });
  }

  ShellStatus repetition() {
    at_ += 3;
    skip_spaces();
    if (at("((")) return counted();
    const std::string name(raw());
    std::vector<std::string> values;
    skip_separators();
    if (peek() == "in") {
      at_ += 2;
      for (const ShellSource& word : sources())
        for (std::string& field : fields_of(word)) values.push_back(std::move(field));
    }
    expect("do");
    const bool before = live_;
    const std::size_t body = at_;
    for (const std::string& value : values) {
      if (!live()) break;
      at_ = body;
      state_.values.bind(name, value);
      list();
      if (state_.stop == ShellStop::loop) state_.stop = ShellStop::none;
      if (++state_.steps > ShellState::most_steps) fail("repeats too often");
    }
    at_ = body;
    live_ = false;
    list();
    live_ = before;
    expect("done");
    redirections();
    return unknown;
  }

  // for ((...)): it may run any number of times.
  ShellStatus counted() {
    const bool before = live_;
    live_ = false;
    arithmetic_command();
    live_ = before;
    expect("do");
    state_.doubt = command_output;
    branches([&] { list(); }, [] {});
    expect("done");
    redirections();
    return unknown;
  }

  // A loop with an undecided condition is taken as a branch.
  ShellStatus loop() {
    const bool until = peek() == "until", before = live_;
    raw();
    const std::size_t begin = at_;
    for (bool again = live();;) {
      at_ = begin;
      const ShellStatus status = list();
      expect("do");
      again = again && live() && status == (until ? no : yes);
      if (live() && status == unknown)
        branches([&] { list(); }, [] {});
      else
        live_ = again, list(), live_ = before;
      if (state_.stop == ShellStop::loop) again = false, state_.stop = ShellStop::none;
      if (!again) break;
      if (++state_.steps > ShellState::most_steps) fail("repeats too often");
    }
    expect("done");
    redirections();
    return unknown;
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
        words.push_back(live() ? state_.values.whole(source) : "");
      }
    }
    at_ += 2;
    return live() ? shell_test(words, state_.doubt) : unknown;
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

  ShellStatus simple() {
    const std::size_t begin = at_;
    std::vector<ShellSource> words = sources();
    if (words.size() == 1 && at("(")) return function(words.front().text);
    if (at_ == begin) fail(fmt::format("'{}' is out of place", text_[at_]));
    if (!live()) return unknown;
    state_.steps += static_cast<int>(words.size());
    if (state_.steps > ShellState::most_steps) fail("has too many words");
    return run_command(words, state_, [&](std::string_view text, int line) {
      if (++state_.depth > ShellState::most_nested) fail("is nested too deeply");
      Evaluator(text, line, state_).evaluate();
      --state_.depth;
    });
  }

  // The words of a command, without its redirections.
  std::vector<ShellSource> sources() {
    std::vector<ShellSource> words;
    for (;;) {
      skip_spaces();
      if (redirection()) continue;
      if (at_ == text_.size() || std::string_view("\n;&|()").find(text_[at_]) != text_.npos) break;
      if (text_[at_] == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
        break;
      }
      ShellSource word{line(), raw(), false, {}};
      const bool digits = word.text.find_first_not_of("0123456789") == text_.npos;
      if (digits && (at("<") || at(">"))) continue;
      if (word.text.ends_with("=") && at("(")) array(word);
      words.push_back(std::move(word));
    }
    return words;
  }

  void array(ShellSource& word) {
    word.list = true;
    ++at_;
    for (skip_separators(); at_ < text_.size() && text_[at_] != ')'; skip_separators()) {
      const std::size_t begin = at_;
      word.items.push_back(raw());
      if (at_ == begin) fail(fmt::format("'{}' within a list is not read", text_[at_]));
    }
    expect_close(")");
  }

  void redirections() {
    for (skip_spaces(); redirection(); skip_spaces()) continue;
  }

  bool redirection() {
    if (!at("<") && !at(">") && !at("&>")) return false;
    const bool here = at("<<") && !at("<<<"), tabs = at("<<-");
    const bool out = at(">") && !at(">&");
    while (at_ < text_.size() && std::string_view("<>&|").find(text_[at_]) != text_.npos) ++at_;
    if (tabs) ++at_;
    skip_spaces();
    const std::string_view word = raw();
    if (here) {
      pending_.push_back({std::string(word), tabs, {}});
    } else if (out && live()) {
      target_ = state_.values.whole(word);
    }
    if (!pending_.empty() && (here || out)) pending_.back().target = target_;
    return true;
  }

  // Reads the here-documents announced on the line that ended.
  void here_documents() {
    for (const HereDocument& document : std::exchange(pending_, {})) {
      std::string content;
      if (!read_here_document(text_, at_, document, content)) return;
      if (!live() || document.target.empty()) continue;
      const bool expanded = document.delimiter.find_first_of("'\"\\") == std::string::npos;
      state_.files[document.target] = expanded ? state_.values.quoted(content) : content;
    }
    target_.clear();
  }

  ShellState& state_;
  bool live_ = true;
  std::vector<HereDocument> pending_;
  std::string target_;
};

}  // namespace

Script run_script(std::string_view text, const std::string& file, const Variables& given) {
  ShellState state{file, ShellValues(given)};
  Evaluator(text, 1, state).evaluate();
  return {std::move(state.launches), std::move(state.files), std::move(state.strays)};
}

}  // namespace lambcast::megatron
