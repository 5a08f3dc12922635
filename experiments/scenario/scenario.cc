#include "experiments/scenario/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <tuple>

#include "experiments/scenario/adapter_choice.h"
#include "experiments/scenario/deepspeed_choice.h"
#include "experiments/scenario/exchange_choice.h"
#include "experiments/scenario/invalid_value.h"
#include "experiments/scenario/layout_choice.h"
#include "experiments/scenario/plugin_choice.h"
#include "experiments/scenario/run_files.h"
#include "experiments/scenario/run_length.h"
#include "experiments/scenario/unread_keys.h"
#include "experiments/scenario/whole_model.h"
#include "experiments/scenario/words.h"
#include "models/deepspeed/auto_values.h"
#include "models/deepspeed/recipe.h"
#include "models/deepspeed/rules.h"
#include "models/deepspeed/versions.h"
#include "models/huggingface/config.h"
#include "models/optimizer/galore.h"
#include "models/training/plan/gradient_reduction.h"
#include "models/training/plan/optimizer_state.h"
#include "models/training/price/measured_program.h"
#include "sim/base/counted.h"
#include "sim/base/error.h"
#include "sim/base/file.h"
#include "sim/collectives/symmetry.h"

namespace lambcast {
namespace {

constexpr std::string_view origins = "a preset's name or a file";

// Limit of the GPUs of a run. Equal GPUs are folded; for unequal ones, collectives have limits of
// their own.
constexpr std::int64_t max_gpus = 1 << 20;

// Returns the number of ranks that hold one copy of the model.
std::int64_t ranks_of_copy(const Words& words) {
  std::int64_t ranks = 1;
  for (const char* key : {"tp", "cp", "pp"})
    ranks = std::min(max_gpus + 1, ranks * words.whole(key, 1, max_gpus).value_or(1));
  return ranks;
}

void check_copies(const Words& words, std::int64_t gpus, std::int64_t dp) {
  const std::int64_t copy = ranks_of_copy(words);
  if (gpus % copy == 0 && gpus / copy != dp)
    fail_input(flag("dp"),
               fmt::format("{} GPUs are {} copies of a model on tp x cp x pp = {} of them, not {}",
                           gpus, gpus / copy, copy, dp),
               fmt::format("{}", gpus / copy));
}

std::string device_name(const Words& words, const Cluster& cluster) {
  const std::string* asked = words.find("device");
  return asked != nullptr ? *asked : cluster.device;
}

void place_on_cluster(const Words& words, TrainingPlan& training) {
  const Cluster& cluster = *training.cluster;
  training.gpus_per_node = static_cast<int>(
      words.whole("gpus_per_node", 1, cluster.gpus_per_node).value_or(cluster.gpus_per_node));
  const auto gpus = words.whole("gpus", 1, max_gpus);
  const auto nodes = words.whole("nodes", 1, max_gpus);
  const auto dp = words.whole("dp", 1, max_gpus);
  if (!gpus && !nodes && !dp)
    of_key("gpus", [&] {
      fail_input(flag("gpus"),
                 "is missing: give the number of GPUs, or of whole nodes with --nodes");
    });
  const std::int64_t all = gpus    ? *gpus
                           : nodes ? *nodes * training.gpus_per_node
                                   : *dp * ranks_of_copy(words);
  if (all > max_gpus)
    fail_input(flag(nodes ? "nodes" : "dp"),
               fmt::format("{} {} are {} GPUs", nodes ? *nodes : *dp,
                           nodes ? "nodes" : "copies of the model", all),
               fmt::format("up to {} GPUs", max_gpus));
  if (dp) check_copies(words, all, *dp);
  training.gpus = static_cast<int>(all);
  training.gpus_per_node = std::min(training.gpus_per_node, training.gpus);
  if (nodes && training.nodes() != *nodes)
    fail_input(flag("nodes"),
               fmt::format("{} with {} a node are {}, not {}", counted(training.gpus, "GPU"),
                           training.gpus_per_node, counted(training.nodes(), "node"), *nodes));
  if (training.nodes() > cluster.max_nodes)
    fail_input(
        flag("gpus"),
        fmt::format("{} needs {} nodes for {} GPUs", cluster.name, training.nodes(), training.gpus),
        fmt::format("up to {} nodes", cluster.max_nodes));
}

// Reads the settings of GaLore's projection, and of SOAP's and Shampoo's decompositions. Their
// constructors and get_galore_param_groups are called in scripts, so no file has these keys.
Projection choose_projection(const Words& words, OptimizerType optimizer,
                             std::vector<Finding>& findings) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  const bool galore = optimizer == OptimizerType::galore_adamw8bit;
  Projection projection;
  for (const auto& [key, number, least] :
       {std::tuple("galore_rank", &projection.rank, 1),
        std::tuple("galore_update_gap", &projection.update_proj_gap, 1),
        std::tuple("galore_min_8bit_size", &projection.min_8bit_size, 0)}) {
    const auto asked = words.whole(key, least, most);
    *number = asked.value_or(*number);
    if (asked && !galore)
      findings.push_back({Severity::note, "galore-alone",
                          fmt::format("{} has no effect: {} does not project gradients",
                                      flag(key).key, name_of(optimizer))});
  }
  projection.precondition_frequency = words.whole("precondition_frequency", 1, most);
  return projection;
}

// Adds a finding on slices of matrices. Source: Colossal-AI nn/optimizer/distributed_galore.py,
// utils in galore.py.
void find_slices(const TrainingPlan& training, std::vector<Finding>& findings) {
  if (training.optimizer() != OptimizerType::galore_adamw8bit || !training.parallelism) return;
  const int tp = training.parallelism->layout.tp;
  if (tp == 1) return;
  findings.push_back(
      {Severity::warning, "galore-slices",
       fmt::format("GaLore is approximated: between decompositions each of the {} ranks that "
                   "divide a matrix projects its slice by the rows of the basis that fit. Square "
                   "matrices divided by columns do not fit at all",
                   tp)});
}

// Adds a finding if the rank is too large to project matrices. Then the decomposition, which takes
// most of GaLore's time, is missing.
void find_whole_matrices(const TrainingPlan& training, std::vector<Finding>& findings) {
  if (training.optimizer() != OptimizerType::galore_adamw8bit || training.flattens()) return;
  // Largest share of the elements in unprojected matrices without a finding, since small tables are
  // projected at no rank.
  constexpr double little = 0.01;
  const Projection& projection = training.recipe.projection;
  double matrices = 0, whole = 0, elements = 0, in_whole = 0;
  for (const Tensor& tensor : training.model->tensors) {
    const StateTensor of = state_tensor(*training.model, tensor);
    if (!tensor.optimized || of.rows == 0) continue;
    matrices += 1;
    elements += of.elements;
    if (galore_projects(of, projection)) continue;
    whole += 1;
    in_whole += of.elements;
  }
  if (in_whole <= little * elements) return;
  findings.push_back(
      {Severity::warning, "galore-whole",
       fmt::format("rank {} is no smaller than a side of {} of {} matrices ({:.0f} % "
                   "of their elements): they are neither projected nor decomposed, "
                   "and their moments are whole",
                   projection.rank, whole, matrices, 100 * in_whole / elements)});
}

// Adds a finding for a flattened optimizer: a flat vector has no statistics of rows and columns, no
// projections and no norms of tensors.
void find_flattened(const TrainingPlan& training, std::vector<Finding>& findings) {
  const OptimizerModel& optimizer = model_of(training.optimizer());
  const bool galore = optimizer.type == OptimizerType::galore_adamw8bit;
  const bool factored = optimizer.factored_statistics > 0;
  if (!training.flattens() || training.kernels == Kernels::nvidia || optimizer.onebit ||
      !(galore || factored || optimizer.layerwise))
    return;
  const char* instead = galore     ? "nothing is projected, 8-bit AdamW runs on all of it"
                        : factored ? "nothing is factored, it keeps a second moment of each element"
                                   : "norms and trust ratios are of that vector, not of tensors";
  findings.push_back({Severity::warning, "flat-tensors",
                      fmt::format("DeepSpeed's {} hands {} a rank's shard of each parameter group "
                                  "as one vector: {}, which is not the published algorithm",
                                  training.wrapper() == Wrapper::zero ? "ZeRO" : "BF16_Optimizer",
                                  optimizer.label, instead)});
}

void find_of_optimizer(const TrainingPlan& training, std::vector<Finding>& findings) {
  find_slices(training, findings);
  find_whole_matrices(training, findings);
  find_flattened(training, findings);
}

void find_experts(const TrainingPlan& training, std::vector<Finding>& findings) {
  if (training.model->experts == 0 || training.gpus == 1 || training.parallelism) return;
  findings.push_back(
      {Severity::warning, "experts-replicated",
       fmt::format("every GPU holds, updates and sums all {} experts of {}: --ep divides them "
                   "among GPUs",
                   training.model->experts, training.model->name)});
}

// Returns whether the sequence length is an assumption. A config.json, or a description of a
// long-sequence model without default_seq_len, states the maximum length but not the length in
// training.
bool assumes_seq_len(const Words& words, const TrainingPlan& training, bool config_json) {
  constexpr std::int64_t usual_in_training =
      8192;  // the longest in the first training stage of Llama and Mistral
  if (training.seq_len == 0 || training.recipe.curriculum) return false;
  if (words.find("seq_len") != nullptr || words.find("model.default_seq_len") != nullptr)
    return false;
  return config_json ||
         (training.seq_len == training.model->max_seq_len && training.seq_len > usual_in_training);
}

// Adds a warning if the kind of the network was changed, but not the bandwidth, which was stated
// for the other kind.
void find_other_network(const Words& words, const TrainingPlan& training, Catalog& catalog,
                        std::vector<Finding>& findings) {
  if (words.find("cluster.nic.network") == nullptr ||
      words.find("cluster.nic.bandwidth") != nullptr)
    return;
  const auto described = catalog.cluster(*words.find("cluster"), {});
  if (described->network == training.cluster->network) return;
  findings.push_back(
      {Severity::warning, "bandwidth-of-other-network",
       fmt::format("nic.bandwidth stays the {} of {}, {} over {}: give yours with --set "
                   "cluster.nic.bandwidth",
                   to_text_bits(described->nic_bandwidth.value), described->name,
                   name_of(described->nic_bandwidth.provenance.kind),
                   described->network == NetworkKind::rdma ? "RDMA" : "TCP")});
}

// Adds a warning if another GPU's profile stands in for the cluster's GPU, unless the user chose a
// device.
void find_stand_in(const Words& words, const TrainingPlan& training, Catalog& catalog,
                   std::vector<Finding>& findings) {
  const Cluster& cluster = *training.cluster;
  if (cluster.device_stands_for.empty() ||
      training.device->name != catalog.cluster(*words.find("cluster"), {})->device)
    return;
  findings.push_back(
      {Severity::warning, "device-stands-in",
       fmt::format(
           "compute and memory are those of {}, since {} has no profile; --device takes the "
           "profile of another GPU",
           cluster.device, cluster.device_stands_for)});
}

void find_of_model(const Words& words, const TrainingPlan& training, Catalog& catalog,
                   std::vector<Finding>& findings) {
  find_experts(training, findings);
  find_stand_in(words, training, catalog, findings);
  find_other_network(words, training, catalog, findings);
  const std::string& model = *words.find("model");
  const bool config_json = is_path(model) && is_config_json(catalog.texts()->model(model));
  if (assumes_seq_len(words, training, config_json))
    findings.push_back({Severity::note, "seq-len-assumed",
                        fmt::format("--seq-len not given; assumed: {} tokens ({} accepts up to {})",
                                    training.seq_len, model, training.model->max_seq_len)});
  if (!config_json) return;  // only a config.json can have parts that its description lacks
  for (std::string& sentence : huggingface::left_out(catalog.texts()->model(model), model))
    findings.push_back({Severity::note, "not-modelled", std::move(sentence)});
}

void add(std::vector<Finding>& findings, const std::vector<Finding>& more) {
  findings.insert(findings.end(), more.begin(), more.end());
}

std::optional<Kernels> kernels_of_framework(const TrainingPlan& training,
                                            const std::optional<Version>& torch) {
  if (!training.parallelism || training.parallelism->framework.name == FrameworkName::deepspeed)
    return std::nullopt;
  const Kernels own = training.parallelism->framework.kernels;
  const bool one_by_one = own == Kernels::foreach_adam && torch && *torch < Version{2, 0, 0};
  return one_by_one ? Kernels::unfused_adam : own;
}

// Sets the recipes. The kernels that ship here work with any framework. `nvidia` selects recipes
// with their own kernels, on any cluster.
void choose_recipes(const Words& words, TrainingPlan& training) {
  if (words.chosen<FrameworkName>("framework") != FrameworkName::nvidia) return;
  Cluster cluster = *training.cluster;
  cluster.stack.implementation = "nvidia";
  training.cluster = std::make_shared<const Cluster>(std::move(cluster));
}

void choose_kernels(const Words& words, TrainingPlan& training,
                    const std::optional<Version>& torch) {
  choose_recipes(words, training);
  training.framework_kernels = kernels_of_framework(training, torch);
  const auto kernels = words.choice("kernels");
  training.kernels = kernels && words_of("kernels")[*kernels] == name_of(Kernels::fused)
                         ? Kernels::fused
                         : training.framework_kernels.value_or(
                               stack_kernels(training.cluster->stack, training.optimizer()));
}

void choose_emulation(TrainingPlan& training, std::vector<Finding>& findings) {
  if (training.recipe.precision.weights != DataType::bf16 || !emulates_bf16(*training.device))
    return;
  findings.push_back(
      {Severity::warning, "bf16-emulated",
       fmt::format(
           "{} (compute capability {:.1f}) has no units for bf16: its products count at "
           "the rate of fp32, as PyTorch emulates them (pytorch/pytorch #148322); fp16 runs "
           "in the matrix units",
           training.device->name, training.device->rates->compute_capability)});
  training.device = std::make_shared<const Device>(in_emulated_bf16(*training.device));
}

// Chooses the program's level, which holds for the program, the format and the GPU that were
// measured.
void choose_program(const Words& words, TrainingPlan& training, std::vector<Finding>& findings) {
  training.prior = shipped_program_prior();
  training.framework = words.chosen<FrameworkName>("framework").value_or(FrameworkName::deepspeed);
  const std::optional<ProgramLevel>& measured = training.cluster->program;
  if (!measured) return;
  const std::string_view framework = framework_of_run(training), format = format_of_run(training);
  const bool own_device = device_name(words, *training.cluster) == training.cluster->device;
  if (measured->framework == framework && measured->format == format && own_device) {
    training.program = measured;
    return;
  }
  findings.push_back(
      {Severity::note, "program-not-measured",
       fmt::format("{} holds the level of {} in {} format on its own GPUs; this run is {} in {} "
                   "format{}: forecast as a program without measurements",
                   training.cluster->origin, measured->framework, measured->format, framework,
                   format, own_device ? "" : " on another GPU")});
}

// Fills in the values that a file leaves to Hugging Face ("auto"), if no flag sets them, and the
// norm of --gradient-clipping. Of the three batch numbers two determine the third.
void settle_auto(const Words& words, std::int64_t hidden, deepspeed::DeepSpeedConfig& config) {
  constexpr std::pair<std::string_view, const char*> batch_flags[] = {
      {"train_batch_size", "global_batch"},
      {"train_micro_batch_size_per_gpu", "micro_batch"},
      {"gradient_accumulation_steps", "grad_accum"}};
  int given = 0;
  for (const auto& [key, word] : batch_flags) given += words.find(word) != nullptr ? 1 : 0;
  deepspeed::settle_auto_values(config, hidden, [&](std::string_view key) {
    if (key == "gradient_clipping") return words.find("gradient_clipping") != nullptr;
    for (const auto& [of_file, word] : batch_flags)
      if (key == of_file) return given >= 2 || words.find(word) != nullptr;
    return false;
  });
  if (const auto norm = words.number("gradient_clipping", 0, 1e9))
    config.gradient_clipping = {*norm, true, 0};
}

// Reads the descriptions that are given, so that an error in one of them is reported first.
void read_given(const Words& words, Catalog& catalog) {
  if (const std::string* model = words.find("model"))
    (void)catalog.model(*model, words.below("model."));
  if (const std::string* cluster = words.find("cluster"))
    (void)catalog.cluster(*cluster, words.below("cluster."));
}

}  // namespace

