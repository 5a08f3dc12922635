#include "kernels/profile/kernels.h"

#include <cuda_fp16.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "kernels/cuda/adam.h"
#include "kernels/cuda/compression.h"
#include "kernels/cuda/eight_bit.h"
#include "kernels/cuda/factored.h"
#include "kernels/cuda/gradient.h"
#include "kernels/cuda/half_precision.h"
#include "kernels/cuda/host_copy.h"
#include "kernels/cuda/lamb_tensors.h"
#include "kernels/cuda/lion.h"
#include "kernels/profile/bert_large.h"
#include "kernels/profile/exchanges.h"
#include "kernels/profile/load.h"
#include "sim/base/check.h"

namespace lambcast::cuda {

namespace {

// Adafactor and CAME on as many matrices as fit the elements, with BERT-Large's width and its most
// common height. The last matrix has fewer rows, and a remainder that fills no row is a vector.
class FactoredBench {
 public:
  FactoredBench(std::size_t elements, float* p, float* m, float* v, const float* g) {
    std::vector<FactoredTensor> tensors;
    const auto buffer = [this](std::size_t count) {
      return thin_.emplace_back(std::max<std::size_t>(count, 1)).data();
    };
    const auto moment = [&](const reference::MatrixShape& shape) {
      return FactoredState{buffer(shape.rows), buffer(shape.columns), buffer(1)};
    };
    for (std::size_t begin = 0; begin < elements;) {
      const std::size_t left = elements - begin;
      const reference::MatrixShape shape =
          left < width ? reference::MatrixShape{1, left}
                       : reference::MatrixShape{std::min(left / width, width), width};
      const reference::Part part = reference::whole_part(shape);
      tensors.push_back(
          {part, p + begin, g + begin, m + begin, v + begin, moment(shape), moment(shape),
           sums_.emplace_back(std::max<std::size_t>(shape.rows + shape.columns, 2)).data(),
           workspaces_.emplace_back(factored_workspace(part)).data()});
      begin += shape.elements();
    }
    tensors_.emplace(tensors);
    for (FactoredTensor& tensor : tensors) tensor.m = nullptr;
    without_momentum_.emplace(tensors);
    for (FactoredTensor& tensor : tensors)
      tensor.kept = kept_.emplace_back(factored_kept(tensor.part)).data();
    with_kept_norms_.emplace(tensors);
  }

  cudaError_t refill(cudaStream_t stream) const {
    for (const auto& x : thin_)
      if (const auto e = fill_random(x.data(), x.size(), 0.1f, 1.0f, stream)) return e;
    return cudaSuccess;
  }
  cudaError_t adafactor_step(bool keeps_norms, cudaStream_t stream) const {
    const reference::Adafactor rule;
    const FactoredBatch all = (keeps_norms ? with_kept_norms_ : without_momentum_)->batch();
    if (const auto e = adafactor_moment(all, rule, stream)) return e;
    if (const auto e = adafactor_norms(all, rule, 1, stream)) return e;
    return adafactor_apply(all, rule, 1, stream);
  }
  cudaError_t came_step(cudaStream_t stream) const {
    const reference::Came rule;
    const FactoredBatch all = tensors_->batch();
    if (const auto e = came_moment(all, rule, stream)) return e;
    if (const auto e = came_norm(all, rule, stream)) return e;
    if (const auto e = came_momentum(all, rule, stream)) return e;
    return came_apply(all, rule, stream);
  }

 private:
  static constexpr std::size_t width = 1024;
  std::vector<DeviceBuffer<float>> thin_;
  std::vector<DeviceBuffer<double>> sums_, workspaces_, kept_;
  std::optional<FactoredTensors> tensors_, without_momentum_, with_kept_norms_;
};

}  // namespace

struct Workbench::Memory {
  explicit Memory(std::size_t n)
      : layout(chunk_layout(n, profiled_ranks)),
        tensors(bert_like_tensors(n)),
        p(layout.padded),
        m(layout.padded),
        v(layout.padded),
        u(layout.padded),
        g(layout.padded),
        c(layout.padded),
        half(layout.padded),
        signs(layout.packed_bytes()),
        served(staging_bytes(layout)),
        offsets(std::span<const std::size_t>(tensors.offsets)) {}

