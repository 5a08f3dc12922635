#include "experiments/scenario/state_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "models/recipe/wrapper.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

using parallel::StateTypes;

constexpr std::pair<std::string_view, double> moment_types[] = {
    {"fp32", 4}, {"bf16", 2}, {"fp16", 2}, {"fp8", 1}};
constexpr std::pair<std::string_view, double> master_types[] = {
    {"fp32", 4}, {"fp16", 2}, {"rest", 2}};

template <std::size_t N>
std::optional<double> bytes_of_type(const std::pair<std::string_view, double> (&types)[N],
                                    std::string_view name) {
  const auto found = std::ranges::find(types, name, &std::pair<std::string_view, double>::first);
  return found == std::end(types) ? std::nullopt : std::optional(found->second);
}

std::optional<StateTypes> parse_state_types(std::string_view text) {
  const std::size_t first = text.find(':');
  const std::size_t second = first == text.npos ? first : text.find(':', first + 1);
  if (second == text.npos) return std::nullopt;
  const auto momentum = bytes_of_type(moment_types, text.substr(0, first));
  const auto variance = bytes_of_type(moment_types, text.substr(first + 1, second - first - 1));
  const auto master = bytes_of_type(master_types, text.substr(second + 1));
  if (!momentum || !variance || !master) return std::nullopt;
  return StateTypes{*momentum, *variance, *master};
}

void choose_states(const Words& words, OptimizerType optimizer, Parallelism& how) {
  const std::string* text = words.find("state_types");
  if (text == nullptr) return;
  const auto types = parse_state_types(*text);
  if (!types)
    fail_input(flag("state_types"), fmt::format("'{}' is not a list of types", *text),
               "MOMENTUM:VARIANCE:WEIGHTS, such as bf16:bf16:rest");
  if (types->are_usual()) return;
  constexpr FrameworkName with_it[] = {FrameworkName::megatron, FrameworkName::nemo,
                                       FrameworkName::other};
  if (std::ranges::find(with_it, how.framework.name) == std::end(with_it))
    fail_input(flag("state_types"), "applies only to Transformer Engine's Adam",
               "--framework megatron, nemo, other");
  if (optimizer != OptimizerType::adam && optimizer != OptimizerType::adamw)
    fail_input(flag("state_types"),
               fmt::format("applies only to Adam, not to {}", name_of(optimizer)), "adam, adamw");
  if (how.format == MatrixFormat::single)
    fail_input(flag("state_types"), "applies only to weights in 16 bits",
               "--precision bf16, fp16, fp8");
  how.states = *types;
}

}  // namespace

void follow_engine(const Words& words, const Recipe& recipe, Parallelism& how) {
  if (how.framework.name != FrameworkName::deepspeed || how.format == MatrixFormat::single ||
      !recipe.precision.is_half())
    return;
  if (words.find("fp32_gradients") == nullptr)
    how.framework.fp32_gradients = accumulation_data_type(recipe) == DataType::fp32;
  const bool wrapped = how.layout.pp > 1 || !recipe.engine.wraps_bf16_as_fp16;
  if (recipe.precision.weights != DataType::bf16 || !wrapped ||
      how.sharding != parallel::Sharding::none || is_onebit(recipe.optimizer))
    return;
  how.sharding = parallel::Sharding::optimizer;
  how.shard_ranks = how.replicas();
  how.full_all_reduce = words.find("exchange") == nullptr;
}

void choose_state_precision(const Words& words, OptimizerType optimizer, Parallelism& how) {
  const bool torchtitan = how.framework.name == FrameworkName::torchtitan;
  const bool fp8 = how.format == MatrixFormat::fp8;
  const auto asked = words.choice("fp8_weight_gather");
  if (asked == 1 && !fp8)
    fail_input(flag("fp8_weight_gather"), "applies only to weights that are multiplied in fp8",
               "--precision fp8");
  how.fp8_gather = asked ? *asked == 1 : torchtitan && fp8;
  choose_states(words, optimizer, how);
}

void choose_offload(const Words& words, OptimizerType optimizer, Parallelism& how) {
  how.optimizer_on = words.chosen<OptimizerOn>("offload_optimizer").value_or(OptimizerOn::gpu);
  if (how.optimizer_on == OptimizerOn::gpu) return;
  if (how.framework.name != FrameworkName::deepspeed)
    fail_input(flag("offload_optimizer"), "is modelled for DeepSpeed only",
               "--framework deepspeed");
  if (how.sharding == parallel::Sharding::none)
    fail_input(flag("offload_optimizer"), "applies only to optimizer states that ranks share",
               "with --zero-stage 1, 2 or 3");
  if (optimizer != OptimizerType::adam && optimizer != OptimizerType::adamw)
    fail_input(flag("offload_optimizer"),
               fmt::format("DeepSpeed offloads Adam and AdamW only, not {}", name_of(optimizer)),
               "with --optimizer adam or adamw");
}

void choose_activation_offload(const Words& words, const ModelShape& model, Parallelism& how) {
  const std::string* text = words.find("offload_activations");
  if (text == nullptr) return;
  const Where where = flag("offload_activations");
  const parallel::ActivationOffload offload = parallel::parse_activation_offload(*text, where);
  if (offload.checkpoints && how.recompute != parallel::Recompute::full) return;
  how.offload = offload;
  if (!offload.any() || offload.checkpoints) return;
  if (offload.blocks > 0 ? how.recompute != parallel::Recompute::none
                         : how.recompute == parallel::Recompute::full)
    fail_input(where,
               fmt::format("does not apply: --recompute {} keeps no such activations",
                           parallel::name_of(how.recompute)),
               "checkpoints, or --recompute none");
  if (offload.blocks > 0 && how.layout.pp > 1)
    fail_input(where, "blocks:N does not apply to a pipeline (Megatron-LM, Transformer Engine)",
               "modules, or --pp 1");
  if (offload.blocks >= model.layers)
    fail_input(where,
               fmt::format("must leave a block on the GPU, and the model has {}", model.layers),
               fmt::format("blocks:1 to blocks:{}", model.layers - 1));
  if (offload.of_experts() && model.experts == 0)
    fail_input(
        where,
        fmt::format("expert_fc1 and moe_act are modules of experts, and {} has none", model.name),
        "attn_norm, qkv_linear, core_attn, attn_proj, mlp_norm");
}

}  // namespace lambcast
