#include "experiments/search/layout_space.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/scenario/layout_choice.h"
#include "experiments/scenario/run_files.h"
#include "experiments/scenario/words.h"
#include "models/deepspeed/batch.h"

namespace lambcast {
namespace {

using parallel::Recompute;
using parallel::SplitMethod;

// Fewest tokens of a sequence per rank of context parallelism. Shorter pieces pay if there are no
// more samples than GPUs, since another replica would have nothing to do.
constexpr std::int64_t least_tokens = 4096, least_tokens_of_few_samples = 1024;
constexpr std::int64_t most_micro_batch = 64;

// Features that a framework offers, in addition to models/parallel/layout_rules.h, which applies to
// all.
//
// Sources: DeepSpeed runtime/pipe/engine.py (no ZeRO 2, 3), docs/_tutorials/autotp-training.md
// (no ZeRO 3 with tensor parallelism) and activation_checkpointing (whole layers); Megatron-LM
// training/arguments.py (--use-distributed-optimizer is stage 1,
// --use-megatron-fsdp 3,
// --recompute-granularity; --account-for-{embedding,loss}-in-pipeline-split, and
// --pipeline-model-parallel-layout for any split); torchtitan (FSDP always; weights stay gathered
// in pipelines; distributed/pipeline_parallel.py counts the ends as layers);
// ColossalAI booster/plugin/hybrid_parallel_plugin.py (stage 3 is another plugin's); PyTorch's
// DistributedDataParallel, which shares nothing.
struct Offer {
  FrameworkName framework;
  std::vector<int> zero_stages, zero_stages_in_pipelines;
  std::vector<Recompute> recompute;
  std::vector<SplitMethod> further_splits;  // in addition to the framework's default
  bool context_parallel, interleaves, sequence_parallel;
};

const std::vector<Offer>& offers() {
  static const std::vector<Offer> rows{
      {FrameworkName::deepspeed,
       {0, 1, 2, 3},
       {0, 1},
       {Recompute::none, Recompute::full},
       {},
       false,
       false,
       false},
      {FrameworkName::megatron,
       {0, 1, 3},
       {0, 1},
       {Recompute::none, Recompute::selective, Recompute::full},
       {SplitMethod::count_ends, SplitMethod::spread, SplitMethod::fill},
       true,
       true,
       true},
      {FrameworkName::torchtitan,
       {2, 3},
       {2},
       {Recompute::none, Recompute::alternate, Recompute::full},
       {SplitMethod::count_ends},
       true,
       true,
       true},
      {FrameworkName::colossalai,
       {0, 1, 2},
       {0, 1},
       {Recompute::none, Recompute::full},
       {},
       true,
       true,
       true},
      {FrameworkName::pytorch,
       {0},
       {0},
       {Recompute::none, Recompute::full},
       {},
       false,
       false,
       false}};
  return rows;
}

// Returns the framework with the same features (models/training/plan/framework.h).
FrameworkName offers_as(FrameworkName framework) {
  switch (framework) {
    case FrameworkName::nemo:
    case FrameworkName::paddle:
      return FrameworkName::megatron;
    case FrameworkName::jax:
      return FrameworkName::torchtitan;
    case FrameworkName::nvidia:
    case FrameworkName::tensorflow:
    case FrameworkName::bagua:
    case FrameworkName::other:
      return FrameworkName::pytorch;
    default:
      return framework;
  }
}

const Offer& offer_of(FrameworkName framework) {
  const auto& rows = offers();
  const FrameworkName like = offers_as(framework);
  return *std::find_if(rows.begin(), rows.end(),
                       [&](const Offer& offer) { return offer.framework == like; });
}

// Returns the divisors up to `most`, ascending.
std::vector<std::int64_t> divisors(std::int64_t number, std::int64_t most) {
  std::vector<std::int64_t> all;
  for (std::int64_t d = 1; d <= std::min(number, most); ++d)
    if (number % d == 0) all.push_back(d);
  return all;
}

// Enumerates the axes in nested order; the choices of each axis depend on the outer ones.
class Enumeration {
 public:
  explicit Enumeration(const LayoutSpace& space)
      : space_(space),
        words_(space.asked),
        offer_(offer_of(space.base.parallelism->framework.name)) {}

  std::vector<LayoutCandidate> all() {
    const TrainingPlan& base = space_.base;
    for (const auto tp : sizes("tp", divisors(base.gpus, base.gpus_per_node))) {
      at_.tp = tp;
      if (base.gpus % tp == 0) context(base.gpus / tp);
    }
    return std::move(candidates_);
  }

 private:
  // Returns the value of an integer key if it is given, else `choices`.
  std::vector<int> sizes(const char* key, const std::vector<std::int64_t>& choices) const {
    if (const auto asked = words_.whole(key, 0, 1 << 20)) return {static_cast<int>(*asked)};
    return {choices.begin(), choices.end()};
  }