  ChunkLayout layout;
  TensorLayout tensors;
  DeviceBuffer<float> p, m, v, u, g, c;
  DeviceBuffer<std::uint16_t> half;
  DeviceBuffer<std::uint8_t> signs, served;
  DeviceBuffer<std::size_t> offsets;
  DeviceBuffer<double> workspace{reduction_slots};
  LambTensors lamb_tensors{tensors};
  DeviceBuffer<float> scaling{tensors.tensors()}, last_factor{tensors.tensors()};
  DeviceBuffer<float> scale{1}, worker_scales{profiled_ranks}, server_scales{profiled_ranks};
  DeviceBuffer<double> squared_norm{1};
  HostBuffer pageable{staging_bytes(layout), HostMemory::pageable};
  HostBuffer pinned{staging_bytes(layout), HostMemory::pinned};

  ExchangeBench exchanges{{g.data(), c.data(), u.data(), v.data(), layout.elements}};
  FactoredBench factored{layout.elements, p.data(), m.data(), v.data(), g.data()};
  DeviceBuffer<std::uint8_t> codes{2 * layout.padded};  // codes of both moments
  DeviceBuffer<float> largest{2 * (layout.padded / eight_bit_block + 1)};
  EightBitTensors eight_bit{std::array{moments_in_8_bits()}};

  EightBitMoments moments_in_8_bits() const {
    return {.m8 = codes.data(),
            .v8 = codes.data() + layout.padded,
            .m_largest = largest.data(),
            .v_largest = largest.data() + largest.size() / 2,
            .low = g.data(),
            .elements = layout.elements};
  }

  __half* half_p() const { return reinterpret_cast<__half*>(half.data()); }
  // Returns a gradient in fp16, in the memory of the 8-bit moments.
  HalfPointer half_g() const { return reinterpret_cast<__half*>(codes.data()); }

