// The arguments of a Megatron-LM run by name, each with its place in the text. Reading an
// ill-formed argument throws Error (usage) with file, line and argument.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "models/finding.h"
#include "models/key_ledger.h"
#include "models/megatron/shell_script.h"
#include "sim/base/error.h"

namespace lambcast::megatron {

class ArgumentReader {
 public:
  static constexpr std::int64_t most_whole = 1'000'000'000'000;

  // An unknown argument that is close to a known one is refused with a suggestion; others become
  // findings.
  ArgumentReader(std::string_view text, const std::string& file, const Variables& given,
                 std::vector<Finding>& findings);

  bool has(const std::string& key) const;
  bool is_bert() const;         // decides by the program, or by arguments that only BERT has
  void refuse_encoder() const;  // refuses encoder-decoder models
  bool flag(const std::string& key) const;  // an argument without a value
  std::vector<std::string> values(const std::string& key) const;
  std::optional<std::string> word(const std::string& key) const;
  std::optional<std::int64_t> whole(const std::string& key, std::int64_t high = most_whole) const;
  double real(const std::string& key, double otherwise) const;  // a share
  std::int64_t needed(const std::string& key, std::int64_t high = most_whole) const;
  // Returns the position of the value among `words`, or nothing if the argument is absent.
  std::optional<std::size_t> choice(const std::string& key,
                                    const std::vector<std::string>& words) const;

  // Returns the content of a file that the script writes as a here-document; null for other files.
  const std::string* written_file(const std::string& path) const;

  Where where(const std::string& key) const;
  void note(const std::string& key, const char* code, std::string_view sentence) const;
  [[noreturn]] void refuse(const std::string& key, std::string_view what) const;

  // Adds a finding for each argument that affects the cost of some runs but was not read in this
  // one.
  void name_unread() const;
  // Returns the effect of each argument. The ledger is complete once all arguments have been read.
  std::vector<LedgerEntry> ledger() const;

 private:
  struct Given;
  const Given* find(const std::string& key) const;
  std::string sentence_about(const std::string& key) const;

  struct Given {
    std::vector<std::string> values;
    int line = 0;
  };

  // Adds a word without a known value, for arguments without effect such as paths.
  void add_value(const std::string& key, ShellWord word);
  [[noreturn]] void refuse_unset(const std::string& key, const ShellWord& word) const;
  void check_known(const std::string& key, int line) const;

  const std::string& file_;
  std::vector<Finding>& findings_;
  bool bert_ = false;
  std::map<std::string, std::string> files_, reasons_;
  std::map<std::string, Given> given_;
  mutable std::set<std::string> asked_, named_;  // keys
};

}  // namespace lambcast::megatron
