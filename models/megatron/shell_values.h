// Variables of a shell script, and the expansion of words.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/megatron/shell_script.h"

namespace lambcast::megatron {

struct ShellValue {
  std::vector<std::string> items;  // an array may have several items, other values have one
  bool list = false;
  bool operator==(const ShellValue&) const = default;
};

// Returns a text that marks a missing value of the variable `name`. Concatenation keeps the mark.
std::string without_value(std::string_view name);

// Returns the name of the first variable without a value in `text`; empty if there is none.
std::string missing_name(std::string_view text);

// Returns the text with "$NAME" in place of each variable without a value.
std::string with_names(std::string text);

// Marks a word that an undecided branch adds to a list: the first character of such a word.
constexpr char branch_mark = '\x03';

// Name that is used for the output of a command, as if it were a variable.
constexpr std::string_view command_output = "output";

class ShellValues {
 public:
  static constexpr std::size_t field_cost = 32;  // cost of a field, in addition to its characters

  // Values by name, before or after changes; nothing for a name without any assignment.
  using Changes = std::map<std::string, std::optional<ShellValue>>;

  // `given` values replace all assignments to their names.
  explicit ShellValues(Variables given);

  void assign(const std::string& name, ShellValue value, bool append);
  // Assigns NAME[index]=text. Arrays with gaps have no value. The items of an associative array are
  // variables of their own, named NAME[key].
  void assign_item(const std::string& name, std::string_view index, std::string text, bool append);
  // Assigns positional parameters and loop variables, which `given` does not replace.
  void bind(const std::string& name, std::string text) { slot(name) = {{std::move(text)}}; }
  void unset(const std::string& name);
  // Removes the value of a name, or of all names; `reason` names the command that may have set it.
  void forget(const std::string& name, const std::string& reason);
  void forget_all(const std::string& reason);
  const std::map<std::string, std::string>& reasons() const { return reasons_; }
  std::size_t written() const { return written_; }  // characters assigned and expanded

  // Set attributes of names, as declare, readonly and export do.
  void make_integer(const std::string& name) { integers_.insert(name); }
  void make_readonly(const std::string& name) { readonly_.insert(name); }
  bool is_readonly(const std::string& name) const { return readonly_.contains(name); }
  // Declares an associative array, without items.
  void make_associative(const std::string& name);
  bool is_associative(const std::string& name) const { return associative_.contains(name); }
  void make_exported(const std::string& name, bool exported);
  const std::set<std::string>& exported() const { return exported_; }
  void set_exported(std::set<std::string> names) { exported_ = std::move(names); }
  void export_all(bool all) { all_exported_ = all; }
  // Unsets all names that a new shell does not inherit.
  void keep_exported();

  // Local variables exist until the end of the function call.
  void enter_function() { locals_.emplace_back(); }
  void leave_function();
  // Creates a local variable of the function, without a value. Does nothing outside functions.
  void make_local(const std::string& name);

  // Expands a word of source text, split at unquoted spaces.
  std::vector<std::string> fields(std::string_view source);
  // Expands a word of source text without splitting.
  std::string whole(std::string_view source);
  // Expands variables as inside double quotes.
  std::string quoted(std::string_view source);
  // Evaluates an arithmetic expression.
  std::string calculated(std::string_view source);

  std::vector<std::string> positional() const;
  void set_positional(const std::vector<std::string>& words);

  // Record changes, to undo them (subshells, pipelines) or to evaluate both sides of an undecided
  // branch. Scopes nest.
  void open_scope() { scopes_.emplace_back(); }
  void keep_scope();
  Changes undo_scope();  // returns the final values
  void redo(const Changes& finals);
  // Closes the scope of one side of a branch; `other` has the final values of the other side. Names
  // with equal values on both sides keep them; others have no value.
  void merge_scope(const Changes& other);

 private:
  class Expansion;
  ShellValue& slot(const std::string& name);
  void restore(const std::string& name, const std::optional<ShellValue>& value);
  void record(const std::string& name);
  std::optional<ShellValue> value_of(const std::string& name) const;
  std::vector<std::string> parameter(std::string_view inside);
  std::vector<std::string> element(const std::string& name, std::string_view rest);
  std::vector<std::string> otherwise(const std::string& name, std::string_view rest);
  std::vector<std::string> edited(const std::string& name, std::string_view rest);
  std::vector<std::string> part_of(const std::string& name, std::string_view range);
  std::vector<std::string> item_of(const std::string& name, std::string_view rest);
  void forget_items(const std::string& name);
  std::string length_of(std::string_view name);
  std::string text_of(const std::string& name) const;
  void forget_assigned(std::string_view text);
  bool splits_otherwise() const;  // IFS is not the default

  Variables given_;
  std::map<std::string, ShellValue> values_;
  std::map<std::string, std::string> reasons_;
  std::set<std::string> integers_, readonly_, exported_, associative_;
  std::size_t written_ = 0;
  bool all_exported_ = false;
  std::vector<Changes> scopes_, locals_;
};

}  // namespace lambcast::megatron
