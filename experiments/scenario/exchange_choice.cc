#include "experiments/scenario/exchange_choice.h"

#include <fmt/format.h>

#include <bit>
#include <string>

#include "experiments/scenario/hints.h"
#include "experiments/scenario/invalid_value.h"
#include "models/training/plan/exchange_levels.h"
#include "models/training/plan/exchange_name.h"
#include "models/training/plan/gradient_exchange.h"
#include "models/training/plan/gradient_owners.h"
#include "models/training/plan/gradient_reduction.h"
#include "models/training/run/forecast.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

// Checks the exchange against the layout: ranks that share states must be all the ranks of the
// exchange.
void exchange_in_layout(TrainingPlan& training) {
  Parallelism& how = *training.parallelism;
  const int site = site_ranks(training.exchange);
  if (how.sharding != parallel::Sharding::none && site > 1) {
    if (how.shard_ranks != site)
      fail_input(flag("exchange"),
                 fmt::format("states must be shared by the {} ranks of a site", site),
                 fmt::format("--shard-ranks {}", site));
  } else if (how.sharding != parallel::Sharding::none && how.shard_ranks != how.replicas()) {
    fail_input(flag("exchange"),
               "is between all ranks that hold the same weights, which shard_ranks divides",
               "no --shard-ranks");
  }
  if (how.full_all_reduce)
    fail_input(flag("exchange"), "excludes --full-all-reduce", "one of the two");
  if (how.quantized_gradients && coding_of(training.exchange).inside == 1)
    fail_input(flag("exchange"),
               fmt::format("{} is int8, and --quantized-gradients is qgZ in int4",
                           name_of(training.exchange)),
               "one of the two");
  if (how.sharding == parallel::Sharding::weights && site == 1) {
    how.quantized_gradients = true;
    how.quantized_by = training.exchange;
  }
}

// Returns the ranks that hold the same weights.
ProcessGroup exchanging_ranks(const TrainingPlan& training) {
  return training.parallelism ? owners_of(*training.parallelism, false).front().replicas
                              : all_ranks(training);
}

// Checks that the sites of local steps are complete, and consist of whole nodes or of an equal part
// of each node.
void check_sites(const TrainingPlan& training) {
  const int site = training.exchange.site;
  if (site == 0) return;
  const ProcessGroup ranks = exchanging_ranks(training);
  const int node = ranks.per_node;
  const bool fits = site <= node ? node % site == 0 : site % node == 0;
  if (!fits || ranks.ranks % site != 0 || !ranks.uniform())
    fail_input(
        flag("exchange"),
        fmt::format("sites of {} ranks do not divide {} ranks, {} a node, that hold the same "
                    "weights",
                    site, ranks.ranks, node),
        fmt::format("a divisor of {0}, or a multiple of {0} that divides {1}", node, ranks.ranks));
  if (site == ranks.ranks)
    fail_input(flag("exchange"),
               fmt::format("a single site of all {} ranks has nothing to average", site),
               "all_reduce, or smaller sites");
  if (training.parallelism && training.model->experts > 0)
    fail_input(flag("exchange"), "sites of experts are not modelled", "local:STEPS");
}

// Checks that equally many ranks with the same weights are on each node, as a sharded exchange
// needs.
void check_shares(const TrainingPlan& training) {
  const ProcessGroup ranks = exchanging_ranks(training);
  if (training.exchange.is_sharded() && ranks.nodes() > 1 && !ranks.uniform())
    fail_input(flag("exchange"),
               fmt::format("{} ranks that hold the same weights, {} a node, are not as many on "
                           "each node",
                           ranks.ranks, ranks.per_node),
               "two-level, or as many GPUs on each node");
}

void check_graph(const TrainingPlan& training) {
  if (training.exchange.kind != Exchange::Kind::neighbour_exponential) return;
  const bool leaders = training.exchange.is_two_level() || training.exchange.is_sharded();
  const int meeting = levels_of(training.exchange, exchanging_ranks(training)).between.ranks;
  if (!std::has_single_bit(static_cast<unsigned>(meeting)))
    fail_input(flag("exchange"),
               fmt::format("an exponential graph has a power of two {}, not {}",
                           leaders ? "nodes" : "ranks", meeting),
               "neighbours:ring");
}

