#include "experiments/search/layout_search.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <limits>
#include <map>
#include <mutex>

#include "experiments/output/forecast_output.h"
#include "experiments/search/layout_judge.h"
#include "models/training/memory/tight_memory.h"
#include "sim/base/sort_stably.h"
#include "sim/base/threads.h"

namespace lambcast {
namespace {

// Upper limit of the step times that are shown. A candidate is not shown if its division (or
// setting) has a faster candidate, or if `options.best` divisions have one.
class Limit {
 public:
  explicit Limit(const SearchOptions& options) : options_(options) {}

  void found(const LayoutCandidate& layout, std::size_t place, double time_us) {
    const std::lock_guard lock(mutex_);
    const auto [entry, is_new] = fastest_.try_emplace(division(layout, place), time_us);
    entry->second = std::min(entry->second, time_us);
    if (options_.best == 0 || fastest_.size() < options_.best) return;
    std::vector<double> times;
    for (const auto& [division, fastest] : fastest_) times.push_back(fastest);
    const auto last = times.begin() + static_cast<std::ptrdiff_t>(options_.best) - 1;
    std::nth_element(times.begin(), last, times.end());
    time_us_ = *last;
  }

  // Returns the limit of a candidate.
  double time_us(const LayoutCandidate& layout, std::size_t place) const {
    const std::lock_guard lock(mutex_);
    const auto known = fastest_.find(division(layout, place));
    return known == fastest_.end() ? time_us_ : std::min(time_us_, known->second);
  }

 private:
  using Division = std::array<std::size_t, 4>;

  Division division(const LayoutCandidate& layout, std::size_t place) const {
    const auto size = [](int ranks) { return static_cast<std::size_t>(ranks); };
    return options_.every_setting
               ? Division{place}
               : Division{size(layout.tp), size(layout.cp), size(layout.pp), size(layout.ep)};
  }

  const SearchOptions& options_;
  mutable std::mutex mutex_;
  std::map<Division, double> fastest_;
  double time_us_ = std::numeric_limits<double>::infinity();
};

// Judges all candidates. Forecasts the steps of those that run, in order of their lower bounds
// (models/training/price/least_step.h), except those that cannot be among the layouts shown.
// Threads take candidates in chunks; the result does not depend on their assignment.
class Search {
 public:
  Search(const LayoutSpace& space, const std::vector<LayoutCandidate>& candidates,
         const SearchOptions& options, std::shared_ptr<DescriptionTexts> texts)
      : space_(space),
        candidates_(candidates),
        options_(options),
        texts_(std::move(texts)),
        least_(candidates.size()),
        reasons_(candidates.size()),
        steps_us_(candidates.size()),
        limit_(options) {}

  // Returns false if it was stopped.
  bool run() {
    judge_all();
    if (!stop_) find_steps();
    if (failure_) std::rethrow_exception(failure_);
    if (options_.progress && !stop_) options_.progress(candidates_.size(), candidates_.size());
    return !stop_;
  }

  std::size_t forecast() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(least_, [](const auto& least) { return least.has_value(); }));
  }

