#include "experiments/sweep_executor.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

namespace lambcast {
namespace {

constexpr std::size_t chunk_points = 32;
// How far threads may run ahead of the first row that is missing.
constexpr std::size_t window = 4096;

}  // namespace

struct SweepExecutor::State {
  SweepPoints points;
  std::shared_ptr<DescriptionTexts> texts;
  RowOf row_of;
  std::mutex mutex;
  std::condition_variable done, free, ended;
  std::vector<std::optional<SweepRow>> rows = std::vector<std::optional<SweepRow>>(window);
  std::size_t taken = 0;    // the next point that no thread has
  std::size_t written = 0;  // the next row for the caller
  std::exception_ptr failure;
  bool stop = false;
  int running = 0;
  std::vector<std::thread> threads;

  std::optional<SweepRow>& row(std::size_t point) { return rows[point % window]; }

  // The next points, as [begin, end); empty when there is nothing more to do.
  std::pair<std::size_t, std::size_t> take() {
    std::unique_lock lock(mutex);
    free.wait(lock, [&] { return stop || taken + chunk_points <= written + window; });
    const std::size_t begin = taken;
    if (!stop) taken = std::min(taken + chunk_points, points.size());
    return {begin, taken};
  }

  // Hands over a row; false when no more are wanted. The caller of next() wakes for whole chunks: a
  // slow one it finds when it looks by itself.
  bool give(std::size_t point, SweepRow fresh, bool last_of_chunk) {
    const std::lock_guard lock(mutex);
    row(point) = std::move(fresh);
    if (last_of_chunk) done.notify_one();
    return !stop;
  }

  // Whether the next chunk of rows is there.
  bool chunk_is_done() {
    const std::size_t end = std::min(written + chunk_points, points.size());
    return end > written && row(written) && row(end - 1);
  }

  void compute() {
    Catalog catalog(texts);
    CollectiveCosts costs;
    while (true) {
      const auto [begin, end] = take();
      if (begin == end) return;
      for (std::size_t i = begin; i < end; ++i)
        if (!give(i, row_of(points[i], catalog, costs), i + 1 == end)) return;
    }
  }

  void work() {
    std::exception_ptr thrown;
    try {
      compute();
    } catch (...) {
      thrown = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    if (thrown) failure = thrown;
    --running;
    done.notify_one();
    ended.notify_one();
  }

  void ask_to_stop() {
    const std::lock_guard lock(mutex);
    stop = true;
    free.notify_all();
  }
};

SweepExecutor::SweepExecutor(SweepPoints points, std::size_t first, int jobs,
                             std::shared_ptr<DescriptionTexts> texts, RowOf row_of)
    : state_(std::make_shared<State>()) {
  state_->points = std::move(points);
  state_->texts = std::move(texts);
  state_->row_of = std::move(row_of);
  state_->taken = state_->written = first;
  state_->running = jobs;
  for (int i = 0; i < jobs; ++i) state_->threads.emplace_back([state = state_] { state->work(); });
}

SweepExecutor::~SweepExecutor() {
  state_->ask_to_stop();
  for (std::thread& thread : state_->threads) thread.join();
}

void SweepExecutor::leave() {
  state_->ask_to_stop();
  std::unique_lock lock(state_->mutex);
  const bool all = state_->ended.wait_for(lock, std::chrono::milliseconds(250),
                                          [&] { return state_->running == 0; });
  if (all) return;
  for (std::thread& thread : state_->threads) thread.detach();
  state_->threads.clear();
}

std::vector<SweepRow> SweepExecutor::next(std::chrono::milliseconds patience) {
  State& state = *state_;
  std::vector<SweepRow> rows;
  std::unique_lock lock(state.mutex);
  state.done.wait_for(lock, patience,
                      [&] { return state.chunk_is_done() || state.failure != nullptr; });
  while (rows.size() < chunk_points && state.row(state.written)) {
    rows.push_back(std::move(*state.row(state.written)));
    state.row(state.written++).reset();
  }
  if (rows.empty() && state.failure != nullptr) std::rethrow_exception(state.failure);
  if (!rows.empty()) state.free.notify_all();
  return rows;
}

}  // namespace lambcast
