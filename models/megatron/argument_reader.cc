#include "models/megatron/argument_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "models/megatron/costless_arguments.h"
#include "models/megatron/known_arguments.h"
#include "models/megatron/launch.h"
#include "models/unknown_keys.h"
#include "sim/base/error.h"

namespace lambcast::megatron {
namespace {

// Names of arguments in older releases of Megatron-LM.
const std::map<std::string, std::string>& former_names() {
  static const std::map<std::string, std::string> names{
      {"model-parallel-size", "tensor-model-parallel-size"},
      {"pipe-parallel-size", "pipeline-model-parallel-size"},
      {"batch-size", "micro-batch-size"},
      {"warmup", "lr-warmup-fraction"}};
  return names;
}

}  // namespace

ArgumentReader::ArgumentReader(std::string_view text, const std::string& file,
                               const Variables& given, std::vector<Finding>& findings)
    : file_(file), findings_(findings) {
  LaunchArguments launch = launch_arguments(text, file, given, findings);
  bert_ = launch.program.empty() ? names_program(text, "pretrain_bert")
                                 : launch.program.find("pretrain_bert") != std::string::npos;
  files_ = std::move(launch.files);
  reasons_ = std::move(launch.reasons);
  std::string key;
  for (ShellWord& word : launch.words) {
    if (!word.text.starts_with("--")) {
      add_value(key, std::move(word));
      continue;
    }
    const std::size_t equals = word.text.find('=');
    key = word.text.substr(2, equals == std::string::npos ? equals : equals - 2);
    std::replace(key.begin(), key.end(), '_', '-');
    if (const auto renamed = former_names().find(key); renamed != former_names().end())
      key = renamed->second;
    check_known(key, word.line);
    if (word.branch && bears_on_cost(key))
      fail_input({file_, word.line, "--" + key},
                 "is in a branch of the script, and scripts are not run: write the arguments out");
    given_[key] = {{}, word.line};
    if (equals != std::string::npos) {
      word.text.erase(0, equals + 1);
      add_value(key, std::move(word));
    }
  }
  if (given_.empty())
    fail_input({file_, 0, {}}, "holds no arguments of Megatron-LM",
               "--num-layers 24 and so on, or the script that starts the training");
}

const ArgumentReader::Given* ArgumentReader::find(const std::string& key) const {
  const auto found = given_.find(key);
  if (found == given_.end()) return nullptr;
  asked_.insert(key);
  return &found->second;
}

bool ArgumentReader::has(const std::string& key) const { return find(key) != nullptr; }

bool ArgumentReader::is_bert() const {
  return bert_ || std::ranges::any_of(given_, [](const auto& argument) {
           return argument.first.starts_with("bert-") || argument.first.starts_with("mask-");
         });
}

void ArgumentReader::refuse_encoder() const {
  for (const char* key :
       {"encoder-num-layers", "decoder-num-layers", "encoder-seq-length", "decoder-seq-length"})
    if (has(key))
      fail_input(where(key),
                 "describes an encoder with a decoder (T5), for which argument lists are not read; "
                 "try: flags, with --model t5-large or a description");
}

bool ArgumentReader::flag(const std::string& key) const {
  const Given* found = find(key);
  if (found == nullptr) return false;
  if (found->values.empty()) return true;
  fail_input(where(key), fmt::format("takes no value, not '{}'", found->values.front()));
}

std::vector<std::string> ArgumentReader::values(const std::string& key) const {
  const Given* found = find(key);
  return found == nullptr ? std::vector<std::string>() : found->values;
}

std::optional<std::string> ArgumentReader::word(const std::string& key) const {
  const Given* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (found->values.size() != 1)
    fail_input(where(key), fmt::format("has {} values, not one", found->values.size()));
  return found->values.front();
}

std::optional<std::int64_t> ArgumentReader::whole(const std::string& key, std::int64_t high) const {
  auto text = word(key);
  if (!text) return std::nullopt;
  std::erase(*text, '_');  // Python's 220_000_000
  std::int64_t value = 0;
  const char* end = text->data() + text->size();
  const auto [last, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc() || last != end || value < 1 || value > high)
    fail_input(where(key), fmt::format("'{}' is not a whole number in range", *text),
               fmt::format("1 to {}", high));
  return value;
}

double ArgumentReader::real(const std::string& key, double otherwise) const {
  const auto text = word(key);
  if (!text) return otherwise;
  double value = 0;
  const char* end = text->data() + text->size();
  const auto [last, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc() || last != end || !(value >= 0 && value <= 1))
    fail_input(where(key), fmt::format("'{}' is not a fraction", *text), "0 to 1");
  return value;
}

std::int64_t ArgumentReader::needed(const std::string& key, std::int64_t high) const {
  const auto value = whole(key, high);
  if (!value) fail_input({file_, 0, "--" + key}, "is missing");
  return *value;
}

std::optional<std::size_t> ArgumentReader::choice(const std::string& key,
                                                  const std::vector<std::string>& words) const {
  const auto text = word(key);
  if (!text) return std::nullopt;
  const auto found = std::find(words.begin(), words.end(), *text);
  if (found == words.end()) fail_unknown(where(key), "value", *text, words);
  return static_cast<std::size_t>(found - words.begin());
}

const std::string* ArgumentReader::written_file(const std::string& path) const {
  const auto found = files_.find(path);
  return found == files_.end() ? nullptr : &found->second;
}

Where ArgumentReader::where(const std::string& key) const {
  const auto found = given_.find(key);
  return {file_, found == given_.end() ? 0 : found->second.line, "--" + key};
}

void ArgumentReader::note(const std::string& key, const char* code,
                          std::string_view sentence) const {
  named_.insert(key);
  findings_.push_back({Severity::note, code, describe(where(key), sentence)});
}

void ArgumentReader::refuse(const std::string& key, std::string_view what) const {
  fail_input(where(key), fmt::format("{} is not modelled", what));
}

// Returns the finding about an argument, without its place.
std::string ArgumentReader::sentence_about(const std::string& key) const {
  for (const Finding& finding : findings_) {
    const std::size_t at = finding.message.find(key + ": ");
    if (at != std::string::npos) return finding.message.substr(at + key.size() + 2);
  }
  return {};
}

void ArgumentReader::name_unread() const {
  for (const auto& [key, given] : given_) {
    const bool of_bert = key.starts_with("bert-") || key.starts_with("mask-");
    if (bears_on_cost(key) && !asked_.contains(key) && !named_.contains(key) && !of_bert)
      note(key, "argument-without-effect", "has no effect in this run");
  }
}

std::vector<LedgerEntry> ArgumentReader::ledger() const {
  std::vector<LedgerEntry> entries;
  for (const auto& [key, given] : given_) {
    const std::string_view reason = costless_reason(key);
    if (named_.contains(key))
      entries.push_back({"--" + key, given.line, Treatment::named, sentence_about("--" + key)});
    else if (!reason.empty())
      entries.push_back({"--" + key, given.line, Treatment::costless, std::string(reason)});
    else
      entries.push_back({"--" + key, given.line, Treatment::applied, {}});
  }
  return entries;
}

void ArgumentReader::add_value(const std::string& key, ShellWord word) {
  const bool extra = !key.empty() && !given_[key].values.empty();
  const bool follows = key.empty() || extra || bears_on_cost(key);
  if (!word.unset.empty() && follows) refuse_unset(extra ? "" : key, word);
  if (key.empty())
    fail_input({file_, word.line, {}},
               fmt::format("'{}' is not an argument of Megatron-LM", word.text),
               "--name value, NAME=( ... ), NAME=value");
  given_[key].values.push_back(std::move(word.text));
}

void ArgumentReader::refuse_unset(const std::string& key, const ShellWord& word) const {
  const Where where{file_, word.line, key.empty() ? "" : "--" + key};
  if (word.unset == "output")
    fail_input(where, "the output of a command has no value here: write it out");
  const auto reason = reasons_.find(word.unset);
  const std::string because = reason == reasons_.end() ? "" : fmt::format(" ({})", reason->second);
  fail_input(where, fmt::format("${} has no value here{}: write it out", word.unset, because),
             fmt::format("--set-var {}=VALUE", word.unset));
}

void ArgumentReader::check_known(const std::string& key, int line) const {
  const auto& known = known_arguments();
  if (std::find(known.begin(), known.end(), key) != known.end() || !costless_reason(key).empty())
    return;
  const Where where{file_, line, "--" + key};
  named_.insert(key);
  if (is_unmodelled(key)) {
    findings_.push_back({Severity::note, "not-modelled",
                         describe(where, "not modelled: the forecast is of a run without it")});
    return;
  }
  if (const std::string meant = closest(key, known); !meant.empty())
    fail_input(where, fmt::format("unknown argument, did you mean '--{}'?", meant));
  findings_.push_back(
      {Severity::note, "unknown-key", describe(where, "unknown argument: not applied")});
  refuse_many_unknown_keys(findings_, file_, "Megatron-LM");
}

}  // namespace lambcast::megatron
