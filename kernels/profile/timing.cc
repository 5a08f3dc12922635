#include "kernels/profile/timing.h"

#include <algorithm>

#include "kernels/cuda/gpu.h"
#include "kernels/profile/load.h"

namespace lambcast::cuda {

Timing summarise(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  // Quantile by linear interpolation between the order statistics.
  const auto quantile = [&](double q) {
    const double at = q * static_cast<double>(samples.size() - 1);
    const std::size_t low = static_cast<std::size_t>(at);
    const std::size_t high = std::min(low + 1, samples.size() - 1);
    return samples[low] + (at - static_cast<double>(low)) * (samples[high] - samples[low]);
  };
  return {quantile(0.5), quantile(0.75) - quantile(0.25)};
}

Timer::Timer(int iterations, int warmup)
    : iterations_(iterations),
      warmup_(warmup),
      scratch_(2 * describe_gpu().l2_bytes / sizeof(unsigned)) {
  require(cudaStreamCreate(&stream_), "cudaStreamCreate");
  start_.resize(static_cast<std::size_t>(iterations));
  stop_.resize(static_cast<std::size_t>(iterations));
  for (auto* events : {&start_, &stop_}) {
    for (cudaEvent_t& event : *events) require(cudaEventCreate(&event), "cudaEventCreate");
  }
}

Timer::~Timer() {
  for (const auto* events : {&start_, &stop_}) {
    for (const cudaEvent_t event : *events) cudaEventDestroy(event);
  }
  cudaStreamDestroy(stream_);
}

Timing Timer::time(const char* what, const Work& work, const Work& prepare) {
  for (int i = 0; i < warmup_; ++i) {
    if (prepare) require(prepare(stream_), what);
    require(work(stream_), what);
  }
  for (std::size_t i = 0; i < start_.size(); ++i) {
    if (prepare) require(prepare(stream_), what);
    require(sweep_cache(scratch_.data(), scratch_.size(), stream_), "sweep_cache");
    require(cudaEventRecord(start_[i], stream_), "cudaEventRecord");
    require(work(stream_), what);
    require(cudaEventRecord(stop_[i], stream_), "cudaEventRecord");
  }
  if (meanwhile) meanwhile();
  require(cudaStreamSynchronize(stream_), what);
  std::vector<double> samples;
  for (std::size_t i = 0; i < start_.size(); ++i) {
    float ms = 0;
    require(cudaEventElapsedTime(&ms, start_[i], stop_[i]), "cudaEventElapsedTime");
    samples.push_back(static_cast<double>(ms) * 1e3);
  }
  return summarise(std::move(samples));
}

}  // namespace lambcast::cuda