std::string_view format_of_run(const TrainingPlan& training) {
  if (training.parallelism) return name_of(training.parallelism->format);
  return name_of(training.recipe.precision.is_half() ? MatrixFormat::half : MatrixFormat::single);
}

Scenario resolve(const WhatIf& what_if, Catalog& catalog) {
  Words(what_if).refuse_unknown();
  Words(what_if).refuse_shared_stdin();
  Scenario scenario;
  scenario.asked = with_run_files(what_if, catalog, scenario.findings);
  name_file_of_checkpoint(scenario.asked);
  add_layout_of_file(scenario.asked, catalog);
  add_plugin_defaults(scenario.asked);
  const Words words(scenario.asked);
  words.refuse_missing([&] { read_given(words, catalog); });
  TrainingPlan& training = scenario.training;
  deepspeed::DeepSpeedConfig& config = scenario.config;
  training.model = catalog.model(words.text("model", origins), words.below("model."));
  training.cluster = catalog.cluster(words.text("cluster", origins), words.below("cluster."));
  training.device = catalog.device(device_name(words, *training.cluster), words.below("device."));
  if (const std::string* path = words.find("config")) config = *catalog.config(*path);
  settle_auto(words, training.model->hidden, config);
  place_on_cluster(words, training);
  const deepspeed::Versions versions = choose_versions(words, *training.cluster, config.release);
  choose_optimizer(words, config);
  choose_precision(words, training, config, scenario.findings);
  choose_backend(words, *training.cluster, config, scenario.findings);
  training.recipe = deepspeed::recipe_of(config);
  choose_emulation(training, scenario.findings);
  add(scenario.findings, choose_adapters(words, training));
  training.parallelism = choose_parallelism(words, training);
  add(scenario.findings, check_plugin(words, training));
  training.batch =
      choose_batch(words, training.gpus, training.data_parallel(), config, scenario.findings);
  training.seq_len =
      resolve_seq_len(*training.model, words.whole("seq_len", 1, 1 << 20), flag("seq_len"));
  training.steps_done = choose_steps_done(words, training.optimizer());
  training.ramp = choose_ramp(words, training.batch.train);
  training.steps = choose_steps(words, training, freeze_step_of_file(config), scenario.findings);
  check_ramp(training, scenario.findings);
  if (const auto step = choose_freeze_step(words, training)) set_freeze_step(*step, config);
  choose_zero_one_policy(words, config);
  if (training.parallelism) {
    add(scenario.findings, check_parallelism(training));
    add(scenario.findings, find_unread_of_layout(words, *training.parallelism));
    as_whole_model(words, training, config);
  }
  choose_kernels(words, training, versions.torch);
  if (!training.parallelism) training.overlap = choose_overlap(words, training.batch.gas, config);
  training.recipe = deepspeed::recipe_of(config);  // with the steps and the overlap of the flags
  training.recipe.projection = choose_projection(words, training.optimizer(), scenario.findings);
  find_of_optimizer(training, scenario.findings);
  choose_exchange(words, training, scenario.findings);
  if (const auto network = words.chosen<NetworkModel>("network")) training.network = *network;
  training.expand = training.per_block = words.chosen<Symmetry>("symmetry") == Symmetry::off;
  choose_program(words, training, scenario.findings);
  add(scenario.findings, find_unread(words, training));
  find_of_model(words, training, catalog, scenario.findings);
  // DeepSpeed's rules hold only for DeepSpeed: other frameworks run what it rejects, such as LAMB
  // with sharded states or in bf16.
  if (!training.parallelism || training.parallelism->framework.name == FrameworkName::deepspeed) {
    const auto of_config = deepspeed::check_config(config);
    refuse_errors(of_config);
    add(scenario.findings, of_config);
  }
  add(scenario.findings, deepspeed::check_run(config, training.steps_done + training.steps));
  if (!training.parallelism || training.parallelism->framework.name == FrameworkName::deepspeed) {
    const auto of_versions =
        deepspeed::check_versions(versions, config, training.gpus, training.batch.gas,
                                  training.parallelism && training.parallelism->layout.pp > 1);
    refuse_errors(of_versions);
    add(scenario.findings, of_versions);
  }
  return scenario;
}

Overlap overlap_of(const TrainingPlan& training) {
  if (training.overlap == Overlap::ddp) return Overlap::ddp;
  if (training.parallelism && training.framework != FrameworkName::deepspeed)
    return training.parallelism->framework.overlaps_gradients && !waits_for_sums(training)
               ? Overlap::ddp
               : Overlap::none;
  return overlaps_reduction(training) ? Overlap::zero : Overlap::none;
}

std::optional<std::int64_t> freeze_step_of(const Recipe& recipe) {
  if (!is_onebit(recipe.optimizer)) return std::nullopt;
  return recipe.optimizer == OptimizerType::zero_one_adam ? recipe.onebit.var_freeze_step
                                                          : recipe.onebit.freeze_step;
}

}  // namespace lambcast
