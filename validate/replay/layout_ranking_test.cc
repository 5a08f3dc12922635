#include "validate/replay/layout_ranking.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <set>

#include "experiments/search/layout_search.h"

namespace lambcast {
namespace {

TEST_CASE("layout ranking: correlation of ranks") {
  CHECK(*rank_correlation({1, 2, 3, 4}, {10, 20, 30, 40}) == Approx(1));
  CHECK(*rank_correlation({1, 2, 3, 4}, {4, 3, 2, 1}) == Approx(-1));
  // Spearman's formula 1 - 6 sum d^2 / (n (n^2 - 1)) with the differences of ranks d = 1, 1, 0.
  CHECK(*rank_correlation({1, 2, 3}, {2, 1, 3}) == Approx(0.5));
  // The two tied values have rank 0.5 each: ranks 0.5, 0.5, 2 and 0, 1, 2 give 1.5 / sqrt(1.5 * 2).
  CHECK(*rank_correlation({5, 5, 7}, {1, 2, 3}) == Approx(1.5 / std::sqrt(3.0)));
  CHECK_FALSE(rank_correlation({1, 1}, {1, 2}).has_value());
  CHECK_FALSE(rank_correlation({}, {}).has_value());
}

TEST_CASE("layout ranking: the regret of a choice is the loss by the chosen layout") {
  LayoutJob job;
  job.measured = {10, 8, 5};
  job.forecast = {7, 9, 5};
  CHECK(regret_of(job) == Approx(0.25));
  LayoutJob found = job;
  found.forecast = {9, 7, 5};
  const LayoutChoice choice = choice_of({job, found, LayoutJob{}});
  CHECK(choice.jobs == 2);
  CHECK(choice.best_found == 1);
  CHECK(choice.worst_regret == Approx(0.25));
  CHECK(choice.ranked == 2);
  CHECK(choice.median_correlation == Approx(0.75));  // 0.5 and 1
}

// The results are the same for any number of threads. This test is long, so it runs after all
// others and by itself.
constexpr int threads = 2;

// Counts the jobs of some sources, and those for which a search of ten finds the fastest measured
// layout; uses every n-th job.
struct Survey {
  int jobs = 0, found = 0;
};

Survey survey(const std::vector<std::string>& sources, bool of_adapters, int every) {
  Survey survey;
  int seen = 0;
  for (const LayoutJob& job : layout_jobs(replay_sources().results)) {
    if (std::find(sources.begin(), sources.end(), job.source) == sources.end()) continue;
    if (job.asked.contains("lora_rank") != of_adapters) continue;
    if (seen++ % every != 0) continue;
    const auto place = place_of_fastest(job, 10, threads);
    const auto rank = rank_correlation(job.measured, job.forecast);
    ++survey.jobs;
    survey.found += place ? 1 : 0;
    UNSCOPED_INFO(fmt::format(
        "{:<24} place {:>2} of tp {} cp {} pp {}; {} layouts, rank correlation {}; {}", job.source,
        place ? fmt::format("{}", *place) : "-", job.fastest.tp, job.fastest.cp, job.fastest.pp,
        job.measured.size(), rank ? fmt::format("{:.2f}", *rank) : "-", job.name));
  }
  return survey;
}

// Surveys sources whose authors chose among layouts, with jobs small enough for a test.
Survey survey_of_published(int every) {
  return survey(
      {"bigscience_a100", "internevo_a100", "megascale_a100", "megatron_bridge",
       "megatron_core_h100", "megatron_moe_zoo", "mlperf_gpt3", "mlperf_llama", "mlperf_moe",
       "mt_nlg", "nemo_h100_2407", "nemo_long_sequence", "nemo_megatron_a100_2022"},
      false, every);
}

TEST_CASE("layout ranking: the published best is among ten found, of every fourth job") {
  const Survey found = survey_of_published(4);
  CHECK(found.jobs >= 35);
  CHECK(found.found >= 0.8 * found.jobs);
  WARN(fmt::format("{} of {} jobs", found.found, found.jobs));
}

// Takes about six minutes of a core.
TEST_CASE("layout ranking: the published best is among ten found, of all jobs", "[.long]") {
  const Survey found = survey_of_published(1);
  CHECK(found.jobs >= 150);
  CHECK(found.found >= 0.8 * found.jobs);  // 131 of 160
  WARN(fmt::format("{} of {} jobs", found.found, found.jobs));
}

// Returns how much slower a step is with the published split than with the best split that a search
// finds for the same layout; nothing if the row states no split.
std::optional<double> behind_best_split(const SourceResult& result) {
  WhatIf asked = result.of.what_if;
  if (!asked.contains("split") || !asked.contains("pp") || asked.at("pp") == "1")
    return std::nullopt;
  const auto best_step = [&]() -> std::optional<Duration> {
    SearchOptions options;
    options.jobs = threads;
    options.best = 1;
    options.compression = false;
    const auto best = search_layouts(asked, options, std::make_shared<DescriptionTexts>()).best;
    return best.empty() ? std::nullopt : std::optional(best.front().step.step_time);
  };
  const auto published = best_step();
  asked.erase("split");
  const auto best = best_step();
  if (!published || !best) return std::nullopt;
  return *published / *best - 1;
}

// Splits by Megatron-LM's authors and Meta: embedding and loss replace a layer (405B, Qwen3-235B),
// or stages are full except for a short last one (DeepSeek-V3, Kimi K2). 31 of 36 rows are within 1
// % of the best.
TEST_CASE("layout ranking: published splits are among the best") {
  int rows = 0, close = 0;
  std::set<std::string> known;
  for (const SourceResult& result : replay_sources().results) {
    if (!result.ok() ||
        (result.of.source != "megatron_bridge" && result.of.source != "llama3_405b"))
      continue;
    const std::string& model = result.of.what_if.at("model");
    if (model != "llama3-405b" && model != "kimi-k2" && model != "qwen3-235b-a22b" &&
        model != "deepseek-v3")
      continue;
    const auto behind = behind_best_split(result);
    if (!behind) continue;
    ++rows;
    close += *behind < 0.01 ? 1 : 0;
    if (known.insert(model + result.of.what_if.at("pp")).second)
      WARN(fmt::format("{}: {} {:.1f} % behind the best split", result.of.name,
                       result.of.what_if.at("split"), 100 * *behind));
  }
  WARN(fmt::format("{} of {} rows within 1 %", close, rows));
  CHECK(rows >= 20);
  CHECK(close >= 0.8 * rows);
}

TEST_CASE("layout ranking: the published best is among ten found for fine-tunings with adapters") {
  const Survey found = survey({"mlperf_llama"}, true, 1);
  CHECK(found.jobs >= 20);
  CHECK(found.found >= 0.8 * found.jobs);
  WARN(fmt::format("{} of {} jobs with adapters", found.found, found.jobs));
}

// Returns the largest relative difference between two measured speeds whose order is reversed in
// the forecast.
double widest_wrong_pair(const LayoutJob& job) {
  double widest = 0;
  for (std::size_t i = 0; i < job.measured.size(); ++i)
    for (std::size_t k = 0; k < job.measured.size(); ++k)
      if (job.measured[i] > job.measured[k] && job.forecast[i] <= job.forecast[k])
        widest = std::max(widest, job.measured[i] / job.measured[k] - 1);
  return widest;
}

// Pairs with a clear order by measurement, and the number of them in the same order by forecast.
struct Pairs {
  int apart = 0, right = 0;
};

Pairs pairs_of(const LayoutJob& job, double noise) {
  Pairs pairs;
  for (std::size_t i = 0; i < job.measured.size(); ++i)
    for (std::size_t k = 0; k < job.measured.size(); ++k) {
      if (job.measured[i] <= (1 + noise) * job.measured[k]) continue;
      ++pairs.apart;
      pairs.right += job.forecast[i] > job.forecast[k] ? 1 : 0;
    }
  return pairs;
}

// A rank correlation of 0.9 is the goal, which is missed. One job has five layouts or more: BLOOM's
// search, 72 layers of 14336 on 384 GPUs after the machine's repair.
//
//                 measured  forecast
//   tp 4 pp 12    111.89 s  123.48 s  +10.4 %
//   tp 2 pp 12    112.50    121.06     +7.6
//   tp 8 pp 12    117.07    123.57     +5.5
//   tp 4 pp 6     117.11    118.08     +0.8
//   tp 2 pp 24    122.75    135.62    +10.5
//
// Each is one iteration, the second of its run, "the data isn't exact and can fluctuate a bit": the
// same source has one layout (tp 4 pp 12, micro batch 2) at 110.48 and 113.54 s on one day, 2.8 %
// apart. Two of the ten pairs are closer than that, so they have no order (the first two, 0.5 %; tp
// 8 and tp 4 pp 6, 0.03 %). Two of the other eight are in the wrong order, both with tp 4 pp 6: if
// it were 5 % slower, the correlation would be 0.9.
//
// The source itself is not consistent on six stages against twelve. At tp 8 and micro batch 4 they
// are 2 % faster on 84 layers (130.31 and 133.12 s, before the machine's repair) and 22 % slower on
// 72 (113.01 and 92.75 s of 1568 samples, after it); forecast 3 % faster in both. Other assumptions
// were tried. The vocabulary of 250k rows costs the last stage more than a layer, so pp 6 is
// forecast faster than pp 12; with a fifth of it the correlation is 0.1. With replicas that
// exchange at half the NICs' rate it is 0.1, and 0.7 at a quarter, all four as fast together as
// that all-reduce was; but then pp 2 and 4 would take 196 and 142 s (compute fitted anew), where
// 145 and 126 were measured. At micro batches of 1 and 2 steps of tp 8 take 9 to 12 % longer than
// forecast, at pp 6 and 12 as well: as if each layer cost some 8 ms more, independent of its
// computation. The cause is unknown, and it does not change the order of this job's layouts.
TEST_CASE("layout ranking: jobs with five or more measured layouts") {
  constexpr double noise = 0.028;
  int jobs = 0;
  for (const LayoutJob& job : layout_jobs(replay_sources().results)) {
    if (job.measured.size() < 5) continue;
    ++jobs;
    const double rank = rank_correlation(job.measured, job.forecast).value();
    const double wrong = widest_wrong_pair(job);
    const Pairs pairs = pairs_of(job, noise);
    WARN(
        fmt::format("{} {}: {} layouts, rank correlation {:.2f}, {} of {} pairs further apart than "
                    "{:.1f} % in order, the others by up to {:.1f} %",
                    job.source, job.name, job.measured.size(), rank, pairs.right, pairs.apart,
                    100 * noise, 100 * wrong));
    CHECK(rank >= 0.3 - 1e-9);
    CHECK(wrong <= 0.05);
    CHECK(pairs.right >= 0.75 * pairs.apart);
  }
  CHECK(jobs == 1);
}

// Covers all jobs with several measured layouts. Runs of one layout differ by 2.8 % (above), so
// only differences of 3 % or more have a meaningful order. A difference of an eighth is clear.
TEST_CASE("layout ranking: of two layouts of a job the slower one ranks below") {
  const std::vector<LayoutJob> jobs = layout_jobs(replay_sources().results);
  const auto pooled = [&](double noise) {
    Pairs all;
    for (const LayoutJob& job : jobs) {
      const Pairs of_job = pairs_of(job, noise);
      all.apart += of_job.apart;
      all.right += of_job.right;
    }
    WARN(fmt::format("{} of {} pairs further apart than {:.1f} %", all.right, all.apart,
                     100 * noise));
    return all;
  };
  const Pairs beyond_noise = pooled(0.03), clear = pooled(0.125);
  CHECK(beyond_noise.apart >= 20);
  CHECK(beyond_noise.right >= 0.8 * beyond_noise.apart);  // 34 of 42
  CHECK(clear.apart >= 10);
  CHECK(clear.right >= 0.75 * clear.apart);
}

}  // namespace
}  // namespace lambcast
