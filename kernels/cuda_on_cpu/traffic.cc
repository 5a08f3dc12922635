#include "kernels/cuda_on_cpu/traffic.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/cuda_on_cpu/cuda_runtime.h"

namespace lambcast::cuda_on_cpu {
namespace {

// A set of bytes, with one bit each.
class ByteSet {
 public:
  explicit ByteSet(std::size_t bytes) : words_(bytes / 64 + 1) {}
  // Marks up to 16 bytes that share a word.
  void add(std::size_t from, std::size_t bytes) {
    const std::uint64_t mask = ((std::uint64_t{1} << bytes) - 1) << (from % 64);
    const std::atomic_ref word(words_[from / 64]);
    if ((word.load(std::memory_order_relaxed) & mask) != mask)
      word.fetch_or(mask, std::memory_order_relaxed);
  }
  bool has(std::size_t from, std::size_t bytes) const {
    const std::uint64_t mask = ((std::uint64_t{1} << bytes) - 1) << (from % 64);
    const std::atomic_ref word(words_[from / 64]);
    return (word.load(std::memory_order_relaxed) & mask) == mask;
  }
  double take_count() {
    double count = 0;
    for (std::uint64_t& word : words_) count += std::popcount(std::exchange(word, 0));
    return count;
  }

 private:
  mutable std::vector<std::uint64_t> words_;
};

struct Allocation {
  std::uintptr_t begin = 0, end = 0;
  std::unique_ptr<ByteSet> read, written;
};

std::vector<Allocation> allocations;
Traffic traffic;
bool counting = false;
Between between_kernels = Between::memory;

void remember(void* data, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  allocations.push_back(
      {begin, begin + bytes, std::make_unique<ByteSet>(bytes), std::make_unique<ByteSet>(bytes)});
}

// Removes the bytes of freed memory, so that its next use, such as the shared memory of a thread,
// does not count as device memory.
void forget(void* data) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  std::erase_if(allocations, [&](const Allocation& a) { return a.begin == begin; });
}

void add_touched() {
  for (Allocation& a : allocations) {
    traffic.read_bytes += a.read->take_count();
    traffic.written_bytes += a.written->take_count();
  }
}

// Records an access. The allocation of the previous access is tried first.
void touch(const volatile void* data, std::size_t bytes, bool writes) {
  if (!counting) return;
  thread_local std::size_t last = 0;
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  const auto inside = [&](std::size_t i) {
    return i < allocations.size() && at >= allocations[i].begin && at < allocations[i].end;
  };
  if (!inside(last)) {
    std::size_t i = 0;
    while (i < allocations.size() && !inside(i)) ++i;
    if (i == allocations.size()) return;
    last = i;
  }
  const Allocation& a = allocations[last];
  const auto add = [&](std::size_t from, std::size_t count) {
    if (writes)
      a.written->add(from, count);
    else if (between_kernels == Between::memory || !a.written->has(from, count))
      a.read->add(from, count);
  };
  const std::size_t from = at - a.begin, here = std::min(bytes, 64 - from % 64);
  add(from, here);
  if (bytes > here) add(from + here, bytes - here);
}

}  // namespace

void watch_device_memory() {
  on_allocation = remember;
  on_free = forget;
}

Traffic traffic_of(const std::function<void()>& path, Between between) {
  traffic = {};
  between_kernels = between;
  if (between == Between::memory) on_kernel_end = add_touched;
  counting = true;
  path();
  counting = false;
  on_kernel_end = nullptr;
  add_touched();
  return traffic;
}

}  // namespace lambcast::cuda_on_cpu

// The hooks of GCC's and clang's -fsanitize=thread (compiler-rt, tsan_interface.h).
extern "C" {
using lambcast::cuda_on_cpu::touch;

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

#define LAMBCAST_HOOKS(bytes)                                            \
  void __tsan_read##bytes(void* x) { touch(x, bytes, false); }           \
  void __tsan_write##bytes(void* x) { touch(x, bytes, true); }           \
  void __tsan_unaligned_read##bytes(void* x) { touch(x, bytes, false); } \
  void __tsan_unaligned_write##bytes(void* x) { touch(x, bytes, true); } \
  void __tsan_volatile_read##bytes(void* x) { touch(x, bytes, false); }  \
  void __tsan_volatile_write##bytes(void* x) { touch(x, bytes, true); }
LAMBCAST_HOOKS(1)
LAMBCAST_HOOKS(2)
LAMBCAST_HOOKS(4)
LAMBCAST_HOOKS(8)
LAMBCAST_HOOKS(16)
#undef LAMBCAST_HOOKS

void __tsan_read_range(void* x, unsigned long bytes) {
  for (unsigned long b = 0; b < bytes; ++b) touch(static_cast<char*>(x) + b, 1, false);
}
void __tsan_write_range(void* x, unsigned long bytes) {
  for (unsigned long b = 0; b < bytes; ++b) touch(static_cast<char*>(x) + b, 1, true);
}

unsigned __tsan_atomic32_fetch_add(volatile unsigned* x, unsigned more, int) {
  touch(x, 4, false);
  touch(x, 4, true);
  return __atomic_fetch_add(x, more, __ATOMIC_RELAXED);
}
// Reads the guard of a static variable, which is not device memory.
unsigned char __tsan_atomic8_load(const volatile unsigned char* x, int) {
  return __atomic_load_n(x, __ATOMIC_ACQUIRE);
}
}
