#include "models/megatron/shell_words.h"

#include <algorithm>
#include <array>
#include <map>

#include "sim/base/error.h"

namespace lambcast::megatron {
namespace {

constexpr std::size_t most_words = 100'000;
constexpr std::size_t most_letters = 10'000;  // characters of a word

bool is_name(char c, bool first) {
  return c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         (!first && c >= '0' && c <= '9');
}

// Returns the length of the name at the start of `text`.
std::size_t name_length(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() && is_name(text[length], length == 0)) ++length;
  return length;
}

// Character before and after the name of a variable without a value, inside a word.
constexpr char unset_mark = '\x01';

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::ranges::find(words, word) != words.end();
}

constexpr std::array<std::string_view, 5> openers{"if", "case", "for", "while", "until"};
constexpr std::array<std::string_view, 3> closers{"fi", "esac", "done"};
constexpr std::array<std::string_view, 3> launchers{"torchrun", "python", "python3"};

class Splitter {
 public:
  Splitter(std::string_view text, const std::string& file)
      : text_(text), file_(file), script_(text.starts_with("#!")) {}

  std::vector<ShellWord> split() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
        ++at_;
      } else if (c == ' ' || c == '\t' || c == '\r' || c == ';' || continues_line()) {
        ++at_;
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == ')') {
        inside_ = false;
        ++at_;
      } else {
        take();
      }
    }
    return std::move(words_);
  }

 private:
  bool continues_line() const {
    return text_[at_] == '\\' &&
           (at_ + 1 == text_.size() || text_[at_ + 1] == '\n' || text_[at_ + 1] == '\r');
  }

  [[noreturn]] void fail(std::string_view what) const { fail_input({file_, line_, {}}, what); }

  // Reads one item: NAME=( and NAME+=( open a list, NAME=value defines a variable; anything else is
  // a word, in a script a command.
  void take() {
    const std::size_t name = name_length(text_.substr(at_));
    const std::string_view behind = text_.substr(std::min(at_ + name, text_.size()));
    const std::size_t equals = behind.starts_with("+=") ? 2 : behind.starts_with("=") ? 1 : 0;
    if (inside_) return add_word();
    if (name == 0 || equals == 0) return script_ ? command() : add_word();
    const std::string key(text_.substr(at_, name));
    at_ += name + equals;
    if (at_ < text_.size() && text_[at_] == '(') {
      inside_ = true;
      ++at_;
      return;
    }
    const int line = line_;
    std::string value = word();
    const std::size_t begin = value.find_first_not_of(" \t\n\\");
    const bool arguments = begin != std::string::npos && value.substr(begin).starts_with("--");
    if (script_ && arguments) {
      split_at_spaces(value, line);
      values_[key] = "";
      return;
    }
    values_[key] = depth_ > 0 ? unset(key) : std::move(value);
  }

  void add_word() {
    const int line = line_;
    std::string text = word();
    const bool several = script_ && text.starts_with("--") && text.find(' ') < text.find('=');
    if (several)
      split_at_spaces(text, line);
    else if (!text.empty() || quoted_)
      add(std::move(text), line);
  }

  void split_at_spaces(std::string_view text, int line) {
    constexpr std::string_view spaces = " \t\r\n\\";
    for (std::size_t begin = text.find_first_not_of(spaces); begin != std::string_view::npos;) {
      const std::size_t end = std::min(text.find_first_of(spaces, begin), text.size());
      add(std::string(text.substr(begin, end - begin)), line);
      begin = text.find_first_not_of(spaces, end);
    }
  }

  void add(std::string text, int line) {
    ShellWord word{std::move(text), line, {}, depth_ > 0};
    if (const std::size_t mark = word.text.find(unset_mark); mark != std::string::npos)
      word.unset = word.text.substr(mark + 1, word.text.find(unset_mark, mark + 1) - mark - 1);
    words_.push_back(std::move(word));
    if (words_.size() > most_words) fail("too many words");
  }

  bool ends_statement() const {
    return at_ == text_.size() || text_[at_] == '\n' || text_[at_] == ';' || text_[at_] == ')';
  }

  // Keeps the arguments from the first "--" of a command that launches a run; the name of its
  // program is not one of them.
  void command() {
    if (depth_ == 0 && text_.substr(at_).starts_with("--")) return add_word();
    const std::string name = word();
    if (is_one_of(name, closers)) depth_ = std::max(0, depth_ - 1);
    const bool goes_on = name == "then" || name == "else" || name == "do";
    if (is_one_of(name, openers)) ++depth_;
    if (goes_on) return;
    const bool launches = is_one_of(name, launchers);
    for (bool arguments = false; !ends_statement();) {
      if (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r') {
        ++at_;
      } else if (text_[at_] == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_[at_] == '\\') {
        at_ = std::min(text_.find('\n', at_), text_.size());
        if (at_ < text_.size()) ++at_, ++line_;
      } else {
        const int line = line_;
        std::string text = word();
        arguments |= text.starts_with("--");
        const bool program = text.ends_with(".py");
        if (launches && arguments && !program) add(std::move(text), line);
      }
    }
  }

  std::string word() {
    std::string out;
    quoted_ = false;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ';' || c == ')') break;
      if (c == '"' || c == '\'') {
        quote(out, c);
      } else if (c == '$') {
        expand(out);
      } else if (c == '\\') {
        if (continues_line()) break;
        out += ++at_ < text_.size() ? text_[at_] : '\\';
        ++at_;
      } else {
        out += c;
        ++at_;
      }
      if (out.size() > most_letters) fail("a word is too long");
    }
    return out;
  }

  void quote(std::string& out, char mark) {
    quoted_ = true;
    const int opened = line_;
    for (++at_; at_ < text_.size() && text_[at_] != mark;) {
      if (text_[at_] == '\n') ++line_;
      if (mark == '"' && text_[at_] == '$') {
        expand(out);
      } else {
        out += text_[at_++];
      }
    }
    if (at_ == text_.size()) fail_input({file_, opened, {}}, "a quote is not closed");
    ++at_;
  }

  // Expands $NAME, ${NAME}, ${NAME:-value}, ${NAME[@]}.
  void expand(std::string& out) {
    const bool braces = at_ + 1 < text_.size() && text_[at_ + 1] == '{';
    const std::size_t begin = at_ + (braces ? 2 : 1);
    if (!braces && begin < text_.size() && text_[begin] == '(') return substitute(out);
    std::size_t length = name_length(text_.substr(begin));
    if (length == 0 && begin < text_.size() && is_special(text_[begin])) length = 1;
    std::size_t end = begin + length;
    std::string_view rest;
    if (braces) {
      const std::size_t close = text_.find('}', end);
      if (close == std::string_view::npos) fail("a '${' is not closed");
      rest = text_.substr(end, close - end);
      end = close + 1;
    }
    const std::string name(text_.substr(begin, length));
    at_ = end;
    if (name.empty() && !braces) {
      out += '$';
      return;
    }
    if (rest == "[@]" || rest == "[*]") return;
    if (const auto value = values_.find(name); value != values_.end())
      out += value->second;
    else if (rest.starts_with(":-"))
      out += without_quotes(rest.substr(2));
    else
      out += unset(name);
  }

  // Returns whether a character names a special parameter, such as $1.
  static bool is_special(char c) {
    return (c >= '0' && c <= '9') || std::string_view("@*#?$!").find(c) != std::string_view::npos;
  }

  static std::string unset(std::string_view name) {
    return unset_mark + std::string(name) + unset_mark;
  }

  static std::string_view without_quotes(std::string_view text) {
    const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
    return quoted ? text.substr(1, text.size() - 2) : text;
  }

  // Replaces $( ... ) and $(( ... )) by a missing value.
  void substitute(std::string& out) {
    const std::size_t begin = at_;
    int open = 0;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') ++line_;
      open += text_[at_] == '(' ? 1 : text_[at_] == ')' ? -1 : 0;
      if (open == 0) break;
    }
    if (at_ == text_.size()) fail("a '$(' is not closed");
    ++at_;
    out += unset(text_.substr(begin + 1, at_ - begin - 1));
  }

  std::string_view text_;
  const std::string& file_;
  bool script_;
  std::size_t at_ = 0;
  int line_ = 1, depth_ = 0;
  bool inside_ = false, quoted_ = false;
  std::map<std::string, std::string> values_;
  std::vector<ShellWord> words_;
};

}  // namespace

std::vector<ShellWord> shell_words(std::string_view text, const std::string& file) {
  return Splitter(text, file).split();
}

bool names_program(std::string_view text, std::string_view program) {
  for (std::size_t at = text.find(program); at != std::string_view::npos;
       at = text.find(program, at + 1)) {
    const std::size_t line = text.rfind('\n', at);
    const std::size_t begin = line == std::string_view::npos ? 0 : line + 1;
    if (text.substr(begin, at - begin).find('#') == std::string_view::npos) return true;
  }
  return false;
}

}  // namespace lambcast::megatron
