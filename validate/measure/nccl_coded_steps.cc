#include "kernels/cuda/low_rank.h"
#include "kernels/cuda/quantisation.h"
#include "kernels/nccl/group.h"
#include "kernels/nccl/onebit_adam.h"
#include "validate/measure/nccl_steps.h"

namespace lambcast::validate {
namespace {

using cuda::DeviceBuffer, cuda::require;

constexpr Quantiser int4{WireFormat::int4, 2048};

// Adam on fp32 gradients in `send` of each Gpu. Before the update, the derived class replaces the
// gradients by their mean over the ranks.
class CodedAdam {
 protected:
  CodedAdam(const Gpus& gpus, std::size_t weights)
      : gpus_(gpus), nccl_(gpus.front()->nccl), weights_(weights) {
    const TensorLayout tensor = tensor_layout(std::vector<std::size_t>{weights});
    const std::vector<float> initial(weights, 0.01f);
    each([&](std::size_t i) {
      optimizers_.emplace_back(tensor, initial, gpus_[i]->ranks, gpus_[i]->rank,
                               OnebitAdamOptions{});
    });
  }

  // Calls enqueue(i) for each rank of this thread, with its GPU current.
  template <typename Enqueue>
  void each(Enqueue enqueue) const {
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      require(cudaSetDevice(gpus_[i]->device), "cudaSetDevice");
      enqueue(i);
    }
  }
  template <typename Enqueue>
  void in_group(Enqueue enqueue) const {
    cuda::Group group(nccl_);
    check(group.started(), "ncclGroupStart");
    each(enqueue);
    check(group.end(), "ncclGroupEnd");
  }
  void update() {
    each([&](std::size_t i) {
      require(optimizers_[i].full_step(gradient(i), gpus_[i]->stream), "full step");
    });
  }
  float* gradient(std::size_t i) const { return reinterpret_cast<float*>(gpus_[i]->send.data()); }
  void check(ncclResult_t status, const char* call) const { cuda::require(nccl_, status, call); }

  const Gpus& gpus_;
  const cuda::NcclApi& nccl_;
  std::size_t weights_;
  std::vector<cuda::OnebitAdam> optimizers_;
};

std::size_t chunk_of(std::size_t weights, int ranks) {
  const std::size_t each = (weights + std::size_t(ranks) - 1) / std::size_t(ranks);
  return (each + int4.block - 1) / int4.block * int4.block;
}

// Adam after an exchange in int4. Each rank sends chunk r of its gradient to rank r, which averages
// the chunks and sends the mean to all. Both messages have error feedback.
class Int4Adam : public CodedAdam {
 public:
  Int4Adam(const Gpus& gpus, std::size_t weights)
      : CodedAdam(gpus, weights),
        messages_(std::size_t(gpus.front()->ranks)),
        chunk_(chunk_of(weights, gpus.front()->ranks)) {
    each([&](std::size_t) {
      states_.push_back({DeviceBuffer<float>(messages_ * chunk_), DeviceBuffer<float>(chunk_),
                         DeviceBuffer<float>(chunk_), message(messages_), message(messages_),
                         message(1)});
    });
  }

  void run() {
    each([&](std::size_t i) {
      encode(i, gradient(i), states_[i].owed, messages_ * chunk_, states_[i].sent);
    });
    in_group([&](std::size_t i) {
      for (int peer = 0; peer < int(messages_); ++peer) to_and_from(i, peer);
    });
    each([&](std::size_t i) {
      State& s = states_[i];
      decode(i, s.received, int(messages_), chunk_, s.mean.data());
      encode(i, s.mean.data(), s.served_owed, chunk_, s.served);
    });
    in_group([&](std::size_t i) {
      gather(i, states_[i].served.payload, states_[i].received.payload, ncclUint8);
      gather(i, states_[i].served.scales, states_[i].received.scales, ncclFloat32);
    });
    each(
        [&](std::size_t i) { decode(i, states_[i].received, 1, messages_ * chunk_, gradient(i)); });
    update();
  }

 private:
  struct Message {
    DeviceBuffer<std::uint8_t> payload;
    DeviceBuffer<float> scales;
  };
  struct State {
    DeviceBuffer<float> owed, served_owed, mean;
    Message sent, received, served;
  };

