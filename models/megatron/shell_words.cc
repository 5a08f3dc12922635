#include "models/megatron/shell_words.h"

#include <fmt/format.h>

#include <map>

#include "sim/base/error.h"

namespace lambcast::megatron {
namespace {

constexpr std::size_t most_words = 100'000;
constexpr std::size_t most_letters = 10'000;  // of a word

bool is_name(char c, bool first) {
  return c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         (!first && c >= '0' && c <= '9');
}

// The length of the name that `text` begins with.
std::size_t name_length(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() && is_name(text[length], length == 0)) ++length;
  return length;
}

class Splitter {
 public:
  Splitter(std::string_view text, const std::string& file) : text_(text), file_(file) {}

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

  // NAME=( opens a list, NAME=value defines; anything else is a word.
  void take() {
    const std::size_t name = name_length(text_.substr(at_));
    const bool assigns = name > 0 && at_ + name < text_.size() && text_[at_ + name] == '=';
    if (!assigns || inside_) {
      const int line = line_;
      std::string text = word();
      if (!text.empty() || quoted_) words_.push_back({std::move(text), line});
      if (words_.size() > most_words) fail("too many words");
      return;
    }
    const std::string key(text_.substr(at_, name));
    at_ += name + 1;
    if (at_ < text_.size() && text_[at_] == '(') {
      inside_ = true;
      ++at_;
      return;
    }
    values_[key] = word();
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

  // $NAME, ${NAME}, ${NAME:-value}, ${NAME[@]}.
  void expand(std::string& out) {
    const bool braces = at_ + 1 < text_.size() && text_[at_ + 1] == '{';
    const std::size_t begin = at_ + (braces ? 2 : 1);
    const std::size_t length = name_length(text_.substr(begin));
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
    if (rest == "[@]" || rest == "[*]") return;
    if (const auto value = values_.find(name); value != values_.end())
      out += value->second;
    else if (rest.starts_with(":-"))
      out += rest.substr(2);
    else
      fail(fmt::format("${} has no value here: write it out", name));
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool inside_ = false, quoted_ = false;
  std::map<std::string, std::string> values_;
  std::vector<ShellWord> words_;
};

}  // namespace

std::vector<ShellWord> shell_words(std::string_view text, const std::string& file) {
  return Splitter(text, file).split();
}

}  // namespace lambcast::megatron