  std::vector<std::string> named(const char* key, const std::vector<std::string>& choices) const {
    const std::string* asked = words_.find(key);
    return asked != nullptr ? std::vector{*asked} : choices;
  }

  static std::vector<std::string> words_of(const std::vector<Recompute>& choices) {
    std::vector<std::string> words;
    for (const Recompute choice : choices) words.emplace_back(parallel::name_of(choice));
    return words;
  }

  void context(int ranks) {
    const TrainingPlan& base = space_.base;
    const std::int64_t least =
        base.batch.train > base.gpus ? least_tokens : least_tokens_of_few_samples;
    const std::int64_t most = offer_.context_parallel ? base.seq_len / least : 1;
    for (const auto cp : sizes("cp", divisors(ranks, std::max<std::int64_t>(1, most)))) {
      at_.cp = cp;
      if (ranks % cp == 0) pipeline(ranks / cp);
    }
  }

  void pipeline(int ranks) {
    const std::int64_t layers = space_.base.model->layers;
    const auto dp = words_.whole("dp", 1, 1 << 20);
    for (const auto pp : sizes("pp", divisors(ranks, layers))) {
      at_.pp = pp;
      if (ranks % pp == 0 && dp.value_or(ranks / pp) == ranks / pp) experts(ranks / pp);
    }
  }

  void experts(int dp) {
    const std::int64_t all = space_.base.model->experts;
    std::vector<std::int64_t> inside{0};
    if (all > 0 && at_.tp > 1) inside.push_back(1);
    for (const auto etp : sizes("etp", inside)) {
      at_.etp = etp;
      const int ranks = dp * at_.cp * (etp == 0 ? 1 : at_.tp / std::min(etp, at_.tp));
      const auto sizes_of = all > 0 ? divisors(all, all) : std::vector<std::int64_t>{1};
      for (const auto ep : sizes("ep", sizes_of)) {
        at_.ep = ep;
        if (ranks % ep == 0) chunks(dp);
      }
    }
  }

  void chunks(int dp) {
    at_.split.reset();
    chunks_of(split_of(space_, at_), dp);
    if (at_.pp == 1 || words_.find("split") != nullptr) return;
    for (const SplitMethod split : offer_.further_splits) {
      at_.split = split;
      chunks_of(split, dp);
    }
    at_.split.reset();
  }

  void chunks_of(SplitMethod split, int dp) {
    const std::int64_t ends = split == SplitMethod::count_ends ? 2 : 0;
    const std::int64_t layers = (space_.base.model->layers + ends + at_.pp - 1) / at_.pp;
    const bool several = offer_.interleaves && at_.pp > 1;
    for (const auto chunks : sizes("interleave", divisors(layers, several ? layers : 1))) {
      at_.interleave = chunks;
      if (!at_.split || divides_otherwise(split)) micro_batches(dp);
    }
  }

  // Returns whether a further split places layers differently from the framework's own split and
  // from earlier ones. No stage except that of the head may be empty.
  bool divides_otherwise(SplitMethod split) const {
    const auto layers = static_cast<int>(space_.base.model->layers);
    const int positions = at_.pp * at_.interleave;
    const auto contents = [&](SplitMethod of) {
      return parallel::refusal(of, layers, positions).empty()
                 ? parallel::split_stages(of, layers, positions)
                 : std::vector<parallel::ChunkContent>();
    };
    const auto chunks = contents(split);
    if (chunks.empty() || std::any_of(chunks.begin(), chunks.end() - 1,
                                      [](const auto& chunk) { return chunk.layers == 0; }))
      return false;
    if (chunks == contents(space_.base.parallelism->framework.split)) return false;
    return std::none_of(offer_.further_splits.begin(),
                        std::ranges::find(offer_.further_splits, split),
                        [&](SplitMethod before) { return chunks == contents(before); });
  }

  // Adds one candidate per micro batch. A batch that does not divide gives one candidate, which is
  // counted as rejected.
  void micro_batches(int dp) {
    const std::int64_t samples = space_.global_batch % dp == 0 ? space_.global_batch / dp : 1;
    for (const auto micro : sizes("micro_batch", divisors(samples, most_micro_batch))) {
      at_.micro_batch = micro;
      states();
    }
  }

  void states() {
    const auto& stages = at_.pp > 1 ? offer_.zero_stages_in_pipelines : offer_.zero_stages;
    std::vector<int> allowed = stages;
    if (is_onebit(space_.base.optimizer())) allowed = {0};
    if (offer_.framework == FrameworkName::deepspeed && at_.tp > 1) std::erase(allowed, 3);
    for (const int stage : sizes("zero_stage", {allowed.begin(), allowed.end()})) {
      at_.zero_stage = stage;
      for (const std::string& recompute : named("recompute", words_of(offer_.recompute))) {
        at_.recompute = recompute;
        const bool divides = offer_.sequence_parallel && at_.tp > 1;
        at_.sequence_parallel = named("sequence_parallel", {divides ? "true" : "false"}).front();
        candidates_.push_back(at_);
      }
    }
  }

