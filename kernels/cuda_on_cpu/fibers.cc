// This file is compiled without the thread sanitizer, which would mistake the bookkeeping of fibers
// for accesses of the CUDA threads. Therefore fibers keep their state in plain arrays, not in
// templates that other files share, and the order that CUDA guarantees is declared to the sanitizer
// as edges.
#ifdef LAMBCAST_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

#include <barrier>
#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <memory>
#include <mutex>
#include <thread>

#include "kernels/cuda_on_cpu/cuda_runtime.h"
#include "sim/base/check.h"

namespace lambcast::cuda_on_cpu {
namespace {

constexpr unsigned workers = multiprocessors * blocks_of_multiprocessor;
constexpr unsigned most_threads = 1024;
constexpr std::size_t stack_bytes = std::size_t{64} << 10;

// Everything before a release happens before everything after an acquire of the same edge. At
// repeated barriers even and odd rounds have an edge each: a thread that releases for the next
// round must not be ordered before one that still leaves the previous round.
using Edge = std::uint64_t;

// Fiber t of a worker is thread t of all its blocks.
struct Fiber {
  boost::context::fiber left;  // continuation; empty while it runs
  void* known_as = nullptr;    // handle for the thread sanitizer
  bool done = false;
};

// Threads that wait for each other; `round` counts how often all of them have arrived.
struct Meeting {
  unsigned arrived = 0;
  unsigned round = 0;
};

// Runs one block at a time, on its own OS thread, which its fibers never leave.
struct Worker {
  const std::function<void()>* thread = nullptr;
  Fiber scheduler, fibers[most_threads];
  Meeting all, warp[most_threads / 32];
  // Values that each thread offers in even and odd rounds of its warp. No thread is two rounds
  // ahead.
  std::uint64_t offered[2][most_threads];
  unsigned blocks = 0;    // blocks run so far
  unsigned finished = 0;  // finished threads of this block
  unsigned events = 0;    // arrivals and ends
  bool stuck = false;
  Edge barrier[2], between_blocks[2];
};
thread_local Worker* here = nullptr;

#ifdef LAMBCAST_THREAD_SANITIZER
void release(Edge& edge) { __tsan_release(&edge); }
void acquire(Edge& edge) { __tsan_acquire(&edge); }
void introduce(Fiber& fiber, unsigned block, unsigned thread) {
  fiber.known_as = __tsan_create_fiber(0);
  const auto name = fmt::format("thread {} of blocks {} + {} i", thread, block, workers);
  __tsan_set_fiber_name(fiber.known_as, name.c_str());
}
void introduce_this_thread(Fiber& fiber) { fiber.known_as = __tsan_get_current_fiber(); }
void announce_switch_to(const Fiber& fiber) {
  __tsan_switch_to_fiber(fiber.known_as, __tsan_switch_to_fiber_no_sync);
}
#else
void release(Edge&) {}
void acquire(Edge&) {}
void introduce(Fiber&, unsigned, unsigned) {}
void introduce_this_thread(Fiber&) {}
void announce_switch_to(const Fiber&) {}
#endif

// Switches to the first unfinished thread from `next` on, or back to the scheduler after the last
// one.
void switch_from(Fiber& from, unsigned next) {
  while (next < blockDim.x && here->fibers[next].done) ++next;
  threadIdx.x = next;
  Fiber& to = next < blockDim.x ? here->fibers[next] : here->scheduler;
  announce_switch_to(to);
  std::move(to.left).resume_with([&from](boost::context::fiber&& left) {
    from.left = std::move(left);
    return boost::context::fiber();
  });
}

void let_others_run() { switch_from(here->fibers[threadIdx.x], threadIdx.x + 1); }

// Thrown to unwind a thread whose barrier or shuffle cannot complete.
struct Stuck {};

[[noreturn]] void live() {
  while (true) {
    acquire(here->between_blocks[here->blocks % 2]);
    try {
      (*here->thread)();
    } catch (Stuck) {
    }
    release(here->between_blocks[(here->blocks + 1) % 2]);
    here->fibers[threadIdx.x].done = true;
    ++here->finished;
    ++here->events;
    let_others_run();
  }
}

void meet(Meeting& meeting, unsigned members) {
  ++here->events;
  if (++meeting.arrived == members) {
    meeting.arrived = 0;
    ++meeting.round;
    return;
  }
  const unsigned round = meeting.round;
  while (meeting.round == round) {
    let_others_run();
    if (here->stuck) throw Stuck();
  }
}

void make_fiber(Fiber& fiber, unsigned block, unsigned thread) {
  introduce(fiber, block, thread);
  fiber.left = {std::allocator_arg, boost::context::fixedsize_stack(stack_bytes),
                [](boost::context::fiber&&) -> boost::context::fiber { live(); }};
}

void run_block(Worker& w) {
  for (unsigned t = 0; t < blockDim.x; ++t) w.fibers[t].done = false;
  w.finished = 0;
  while (w.finished < blockDim.x) {
    const unsigned before = w.events;
    switch_from(w.scheduler, 0);
    w.stuck = w.stuck || w.events == before;
  }
  if (w.stuck) {
    w.all = {};
    for (Meeting& warp : w.warp) warp = {};
  }
  ++w.blocks;
}

struct Device {
  std::mutex launch;
  std::barrier<> turn{workers + 1};  // first of the workers, then of the host too
  bool gone = false;
  unsigned blocks = 0, block_threads = 0;
  Worker worker[workers];
  std::thread os_threads[workers];

