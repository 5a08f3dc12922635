#include "kernels/nccl/compressed_allreduce.h"

#include "validate/measure/compressed_pattern.h"
#include "validate/measure/nccl_collectives.h"

namespace lambcast::validate {
namespace {

using cuda::require;

class NcclCompressedAllreduce final : public TimedCollective {
 public:
  NcclCompressedAllreduce(const Gpus& gpus, std::uint64_t size)
      : gpus_(gpus),
        nccl_(gpus.front()->nccl),
        elements_(size / sizeof(float)),
        means_(compressed_means(gpus.front()->ranks)) {
    states_.reserve(gpus.size());  // calls_ points into it
    for (const auto& gpu : gpus) {
      require(cudaSetDevice(gpu->device), "cudaSetDevice");
      auto& state = states_.emplace_back(elements_, gpu->ranks, gpu->rank, Padding::excluded);
      require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // clearing it is asynchronous
      calls_.push_back({gpu->device, &state, reinterpret_cast<const float*>(gpu->send.data()),
                        reinterpret_cast<float*>(gpu->receive.data()), gpu->communicator,
                        gpu->stream});
    }
    chunk_ = states_.front().layout().chunk;
  }

  void fill() override {
    std::vector<float> values(elements_);
    const std::vector<float> unset(elements_, 0);  // no average is 0
    for (std::size_t r = 0; r < gpus_.size(); ++r) {
      const Gpu& gpu = *gpus_[r];
      for (std::uint64_t i = 0; i < elements_; ++i) {
        const float part = compressed_part(gpu.rank, static_cast<int>(i / chunk_));
        values[i] = compressed_sign(i) ? part : -part;
      }
      gpu.copy(gpu.send.data(), values.data(), elements_ * sizeof(float));
      gpu.copy(gpu.receive.data(), unset.data(), elements_ * sizeof(float));
      require(states_[r].forget_errors(gpu.stream), "forgetting of errors");
    }
  }

  void run() override { cuda::compressed_allreduce(nccl_, calls_); }

  std::uint64_t count_wrong() const override {
    std::vector<float> values(elements_);
    std::uint64_t wrong = 0;
    for (const auto& gpu : gpus_) {
      gpu->copy(values.data(), gpu->receive.data(), elements_ * sizeof(float));
      for (std::uint64_t i = 0; i < elements_; ++i) {
        const float mean = means_[i / chunk_];
        wrong += values[i] == (compressed_sign(i) ? mean : -mean) ? 0 : 1;
      }
    }
    return wrong;
  }

 private:
  const Gpus& gpus_;
  const cuda::NcclApi& nccl_;
  std::uint64_t elements_;
  std::uint64_t chunk_ = 0;   // elements that one rank serves
  std::vector<float> means_;  // per chunk
  std::vector<cuda::CompressedAllreduce> states_;
  std::vector<cuda::LocalRank> calls_;
};

}  // namespace

std::unique_ptr<TimedCollective> nccl_compressed_allreduce(const Gpus& gpus, std::uint64_t size) {
  return std::make_unique<NcclCompressedAllreduce>(gpus, size);
}

}  // namespace lambcast::validate
