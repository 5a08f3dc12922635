#include <ucontext.h>
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#include <memory>
#include <vector>

#include "kernels/cuda_on_cpu/cuda_runtime.h"
#include "sim/base/check.h"

Dim threadIdx, blockIdx, blockDim, gridDim;

namespace lambcast::cuda_on_cpu {
namespace {

constexpr unsigned most_threads = 1024;
constexpr std::size_t stack_bytes = std::size_t{64} << 10;

// Threads that wait for each other; `round` counts how often all have arrived.
struct Meeting {
  unsigned arrived = 0;
  unsigned round = 0;
};

// Fiber t lives as long as the program and is thread t of every block.
struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  void* known_as = nullptr;  // to the thread sanitizer
};

struct Block {
  std::vector<std::unique_ptr<Fiber>> fibers;
  Fiber scheduler;
  std::vector<bool> done;
  const std::function<void()>* thread = nullptr;
  Meeting all, warp[most_threads / 32];
  unsigned finished = 0;
  // What each thread offers in even and in odd rounds of its warp: nobody can be two rounds ahead.
  std::uint64_t offered[2][most_threads];
};

Block& block() {
  static Block only;
  return only;
}

void switch_to(Fiber& from, Fiber& to) {
#ifdef __SANITIZE_THREAD__
  __tsan_switch_to_fiber(to.known_as, 0);
#endif
  swapcontext(&from.context, &to.context);
}

void let_others_run() { switch_to(*block().fibers[threadIdx.x], block().scheduler); }

void live() {
  while (true) {
    (*block().thread)();
    block().done[threadIdx.x] = true;
    ++block().finished;
    let_others_run();
  }
}

void meet(Meeting& meeting, unsigned members) {
  if (++meeting.arrived == members) {
    meeting.arrived = 0;
    ++meeting.round;
    return;
  }
  const unsigned round = meeting.round;
  while (meeting.round == round) let_others_run();
}

std::unique_ptr<Fiber> new_fiber() {
  auto fiber = std::make_unique<Fiber>();
  fiber->stack = std::make_unique<char[]>(stack_bytes);
#ifdef __SANITIZE_THREAD__
  fiber->known_as = __tsan_create_fiber(0);
#endif
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack.get();
  fiber->context.uc_stack.ss_size = stack_bytes;
  makecontext(&fiber->context, live, 0);
  return fiber;
}

void run_block() {
  Block& b = block();
#ifdef __SANITIZE_THREAD__
  b.scheduler.known_as = __tsan_get_current_fiber();
#endif
  b.finished = 0;
  b.done.assign(blockDim.x, false);
  while (b.fibers.size() < blockDim.x) b.fibers.push_back(new_fiber());
  // A round in which nobody arrives anywhere and nobody ends would go on for ever.
  unsigned rounds = 0;
  while (b.finished < blockDim.x) {
    LAMBCAST_CHECK(++rounds < 10'000'000, "a barrier that not all threads of block {} reach",
                   blockIdx.x);
    for (unsigned t = 0; t < blockDim.x; ++t) {
      if (b.done[t]) continue;
      threadIdx.x = t;
      switch_to(b.scheduler, *b.fibers[t]);
    }
  }
}

}  // namespace

void run(unsigned blocks, unsigned block_threads, const std::function<void()>& thread) {
  LAMBCAST_CHECK(block_threads <= most_threads && block_threads % 32 == 0, "{} threads",
                 block_threads);
  block().thread = &thread;
  gridDim.x = blocks;
  blockDim.x = block_threads;
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) run_block();
}

std::uint64_t exchange(std::uint64_t offered, unsigned lane) {
  const unsigned warp = threadIdx.x / 32;
  Meeting& meeting = block().warp[warp];
  auto& slots = block().offered[meeting.round % 2];
  slots[threadIdx.x] = offered;
  meet(meeting, 32);
  return slots[warp * 32 + lane];
}

}  // namespace lambcast::cuda_on_cpu

void __syncthreads() {
  lambcast::cuda_on_cpu::meet(lambcast::cuda_on_cpu::block().all, blockDim.x);
}