  // Returns the indices of the candidates to show, fastest first.
  std::vector<std::size_t> best() const {
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < candidates_.size(); ++i)
      if (steps_us_[i]) places.push_back(i);
    sort_stably(places, {}, [&](std::size_t i) { return *steps_us_[i]; });
    std::vector<std::size_t> shown;
    for (const std::size_t place : places) {
      if (shown.size() == options_.best) break;
      const bool known = std::any_of(shown.begin(), shown.end(), [&](std::size_t other) {
        return candidates_[other].divides_as(candidates_[place]);
      });
      if (options_.every_setting || !known) shown.push_back(place);
    }
    return shown;
  }

  std::vector<RefusedLayouts> refused(LayoutJudge& judge) const {
    // by reason: index of the first candidate rejected for it, and their number
    std::map<std::string, std::pair<std::size_t, std::size_t>> counts;
    for (std::size_t i = 0; i < candidates_.size(); ++i)
      if (!reasons_[i].empty()) ++counts.try_emplace(reasons_[i], i, 0).first->second.second;
    std::vector<RefusedLayouts> list;
    for (const auto& [reason, of] : counts)
      list.push_back({reason, of.second, judge.judge(candidates_[of.first]).example});
    sort_stably(list, std::ranges::greater(), &RefusedLayouts::count);
    return list;
  }

 private:
  void judge_all() {
    in_threads(candidates_.size(), 16, [&](LayoutJudge& judge, std::size_t place) {
      Judged judgement = judge.judge(candidates_[place]);
      least_[place] = judgement.least;
      reasons_[place] = std::move(judgement.reason);
      done_ += judgement.least ? 0 : 1;
    });
  }

  void find_steps() {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < least_.size(); ++i)
      if (least_[i]) order.push_back(i);
    sort_stably(order, {}, [&](std::size_t i) { return *least_[i]; });
    in_threads(order.size(), 1, [&](LayoutJudge& judge, std::size_t at) {
      const std::size_t place = order[at];
      ++done_;
      const double limit_us = limit_.time_us(candidates_[place], place);
      if (least_[place]->us() > limit_us) return;
      steps_us_[place] = judge.step_time_us(candidates_[place], limit_us);
      if (steps_us_[place]) limit_.found(candidates_[place], place, *steps_us_[place]);
    });
  }

  // Calls work(judge, i) in threads for all i below `count`, `chunk` at a time.
  template <typename Work>
  void in_threads(std::size_t count, std::size_t chunk, const Work& work) {
    next_ = 0;
    running_ = options_.jobs;
    std::vector<std::thread> threads =
        start_threads(options_.jobs, [&] { take(count, chunk, work); });
    if (threads.empty()) return take(count, chunk, work);
    {
      std::unique_lock lock(mutex_);
      running_ -= options_.jobs - static_cast<int>(threads.size());
      while (!ended_.wait_for(lock, std::chrono::milliseconds(100), [&] { return running_ == 0; }))
        if (options_.progress && !options_.progress(done_, candidates_.size())) stop_ = true;
    }
    for (std::thread& thread : threads) thread.join();
  }

  template <typename Work>
  void take(std::size_t count, std::size_t chunk, const Work& work) {
    try {
      LayoutJudge judge(space_, texts_);
      while (!stop_) {
        const std::size_t begin = next_.fetch_add(chunk);
        if (begin >= count) break;
        for (std::size_t i = begin; i < std::min(begin + chunk, count); ++i) work(judge, i);
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      stop_ = true;
    }
    const std::lock_guard lock(mutex_);
    --running_;
    ended_.notify_one();
  }

  const LayoutSpace& space_;
  const std::vector<LayoutCandidate>& candidates_;
  const SearchOptions& options_;
  std::shared_ptr<DescriptionTexts> texts_;
  std::vector<std::optional<Duration>> least_;   // lower bounds of the steps that run
  std::vector<std::string> reasons_;             // reasons why the others do not run
  std::vector<std::optional<double>> steps_us_;  // step times of those that may be shown
  Limit limit_;
  std::atomic<std::size_t> next_ = 0, done_ = 0;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::exception_ptr failure_;
  int running_ = 0;
};

StepShares shares_of(const StepRun& step) {
  const double whole = step.metrics.step_time.s();
  Duration layers;
  for (const Price& price : step.prices)
    if (price.passes) layers += price.passes->exposed;
  StepShares shares;
  shares.compute = (step.metrics.forward + step.metrics.backward).s() / whole;
  shares.layers = layers.s() / step.plan.rank_classes / whole;
  shares.gradients = std::max(0.0, step.metrics.exposed_comm.s() / whole - shares.layers);
  shares.bubble = step.metrics.bubble.s() / whole;
  shares.compression = (step.metrics.compress + step.metrics.decompress).s() / whole;
  shares.optimizer = step.metrics.optimizer.s() / whole;
  return shares;
}

// Moves layouts that certainly fit before tight ones that may be no faster. Both groups stay sorted
// by step time.
void put_tight_behind(std::vector<FoundLayout>& layouts) {
  for (std::size_t i = 1; i < layouts.size(); ++i)
    for (std::size_t at = i; at > 0 && !layouts[at].tight && layouts[at - 1].tight &&
                             ratio_of(layouts[at].time, layouts[at - 1].time).low <= 1;
         --at)
      std::swap(layouts[at], layouts[at - 1]);
}

// Returns whether only one rank holds the same weights, so that there is no exchange to compress.
bool has_one_replica(const LayoutSpace& space, const LayoutCandidate& candidate) {
  return candidate.tp * candidate.pp == space.base.gpus;
}

// Forecasts the step of a layout with less to send.
void add_step(const WhatIf& what_if, const FoundLayout& plain, LayoutJudge& judge,
              CompressedLayout& result) {
  const TrainingPlan training = resolve(what_if, judge.catalog()).training;
  const StepRun step = judge.step(training, Intervals::found);
  result.step_time_us = step.metrics.step_time.us();
  result.speedup = ratio_of(plain.time, time_at_ends(step, training));
}

// The same division of the model with the 1-bit optimizer, which ZeRO does not run with.
CompressedLayout compressed(const LayoutSpace& space, const FoundLayout& plain,
                            LayoutJudge& judge) {
  CompressedLayout result;
  result.optimizer = space.asked.at("optimizer");
  if (has_one_replica(space, plain.layout)) {
    result.refused = "one replica: nothing to compress";
    return result;
  }
  LayoutCandidate candidate = plain.layout;
  candidate.zero_stage = 0;
  const Judged judgement = judge.judge(candidate);
  if (!judgement.least) {
    result.refused = judgement.reason + ": " + judgement.example;
    return result;
  }
  add_step(with_layout(space, candidate), plain, judge, result);
  return result;
}

