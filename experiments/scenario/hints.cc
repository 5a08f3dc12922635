#include "experiments/scenario/hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

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
constexpr std::string_view diloco_words = "write local:STEPS, such as local:100, for DiLoCo";

constexpr Hint typed_hints[] = {
    {Typed::flag, "--batch", batch_words},
    {Typed::flag, "--batch-size", batch_words},
    {Typed::flag, "--price", price_words},
    {Typed::flag, "--cost", price_words},
    {Typed::flag, "--usd-per-gpu-hour", price_words},
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
    {Typed::key, "batch", "write run.global_batch or run.micro_batch"},
    {Typed::key, "usd_per_gpu_hour", "write cluster.usd_per_gpu_hour"},
    {Typed::key, "price", "write cluster.usd_per_gpu_hour"},
    {Typed::key, "bandwidth", "write cluster.nic.bandwidth"},
    {Typed::key, "nic.bandwidth", "write cluster.nic.bandwidth"},
    {Typed::value, "framework=fsdp", "write torchtitan, which runs PyTorch's FSDP"},
    {Typed::value, "framework=FSDP", "write torchtitan, which runs PyTorch's FSDP"},
    {Typed::value, "framework=ddp", "write pytorch"},
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

}  // namespace

std::string_view hint_for(Typed what, std::string_view word) {
  if (what == Typed::exchange && word.starts_with("diloco:")) return diloco_words;
  const auto row = std::ranges::find_if(
      typed_hints, [&](const Hint& hint) { return hint.what == what && hint.word == word; });
  return row == std::end(typed_hints) ? std::string_view() : row->instead;
}

std::string hint_for_count(std::string_view text, bool takes_share) {
  if (text.find(',') != std::string_view::npos) {
    std::string digits(text);
    std::erase(digits, ',');
    const bool whole = std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
    if (!whole) return "";
    // 65,536 separates thousands; 16,32 is a list.
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
    return fmt::format("'{}' is no step; as a share of the run write {:.6g}%", text, 100 * number);
  if (behind.size() != 1) return {};
  const auto power = std::string_view("kmg").find(
      static_cast<char>(std::tolower(static_cast<unsigned char>(behind.front()))));
  if (power == std::string_view::npos || number > 1e6) return {};
  const auto of = [&](double thousand) {
    return number * std::pow(thousand, static_cast<double>(power + 1));
  };
  return fmt::format("'{}' may be either: write {:.0f} or {:.0f}", text, of(1000), of(1024));
}

}  // namespace lambcast
