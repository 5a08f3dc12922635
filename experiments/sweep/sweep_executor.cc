#include "experiments/sweep/sweep_executor.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "experiments/sweep/sweep_ranks.h"

namespace lambcast {
namespace {

constexpr std::size_t most_points = 32;  // limit of the points in a chunk
// Limit of how far the computed rows run ahead of the first missing one, in chunks per thread.
constexpr std::size_t chunks_in_window = 8;
constexpr std::size_t least_window = 4096;
// Pauses between polls for messages of ranks while none arrive.
constexpr std::chrono::microseconds least_pause{100}, most_pause{5'000};

}  // namespace

// The points being computed, and the rows that wait for an earlier one.
struct SweepExecutor::Window : SweepQueue {
  Window(std::size_t count, std::size_t first, std::size_t everybody)
      : rows(std::max(least_window, chunks_in_window * most_points * everybody)),
        points(count),
        workers(everybody),
        taken(first),
        written(first) {}

  std::mutex mutex;
  std::condition_variable done, free;
  std::vector<std::optional<SweepRow>> rows;
  std::size_t points;
  std::size_t workers;
  std::size_t taken;    // next point to hand out
  std::size_t written;  // next row to return
  std::exception_ptr failure;
  bool stop = false;

  std::optional<SweepRow>& row(std::size_t point) { return rows[point % rows.size()]; }

  bool has_room() const { return taken + most_points <= written + rows.size(); }

  // Chunks become smaller towards the end, so that all threads finish at about the same time.
  SweepChunk next_chunk() {
    const std::size_t begin = taken;
    if (!stop)
      taken += std::min(points - taken,
                        std::clamp((points - taken) / (4 * workers), std::size_t{1}, most_points));
    return {begin, taken};
  }

  SweepChunk take() override {
    std::unique_lock lock(mutex);
    free.wait(lock, [&] { return stop || has_room(); });
    return next_chunk();
  }

  SweepChunk take_now() {
    const std::lock_guard lock(mutex);
    return has_room() ? next_chunk() : SweepChunk{};
  }

  // Wakes the caller of next() only for whole chunks; next() polls for rows of a slow chunk.
  bool give(std::size_t point, SweepRow fresh, bool last_of_chunk) override {
    const std::lock_guard lock(mutex);
    row(point) = std::move(fresh);
    if (last_of_chunk) done.notify_one();
    return !stop;
  }

  void fail(std::exception_ptr thrown) override {
    const std::lock_guard lock(mutex);
    failure = thrown;
    done.notify_one();
  }

  // Returns whether a chunk of rows is ready, or no more rows are expected.
  bool is_due() {
    if (failure != nullptr) return true;
    const std::size_t end = std::min(written + most_points, points);
    for (std::size_t i = written; i < end; ++i)
      if (!row(i)) return false;
    return end > written;
  }

  void ask_to_stop() {
    const std::lock_guard lock(mutex);
    stop = true;
    free.notify_all();
  }
};

SweepExecutor::SweepExecutor(const SweepPoints& points, std::size_t first, int jobs,
                             std::shared_ptr<DescriptionTexts> texts, RowOf row_of,
                             SweepRanks* ranks)
    : window_(std::make_shared<Window>(
          points.size(), first,
          static_cast<std::size_t>(std::max(1, jobs + (ranks != nullptr ? ranks->threads() : 0))))),
      ranks_(ranks),
      threads_(jobs, points, std::move(texts), std::move(row_of), window_) {}

SweepExecutor::~SweepExecutor() { window_->ask_to_stop(); }

void SweepExecutor::leave() {
  window_->ask_to_stop();
  threads_.leave();
}

// Returns true if rows arrived or points were handed out.
bool SweepExecutor::exchange() {
  try {
    return ranks_->exchange(
        [&] { return window_->take_now(); },
        [&](std::size_t point, SweepRow row) { window_->give(point, std::move(row), false); });
  } catch (...) {
    window_->fail(std::current_exception());
    return true;
  }
}

std::vector<SweepRow> SweepExecutor::next(std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  Window& window = *window_;
  if (ranks_ == nullptr && threads_.none()) threads_.compute_chunk();
  const Clock::time_point until = Clock::now() + patience;
  std::chrono::microseconds pause = least_pause;
  bool due = false;
  while (!due && Clock::now() < until) {
    if (ranks_ != nullptr) pause = exchange() ? least_pause : std::min(2 * pause, most_pause);
    std::unique_lock lock(window.mutex);
    due = window.done.wait_until(lock, ranks_ != nullptr ? Clock::now() + pause : until,
                                 [&] { return window.is_due(); });
  }
  const std::lock_guard lock(window.mutex);
  std::vector<SweepRow> rows;
  while (rows.size() < most_points && window.row(window.written)) {
    rows.push_back(std::move(*window.row(window.written)));
    window.row(window.written++).reset();
  }
  if (rows.empty() && window.failure != nullptr) std::rethrow_exception(window.failure);
  if (!rows.empty()) window.free.notify_all();
  return rows;
}

}  // namespace lambcast