// Fills in the parts of the exchange that are not stated with those of the framework's library.
void choose_form(TrainingPlan& training, std::vector<Finding>& findings) {
  Exchange& exchange = training.exchange;
  if (const std::string why = refused_form(exchange); !why.empty())
    fail_input(flag("exchange"), why, codec_name(exchange));
  const Exchange stated = exchange;
  if (exchanges_in_hooks(training) && training.recipe.zero.stage == 0)
    exchange = in_hooks(exchange);
  if (exchange == stated || training.data_parallel() == 1) return;
  const char* const among =
      exchange.is_two_level() ? "between the leaders of nodes, as Bagua does" : "among all ranks";
  findings.push_back(
      {Severity::note, "exchange-form",
       fmt::format(
           "{} goes {}, and {}: --exchange \"{} / flat / after\" exchanges among all ranks at once "
           "after the backward pass, as DeepSpeed does",
           codec_name(exchange), among,
           averages_weights(exchange) ? "during both passes"
           : exchange.is_overlapped() ? "bucket by bucket during the backward pass"
                                      : "after the backward pass",
           codec_name(exchange))});
}

// Lists the exchanges that the stage supports: "all_reduce, fp8, int8".
std::string usual_with_zero(std::int64_t stage) {
  std::vector<std::string> names;
  for (const Exchange& exchange : usual_exchanges(true))
    if (refused_with_zero(exchange, stage).empty()) names.push_back(name_of(exchange));
  return fmt::format("{}", fmt::join(names, ", "));
}

// Throws Error (usage) if ZeRO's stage, or the program, does not support the exchange.
void check_stage(const TrainingPlan& training) {
  const std::int64_t stage = training.recipe.zero.stage;
  if (const std::string why = refused_with_zero(training.exchange, stage); !why.empty())
    fail_input(flag("exchange"), why,
               training.exchange.kind == Exchange::Kind::sdp4bit ? "with --zero-stage 1"
               : stage == 0                                      ? "with --zero-stage 1, 2 or 3"
               : stage == 3 ? "all_reduce, qgz, qgz:int8, loco, loco:int8"
                            : usual_with_zero(stage) + ", or with --zero-stage 0");
  if (!training.parallelism && training.wrapper() == Wrapper::bf16)
    fail_input(flag("exchange"),
               "DeepSpeed's BF16_Optimizer supports only sums of whole fp32 buffers",
               "fp16 or fp32, or --deepspeed-version 0.17.6 and later");
  if (!training.parallelism && stage > 0 && site_ranks(training.exchange) > 1)
    fail_input(flag("exchange"), "sites whose ranks share states need a layout",
               "with --framework megatron, torchtitan or other, and --shard-ranks");
  if (!training.parallelism && training.exchange.kind == Exchange::Kind::sdp4bit)
    fail_input(flag("exchange"), "sdp4bit runs only in Megatron-LM's distributed optimizer",
               "with --framework megatron, or qgz");
}

void check_halves(const TrainingPlan& training) {
  if (goes_in_half(training.exchange) && training.exchange.every == 1 &&
      gradient_bytes(training) < 4)
    fail_input(flag("exchange"), "gradients are sent in 16 bits already",
               "all_reduce, or with gradients in fp32 (--precision fp32, or of another framework "
               "than DeepSpeed --fp32-gradients true)");
}

// Reads the form of a 1-bit optimizer's exchange. The codec is its own; the levels and the schedule
// may be stated.
void form_of_momenta(TrainingPlan& training, std::vector<Finding>& findings) {
  Exchange& exchange = training.exchange;
  const std::string_view optimizer = name_of(training.optimizer());
  if (exchange.kind != Exchange::Kind::onebit || exchange.every > 1 || exchange.site != 0 ||
      exchange.start > 0)
    fail_input(flag("exchange"), fmt::format("{} has its own exchange", optimizer),
               "onebit, also in two levels and overlapped, or plain optimizers");
  if (!exchange.is_in_other_form()) {
    exchange = {};
    return;
  }
  if (traits_of(training.backend()).carrier != Backend::nccl)
    fail_input(flag("exchange"), "an exchange in two levels or in buckets runs only over NCCL",
               "with --backend nccl, or onebit");
  if (training.recipe.zero.stage > 0)
    fail_input(flag("exchange"), refused_with_zero(exchange, training.recipe.zero.stage),
               "onebit, or with --zero-stage 0");
  check_shares(training);
  findings.push_back(
      {Severity::note, "exchange-form",
       fmt::format("DeepSpeed's {} exchanges among all GPUs, after the backward pass: {} is a form "
                   "that no program runs with it yet",
                   optimizer, name_of(exchange))});
}