  const LayoutSpace& space_;
  Words words_;
  const Offer& offer_;
  LayoutCandidate at_;
  std::vector<LayoutCandidate> candidates_;
};

// The keys in which candidates differ. Keys given by the user keep their value.
constexpr const char* searched[] = {"tp",          "cp",         "pp",        "ep",
                                    "interleave",  "zero_stage", "recompute", "sequence_parallel",
                                    "micro_batch", "grad_accum", "etp",       "split"};

std::int64_t global_batch_of(const Words& words, const deepspeed::DeepSpeedConfig& base) {
  if (const auto given = words.whole("global_batch", 1, deepspeed::max_batch)) return *given;
  if (base.batch.train) return *base.batch.train;
  fail_input(flag("global_batch"), "is missing: layouts are compared over the same samples a step");
}

// Throws Error for given sizes that fit no layout of this number of GPUs.
[[noreturn]] void refuse_sizes(const LayoutSpace& space) {
  std::vector<std::string> asked;
  const char* first = "gpus";
  for (const char* key : {"dp", "ep", "pp", "cp", "tp"})
    if (const auto said = space.asked.find(key); said != space.asked.end()) {
      asked.push_back(fmt::format("{} {}", key, said->second));
      first = key;
    }
  std::ranges::reverse(asked);
  fail_input(flag(first),
             fmt::format("no layout of {} GPUs has {}", space.base.gpus, fmt::join(asked, ", ")),
             "tp x cp x pp x dp that make the GPUs, and ep a divisor of the ranks that have the "
             "same layers");
}

// Returns the lowest ZeRO stage that supports the given keys; the search covers all stages.
const char* least_stage(const WhatIf& asked) {
  const auto says = [&](const char* key, std::string_view otherwise) {
    const auto said = asked.find(key);
    return said != asked.end() && said->second != otherwise;
  };
  if (says("quantized_weights", "false") || says("quantized_gradients", "false") ||
      says("secondary_ranks", "1"))
    return "3";
  return says("offload_optimizer", "none") || says("full_all_reduce", "false") ? "1" : "0";
}

}  // namespace

LayoutSpace layout_space(const WhatIf& asked, Catalog& catalog) {
  LayoutSpace space;
  std::vector<Finding> findings;
  space.asked = with_run_files(asked, catalog, findings);
  // Layout keys from files are searched; those from flags are fixed.
  for (const char* key : searched)
    if (!asked.contains(key)) space.asked.erase(key);
  space.asked.emplace("framework", name_of(FrameworkName::deepspeed));
  space.asked.emplace("optimizer", "adam");
  WhatIf needed = space.asked;
  for (const char* key : {"micro_batch", "grad_accum"}) needed.erase(key);
  Words(needed).refuse_missing();
  WhatIf plain = space.asked;
  for (const char* key : {"tp", "cp", "pp", "ep", "etp", "dp", "interleave", "global_batch",
                          "pipeline_schedule", "shard_ranks", "shard_groups", "rampup_batch_size"})
    plain.erase(key);
  plain.insert_or_assign("micro_batch", "1");
  plain.insert_or_assign("grad_accum", "1");
  if (!space.asked.contains("config")) plain.emplace("zero_stage", least_stage(space.asked));
  const Scenario base = resolve(plain, catalog);
  space.base = base.training;
  if (!space.base.parallelism)
    space.base.parallelism = described_layout(Words(base.asked), space.base);
  space.global_batch = global_batch_of(Words(space.asked), base.config);
  return space;
}

std::vector<LayoutCandidate> layout_candidates(const LayoutSpace& space) {
  std::vector<LayoutCandidate> candidates = Enumeration(space).all();
  if (candidates.empty()) refuse_sizes(space);
  return candidates;
}

SplitMethod split_of(const LayoutSpace& space, const LayoutCandidate& candidate) {
  return candidate.split.value_or(space.base.parallelism->framework.split);
}

WhatIf with_layout(const LayoutSpace& space, const LayoutCandidate& candidate) {
  WhatIf what_if = space.asked;
  const auto set = [&](const char* key, auto value) { what_if[key] = fmt::format("{}", value); };
  set("tp", candidate.tp);
  set("pp", candidate.pp);
  set("micro_batch", candidate.micro_batch);
  set("global_batch", space.global_batch);
  set("zero_stage", candidate.zero_stage);
  set("recompute", candidate.recompute);
  if (candidate.cp > 1) set("cp", candidate.cp);
  if (candidate.ep > 1) set("ep", candidate.ep);
  if (candidate.etp > 0) set("etp", candidate.etp);
  if (candidate.interleave > 1) set("interleave", candidate.interleave);
  if (candidate.tp > 1) set("sequence_parallel", candidate.sequence_parallel);
  if (candidate.split) set("split", parallel::name_of(*candidate.split));
  return what_if;
}

}  // namespace lambcast