  WorkerPhase worker(const Gradient& gradient) const {
    WorkerPhase a;
    a.x = m.data();
    if (gradient) {
      a.gradient = gradient;
      a.beta1 = 0.9;
      a.scaling = scaling.data();
      a.tensor_offsets = offsets.data();
      a.tensors = static_cast<int>(tensors.tensors());
    }
    a.elements = a.counted = layout.elements;
    a.padded = layout.padded;
    a.error = {c.data(), scale.data()};
    a.signs = signs.data();
    a.workspace = workspace.data();
    return a;
  }
  ServerPhase server() const {
    ServerPhase a;
    a.received = signs.data();
    a.worker_scales = worker_scales.data();
    a.ranks = profiled_ranks;
    a.chunk = a.counted = layout.chunk;
    a.error = {c.data(), scale.data()};
    a.signs = served.data();
    a.workspace = workspace.data();
    return a;
  }
  LambState lamb() const { return lamb_tensors.state(p.data(), m.data(), v.data(), half_p()); }
  CompressedLambState compressed() const {
    CompressedLambState x;
    x.fresh_v = u.data();
    x.scaling = scaling.data();
    x.last_factor = last_factor.data();
    x.signs = signs.data();
    x.scales = server_scales.data();
    x.chunk = layout.chunk;
    return x;
  }
  AdamState adam() const {
    return {p.data(), m.data(), v.data(), u.data(), half_p(), layout.elements};
  }
  AdamState adam_without_copy() const {
    AdamState state = adam();
    state.half_p = {};
    return state;
  }
  PackedAverage average() const {
    return {.all = {layout.elements, signs.data(), server_scales.data(), layout.chunk}};
  }
};

Workbench::Workbench(std::size_t elements) : memory_(std::make_unique<Memory>(elements)) {}
Workbench::~Workbench() = default;

cudaError_t Workbench::refill(cudaStream_t stream) const {
  const Memory& b = *memory_;
  for (const auto* x : {&b.p, &b.m, &b.g, &b.c}) {
    if (const auto e = fill_random(x->data(), x->size(), -0.5f, 0.5f, stream)) return e;
  }
  if (const auto e = fill_random(b.half_p(), b.half.size(), -0.5f, 0.5f, stream)) return e;
  for (const auto* x : {&b.v, &b.u, &b.scaling, &b.last_factor, &b.scale, &b.worker_scales,
                        &b.server_scales, &b.largest}) {
    if (const auto e = fill_random(x->data(), x->size(), 0.1f, 1.0f, stream)) return e;
  }
  if (const auto e = cudaMemcpyAsync(b.codes.data(), b.half.data(), b.codes.size(),
                                     cudaMemcpyDeviceToDevice, stream))
    return e;
  if (const auto e = b.factored.refill(stream)) return e;
  if (const auto e = b.exchanges.refill(stream)) return e;
  return pack_signs(b.g.data(), b.signs.data(), b.layout.padded, SignRule::not_negative, stream);
}

std::map<std::string, double> Workbench::squared_norms() const {
  const Memory& b = *memory_;
  std::map<std::string, double> norms;
  const auto measure = [&](const char* name, const Gradient& x) {
    require(
        measure_gradient(x, b.layout.padded, b.squared_norm.data(), b.workspace.data(), nullptr),
        "measure_gradient");
    norms[name] = b.squared_norm.to_host()[0];
  };
  measure("p", b.p.data());
  measure("m", b.m.data());
  measure("v", b.v.data());
  measure("u", b.u.data());
  measure("g", b.g.data());
  measure("c", b.c.data());
  measure("half", HalfPointer(b.half_p()));
  return norms;
}

std::size_t Workbench::bytes(std::size_t elements) {
  // Six fp32 buffers, one fp16, codes of two moments, twice the signs. The pieces and their slots
  // are 48 bytes for 16,384 elements, the largest values of 8-bit blocks and the sums over rows and
  // columns one byte in 16 each, and the small arrays are below two megabytes.
  const std::size_t padded = chunk_layout(elements, profiled_ranks).padded;
  return padded * 28 + padded / 4 + padded / 256 + padded / 8 + (std::size_t{2} << 20) +
         ExchangeBench::bytes(elements);
}

using Stream = cudaStream_t;

std::vector<Workbench::Entry> Workbench::adam_entries() const {
  const Memory& b = *memory_;
  const AdamOptions adam{.weight_decay = 0.01};
  return {
      {"adam_step", 30,
       [&b, adam](Stream s) { return adam_step(b.adam(), b.g.data(), adam, 1, s); }},
      {"adam_step_fp16", 28,
       [&b, adam](Stream s) { return adam_step(b.adam(), b.half_g(), adam, 1, s); }},
      {"lion_step", 22,
       [&b](Stream s) {
         const LionState state{b.p.data(), b.m.data(), b.half_p(), b.layout.elements};
         return lion_step(state, b.g.data(), {}, s);
       }},
      {"adam_apply", 18, [&b, adam](Stream s) { return adam_apply(b.adam(), adam, s); }},
      {"onebit_adam_step", 18.125,
       [&b, adam](Stream s) { return onebit_adam_step(b.adam(), b.average(), adam, s); }},
      {"zero_one_onebit_step", 22.125,
       [&b, adam](Stream s) { return zero_one_onebit_step(b.adam(), b.average(), adam, s); }},
      {"zero_one_local_step", 34,
       [&b, adam](Stream s) { return zero_one_local_step(b.adam(), b.g.data(), adam, s); }},
      {"zero_one_sync_begin", 32,
       [&b, adam](Stream s) {
         return zero_one_sync_begin(b.adam_without_copy(), b.g.data(), adam, s);
       }},
      {"zero_one_sync_end", 22.125,
       [&b, adam](Stream s) { return zero_one_sync_end(b.adam(), b.average(), 1e-3, adam, s); }},
  };
}

std::vector<Workbench::Entry> Workbench::lamb_entries() const {
  const Memory& b = *memory_;
  const LambOptions lamb{.weight_decay = 0.01};
  const OnebitLambOptions onebit{.lamb = lamb};
  return {
      {"lamb_scaling", 4,
       [&b](Stream s) { return scaling_coefficients(b.lamb(), b.scaling.data(), s); }},
      {"lamb_step", 42,
       [&b, lamb](Stream s) { return lamb_step(b.lamb(), b.g.data(), lamb, {}, s); }},
      {"lamb_step_fp16", 40,
       [&b, lamb](Stream s) { return lamb_step(b.lamb(), b.half_g(), lamb, {}, s); }},
      {"onebit_lamb_step", 38.25,
       [&b, onebit](Stream s) {
         return onebit_lamb_step(b.lamb(), b.compressed(), onebit,
                                 CoefficientAverage::bias_corrected, s);
       }},
  };
}

std::vector<Workbench::Entry> Workbench::entries() const {
  const Memory& b = *memory_;
  const std::size_t n = b.layout.elements;
  constexpr double ranks = profiled_ranks;
  std::vector<Entry> all{
      {"copy", 8,
       [&b, n](Stream s) {
         return cudaMemcpyAsync(b.u.data(), b.p.data(), 4 * n, cudaMemcpyDeviceToDevice, s);
       }},
      {"onebit_worker", 12.125, [&b](Stream s) { return worker_phase(b.worker({}), s); }},
      {"onebit_worker_momentum", 16.125,
       [&b](Stream s) { return worker_phase(b.worker(b.g.data()), s); }},
      {"onebit_worker_momentum_fp16", 14.125,
       [&b](Stream s) { return worker_phase(b.worker(b.half_g()), s); }},
      {"onebit_server_n8", 0.125 + 8 / ranks + 0.125 / ranks,
       [&b](Stream s) { return server_phase(b.server(), s); }},
      {"onebit_decode", 4.125,
       [&b, n](Stream s) {
         return decode(
             {b.signs.data(), b.server_scales.data(), b.layout.chunk, n, nullptr, b.u.data()}, s);
       }},
      {"pack_signs", 4.125,
       [&b, n](Stream s) {
         return pack_signs(b.m.data(), b.signs.data(), n, SignRule::not_negative, s);
       }},
      {"unpack_signs", 4.125,
       [&b, n](Stream s) { return unpack_signs(b.signs.data(), b.u.data(), n, s); }},
      {"onebit_resolve_errors", 8,
       [&b, n](Stream s) {
         return resolve_errors({b.c.data(), b.scale.data()}, b.u.data(), n, s);
       }},
      {"round_to_fp16", 6, [&b, n](Stream s) { return round_to(b.half_p(), b.p.data(), n, s); }},
      {"apply_mask", 12, [&b, n](Stream s) { return apply_mask(b.u.data(), b.v.data(), n, s); }},
      {"gradient_norm_fp16", 2,
       [&b, n](Stream s) {
         return measure_gradient(b.half_g(), n, b.squared_norm.data(), b.workspace.data(), s);
       }},
      {"gradient_norm", 4,
       [&b, n](Stream s) {
         return measure_gradient(b.g.data(), n, b.squared_norm.data(), b.workspace.data(), s);
       }},
      {"unscale_fp16", 6, [&b, n](Stream s) { return unscale(b.half_g(), b.g.data(), n, s); }},
      {"adafactor_step", 24, [&b](Stream s) { return b.factored.adafactor_step(false, s); }},
      {"adafactor_step_kept", 20, [&b](Stream s) { return b.factored.adafactor_step(true, s); }},
      {"came_step", 32, [&b](Stream s) { return b.factored.came_step(s); }},
      {"eight_bit_adam", 12,
       [&b](Stream s) { return eight_bit_adam(b.eight_bit.batch(), {}, nullptr, 1, s); }},
      {"mpi_staging_pageable_n8", 5.0 / 8 + 2 / (8 * ranks),
       [&b](Stream s) { return staging_copies(b.layout, b.pageable.data(), b.served.data(), s); }},
      {"mpi_staging_pinned_n8", 5.0 / 8 + 2 / (8 * ranks),
       [&b](Stream s) { return staging_copies(b.layout, b.pinned.data(), b.served.data(), s); }},
  };
  for (const auto& more : {adam_entries(), lamb_entries(), b.exchanges.entries(),
                           b.exchanges.halves(b.lamb(), b.g.data())})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<KernelTimes> time_kernels(Timer& timer, const std::vector<std::size_t>& sizes,
                                      const std::function<void(std::string_view)>& progress) {
  std::vector<KernelTimes> all;
  for (const std::size_t elements : sizes) {
    if (progress) progress(fmt::format("kernels at {} elements", elements));
    const Workbench bench(elements);
    const auto entries = bench.entries();
    if (all.empty()) {
      for (const auto& entry : entries) {
        all.push_back({entry.name, entry.bytes_per_element, {}, {}, {}});
      }
    }
    for (std::size_t k = 0; k < entries.size(); ++k) {
      const Timing timing =
          timer.time(entries[k].name.c_str(), entries[k].launch,
                     [&bench](cudaStream_t stream) { return bench.refill(stream); });
      for (const auto& [buffer, squared_norm] : bench.squared_norms()) {
        LAMBCAST_CHECK(std::isfinite(squared_norm), "{} leaves {} with a squared norm of {}",
                       entries[k].name, buffer, squared_norm);
      }
      all[k].elements.push_back(elements);
      all[k].time_us.push_back(timing.median_us);
      all[k].spread_us.push_back(timing.spread_us);
    }
  }
  return all;
}

}  // namespace lambcast::cuda
