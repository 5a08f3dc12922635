#include "experiments/scenario/hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <vector>

namespace lambcast {
namespace {

struct Hint {
  Typed what;
  std::string_view word, instead;
};

constexpr std::string_view batch_words =
    "write --global-batch N (samples per optimizer step) or --micro-batch N (samples per GPU)";
constexpr std::string_view price_words = "write --set cluster.usd_per_gpu_hour=X";
constexpr std::string_view nic_words = "write --set cluster.nic.bandwidth=10Gbit/s";
constexpr std::string_view nic_key = "write cluster.nic.bandwidth";
constexpr std::string_view diloco_words =
    "write local:STEPS, such as local:100, for DiLoCo; lambcast sites has links between sites";

constexpr Hint typed_hints[] = {
    {Typed::flag, "--batch", batch_words},
    {Typed::flag, "--batch-size", batch_words},
    {Typed::flag, "--price", price_words},
    {Typed::flag, "--cost", price_words},
    {Typed::flag, "--usd-per-gpu-hour", price_words},
    {Typed::flag, "--usd", price_words},
    {Typed::flag, "--bandwidth", nic_words},
    {Typed::flag, "--nic-bandwidth", nic_words},
    {Typed::flag, "--dtype", "write --precision fp16, bf16 or fp32"},
    {Typed::flag, "--world-size", "write --gpus N"},
    {Typed::flag, "--num-gpus", "write --gpus N"},
    {Typed::flag, "--ngpus", "write --gpus N"},
    {Typed::flag, "--tensor-parallel", "write --tp N"},
    {Typed::flag, "--tensor-parallel-size", "write --tp N"},
    {Typed::flag, "--pipeline-parallel", "write --pp N"},
    {Typed::flag, "--pipeline-parallel-size", "write --pp N"},
    {Typed::flag, "--sequence-length", "write --seq-len N"},
    {Typed::flag, "--warmup",
     "write --freeze-step N, or --freeze-step 16.7% for a share of the run"},
    {Typed::flag, "--lr", "a learning rate does not change the time: leave it out"},
    {Typed::flag, "--learning-rate", "a learning rate does not change the time: leave it out"},
    {Typed::flag, "--epochs", "write --steps N (optimizer steps)"},
    {Typed::key, "batch", "write global_batch or micro_batch"},
    {Typed::key, "batch_size", "write global_batch or micro_batch"},
    {Typed::key, "usd_per_gpu_hour", "write cluster.usd_per_gpu_hour"},
    {Typed::key, "price", "write cluster.usd_per_gpu_hour"},
    {Typed::key, "bandwidth", nic_key},
    {Typed::key, "nic", nic_key},
    {Typed::key, "nic.bandwidth", nic_key},
    {Typed::key, "nic_bandwidth", nic_key},
    {Typed::key, "link_bandwidth", nic_key},
    {Typed::key, "network_bandwidth", nic_key},
    {Typed::key, "warmup", "write freeze_step"},
    {Typed::key, "warmup_steps", "write freeze_step"},
    {Typed::key, "world_size", "write gpus"},
    {Typed::key, "num_gpus", "write gpus"},
    {Typed::key, "tensor_parallel", "write tp"},
    {Typed::key, "pipeline_parallel", "write pp"},
    {Typed::key, "sequence_length", "write seq_len"},
    {Typed::value, "framework=fsdp", "write torchtitan, which runs PyTorch's FSDP"},
    {Typed::value, "framework=ddp", "write pytorch"},
    {Typed::value, "optimizer=1bitadam", "write onebit_adam"},
    {Typed::value, "optimizer=1bitlamb", "write onebit_lamb"},
    {Typed::value, "optimizer=01adam", "write zero_one_adam"},
    {Typed::value, "optimizer=diloco", "write --exchange local:STEPS, such as local:100"},
    {Typed::exchange, "diloco", diloco_words},
    {Typed::exchange, "DiLoCo", diloco_words},
    {Typed::exchange, "local", diloco_words},
    {Typed::exchange, "localsgd", "write localsgd:STEPS, such as localsgd:100"},
    {Typed::exchange, "powersgd", "write powersgd:RANK, such as powersgd:4"},
    {Typed::exchange, "topk", "write topk:SHARE%, such as topk:1%"},
    {Typed::exchange, "allreduce", "write all_reduce"},
    {Typed::exchange, "1bit", "write onebit"},
};

// Normalizes a value: "optimizer=1-bit LAMB" becomes "optimizer=1bitlamb".
std::string plain_value(std::string_view word) {
  std::string plain;
  for (const char c : word)
    if (std::string_view("-_/ ").find(c) == std::string_view::npos)
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return plain;
}

bool has_dot(std::string_view key) { return key.find('.') != std::string_view::npos; }

// Returns the key of the table that is spelled most like this one; empty if none is like it.
std::string closest_typed(const std::string& key) {
  std::vector<std::string> typed;
  for (const Hint& hint : typed_hints)
    // A key of a description, which has a dot, is no misspelt key of a run.
    if (hint.what == Typed::key && has_dot(hint.word) == has_dot(key))
      typed.emplace_back(hint.word);
  return closest(key, typed);
}

}  // namespace

std::string_view hint_for(Typed what, std::string_view word) {
  if (what == Typed::exchange && word.starts_with("diloco:")) return diloco_words;
  const std::string typed = what == Typed::value ? plain_value(word) : std::string(word);
  const auto row = std::ranges::find_if(
      typed_hints, [&](const Hint& hint) { return hint.what == what && hint.word == typed; });
  return row == std::end(typed_hints) ? std::string_view() : row->instead;
}

void fail_unknown_key(const Where& where, const std::string& key,
                      std::span<const std::string> known) {
  if (key.starts_with("wan."))
    fail_input(where, "applies only to a cluster of several sites",
               "lambcast sites, or advise, with --cluster two-regions or a file with [[site]]");
  std::string_view hint = hint_for(Typed::key, key);
  if (hint.empty() && closest(key, known).empty()) hint = hint_for(Typed::key, closest_typed(key));
  if (!hint.empty()) fail_input(where, fmt::format("unknown key '{}': {}", key, hint));
  fail_unknown(where, "key", key, known);
}

std::string hint_for_count(std::string_view text, bool takes_share) {
  if (text.find(',') != std::string_view::npos) {
    std::string digits(text);
    std::erase(digits, ',');
    const bool whole = std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
    if (!whole) return "";
    // In 65,536 the comma separates thousands; 16,32 is a list.
    const std::size_t behind = text.size() - text.rfind(',') - 1;
    if (behind != 3 || text.find(',') > 3)
      return fmt::format("'{}' is a list: write --list KEY={} (sweep, advise)", text, text);
    return fmt::format("'{}' has a comma: write {}", text, digits);
  }
  double number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, status] = std::from_chars(text.data(), last, number);
  if (status != std::errc{} || !(number > 0)) return {};
  const std::string_view behind(end, static_cast<std::size_t>(last - end));
  if (behind.empty() && takes_share && number < 1)
    return fmt::format("'{}' is not a step; as a share of the run write {:.6g}%", text,
                       100 * number);
  if (behind.size() != 1) return {};
  const auto power = std::string_view("kmg").find(
      static_cast<char>(std::tolower(static_cast<unsigned char>(behind.front()))));
  if (power == std::string_view::npos || number > 1e6) return {};
  const auto of = [&](double thousand) {
    return number * std::pow(thousand, static_cast<double>(power + 1));
  };
  return fmt::format("'{}' is ambiguous: write {:.0f} or {:.0f}", text, of(1000), of(1024));
}

}  // namespace lambcast
