#include "experiments/sweep/sweep_threads.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "sim/base/threads.h"

namespace lambcast {

struct SweepThreads::Work {
  SweepPoints points;
  std::shared_ptr<DescriptionTexts> texts;
  RowOf row_of;
  std::shared_ptr<SweepQueue> queue;
  std::mutex mutex = {};
  std::condition_variable ended = {};
  int running = 0;

  // Computes one chunk; returns false once there is nothing more to do.
  bool compute(SweepWorker& worker) {
    try {
      const SweepChunk chunk = queue->take();
      for (std::size_t i = chunk.begin; i < chunk.end; ++i)
        if (!queue->give(i, row_of(points[i], worker.catalog, worker.costs), i + 1 == chunk.end))
          return false;
      return !chunk.empty();
    } catch (...) {
      queue->fail(std::current_exception());
      return false;
    }
  }

  void run() {
    SweepWorker worker{Catalog(texts)};
    while (compute(worker)) {
    }
    const std::lock_guard lock(mutex);
    --running;
    ended.notify_one();
  }
};

SweepThreads::SweepThreads(int jobs, SweepPoints points, std::shared_ptr<DescriptionTexts> texts,
                           RowOf row_of, std::shared_ptr<SweepQueue> queue)
    : work_(new Work{std::move(points), std::move(texts), std::move(row_of), std::move(queue)}) {
  work_->running = jobs;
  threads_ = start_threads(jobs, [work = work_] { work->run(); });
  const std::lock_guard lock(work_->mutex);
  work_->running -= jobs - static_cast<int>(threads_.size());
}

SweepThreads::~SweepThreads() {
  for (std::thread& thread : threads_) thread.join();
}

void SweepThreads::compute_chunk() {
  if (!caller_) caller_.emplace(SweepWorker{Catalog(work_->texts)});
  work_->compute(*caller_);
}

void SweepThreads::leave() {
  std::unique_lock lock(work_->mutex);
  const bool all = work_->ended.wait_for(lock, std::chrono::milliseconds(250),
                                         [&] { return work_->running == 0; });
  if (all) return;
  for (std::thread& thread : threads_) thread.detach();
  threads_.clear();
}

}  // namespace lambcast
