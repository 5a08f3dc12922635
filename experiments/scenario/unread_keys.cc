#include "experiments/scenario/unread_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>

#include "experiments/scenario/run_length.h"
#include "models/optimizer/optimizer_model.h"
#include "models/training/price/passage.h"

namespace lambcast {
namespace {

using parallel::Sharding;

struct UnreadOfLayout {
  std::string_view key;
  bool (*unread)(const Parallelism& how, std::string_view value);
  std::string_view why;
};

bool has_experts_on_a_node(const Parallelism& how) {
  return parallel::group(parallel::expert_grid(how.layout), {parallel::Axis::ep}).nodes() == 1;
}

constexpr std::string_view divided_checkpoints =
    "it divides what --recompute full keeps over --tp, which --sequence-parallel does too";
constexpr std::string_view copied_checkpoints =
    "it copies the inputs of blocks that --recompute full keeps";

constexpr UnreadOfLayout of_layout[] = {
    {"context_exchange",
     [](const Parallelism& how, std::string_view) { return how.layout.cp == 1; },
     "it says how ranks exchange that divide a sequence, and cp is 1"},
    {"tensor_overlap", [](const Parallelism& how, std::string_view) { return how.layout.tp == 1; },
     "it hides what tensor parallelism sends, and tp is 1"},
    {"tensor_overlap",
     [](const Parallelism& how, std::string_view value) {
       return how.layout.tp > 1 && !how.sequence_parallel && (value == "all" || value == "chunks");
     },
     "without --sequence-parallel activations are summed after a product, and hidden as by "
     "backward"},
    {"send_overlap",
     [](const Parallelism& how, std::string_view) {
       return how.layout.pp == 1 ||
              (how.layout.virtual_stages == 1 && !parallel::splits_backward(how.schedule));
     },
     "it applies to interleaved and zero-bubble pipelines: others have nothing to compute "
     "meanwhile"},
    {"pipeline_schedule",
     [](const Parallelism& how, std::string_view) {
       return how.layout.pp * how.layout.virtual_stages == 1;
     },
     "it orders the passes of a pipeline, and pp is 1"},
    {"pipeline_schedule",
     [](const Parallelism& how, std::string_view value) {
       return how.layout.pp > 1 && how.layout.virtual_stages == 1 && value == "interleaved";
     },
     "a stage has one chunk without --interleave, and the order is that of 1f1b"},
    {"expert_dispatch",
     [](const Parallelism& how, std::string_view value) {
       return value == "hierarchical" && has_experts_on_a_node(how);
     },
     "the ranks of a layer's experts lie on one node, where tokens are exchanged once"},
    {"imbalance", [](const Parallelism& how, std::string_view) { return how.layout.ep == 1; },
     "it applies to ranks that share experts, and ep is 1: each computes the experts of its own "
     "tokens"},
    {"partition_activations",
     [](const Parallelism& how, std::string_view) { return !how.partitions_activations; },
     divided_checkpoints},
    {"offload_activations",
     [](const Parallelism& how, std::string_view value) {
       return value == "checkpoints" && !how.offload.any();
     },
     copied_checkpoints},
    {"split",
     [](const Parallelism& how, std::string_view) {
       return how.layout.pp * how.layout.virtual_stages == 1;
     },
     "it lays layers over the stages of a pipeline, and pp is 1"},
    {"order",
     [](const Parallelism& how, std::string_view) {
       const auto& [tp, cp, ep, dp, pp] =
           std::tie(how.layout.tp, how.layout.cp, how.layout.ep, how.layout.dp, how.layout.pp);
       return (tp > 1) + (cp > 1) + (dp > 1 || ep > 1) + (pp > 1) < 2;
     },
     "ranks lie along one axis"},
    {"zero_stage", [](const Parallelism& how, std::string_view) { return how.replicas() == 1; },
     "there is one replica, which shares nothing with another"},
    {"eager_loss",
     [](const Parallelism& how, std::string_view) {
       return how.framework.fusion != Fusion::compiled;
     },
     "it takes the loss out of what is compiled, and nothing is (--fusion compiled)"},
    {"shard_handling_us",
     [](const Parallelism& how, std::string_view) { return how.sharding != Sharding::weights; },
     "it is spent on weights that ranks share (--zero-stage 3)"},
    {"gradient_bucket",
     [](const Parallelism& how, std::string_view) {
       const bool held = how.framework.flat_buckets && how.sharding != Sharding::none;
       return !held && (how.replicas() == 1 || how.sharding == Sharding::weights ||
                        !(how.framework.overlaps_gradients || how.framework.overlaps_weights));
     },
     "gradients and weights go in buckets where replicas overlap them with the passes (--overlap, "
     "up to --zero-stage 2)"},
    {"fp8_weight_gather",
     [](const Parallelism& how, std::string_view) {
       return how.sharding == Sharding::none || how.replicas() == 1;
     },
     "ranks gather weights where they share states (--zero-stage)"},
    {"overlap",
     [](const Parallelism& how, std::string_view) { return how.sharding == Sharding::weights; },
     "with shared weights gradients are scattered block by block, as the framework does it"},
    {"overlap",
     [](const Parallelism& how, std::string_view) {
       return how.framework.name == FrameworkName::deepspeed && how.layout.pp > 1;
     },
     "DeepSpeed's pipelines sum gradients after their last pass"},
};

struct Unread {
  std::string_view key;
  bool (*unread)(const Words& words, const TrainingPlan& training);
  std::string_view why;
};

bool is_deepspeed(const TrainingPlan& training) {
  return !training.parallelism || training.parallelism->framework.name == FrameworkName::deepspeed;
}

// Returns whether the freeze step sets the length of the run. It does if the run has no given
// length and would be shorter without it (run_length.h).
bool sets_length(const Words& words, const TrainingPlan& training) {
  const std::string* const freeze = words.find("freeze_step");
  return freeze != nullptr && !freeze->ends_with('%') &&
         training.steps > default_steps(training.optimizer(), std::nullopt) &&
         std::ranges::none_of(length_keys,
                              [&](std::string_view key) { return words.find(key) != nullptr; });
}

bool is_zero_one(const TrainingPlan& training) {
  return training.optimizer() == OptimizerType::zero_one_adam;
}
constexpr std::string_view zero_one_alone = "only the policy of 0/1 Adam uses it";

constexpr Unread of_run[] = {
    {"backend",
     [](const Words&, const TrainingPlan& training) { return !is_onebit(training.optimizer()); },
     "it carries what 1-bit optimizers send"},
    // Findings on the DeepSpeed configuration already report an unused cuda_aware for 1-bit
    // optimizers.
    {"cuda_aware",
     [](const Words&, const TrainingPlan& training) { return !is_onebit(training.optimizer()); },
     "only the mpi backend uses it, which carries the messages of 1-bit optimizers"},
    {"freeze_step",
     [](const Words& words, const TrainingPlan& training) {
       return !is_onebit(training.optimizer()) && !sets_length(words, training);
     },
     "it says when 1-bit optimizers begin to compress"},
    {"var_update_scaler",
     [](const Words&, const TrainingPlan& training) { return !is_zero_one(training); },
     zero_one_alone},
    {"local_step_scaler",
     [](const Words&, const TrainingPlan& training) { return !is_zero_one(training); },
     zero_one_alone},
    {"local_step_clipper",
     [](const Words&, const TrainingPlan& training) { return !is_zero_one(training); },
     zero_one_alone},
    {"precondition_frequency",
     [](const Words&, const TrainingPlan& training) {
       const auto& work = model_of(training.optimizer()).matrix_work;
       return !work || work->every == 0;
     },
     "only SOAP and Shampoo decompose matrices at such intervals"},
    {"steps_done",
     [](const Words& words, const TrainingPlan& training) {
       const std::string* const freeze = words.find("freeze_step");
       const bool freezes =
           is_onebit(training.optimizer()) && (freeze == nullptr || !freeze->ends_with('%'));
       return !freezes && !training.recipe.curriculum && !training.ramp;
     },
     "a freeze_step that is not a share of the run, a curriculum and a ramp of batches count them"},
    {"kernels", [](const Words&, const TrainingPlan& training) { return !is_deepspeed(training); },
     "only DeepSpeed's optimizers use them, and other frameworks run NVIDIA's"},
    {"kernels",
     [](const Words& words, const TrainingPlan& training) {
       return is_deepspeed(training) && training.kernels == Kernels::fused &&
              *words.find("kernels") == name_of(Kernels::fused) &&
              !model_of(training.optimizer()).in_kernels && training.exchange == Exchange{};
     },
     "kernels/ has no step of this optimizer: its update and wrapper stay DeepSpeed's"},
    {"deepspeed_version",
     [](const Words&, const TrainingPlan& training) { return !is_deepspeed(training); },
     "another framework is forecast"},
    {"versions", [](const Words&, const TrainingPlan& training) { return !is_deepspeed(training); },
     "they are checked against what DeepSpeed needs, and another framework is forecast"},
    {"gradient_clipping",
     [](const Words&, const TrainingPlan& training) { return !training.has_bf16_optimizer(); },
     "it is forecast of BF16_Optimizer, which clips in a pass of its own: where gradients are "
     "unscaled they are clipped with that"},
    {"weight_decay",
     [](const Words&, const TrainingPlan& training) {
       const auto is_same = [&](StepKind step) {
         const auto update = [&](const DecayingShare& decaying) {
           return update_passes(training.optimizer(), step, training.kernels, decaying);
         };
         return update({1, 1}) == update({0, 0});
       };
       return is_same(StepKind::uniform) && is_same(StepKind::warmup) &&
              is_same(StepKind::compression);
     },
     "the kernels that run decay weights as they update them"},
    {"overlap",
     [](const Words&, const TrainingPlan& training) { return training.data_parallel() == 1; },
     "there is one replica, which sums gradients with no other"},
    {"overlap",
     [](const Words& words, const TrainingPlan& training) {
       return *words.find("overlap") == "zero" && !is_deepspeed(training);
     },
     "zero is DeepSpeed's overlap_comm: another framework overlaps its buckets, as ddp says"},
    {"partition_activations",
     [](const Words&, const TrainingPlan& training) {
       return !training.parallelism && !training.passes;
     },
     divided_checkpoints},
    {"offload_activations",
     [](const Words& words, const TrainingPlan& training) {
       return !training.parallelism && *words.find("offload_activations") == "checkpoints";
     },
     copied_checkpoints},
    {"recompute",
     [](const Words& words, const TrainingPlan& training) {
       return training.model->experts == 0 && *words.find("recompute") == "experts";
     },
     "the model has no experts"},
};

struct UnreadOfCluster {
  std::string_view part;  // a key, or the beginning of keys
  bool (*unread)(const TrainingPlan& training);
  std::string_view why;
};

bool is_one_node(const TrainingPlan& training) { return training.nodes() == 1; }
bool is_one_gpu(const TrainingPlan& training) { return training.gpus == 1; }

// nic.network is read on one node too, since it selects the typical constants of a description.
// NCCL sends the gradients of every run, also in warm-ups of the mpi backend.
constexpr UnreadOfCluster of_cluster[] = {
    {"nic.bandwidth", is_one_node, "no NIC carries anything within one node"},
    {"nic.nominal", is_one_node, "no NIC carries anything within one node"},
    {"nic.count", is_one_node, "no NIC carries anything within one node"},
    {"nic.burst", is_one_node, "no NIC carries anything within one node"},
    {"nic.port_queue", is_one_node, "no NIC carries anything within one node"},
    {"nic.rto_min", is_one_node, "no NIC carries anything within one node"},
    {"fabric", is_one_node, "the fabric joins nodes, and there is one"},
    {"nic.link_layer",
     [](const TrainingPlan& training) {
       return is_one_node(training) || !training.cluster->nccl.sharp;
     },
     "it says whether SHARP can run (nccl.sharp), which sums between nodes and is off"},
    {"nccl", is_one_gpu, "one GPU communicates with nobody"},
    {"mpi",
     [](const TrainingPlan& training) {
       return is_one_gpu(training) || !is_onebit(training.optimizer()) ||
              !is_mpi(training.backend());
     },
     "no collective of this run goes over MPI (1-bit optimizers with --backend mpi)"},
};

// Returns whether attention is priced over the whole square of scores: a step that is not priced
// kernel by kernel uses FLOPs at a rate, and those FLOPs include the whole square.
bool computes_whole_square(const TrainingPlan& training) {
  const std::optional<Parallelism> how = priced_as(training);
  return !how || how->attention == AttentionKernel::unfused;
}

bool is_of(std::string_view key, std::string_view part) {
  return key == part || (key.starts_with(part) && key[part.size()] == '.');
}

// Returns whether the value turns off a feature that is off by default. Weight decay is on by
// default.
bool leaves_off(std::string_view key, std::string_view value) {
  return key != "weight_decay" && (value == "none" || value == "false" || value == "0");
}

std::string without_effect(std::string_view key, std::string_view why) {
  return fmt::format("{}: has no effect: {}", flag(key).key, why);
}

}  // namespace

std::vector<Finding> find_unread_of_layout(const Words& words, const Parallelism& how) {
  std::vector<Finding> findings;
  for (const auto& [key, unread, why] : of_layout) {
    const std::string* const value = words.find(key);
    if (value != nullptr && !leaves_off(key, *value) && unread(how, *value))
      findings.push_back({Severity::note, "layout-no-effect", without_effect(key, why)});
  }
  return findings;
}

std::vector<Finding> find_unread(const Words& words, const TrainingPlan& training) {
  std::vector<Finding> findings;
  for (const auto& [key, unread, why] : of_run) {
    const std::string* const value = words.find(key);
    if (value != nullptr && !leaves_off(key, *value) && unread(words, training))
      findings.push_back({Severity::note, "flag-no-effect", without_effect(key, why)});
  }
  for (const auto& [key, value] : words.below("cluster."))
    for (const auto& [part, unread, why] : of_cluster)
      if (is_of(key, part) && unread(training))
        findings.push_back({Severity::note, "flag-no-effect",
                            fmt::format("--set cluster.{}: has no effect: {}", key, why)});
  if (words.find("model.flash_attention") != nullptr && priced_as(training))
    findings.push_back(
        {Severity::note, "flag-no-effect",
         "--set model.flash_attention: has no effect: it applies to runs that are not "
         "priced by kernels; --attention chooses theirs, for time and memory"});
  for (const auto& [key, value] : words.below("model."))
    if (key.starts_with("window") && computes_whole_square(training))
      findings.push_back(
          {Severity::note, "flag-no-effect",
           fmt::format(
               "--set model.{}: has no effect: attention is computed whole with --attention "
               "unfused, and where a measured time of the whole model comes before kernels",
               key)});
  return findings;
}

std::string why_unread(const std::string& key, const TrainingPlan& training) {
  constexpr std::string_view effect = "has no effect: ";
  const WhatIf asked{{key, "1"}};
  const Words words(asked);
  std::vector<Finding> findings = find_unread(words, training);
  if (training.parallelism)
    std::ranges::move(find_unread_of_layout(words, *training.parallelism),
                      std::back_inserter(findings));
  if (findings.empty()) return "";
  const std::string& message = findings.front().message;
  return message.substr(message.find(effect) + effect.size());
}

}  // namespace lambcast