  Device();
  ~Device();
};

void work(Device& device, unsigned index) {
  Worker& w = *(here = &device.worker[index]);
  introduce_this_thread(w.scheduler);
  while (true) {
    device.turn.arrive_and_wait();
    if (device.gone) return;
    gridDim.x = device.blocks;
    blockDim.x = device.block_threads;
    for (blockIdx.x = index; blockIdx.x < gridDim.x && !w.stuck; blockIdx.x += workers) {
      for (unsigned t = 0; t < blockDim.x; ++t) {
        if (!w.fibers[t].left) make_fiber(w.fibers[t], index, t);
      }
      run_block(w);
    }
    device.turn.arrive_and_wait();
  }
}

Device::Device() {
  for (unsigned w = 0; w < workers; ++w) os_threads[w] = std::thread(work, std::ref(*this), w);
}
Device::~Device() {
  gone = true;
  turn.arrive_and_wait();
  for (std::thread& thread : os_threads) thread.join();
}

}  // namespace

void run(unsigned blocks, unsigned block_threads, const std::function<void()>& thread) {
  LAMBCAST_CHECK(block_threads <= most_threads && block_threads % 32 == 0, "{} threads",
                 block_threads);
  static Device device;
  const std::lock_guard lock(device.launch);
  device.blocks = blocks;
  device.block_threads = block_threads;
  for (Worker& w : device.worker) {
    w.thread = &thread;
    w.stuck = false;
    release(w.between_blocks[w.blocks % 2]);
  }
  device.turn.arrive_and_wait();
  device.turn.arrive_and_wait();
  bool stuck = false;
  for (Worker& w : device.worker) {
    acquire(w.between_blocks[w.blocks % 2]);
    stuck = stuck || w.stuck;
  }
  LAMBCAST_CHECK(!stuck, "a barrier or shuffle that not all threads reach");
  if (on_kernel_end) on_kernel_end();
}

std::uint64_t exchange(std::uint64_t offered, unsigned lane) {
  const unsigned warp = threadIdx.x / 32;
  Meeting& meeting = here->warp[warp];
  auto& slots = here->offered[meeting.round % 2];
  slots[threadIdx.x] = offered;
  meet(meeting, 32);
  return slots[warp * 32 + lane];
}

}  // namespace lambcast::cuda_on_cpu

void __syncthreads() {
  using namespace lambcast::cuda_on_cpu;
  Edge& edge = here->barrier[here->all.round % 2];
  release(edge);
  meet(here->all, blockDim.x);
  acquire(edge);
}
