#include "models/megatron/shell_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/error.h"

namespace lambcast::megatron {

void ShellReader::fail(std::string_view what) const {
  fail_input({state_.file, line(), {}}, what, "write the arguments out, without the shell");
}

void ShellReader::skip_separators() {
  for (;;) {
    skip_spaces();
    if (at_ == text_.size() || at(";;") || at(";&")) return;
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

std::string_view ShellReader::raw() {
  const std::size_t begin = at_, end = after_word(text_, at_);
  if (end == text_.npos) fail("a quote or bracket is not closed");
  at_ = end;
  return text_.substr(begin, end - begin);
}

std::string_view ShellReader::peek() {
  const std::size_t begin = at_;
  const std::string_view word = raw();
  at_ = begin;
  return word;
}

void ShellReader::expect(std::string_view word) {
  skip_separators();
  if (peek() != word) fail(fmt::format("'{}' is missing", word));
  at_ += word.size();
}

void ShellReader::expect_close(std::string_view close) {
  skip_separators();
  if (!at(close)) fail(fmt::format("'{}' is missing", close));
  at_ += close.size();
}

std::string_view ShellReader::arithmetic_text() {
  const std::string source = "$" + std::string(text_.substr(at_));
  const std::size_t end = after_unit(source, 0);
  if (end == source.npos || !source.substr(0, end).ends_with("))")) fail("'((' is not closed");
  const std::string_view inside = text_.substr(at_ + 2, end - 5);
  at_ += end - 1;
  return inside;
}

std::vector<ShellSource> ShellReader::sources() {
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
  for (HereDocument& document : pending_)
    if (document.reader.empty())
      for (const ShellSource& word : words) document.reader.push_back(word.text);
  return words;
}

void ShellReader::array(ShellSource& word) {
  word.list = true;
  ++at_;
  for (skip_separators(); at_ < text_.size() && text_[at_] != ')'; skip_separators()) {
    const std::size_t begin = at_;
    word.items.push_back(raw());
    if (at_ == begin) fail(fmt::format("'{}' within a list is not read", text_[at_]));
  }
  expect_close(")");
}

void ShellReader::redirections() {
  for (skip_spaces(); redirection(); skip_spaces()) continue;
}

// Skips the command of <( ... ) or >( ... ).
bool ShellReader::substituted_process() {
  if (at("<(") || at(">(")) ++at_;
  if (!at("(")) return false;
  const std::string source = "$" + std::string(text_.substr(at_));
  const std::size_t end = after_unit(source, 0);
  if (end == source.npos) fail("'(' is not closed");
  at_ += end - 1;
  return true;
}

bool ShellReader::redirection() {
  if (!at("<") && !at(">") && !at("&>")) return false;
  const bool here = at("<<") && !at("<<<"), tabs = at("<<-");
  const bool out = at(">") && !at(">&");
  if (out) appends_ = at(">>");
  while (at_ < text_.size() && std::string_view("<>&|").find(text_[at_]) != text_.npos) ++at_;
  if (tabs) ++at_;
  skip_spaces();
  if (substituted_process()) return true;
  const std::string_view word = raw();
  if (here) {
    pending_.push_back({std::string(word), tabs, {}});
  } else if (out && live()) {
    target_ = state_.values.whole(word);
    if (!appends_ && pending_.empty()) state_.files.erase(target_);
  }
  if (!pending_.empty() && (here || out)) pending_.back().target = target_;
  return true;
}

// Evaluates the input of "bash", "bash -s", "sbatch" and "ssh". Assigns the input of "read -r -d ''
// NAME" to NAME.
void ShellReader::read_input(const HereDocument& document, const std::string& content) {
  const std::vector<std::string_view>& words = document.reader;
  if (words.empty()) return;
  if (words.front() == "read" && std::ranges::find(words, "-d") != words.end())
    return state_.values.assign(std::string(words.back()), {{content}}, false);
  const std::string_view last =
      words.size() > 1 && words.back() == "-s" ? words[words.size() - 2] : words.back();
  const bool submits = words.front() == "sbatch" || words.front() == "ssh";
  if (submits || last == "bash" || last == "sh" || last.ends_with("/bash"))
    evaluate_in_new_shell(content);
}

// Reads the here-documents announced on the line that ended.
void ShellReader::here_documents() {
  for (const HereDocument& document : std::exchange(pending_, {})) {
    std::string content;
    if (!read_here_document(text_, at_, document, content)) return;
    if (!live()) continue;
    const bool expanded = document.delimiter.find_first_of("'\"\\") == std::string::npos;
    if (expanded) content = state_.values.quoted(content);
    if (document.target.empty()) {
      read_input(document, content);
      continue;
    }
    std::string& file = state_.files[document.target];
    if (!appends_) file.clear();
    file += content;
  }
  target_.clear();
}

}  // namespace lambcast::megatron