// Checks that the steps before the exchange begins can all_reduce gradients. Adds a warning if the
// run ends before the exchange begins.
void check_start(const TrainingPlan& training, std::vector<Finding>& findings) {
  const std::int64_t start = training.exchange.start;
  if (start == 0) return;
  if (training.optimizer() == OptimizerType::galore_adamw8bit)
    fail_input(flag("exchange"), "GaLore's decompositions are not forecast with a later start",
               "no / start");
  if (training.parallelism && training.parallelism->sharding == parallel::Sharding::weights)
    fail_input(
        flag("exchange"),
        "/ start does not apply at ZeRO stage 3, which exchanges gradients inside the passes",
        "no / start, or --zero-stage 0");
  if (const std::int64_t last = training.steps_done + training.steps; start >= last)
    findings.push_back(
        {Severity::warning, "exchange-never",
         fmt::format("{} begins after step {}, and the run ends at {}; try: a smaller start",
                     name_of(training.exchange), start, last)});
}

void find_seldom_meeting(const TrainingPlan& training, std::vector<Finding>& findings) {
  const std::int64_t every = steps_between(training.exchange);
  const std::int64_t last = training.steps_done + training.steps;
  if (training.exchange.start >= last) return;
  const std::string seldom = seldom_meets(training.exchange, last);
  if (seldom.empty()) return;
  findings.push_back(
      {Severity::warning,
       steps_per_exchange(training.exchange) > last ? "exchange-never" : "exchange-seldom",
       fmt::format("{} exchanges weights every {} steps, and the run ends at {}: {}, so its result "
                   "is not that of the run it is compared with; try: fewer local steps",
                   name_of(training.exchange), every, last, seldom)});
}

}  // namespace

void choose_exchange(const Words& words, TrainingPlan& training, std::vector<Finding>& findings) {
  const std::string* text = words.find("exchange");
  if (text == nullptr) return;
  if (const auto hint = hint_for(Typed::exchange, *text); !hint.empty())
    of_key("exchange", [&] {
      fail_input(flag("exchange"), fmt::format("unknown exchange '{}': {}", *text, hint));
    });
  training.exchange = parse_exchange(*text, flag("exchange"));
  if (training.exchange == Exchange{}) return;
  if (is_onebit(training.optimizer())) return form_of_momenta(training, findings);
  if (training.exchange.site == Exchange::of_a_node)
    training.exchange.site = exchanging_ranks(training).per_node;
  check_stage(training);
  check_halves(training);
  choose_form(training, findings);
  if (training.parallelism) exchange_in_layout(training);
  check_shares(training);
  check_graph(training);
  check_sites(training);
  check_start(training, findings);
  find_seldom_meeting(training, findings);
  if (training.exchange.kind == Exchange::Kind::powersgd &&
      factored_elements(*training.model, training.exchange.parameter) == 0)
    findings.push_back({Severity::warning, "exchange-whole",
                        fmt::format("two factors of rank {} are no smaller than half of any matrix "
                                    "of {}: all tensors are sent whole",
                                    training.exchange.parameter, training.model->name)});
  const bool deepspeed =
      !training.parallelism || training.parallelism->framework.name == FrameworkName::deepspeed;
  if (deepspeed && is_hierarchical(training.exchange) && training.recipe.zero.stage < 3)
    findings.push_back(
        {Severity::note, "exchange-of-stage-3",
         fmt::format("DeepSpeed uses zero_quantized_gradients at ZeRO stage 3 only, and sends "
                     "16 bits at stage {}: the forecast is of {} if it ran there",
                     training.recipe.zero.stage, shown_name(name_of(training.exchange)))});
  if (training.data_parallel() == 1) return;
  findings.push_back(
      {Severity::note, "exchange-convergence",
       fmt::format("{} sends other gradients than an all_reduce does; the additional steps that "
                   "this may take are not modelled{}",
                   shown_name(name_of(training.exchange)),
                   training.exchange.kind == Exchange::Kind::onebit
                       ? ", and it is not 1-bit Adam: here the variance receives signs"
                       : "")});
}

}  // namespace lambcast
