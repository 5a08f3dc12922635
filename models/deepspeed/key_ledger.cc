#include "models/deepspeed/key_ledger.h"

#include <algorithm>
#include <map>
#include <set>

#include "models/deepspeed/config.h"
#include "models/deepspeed/hjson.h"
#include "models/deepspeed/known_keys.h"
#include "models/deepspeed/recipe.h"
#include "models/recipe/wrapper.h"

namespace lambcast::deepspeed {
namespace {

const char* reason_of(Bearing bearing) {
  if (bearing == Bearing::silent) return "logs, checkpoints or data, outside a step";
  return bearing == Bearing::stage_3 || bearing == Bearing::stage_3_unmodelled
             ? "read at ZeRO stage 3 alone"
             : "";
}

// Returns a reason for keys of the optimizer and of loss scaling that only scale the update.
const char* factor_reason(std::string_view key) {
  static const std::set<std::string_view> factors{
      "lr",           "betas",           "eps",
      "weight_decay", "bias_correction", "momentum",
      "max_coeff",    "min_coeff",       "coeff_beta",
      "factor_max",   "factor_min",      "factor_threshold",
      "adam_w_mode"};
  return key.starts_with("optimizer.params.") && factors.contains(key.substr(17))
             ? "a factor of the update"
             : "";
}

// Returns why a key of a section that is read does not affect the cost.
const char* section_reason(std::string_view key) {
  static const std::map<std::string_view, const char*> reasons{
      {"fp16.hysteresis", "a value of loss scaling"},
      {"fp16.min_loss_scale", "a value of loss scaling"},
      {"fp16.consecutive_hysteresis", "a value of loss scaling"},
      {"fp16.auto_cast", "casts what enters the model, which is small"},
      {"activation_checkpointing.contiguous_memory_optimization",
       "one buffer for what is kept, of as many bytes"},
      {"zero_allow_untested_optimizer", "a check before the first step"},
      {"zero_optimization.offload_optimizer.pin_memory", "copies are assumed to be pinned"},
      {"zero_optimization.offload_optimizer.buffer_count", "of NVMe"},
      {"zero_optimization.offload_optimizer.nvme_path", "of NVMe"},
      {"zero_optimization.offload_param.pin_memory", "weights stay on the GPU"},
      {"zero_optimization.offload_param.buffer_size", "weights stay on the GPU"},
      {"zero_optimization.offload_param.buffer_count", "weights stay on the GPU"},
      {"zero_optimization.offload_param.max_in_cpu", "weights stay on the GPU"},
      {"zero_optimization.offload_param.nvme_path", "weights stay on the GPU"}};
  const auto found = reasons.find(key);
  return found == reasons.end() ? "" : found->second;
}

class Ledger {
 public:
  Ledger(const DeepSpeedConfig& config, std::vector<LedgerEntry>& entries)
      : config_(config), entries_(entries) {}

  void add(const hjson::Value& object, const std::string& prefix,
           std::span<const KnownKey> known) const {
    for (const hjson::Member& member : object.members) {
      const std::string key = prefix + member.key;
      const auto found = std::ranges::find(known, member.key, &KnownKey::name);
      const Bearing bearing = found == known.end() ? Bearing::read : found->bearing;
      const std::string named =
          is_unmodelled_device(key, member.value.text) ? host_and_disks : sentence_of(key);
      const bool block = member.value.kind == hjson::Kind::object && bearing == Bearing::read &&
                         named.empty() && !member.value.members.empty();
      if (block)
        add(member.value, key + ".", keys_of(key));
      else
        entries_.push_back(entry(key, member.line, bearing, named));
    }
  }

 private:
  static constexpr const char* host_and_disks = "weights on the host and states on disks";

  // Returns whether offloading to the device is unmodelled, by the same condition as read_zero
  // (config.cc).
  static bool is_unmodelled_device(std::string_view key, std::string_view device) {
    const bool weights = key == "zero_optimization.offload_param.device";
    const bool states = key == "zero_optimization.offload_optimizer.device";
    return (weights || states) && device != "none" && !(states && device == "cpu");
  }

  static std::span<const KnownKey> keys_of(std::string_view block) {
    return block == "zero_optimization"             ? zero_keys()
           : block == "bf16" || block == "bfloat16" ? bf16_keys()
                                                    : std::span<const KnownKey>();
  }

  LedgerEntry entry(const std::string& key, int line, Bearing bearing,
                    const std::string& named) const {
    if (!named.empty()) return {key, line, Treatment::named, named};
    const bool other_stage = bearing == Bearing::stage_3 && config_.zero.stage.value == 3;
    std::string reason = other_stage ? "" : reason_of(bearing);
    if (reason.empty()) reason = factor_reason(key);
    if (reason.empty()) reason = section_reason(key);
    // Up to stage 1 the wrapper of bf16 depends on the layout too (has_bf16_optimizer).
    const bool can_be_bf16_optimizer =
        recipe_of(config_).precision.weights == DataType::bf16 && config_.zero.stage.value <= 1;
    if (key == "gradient_clipping" && !can_be_bf16_optimizer)
      reason = "gradients are scaled in the pass that unscales them";
    if (key == "prescale_gradients" && config_.gradient_predivide_factor.value == 1)
      reason = "gradients are divided once, before or after their sum";
    if (key == "zero_optimization.cpu_offload" && config_.zero.stage.value == 0)
      reason = "stage 0 shares no states";
    if (bearing == Bearing::unmodelled || bearing == Bearing::precision_unmodelled)
      reason = "switched off";
    return {key, line, reason.empty() ? Treatment::applied : Treatment::costless, reason};
  }

  // Returns the finding about a key, without its place.
  std::string sentence_of(const std::string& key) const {
    for (const Finding& finding : config_.findings) {
      const std::size_t at = finding.message.find(" " + key + ": ");
      if (at != std::string::npos) return finding.message.substr(at + key.size() + 3);
    }
    return {};
  }

  const DeepSpeedConfig& config_;
  std::vector<LedgerEntry>& entries_;
};

}  // namespace

std::string_view silent_reason() { return reason_of(Bearing::silent); }

std::vector<LedgerEntry> key_ledger(std::string_view text, const std::string& file) {
  const DeepSpeedConfig config = parse_config(text, file);
  std::vector<LedgerEntry> entries;
  Ledger(config, entries).add(hjson::parse(text, file), "", top_level_keys());
  return entries;
}

}  // namespace lambcast::deepspeed
