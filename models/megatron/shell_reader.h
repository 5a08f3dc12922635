// Reads the words, lists and redirections of a shell text.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "models/megatron/shell_commands.h"
#include "models/megatron/shell_lexer.h"

namespace lambcast::megatron {

// A position in a shell text. Commands are skipped, not evaluated, while it is not live.
class ShellReader : protected ShellCursor {
 protected:
  ShellReader(std::string_view text, int first_line, ShellState& state)
      : ShellCursor(text, first_line), state_(state) {}
  virtual ~ShellReader() = default;

  bool live() const { return live_ && state_.stop == ShellStop::none; }
  [[noreturn]] void fail(std::string_view what) const;

  // Skips blanks, ends of commands and comments, and reads the here-documents announced before.
  void skip_separators();
  std::string_view raw();   // the word that begins here
  std::string_view peek();  // returns the same word as raw(), without moving
  void expect(std::string_view word);
  void expect_close(std::string_view close);
  // Returns the text between (( and )), and moves after it.
  std::string_view arithmetic_text();

  // Returns the words of a command, without its redirections.
  std::vector<ShellSource> sources();
  void redirections();
  // Called with the here-document of a shell: bash <<EOF.
  virtual void evaluate_in_new_shell(std::string_view text) = 0;

  ShellState& state_;
  bool live_ = true;

 private:
  void array(ShellSource& word);
  bool redirection();
  bool substituted_process();
  void here_documents();
  void read_input(const HereDocument& document, const std::string& content);

  std::vector<HereDocument> pending_;
  std::string target_;
  bool appends_ = false;
};

}  // namespace lambcast::megatron