// Returns the same layout with other formats of its messages.
CompressedLayout sending(WhatIf messages, const FoundLayout& plain, const std::string& optimizer,
                         LayoutJudge& judge) {
  CompressedLayout result;
  result.optimizer = optimizer;
  WhatIf what_if = std::move(messages);
  what_if.insert(plain.what_if.begin(), plain.what_if.end());
  try {
    add_step(what_if, plain, judge, result);
  } catch (const Error& error) {
    result.refused = std::string(refused_by_resolve) + ": " + error.what();
  }
  return result;
}

// Adds a second search with the 1-bit form of a plain optimizer.
void add_compression(const WhatIf& asked, const SearchOptions& options,
                     const std::shared_ptr<DescriptionTexts>& texts, LayoutSearch& result) {
  const auto type = model_of(result.space.base.optimizer()).in_onebit;
  if (!type) return;
  const std::string kin(name_of(*type));
  result.compressing = kin;
  WhatIf compressing = asked;
  compressing.insert_or_assign("optimizer", kin);
  compressing.insert_or_assign("zero_stage", "0");
  Catalog catalog(texts);
  LayoutSpace space;
  try {
    space = layout_space(compressing, catalog);
  } catch (const Error& error) {
    for (FoundLayout& layout : result.best) layout.compressed = {kin, {}, {}, error.what()};
    return;
  }
  LayoutJudge judge(space, texts);
  for (FoundLayout& layout : result.best) layout.compressed = compressed(space, layout, judge);
  std::vector<LayoutCandidate> candidates = layout_candidates(space);
  std::erase_if(candidates, [&](const auto& layout) { return has_one_replica(space, layout); });
  Search search(space, candidates, options, texts);
  result.complete = search.run();
  if (const auto places = search.best(); result.complete && !places.empty())
    result.best_compressed = found_layout(space, candidates[places.front()], judge);
}

}  // namespace

FoundLayout found_layout(const LayoutSpace& space, const LayoutCandidate& candidate,
                         LayoutJudge& judge) {
  FoundLayout found;
  found.layout = candidate;
  found.what_if = with_layout(space, candidate);
  const TrainingPlan training = resolve(found.what_if, judge.catalog()).training;
  const StepRun step = judge.step(training, Intervals::found);
  if (candidate.pp > 1) found.split = parallel::name_of(training.parallelism->framework.split);
  found.dp = training.data_parallel();
  found.micro_batches = training.batch.gas;
  found.step = step.metrics;
  found.shares = shares_of(step);
  found.time = time_at_ends(step, training);
  const MemoryForecast memory = forecast_memory(training);
  found.peak = memory.peak;
  found.peak_high = memory.high();
  found.tight = is_tight(memory, *training.device);
  const double per_s = 1 / step.metrics.step_time.s();
  const auto samples = static_cast<double>(training.batch.train);
  found.samples_per_s = samples * per_s;
  found.tokens_per_s = found.samples_per_s * static_cast<double>(training.seq_len);
  found.tflops_per_gpu = found.samples_per_s / training.gpus *
                         training_flops(*training.model, training.seq_len).value() * 1e-12;
  found.utilization = flops_utilization(training, found.tflops_per_gpu).value_or(0);
  return found;
}

std::pair<std::string, double> StepShares::largest_loss() const {
  const std::array<std::pair<const char*, double>, 5> losses = {{{"layers", layers},
                                                                 {"gradients", gradients},
                                                                 {"bubble", bubble},
                                                                 {"compression", compression},
                                                                 {"optimizer", optimizer}}};
  const auto& [name, share] =
      *std::max_element(losses.begin(), losses.end(),
                        [](const auto& a, const auto& b) { return a.second < b.second; });
  return {name, share};
}

LayoutSearch search_layouts(const WhatIf& asked, const SearchOptions& options,
                            const std::shared_ptr<DescriptionTexts>& texts) {
  Catalog catalog(texts);
  LayoutSearch result;
  result.space = layout_space(asked, catalog);
  const LayoutSpace& space = result.space;
  result.optimizer = name_of(space.base.optimizer());
  const std::vector<LayoutCandidate> candidates = layout_candidates(space);
  result.candidates = candidates.size();
  Search search(space, candidates, options, texts);
  result.complete = search.run();
  if (!result.complete) return result;
  LayoutJudge judge(space, texts);
  result.forecast = search.forecast();
  for (const std::size_t place : search.best())
    result.best.push_back(found_layout(space, candidates[place], judge));
  put_tight_behind(result.best);
  const bool sums = !is_onebit(space.base.optimizer()) && !asked.contains("exchange");
  if (options.compression)
    for (FoundLayout& layout : result.best) {
      // ZeRO++ gathers weights in int8 and exchanges gradients in int4.
      if (layout.layout.zero_stage == 3)
        layout.quantized = sending({{"quantized_weights", "true"}, {"quantized_gradients", "true"}},
                                   layout, result.optimizer, judge);
      if (sums && layout.dp > 1)
        layout.fp8 = sending({{"exchange", "fp8"}}, layout, result.optimizer, judge);
    }
  result.refused = search.refused(judge);
  if (options.compression) add_compression(asked, options, texts, result);
  return result;
}

}  // namespace lambcast