  Message message(std::size_t chunks) const {
    return {DeviceBuffer<std::uint8_t>(chunks * payload_bytes(int4.format, chunk_)),
            DeviceBuffer<float>(chunks * scale_count(int4, chunk_))};
  }
  void encode(std::size_t i, const float* x, const DeviceBuffer<float>& owed, std::size_t elements,
              const Message& to) const {
    require(cuda::quantise({.x = x,
                            .owed = owed.data(),
                            .elements = elements,
                            .quantiser = int4,
                            .payload = to.payload.data(),
                            .scales = to.scales.data()},
                           gpus_[i]->stream),
            "quantise");
  }
  void decode(std::size_t i, const Message& from, int messages, std::size_t elements,
              float* x) const {
    require(cuda::dequantise_sum({.payloads = from.payload.data(),
                                  .scales = from.scales.data(),
                                  .messages = messages,
                                  .elements = elements,
                                  .quantiser = int4,
                                  .share = 1 / static_cast<float>(messages),
                                  .x = x},
                                 gpus_[i]->stream),
            "dequantise_sum");
  }
  void to_and_from(std::size_t i, int peer) const {
    const auto exchange = [&](auto* to, auto* from, std::size_t count, ncclDataType_t type) {
      const std::size_t at = std::size_t(peer) * count;
      check(nccl_.ncclSend(to + at, count, type, peer, gpus_[i]->communicator, gpus_[i]->stream),
            "ncclSend");
      check(nccl_.ncclRecv(from + at, count, type, peer, gpus_[i]->communicator, gpus_[i]->stream),
            "ncclRecv");
    };
    const State& s = states_[i];
    exchange(s.sent.payload.data(), s.received.payload.data(), s.served.payload.size(), ncclUint8);
    exchange(s.sent.scales.data(), s.received.scales.data(), s.served.scales.size(), ncclFloat32);
  }
  template <typename T>
  void gather(std::size_t i, const DeviceBuffer<T>& from, const DeviceBuffer<T>& to,
              ncclDataType_t type) const {
    check(nccl_.ncclAllGather(from.data(), to.data(), from.size(), type, gpus_[i]->communicator,
                              gpus_[i]->stream),
          "ncclAllGather");
  }

  std::size_t messages_, chunk_;
  std::vector<State> states_;  // one per rank of this thread
};

// Adam after PowerSGD at rank 4 with error feedback. Weights beyond the last whole matrix are
// averaged without compression.
class PowerSgdAdam : public CodedAdam {
 public:
  PowerSgdAdam(const Gpus& gpus, std::size_t weights) : CodedAdam(gpus, weights) {
    while (side_ * side_ > weights) side_ /= 2;
    matrices_ = weights / (side_ * side_);
    const std::size_t factor = matrices_ * side_ * std::size_t(rank_of_factors);
    std::vector<float> start(factor);
    for (std::size_t e = 0; e < factor; ++e) start[e] = first_q(e);
    each([&](std::size_t) {
      states_.push_back(
          {DeviceBuffer<float>(weights), DeviceBuffer<float>(factor),
           DeviceBuffer<float>(std::span<const float>(start)),
           DeviceBuffer<double>(cuda::low_rank_workspace({side_, side_}, rank_of_factors))});
    });
  }

  void run() {
    each_matrix(cuda::project, "project");
    in_group([&](std::size_t i) { average(i, states_[i].p.data(), states_[i].p.size()); });
    each_matrix(cuda::orthonormalise, "orthonormalise");
    each_matrix(cuda::back_project, "back_project");
    const std::size_t whole = matrices_ * side_ * side_;
    in_group([&](std::size_t i) {
      average(i, states_[i].q.data(), states_[i].q.size());
      if (whole < weights_) average(i, gradient(i) + whole, weights_ - whole);
    });
    each_matrix(
        [](const cuda::LowRank& matrix, cudaStream_t stream) {
          return cuda::expand(matrix, const_cast<float*>(matrix.x), stream);
        },
        "expand");
    update();
  }

 private:
  static constexpr int rank_of_factors = 4;
  struct State {
    DeviceBuffer<float> owed, p, q;
    DeviceBuffer<double> workspace;
  };

  template <typename Phase>
  void each_matrix(Phase phase, const char* name) const {
    each([&](std::size_t i) {
      const State& s = states_[i];
      for (std::size_t m = 0; m < matrices_; ++m) {
        const std::size_t first = m * side_ * side_, column = m * side_ * rank_of_factors;
        const cuda::LowRank matrix{{side_, side_},        rank_of_factors,     gradient(i) + first,
                                   s.owed.data() + first, s.p.data() + column, s.q.data() + column,
                                   s.workspace.data()};
        require(phase(matrix, gpus_[i]->stream), name);
      }
    });
  }
  void average(std::size_t i, float* values, std::size_t count) const {
    check(nccl_.ncclAllReduce(values, values, count, ncclFloat32, ncclAvg, gpus_[i]->communicator,
                              gpus_[i]->stream),
          "ncclAllReduce");
  }

  std::size_t side_ = 1024, matrices_ = 0;
  std::vector<State> states_;
};

template <typename Step>
std::function<void()> running(const Gpus& gpus, std::size_t weights) {
  const auto step = std::make_shared<Step>(gpus, weights);
  return [step] { step->run(); };
}

}  // namespace

std::function<void()> int4_adam_step(const Gpus& gpus, std::size_t weights) {
  return running<Int4Adam>(gpus, weights);
}

std::function<void()> power_sgd_adam_step(const Gpus& gpus, std::size_t weights) {
  return running<PowerSgdAdam>(gpus, weights);
}

float first_q(std::size_t e) { return static_cast<float>(e * 2654435761U % 1009) / 1009 - 0.5f; }

std::uint64_t step_buffer_bytes(std::uint64_t weights, int ranks) {
  return chunk_of(weights, ranks) * static_cast<std::uint64_t>(ranks) * sizeof(float);
}

}  // namespace lambcast::validate
