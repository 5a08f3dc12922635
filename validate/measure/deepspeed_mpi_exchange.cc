#include <algorithm>
#include <cstring>
#include <vector>

#include "validate/measure/mpi_collectives.h"
#include "validate/measure/mpi_world.h"
#include "validate/measure/pattern.h"

namespace lambcast::validate {
namespace {

// A buffer of the training process, and its copy in host memory if it is staged.
template <typename T>
class Staged {
 public:
  void resize(std::size_t count, bool staged) {
    device_.resize(count);
    host_.resize(staged ? count : 0);
  }
  std::vector<T>& device() { return device_; }
  const std::vector<T>& device() const { return device_; }
  // The buffer passed to MPI.
  T* data() { return host_.empty() ? device_.data() : host_.data(); }
  void to_host() { to_host(0, device_.size()); }
  void to_host(std::size_t first, std::size_t count) {
    if (!host_.empty()) std::memcpy(&host_[first], &device_[first], count * sizeof(T));
  }
  void to_device() {
    if (!host_.empty()) std::memcpy(device_.data(), host_.data(), host_.size() * sizeof(T));
  }

 private:
  std::vector<T> device_;
  std::vector<T> host_;
};

class DeepSpeedMpiExchange final : public TimedCollective {
 public:
  DeepSpeedMpiExchange(const MeasureOptions& options, std::uint64_t size)
      : staged_(options.staging == Staging::memcpy) {
    MPI_Comm_rank(measured_world(), &rank_);
    MPI_Comm_size(measured_world(), &ranks_);
    const auto n = static_cast<std::size_t>(ranks_);
    chunk_ = size / sizeof(float) / 8 / n;
    for (Staged<std::uint8_t>* signs : {&worker_signs_, &received_signs_, &all_signs_}) {
      signs->resize(n * chunk_, staged_);
    }
    server_signs_.resize(chunk_, staged_);
    for (Staged<float>* one : {&worker_scale_, &server_scale_}) one->resize(1, staged_);
    for (Staged<float>* all : {&received_scales_, &all_scales_}) all->resize(n, staged_);
  }

  void fill() override {
    for (std::size_t i = 0; i < worker_signs_.device().size(); ++i) {
      worker_signs_.device()[i] = worker_sign(rank_, i);
    }
    for (std::size_t i = 0; i < chunk_; ++i) server_signs_.device()[i] = server_sign(rank_, i);
    worker_scale_.device()[0] = worker_scale(rank_);
    server_scale_.device()[0] = server_scale(rank_);
    for (Staged<std::uint8_t>* signs : {&received_signs_, &all_signs_}) {
      std::fill(signs->device().begin(), signs->device().end(), kUnsetSign);
    }
    for (Staged<float>* scales : {&received_scales_, &all_scales_}) {
      std::fill(scales->device().begin(), scales->device().end(), 0.0F);
    }
  }

  void run() override {
    gather_at_servers();
    gather_everywhere();
  }

  std::uint64_t count_wrong() const override {
    std::uint64_t wrong = 0;
    const auto count = [&](bool right) { wrong += right ? 0 : 1; };
    const std::size_t mine = static_cast<std::size_t>(rank_) * chunk_;
    for (int s = 0; s < ranks_; ++s) {
      const std::size_t first = static_cast<std::size_t>(s) * chunk_;
      for (std::size_t i = 0; i < chunk_; ++i) {
        count(received_signs_.device()[first + i] == worker_sign(s, mine + i));
        count(all_signs_.device()[first + i] == server_sign(s, i));
      }
      count(received_scales_.device()[static_cast<std::size_t>(s)] == worker_scale(s));
      count(all_scales_.device()[static_cast<std::size_t>(s)] == server_scale(s));
    }
    return wrong;
  }

 private:
  static constexpr std::uint8_t kUnsetSign = 255;  // not a value of the pattern
  static std::uint8_t worker_sign(int rank, std::size_t i) {
    return static_cast<std::uint8_t>(pattern_value(rank, i));
  }
  static std::uint8_t server_sign(int rank, std::size_t i) {
    return static_cast<std::uint8_t>(pattern_value(rank + 100, i));
  }
  static float worker_scale(int rank) { return static_cast<float>(1 + rank); }
  static float server_scale(int rank) { return static_cast<float>(100001 + rank); }

  // Posts the requests of DeepSpeed's hand-written gather to one root: the root receives, all
  // others send.
  void post_gather(int root, const void* part, void* all, std::size_t bytes) {
    char* const parts = static_cast<char*>(all);
    if (rank_ != root) {
      MPI_Isend(part, static_cast<int>(bytes), MPI_BYTE, root, 0, measured_world(),
                &next_request());
      return;
    }
    for (int source = 0; source < ranks_; ++source) {
      char* const slot = parts + static_cast<std::size_t>(source) * bytes;
      if (source == rank_) {
        std::memcpy(slot, part, bytes);
      } else {
        MPI_Irecv(slot, static_cast<int>(bytes), MPI_BYTE, source, 0, measured_world(),
                  &next_request());
      }
    }
  }

  MPI_Request& next_request() { return requests_.emplace_back(MPI_REQUEST_NULL); }

  void gather_at_servers() {
    const auto n = static_cast<std::size_t>(ranks_);
    for (std::size_t chunk = 0; chunk < n; ++chunk) worker_signs_.to_host(chunk * chunk_, chunk_);
    worker_scale_.to_host();
    received_scales_.to_host();
    requests_.clear();
    requests_.reserve(4 * n);  // keeps addresses of requests valid, which MPI stores
    for (int root = 0; root < ranks_; ++root) {
      post_gather(root, worker_signs_.data() + static_cast<std::size_t>(root) * chunk_,
                  received_signs_.data(), chunk_);
    }
    for (int root = 0; root < ranks_; ++root) {
      post_gather(root, worker_scale_.data(), received_scales_.data(), sizeof(float));
    }
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    received_signs_.to_device();
    worker_signs_.to_device();
    worker_scale_.to_device();
    received_scales_.to_device();
  }

  void gather_everywhere() {
    server_signs_.to_host();
    all_signs_.to_host();
    server_scale_.to_host();
    all_scales_.to_host();
    const int bytes = static_cast<int>(chunk_);
    MPI_Allgather(server_signs_.data(), bytes, MPI_BYTE, all_signs_.data(), bytes, MPI_BYTE,
                  measured_world());
    MPI_Allgather(server_scale_.data(), 1, MPI_FLOAT, all_scales_.data(), 1, MPI_FLOAT,
                  measured_world());
    if (staged_) MPI_Barrier(measured_world());
    server_signs_.to_device();
    all_signs_.to_device();
    server_scale_.to_device();
    all_scales_.to_device();
  }

  bool staged_;
  int rank_ = 0;
  int ranks_ = 0;
  std::size_t chunk_ = 0;  // bytes of packed signs per server
  Staged<std::uint8_t> worker_signs_, received_signs_, server_signs_, all_signs_;
  Staged<float> worker_scale_, received_scales_, server_scale_, all_scales_;
  std::vector<MPI_Request> requests_;
};

}  // namespace

std::unique_ptr<TimedCollective> deepspeed_mpi_exchange(const MeasureOptions& options,
                                                        std::uint64_t size) {
  return std::make_unique<DeepSpeedMpiExchange>(options, size);
}

}  // namespace lambcast::validate
