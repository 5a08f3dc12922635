// Compares the kernels with their limits in one run on the local GPU.
//
//   kernels_bench [--elements N] [--csv]
//
// Times each kernel at BERT-Large's buffer (or N elements) and prints its time, its bytes and its
// share of the copy bandwidth, which the same run measures. Exit codes: 0 all limits are met, 3 one
// is missed, 4 there is no GPU, 2 bad usage.
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <optional>

#include "kernels/cuda/gpu.h"
#include "kernels/profile/bert_large.h"
#include "kernels/profile/kernels.h"

using namespace lambcast;

namespace {

// Returns the share of the copy bandwidth that a kernel must reach. It is lower for kernels that
// wait for sums or counts between passes. There is no limit for copies to the host, for kernels
// that access scattered elements or a thin factor in one block, and for products of many
// directions, which wait for the cache.
double least_share(std::string_view kernel) {
  for (const char* waits :
       {"lamb_step", "lamb_step_fp16", "onebit_lamb_step", "adafactor_step", "adafactor_step_kept",
        "came_step", "top_k_1_percent", "quantise_fp8", "quantise_fp8_owed"})
    if (kernel == waits) return 0.85;
  for (const char* none :
       {"mpi_staging_", "random_k_", "add_at_", "galore_", "powersgd_orthonormalise"})
    if (kernel.starts_with(none)) return 0;
  return 0.90;
}
// Most bytes per element of the worker phase, the server phase at n = 8 and decoding together, by
// format of the gradient.
struct PathLimit {
  const char* worker;
  double bytes;
};
constexpr PathLimit path_limits[] = {{"onebit_worker_momentum", 26},
                                     {"onebit_worker_momentum_fp16", 19.4}};

struct Usage {
  std::size_t elements = bert_large_elements;
  bool csv = false;
};

std::optional<Usage> parse(int argc, char** argv) {
  Usage usage;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--csv") {
      usage.csv = true;
    } else if (flag == "--elements" && i + 1 < argc) {
      const std::string_view text = argv[++i];
      const auto end = text.data() + text.size();
      const auto result = std::from_chars(text.data(), end, usage.elements);
      if (result.ec != std::errc() || result.ptr != end || usage.elements == 0) return {};
    } else {
      return {};
    }
  }
  return usage;
}

double path_bytes(const std::vector<KernelTimes>& kernels, std::string_view worker) {
  double sum = 0;
  for (const KernelTimes& k : kernels) {
    const bool on_path =
        k.name == worker || k.name == "onebit_server_n8" || k.name == "onebit_decode";
    if (on_path) sum += k.bytes_per_element;
  }
  return sum;
}

int run(const Usage& usage) {
  cuda::Timer timer(20, 5);
  const auto kernels = cuda::time_kernels(timer, {usage.elements}, {});
  const KernelTimes& copy = kernels.front();
  const Bandwidth bandwidth = Bytes(copy.bytes_per_element * static_cast<double>(usage.elements)) /
                              Duration::microseconds(copy.time_us[0]);
  if (usage.csv) {
    fmt::print("kernel,time_us,spread_us,bytes_per_element,copy_share\n");
  } else {
    fmt::print("{:<28} {:>12} {:>10} {:>8} {:>6}\n", "kernel", "time (us)", "spread", "B/elem",
               "share");
  }
  bool met = true;
  for (const KernelTimes& k : kernels) {
    const double share = copy_share(k, 0, bandwidth);
    if (usage.csv) {
      fmt::print("{},{},{},{},{}\n", k.name, k.time_us[0], k.spread_us[0], k.bytes_per_element,
                 share);
    } else {
      fmt::print("{:<28} {:>12.1f} {:>10.1f} {:>8.3f} {:>6.2f}\n", k.name, k.time_us[0],
                 k.spread_us[0], k.bytes_per_element, share);
    }
    if (share < least_share(k.name)) {
      met = false;
      fmt::print(stderr, "{} reaches {:.2f} of the copy bandwidth, wanted {:.2f}\n", k.name, share,
                 least_share(k.name));
    }
  }
  for (const PathLimit& limit : path_limits) {
    const double bytes = path_bytes(kernels, limit.worker);
    if (bytes <= limit.bytes) continue;
    met = false;
    fmt::print(stderr, "the compression path with {} moves {:.2f} bytes per element, wanted {}\n",
               limit.worker, bytes, limit.bytes);
  }
  return static_cast<int>(met ? Exit::done : Exit::limit);
}

}  // namespace

int main(int argc, char** argv) {
  const auto usage = parse(argc, argv);
  if (!usage) {
    fmt::print(stderr, "usage: kernels_bench [--elements N] [--csv]\n");
    return static_cast<int>(Exit::usage);
  }
  if (const std::string why = cuda::gpus_missing(1); !why.empty()) {
    fmt::print(stderr, "{}\n", why);
    return static_cast<int>(Exit::missing);
  }
  try {
    return run(*usage);
  } catch (const Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return static_cast<int>(e.code());
  }
}
