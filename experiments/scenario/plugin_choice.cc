#include "experiments/scenario/plugin_choice.h"

#include <fmt/format.h>

namespace lambcast {
namespace {

enum class Plugin { hybrid_parallel, low_level_zero, torch_ddp, gemini, moe_hybrid };

// Returns whether the documentation's table has a row of the optimizer: plugins replace it by its
// distributed form, or it is that form.
bool is_distributed(OptimizerType type) {
  return type == OptimizerType::lamb || type == OptimizerType::distributed_lamb ||
         type == OptimizerType::adafactor || type == OptimizerType::came ||
         type == OptimizerType::galore_adamw8bit;
}

void refuse_unmodelled(Plugin plugin, OptimizerType type) {
  const bool gemini = plugin == Plugin::gemini;
  const char* others = type == OptimizerType::galore_adamw8bit
                           ? "hybrid_parallel, torch_ddp"  // LowLevelZero's shards are flat
                           : "hybrid_parallel, low_level_zero, torch_ddp";
  if (is_distributed(type))
    fail_input(flag("plugin"),
               fmt::format("{} does not run with the {} plugin: Colossal-AI marks it unsupported{}",
                           model_of(type).label, gemini ? "Gemini" : "MoeHybrid",
                           gemini ? "" : ", though the plugin casts it all the same"),
               others);
  fail_input(flag("plugin"),
             gemini ? "lambcast has no model of Gemini's chunks"
                    : "lambcast has no model of MoeHybrid's groups; --ep divides experts",
             others);
}

void check_layout(Plugin plugin, std::int64_t stage, const parallel::ParallelLayout& layout) {
  const bool divided = layout.tp * layout.pp * layout.cp > 1;
  if (plugin == Plugin::hybrid_parallel) {
    if (stage > 2)
      fail_input(flag("zero_stage"), "the HybridParallel plugin shares states and gradients alone",
                 "0, 1, 2");
    return;
  }
  if (divided)
    fail_input(flag("plugin"), "supports data parallelism only: it divides no model",
               "hybrid_parallel");
  if (plugin == Plugin::torch_ddp && stage > 0)
    fail_input(flag("zero_stage"), "the TorchDDP plugin shares nothing", "0");
  if (plugin == Plugin::low_level_zero && (stage == 0 || stage > 2))
    fail_input(flag("zero_stage"), "the LowLevelZero plugin runs stages 1 and 2", "1, 2");
}

// Returns whether the plugin replaces optimizers by their distributed forms.
bool casts(Plugin plugin) { return plugin != Plugin::torch_ddp; }

// Adds a finding on the column statistics of factored second moments, of which ranks with shards of
// a matrix have only a part.
void find_columns(Plugin plugin, const Recipe& recipe, std::vector<Finding>& findings) {
  const OptimizerType type = recipe.optimizer;
  if (type != OptimizerType::adafactor && type != OptimizerType::came) return;
  if (plugin == Plugin::low_level_zero)
    findings.push_back(
        {Severity::warning, "columns-summed",
         fmt::format("without a tensor parallel group {} sums its column statistics over all ranks "
                     "in every step and never divides them: they grow",
                     model_of(type).label)});
  else if (recipe.zero.stage > 0)
    findings.push_back(
        {Severity::warning, "columns-not-averaged",
         fmt::format("with ZeRO {} takes column statistics of each rank's rows alone: not the "
                     "steps of the whole matrix",
                     model_of(type).label)});
}

// Returns findings on unexpected behaviour of the optimizers in a plugin. Sources: Colossal-AI
// nn/optimizer/{__init__,distributed_adafactor,distributed_came,galore}.py.
std::vector<Finding> quirks_of(Plugin plugin, const Recipe& recipe) {
  const OptimizerType type = recipe.optimizer;
  std::vector<Finding> findings;
  find_columns(plugin, recipe, findings);
  if (type == OptimizerType::galore_adamw8bit && !casts(plugin))
    findings.push_back({Severity::warning, "galore-writes-gradients",
                        "torch_ddp leaves GaLoreAdamW8bit as it is, which writes a gradient to the "
                        "file grad.pt in every step; the time of that is not modelled"});
  const bool plain = type == OptimizerType::adafactor || type == OptimizerType::came ||
                     type == OptimizerType::distributed_lamb;
  if (!casts(plugin) && plain)
    findings.push_back(
        {Severity::note, "plain-form",
         fmt::format("torch_ddp does not replace {} by its distributed form; its passes "
                     "are priced as those of that form",
                     model_of(type).label)});
  if (!casts(plugin)) return findings;
  if (type == OptimizerType::adafactor)
    findings.push_back({Severity::note, "adafactor-rate",
                        "DistributedAdaFactor built by hand ignores its lr; cast by a plugin it "
                        "continues with Adafactor's relative steps, at most 1e-5 unless "
                        "relative_step is off"});
  if (type == OptimizerType::came)
    findings.push_back({Severity::warning, "residuals-aliased",
                        "DistributedCAME keeps residual and second moment in the same vectors from "
                        "its second step on"});
  if (type == OptimizerType::lamb)
    findings.push_back({Severity::warning, "cast-to-distributed",
                        "all plugins except torch_ddp replace Colossal-AI's Lamb by the slower "
                        "DistributedLamb, and this forecast is of a fused LAMB, which they keep; "
                        "try: --optimizer distributed_lamb"});
  return findings;
}

}  // namespace

const std::vector<std::string>& plugin_names() {
  static const std::vector<std::string> names{"hybrid_parallel", "low_level_zero", "torch_ddp",
                                              "gemini", "moe_hybrid"};
  return names;
}

void restrict_to_plugin(const Words& words, Parallelism& how) {
  const auto plugin = words.chosen<Plugin>("plugin");
  if (!plugin) return;
  how.sums_columns = plugin == Plugin::low_level_zero;
  how.framework.divides_model = plugin == Plugin::hybrid_parallel;
  if (plugin == Plugin::torch_ddp) how.framework.most_sharing = parallel::Sharding::none;
}

void add_plugin_defaults(WhatIf& what_if) {
  const auto plugin = what_if.find("plugin");
  if (plugin == what_if.end()) return;
  const bool zero = plugin->second == "low_level_zero";
  what_if.try_emplace("framework", "colossalai");
  const auto optimizer = what_if.find("optimizer");
  const bool galore = optimizer != what_if.end() && optimizer->second == "galore_adamw8bit";
  if (zero && !galore) what_if.try_emplace("zero_stage", "1");
}

std::vector<Finding> check_plugin(const Words& words, const TrainingPlan& training) {
  const bool colossalai =
      training.parallelism && training.parallelism->framework.name == FrameworkName::colossalai;
  const auto chosen = words.chosen<Plugin>("plugin");
  if (!chosen && !colossalai) return {};
  if (!chosen) return quirks_of(Plugin::hybrid_parallel, training.recipe);
  const Plugin plugin = *chosen;
  const OptimizerType type = training.optimizer();
  if (!colossalai) fail_input(flag("plugin"), "is Colossal-AI's", "with --framework colossalai");
  if (plugin == Plugin::gemini || plugin == Plugin::moe_hybrid) refuse_unmodelled(plugin, type);
  if (plugin == Plugin::low_level_zero && type == OptimizerType::galore_adamw8bit)
    fail_input(flag("plugin"),
               "Colossal-AI marks GaLore as supported by the LowLevelZero plugin, which hands it "
               "flat shards of matrices: it could project none",
               "hybrid_parallel or torch_ddp with --zero-stage 0");
  check_layout(plugin, training.recipe.zero.stage, training.parallelism->layout);
  return quirks_of(plugin, training.recipe);
}

}  // namespace lambcast
