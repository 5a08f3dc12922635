#include "experiments/scenario/layout_choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/scenario/expert_choice.h"
#include "experiments/scenario/layout_findings.h"
#include "experiments/scenario/plugin_choice.h"
#include "experiments/scenario/precision_word.h"
#include "experiments/scenario/state_choice.h"
#include "experiments/scenario/whole_model.h"
#include "models/parallel/layout_rules.h"
#include "models/training/plan/distinct_steps.h"
#include "models/training/plan/gradient_owners.h"
#include "models/training/price/passage.h"

namespace lambcast {
namespace {

using parallel::PipelineSchedule;
using parallel::Recompute;
using parallel::Sharding;

constexpr std::int64_t most_ranks = 65536;

// Values that are the default for every model and GPU, so that setting them selects no layout. The
// default of a switch is off.
constexpr std::pair<std::string_view, std::string_view> stated_defaults[] = {
    {"tp", "1"},
    {"cp", "1"},
    {"pp", "1"},
    {"ep", "1"},
    {"interleave", "1"},
    {"secondary_ranks", "1"},
    {"recompute", "none"},
    {"pipeline_schedule", "1f1b"},
    {"framework", "deepspeed"},
    {"framework", "nvidia"},
    {"offload_optimizer", "none"},
    {"offload_activations", "none"},
    {"offload_activations", "checkpoints"},
    {"sequence_parallel", "false"},
    {"fp8_attention", "false"},
    {"fp8_activation_input", "false"},
    {"cuda_graphs", "false"},
    {"state_types", "fp32:fp32:fp32"},
    {"send_overlap", "false"},
    {"eager_loss", "false"},
    {"full_all_reduce", "false"},
    {"quantized_weights", "false"},
    {"quantized_gradients", "false"}};

// Programs that train only transformers.
constexpr FrameworkName of_transformers[] = {FrameworkName::megatron, FrameworkName::torchtitan,
                                             FrameworkName::nemo};

// Returns whether a program runs a model without transformer blocks, so that no layout could divide
// it.
bool runs_whole(const Words& words, const ModelShape& model, std::int64_t zero_stage) {
  const auto name = words.chosen<FrameworkName>("framework");
  return name && std::ranges::find(of_transformers, *name) == std::end(of_transformers) &&
         model.ffn == 0 && zero_stage == 0;
}

bool asks_for_layout(const Words& words, const ModelShape& model, std::int64_t zero_stage) {
  if (zero_stage == 3) return true;
  for (const WhatIfKey& key : what_if_table()) {
    if (key.group != layout_group) continue;
    const std::string* value = words.find(key.name);
    if (value == nullptr) continue;
    if (key.name == "partition_activations") {
      // partition_activations controls how checkpoints are kept, not whether there are any.
      (void)words.choice(key.name);
      continue;
    }
    if (key.name == "framework" && runs_whole(words, model, zero_stage)) continue;
    const std::pair<std::string_view, std::string_view> stated{key.name, *value};
    if (std::ranges::find(stated_defaults, stated) == std::end(stated_defaults)) return true;
  }
  const auto precision = words.choice("precision");
  return precision && precisions()[*precision].is_narrow();
}

int size_of(const Words& words, const char* key) {
  return static_cast<int>(words.whole(key, 1, most_ranks).value_or(1));
}

parallel::ParallelLayout layout_of(const Words& words, int gpus, int gpus_per_node,
                                   const Framework& framework) {
  parallel::ParallelLayout layout;
  layout.tp = size_of(words, "tp");
  layout.cp = size_of(words, "cp");
  layout.pp = size_of(words, "pp");
  layout.ep = size_of(words, "ep");
  if (words.find("etp") != nullptr) layout.etp = size_of(words, "etp");
  layout.virtual_stages = size_of(words, "interleave");
  layout.gpus_per_node = gpus_per_node;
  layout.order = framework.order;
  if (const std::string* order = words.find("order"))
    layout.order = parallel::parse_order(*order, flag("order"));
  const std::int64_t copy = std::int64_t{layout.tp} * layout.cp * layout.pp;
  if (gpus % copy != 0)
    fail_input(flag("gpus"),
               fmt::format("{} GPUs do not divide into copies of tp {} x cp {} x pp {} = {}", gpus,
                           layout.tp, layout.cp, layout.pp, copy),
               fmt::format("multiples of {}", copy));
  layout.dp = static_cast<int>(gpus / copy);
  return layout;
}

// Returns the named framework, adjusted to DeepSpeed's file and flags.
Framework choose_framework(const Words& words, const Zero& zero) {
  Framework framework =
      framework_of(words.chosen<FrameworkName>("framework").value_or(FrameworkName::deepspeed));
  if (framework.name == FrameworkName::deepspeed && zero.stage > 0) {
    framework.least_bucket = static_cast<double>(zero.bucket);
    framework.overlaps_gradients = zero.overlap;
    // Without a prefetch bucket every matrix is gathered separately.
    framework.prefetch_bucket = std::max(1.0, static_cast<double>(zero.prefetch));
    framework.persistent_tensor = static_cast<double>(zero.persistent);
    framework.live_elements = std::max(1.0, static_cast<double>(zero.live));
    framework.reuse_elements = static_cast<double>(zero.reuse);
  }
  if (const auto overlap = words.chosen<TensorOverlap>("tensor_overlap"))
    framework.tensor_overlap = *overlap;
  if (const auto overlap = words.choice("send_overlap")) framework.overlaps_sends = *overlap == 1;
  if (const auto fp32 = words.choice("fp32_gradients")) framework.fp32_gradients = *fp32 == 1;
  if (const auto fusion = words.chosen<Fusion>("fusion")) framework.fusion = *fusion;
  if (const auto us = words.number("shard_handling_us", 0, 1e5)) framework.shard_handling_us = *us;
  framework.eager_loss = words.choice("eager_loss").value_or(0) == 1;
  if (const auto split = words.chosen<parallel::SplitMethod>("split")) framework.split = *split;
  if (const auto exchange = words.chosen<ContextExchange>("context_exchange"))
    framework.context_exchange = *exchange;
  if (const auto bucket = words.whole("gradient_bucket", 1, most_bucket)) {
    framework.least_bucket = static_cast<double>(*bucket);
    framework.bucket_per_rank = 0;
  }
  if (const auto overlap = words.chosen<Overlap>("overlap")) {
    framework.overlaps_gradients = *overlap != Overlap::none;
    framework.reduces_sums = false;
    if (!framework.overlaps_gradients) framework.overlaps_weights = false;
  }
  return framework;
}

PipelineSchedule choose_schedule(const Words& words, const parallel::ParallelLayout& layout) {
  if (const auto schedule = words.chosen<PipelineSchedule>("pipeline_schedule")) return *schedule;
  return layout.virtual_stages > 1 ? PipelineSchedule::interleaved : PipelineSchedule::one_f_one_b;
}

Repeated repeated_by(Recompute recompute, FrameworkName framework) {
  switch (recompute) {
    case Recompute::none:
      return Repeated::nothing;
    case Recompute::selective:
      return Repeated::attention_core;
    case Recompute::alternate:
      return Repeated::alternate_products;
    case Recompute::full:
      return framework == FrameworkName::torchtitan ? Repeated::until_last_product
                                                    : Repeated::block;
  }
  return Repeated::nothing;
}

// Selective recomputation differs between frameworks. Megatron repeats the attention core,
// torchtitan ("alternate" here) every second product. "experts" drops the activations of experts
// and keeps the scores.
void choose_recompute(const Words& words, Parallelism& how) {
  const std::size_t chosen = words.choice("recompute").value_or(0);
  const bool experts = words_of("recompute")[chosen] == recompute_experts;
  how.recompute = experts ? Recompute::none : static_cast<Recompute>(chosen);
  how.repeated = experts ? Repeated::experts : repeated_by(how.recompute, how.framework.name);
}

// Reads partition_activations. It has no effect with sequence parallelism, which divides the inputs
// of blocks already.
void choose_checkpoints(const Words& words, Parallelism& how) {
  how.partitions_activations = words.choice("partition_activations").value_or(0) == 1 &&
                               how.layout.tp > 1 && !how.sequence_parallel &&
                               how.recompute == Recompute::full;
}

AttentionKernel choose_attention(const Words& words, const ModelShape& model,
                                 const Device& device) {
  const auto asked = words.chosen<AttentionKernel>("attention");
  if (!asked) return usual_attention(model, device);
  if (model.distances > 0 && *asked != AttentionKernel::unfused)
    fail_input(flag("attention"), fmt::format("{} has no relative positions", name_of(*asked)),
               "unfused");
  const GpuRates& rates = *device.rates;
  if (runs_on(*asked, rates)) return *asked;
  std::vector<std::string> run;
  for (std::size_t i = 0; i < attention_kernel_names().size(); ++i)
    if (runs_on(static_cast<AttentionKernel>(i), rates)) run.push_back(attention_kernel_names()[i]);
  fail_input(flag("attention"),
             fmt::format("{} does not run on {}, of compute capability {:.1f}", name_of(*asked),
                         device.name, rates.compute_capability),
             fmt::format("{}", fmt::join(run, ", ")));
}

bool choose_fp8_attention(const Words& words, const Device& device, AttentionKernel attention) {
  if (words.choice("fp8_attention").value_or(0) == 0) return false;
  if (attention != AttentionKernel::cudnn)
    fail_input(flag("fp8_attention"), fmt::format("{} has no kernel for it", name_of(attention)),
               "cudnn");
  if (device.rates->of(MatrixFormat::fp8).share.value == 0)
    fail_input(flag("fp8_attention"), fmt::format("{} has no matrix units for fp8", device.name));
  return true;
}

bool choose_fp8_gates(const Words& words, const ModelShape& model, Fusion fusion) {
  if (words.choice("fp8_activation_input").value_or(0) == 0) return false;
  if (!model.gated)
    fail_input(flag("fp8_activation_input"),
               fmt::format("{} has no gated feed-forward", model.name));
  if (fusion == Fusion::eager)
    fail_input(flag("fp8_activation_input"), "applies only to activations computed in one kernel",
               "--fusion fused or compiled");
  return true;
}

MatrixFormat choose_format(const Words& words, const Precision& of_recipe) {
  if (const auto precision = words.choice("precision")) return precisions()[*precision].products;
  return of_recipe.is_half() ? MatrixFormat::half : MatrixFormat::single;
}

// Reads the keys of ZeRO++.
void choose_less_traffic(const Words& words, Parallelism& how) {
  const auto need_sharded_weights = [&](const char* key) {
    if (how.sharding != Sharding::weights)
      fail_input(flag(key), "applies only to weights that ranks share", "with --zero-stage 3");
  };
  if (const auto ranks = words.whole("secondary_ranks", 1, most_ranks); ranks && *ranks > 1) {
    need_sharded_weights("secondary_ranks");
    if (how.shard_ranks % *ranks != 0)
      fail_input(flag("secondary_ranks"),
                 fmt::format("{} does not divide the {} ranks that share weights", *ranks,
                             how.shard_ranks));
    how.secondary_ranks = static_cast<int>(*ranks);
  }
  how.quantized_weights = words.choice("quantized_weights").value_or(0) == 1;
  if (how.quantized_weights) need_sharded_weights("quantized_weights");
  how.quantized_gradients = words.choice("quantized_gradients").value_or(0) == 1;
  if (!how.quantized_gradients) return;
  need_sharded_weights("quantized_gradients");
  if (how.shard_ranks != how.replicas())
    fail_input(flag("quantized_gradients"),
               "exchanges between all ranks that hold the same weights, which shard_ranks divides",
               "no --shard-ranks");
}

void choose_sharding(const Words& words, std::int64_t zero_stage, Parallelism& how) {
  how.sharding = static_cast<Sharding>(zero_stage);
  const int replicas = how.replicas();
  how.shard_ranks = how.sharding == Sharding::none ? 1 : replicas;
  const auto ranks = words.whole("shard_ranks", 1, most_ranks);
  const auto groups = words.whole("shard_groups", 1, most_ranks);
  if (!ranks && !groups) return;
  const char* key = groups ? "shard_groups" : "shard_ranks";
  if (ranks && groups)
    fail_input(flag(key), "sets the same number as --shard-ranks", "one of the two");
  const auto said = ranks ? *ranks : *groups;
  if (how.sharding == Sharding::none)
    fail_input(flag(key), "sets how many ranks share states, but at ZeRO stage 0 none do",
               "--zero-stage 1, 2 or 3");
  if (replicas % said != 0)
    fail_input(flag(key), fmt::format("{} does not divide the {} ranks that hold the same weights",
                                      said, replicas));
  how.shard_ranks = static_cast<int>(ranks ? said : replicas / said);
  const int on_node = owners_of(how, false).front().replicas.per_node;
  if (how.shard_ranks % on_node != 0 && on_node % how.shard_ranks != 0)
    fail_input(flag(key),
               fmt::format("groups of {} ranks begin within nodes of {}", how.shard_ranks, on_node),
               "groups that fill nodes, or divide one");
}

void choose_reduction(const Words& words, Parallelism& how) {
  how.full_all_reduce = words.choice("full_all_reduce").value_or(0) == 1;
  if (how.full_all_reduce && how.sharding != Sharding::optimizer)
    fail_input(flag("full_all_reduce"),
               "sums all gradients on ranks that share optimizer states, which is --zero-stage 1");
}

void refuse_impossible(OptimizerType optimizer, Backend backend, const Parallelism& how) {
  const bool deepspeed = how.framework.name == FrameworkName::deepspeed;
  const bool colossalai = how.framework.name == FrameworkName::colossalai;
  if (colossalai && how.sharding == Sharding::weights)
    fail_input(
        flag("zero_stage"),
        "Colossal-AI's stages share states and gradients; weights are Gemini's, which is not "
        "modelled",
        "0, 1, 2, or another --framework");
  if ((deepspeed || colossalai) && how.layout.pp > 1 && how.sharding > Sharding::optimizer)
    fail_input(flag("zero_stage"),
               fmt::format("{} runs no pipeline with ZeRO stage 2 or 3",
                           deepspeed ? "DeepSpeed" : "Colossal-AI"),
               "0, 1, or another --framework");
  if (deepspeed && how.layout.tp > 1 && how.sharding == Sharding::weights && !how.sequence_parallel)
    fail_input(flag("zero_stage"),
               "DeepSpeed's tensor parallelism (AutoTP) does not run with ZeRO stage 3",
               "0, 1, 2, --sequence-parallel (that of Megatron-DeepSpeed), or another --framework");
  if (!is_onebit(optimizer)) return;
  if (how.sharding != Sharding::none)
    fail_input(flag("zero_stage"), fmt::format("{} does not run with ZeRO", name_of(optimizer)),
               "0");
  if (is_mpi(backend) && how.layout.tp * how.layout.pp > 1)
    fail_input(flag("backend"),
               "DeepSpeed's mpi backend exchanges over all ranks, which tensor and pipeline "
               "parallelism do not allow",
               "nccl, compressed");
}

// Throws Error (usage) if the layout would divide pyramids of images or PyTorch's plain modules.
void refuse_undivided(const ModelShape& model, const Parallelism& how) {
  const parallel::ParallelLayout& layout = how.layout;
  const bool divided = layout.tp * layout.cp * layout.pp * layout.expert_tp() > 1;
  const bool plain =
      !how.framework.divides_model && how.framework.name != FrameworkName::colossalai;
  if (divided && !model.pyramid.empty())
    fail_input(
        flag("model"),
        fmt::format("{} has stages of an image, which tp, cp and pp do not divide", model.name),
        "data and expert parallelism");
  if (layout.cp > 1 && model.decoder)
    fail_input(flag("cp"),
               fmt::format("{} has an encoder and a decoder, which context parallelism does not "
                           "divide (Megatron-LM, DeepSpeed)",
                           model.name),
               "1");
  if (divided && plain)
    fail_input(flag("framework"),
               fmt::format("{} is forecast as data parallelism: it has no tp, cp or pp",
                           name_of(how.framework.name)),
               "megatron, torchtitan, deepspeed, colossalai, nemo, paddle, jax, other");
  if (how.sharding != Sharding::none && plain && model.pyramid.empty() && !runs_whole_model(how))
    fail_input(flag("zero_stage"), "PyTorch's own sharding (FSDP) is forecast for torchtitan alone",
               "0, or --framework torchtitan");
  if (how.sharding != Sharding::none && !model.pyramid.empty())
    fail_input(flag("zero_stage"),
               "shared states are not modelled for a model with stages of an image", "0");
}

void keep_single_gradients(const Words& words, Framework& framework) {
  if (words.choice("fp32_gradients") == 0)
    fail_input(flag("fp32_gradients"), "gradients of fp32 weights are in fp32",
               "true, or --exchange fp16 or bf16, which round them for the way");
  framework.fp32_gradients = true;
}

}  // namespace

bool is_of_zero(std::string_view key) {
  constexpr std::string_view keys[] = {"shard_ranks",       "shard_groups",       "full_all_reduce",
                                       "offload_optimizer", "shard_handling_us",  "secondary_ranks",
                                       "quantized_weights", "quantized_gradients"};
  return std::ranges::find(keys, key) != std::end(keys);
}

std::optional<Parallelism> choose_parallelism(const Words& words, const TrainingPlan& training) {
  if (!asks_for_layout(words, *training.model, training.recipe.zero.stage)) return std::nullopt;
  return described_layout(words, training);
}

Parallelism described_layout(const Words& words, const TrainingPlan& training) {
  const ModelShape& model = *training.model;
  if (model.hidden == 0 || model.ffn == 0)
    fail_input(flag("model"), fmt::format("{} has no transformer blocks to divide", model.name));
  if (model.max_seq_len == 0 && model.pyramid.empty())
    fail_input(flag("model"),
               fmt::format("{} has patches of images where layouts divide tokens", model.name),
               "data parallelism with DeepSpeed's ZeRO stages 0 to 2");
  if (!training.device->rates)
    fail_input(flag("device"),
               fmt::format("layouts need the section [rates], which {} lacks, and no preset of "
                           "that name fills it in",
                           training.device->name),
               "[rates] as `lambcast presets show h100` prints it");
  Parallelism how;
  how.framework = choose_framework(words, training.recipe.zero);
  how.layout = layout_of(words, training.gpus, training.gpus_per_node, how.framework);
  // DeepSpeed's pipelines reduce after their last pass (runtime/pipe/engine.py).
  if (how.framework.name == FrameworkName::deepspeed && how.layout.pp > 1)
    how.framework.overlaps_gradients = false;
  how.schedule = choose_schedule(words, how.layout);
  how.sequence_parallel = words.choice("sequence_parallel").value_or(0) == 1;
  how.experts = choose_experts(words, model, training.optimizer(), how);
  choose_recompute(words, how);
  choose_checkpoints(words, how);
  how.attention = choose_attention(words, model, *training.device);
  how.fp8_attention = choose_fp8_attention(words, *training.device, how.attention);
  how.fp8_gates = choose_fp8_gates(words, model, how.framework.fusion);
  how.format = choose_format(words, training.recipe.precision);
  how.weight_bytes = how.format == MatrixFormat::single ? 4 : 2;
  if (how.format == MatrixFormat::single) keep_single_gradients(words, how.framework);
  how.captured = words.choice("cuda_graphs").value_or(0) == 1;
  choose_sharding(words, training.recipe.zero.stage, how);
  choose_reduction(words, how);
  choose_less_traffic(words, how);
  restrict_to_plugin(words, how);
  choose_offload(words, training.optimizer(), how);
  choose_activation_offload(words, model, how);
  follow_engine(words, training.recipe, how);
  choose_state_precision(words, training.optimizer(), how);
  refuse_impossible(training.optimizer(), training.backend(), how);
  refuse_undivided(model, how);
  return how;
}

std::vector<Finding> check_parallelism(const TrainingPlan& training) {
  const Parallelism& how = *training.parallelism;
  const parallel::LayoutUse use = how.use(training.gpus, training.batch.gas, training.seq_len);
  std::vector<Finding> findings = parallel::check(how.layout, *training.model, use);
  refuse_errors(findings);
  for (Finding& finding : find_of_layout(training)) findings.push_back(std::move(finding));
  // Every sequence length of a curriculum must be divisible, not only the longest.
  for (const SeqLenPhase& phase : lengths_of(training)) {
    if (phase.seq_len == 0 || phase.seq_len == use.seq_len) continue;
    parallel::LayoutUse shorter = use;
    shorter.seq_len = phase.seq_len;
    std::vector<Finding> of_length = parallel::check(how.layout, *training.model, shorter);
    for (Finding& finding : of_length) finding.message += ", a length of the curriculum";
    refuse_errors(of_length);
  }
  // The batches of a ramp must be divisible too, if a schedule needs whole rounds of micro batches.
  for (const BatchPhase& phase : batches_of(training)) {
    if (phase.batch == training.batch.train) continue;
    parallel::LayoutUse smaller = use;
    smaller.micro_batches =
        static_cast<int>(phase.batch / (training.batch.micro * training.data_parallel()));
    std::vector<Finding> of_batch = parallel::check(how.layout, *training.model, smaller);
    for (Finding& finding : of_batch)
      finding.message += fmt::format(", at a batch of {} of the ramp", phase.batch);
    refuse_errors(of_batch);
  }
  return findings;
}

}  // namespace lambcast
