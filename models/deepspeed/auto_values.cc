#include "models/deepspeed/auto_values.h"

#include <fmt/format.h>

#include <string>

namespace lambcast::deepspeed {
namespace {

// A bucket's key, and the factors of h h and h in its value.
struct BucketRule {
  std::string_view key;
  Setting<Whole> ZeroConfig::*setting;
  double squares, multiples;
  std::string_view rule;
};

constexpr BucketRule bucket_rules[] = {
    {"reduce_bucket_size", &ZeroConfig::reduce_bucket_size, 1, 0, "h h"},
    {"prefetch_bucket_size", &ZeroConfig::prefetch_bucket_size, 0.9, 0, "0.9 h h"},
    {"param_persistence_threshold", &ZeroConfig::param_persistence_threshold, 0, 10, "10 h"}};

// Returns the key of a finding: "ds.json:3: KEY: "auto" ..." gives "KEY".
std::string key_of(const Finding& finding) {
  const std::size_t end = finding.message.find(": \"auto\"");
  if (end == std::string::npos) return {};
  const std::size_t begin = finding.message.rfind(' ', end);
  return finding.message.substr(begin + 1, end - begin - 1);
}

void fill(Finding& finding, std::string_view value, std::string_view rule) {
  finding.severity = Severity::note;
  finding.code = "auto-filled";
  finding.message =
      fmt::format("{}: \"auto\" is taken as {}, {}",
                  finding.message.substr(0, finding.message.find(": \"auto\"")), value, rule);
}

}  // namespace

void settle_auto_values(DeepSpeedConfig& config, Whole hidden,
                        const std::function<bool(std::string_view key)>& is_given) {
  std::erase_if(config.findings, [&](const Finding& finding) {
    return finding.code == "auto-value" && is_given(key_of(finding));
  });
  for (Finding& finding : config.findings) {
    if (finding.code != "auto-value") continue;
    const std::string key = key_of(finding);
    if (key == "gradient_clipping") {
      config.gradient_clipping.value = 1;
      fill(finding, "1", "the Trainer's max_grad_norm");
    }
    if (hidden == 0 || !key.starts_with("zero_optimization.")) continue;
    for (const BucketRule& rule : bucket_rules) {
      if (!key.ends_with(rule.key)) continue;
      const auto h = static_cast<double>(hidden);
      (config.zero.*rule.setting).value =
          static_cast<Whole>(rule.squares * h * h + rule.multiples * h);
      fill(finding, fmt::format("{}", (config.zero.*rule.setting).value),
           fmt::format("{} of hidden size {}, as Hugging Face does", rule.rule, hidden));
    }
  }
}

}  // namespace lambcast::deepspeed
