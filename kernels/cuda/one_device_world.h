// For tests: compressed_allreduce of n ranks that take turns on one device. The exchange goes
// through the host.
#pragma once

#include "kernels/cuda/compression.h"
#include "kernels/cuda/gpu_test.h"
#include "kernels/layout.h"

namespace lambcast::cuda {

struct OneDeviceWorld {
  struct Rank {
    DeviceBuffer<float> worker_c, worker_scale{1}, server_c, server_scale{1};
    DeviceBuffer<std::uint8_t> signs, served;
    DeviceBuffer<double> workspace{reduction_slots};
  };
  // The packed average: signs and scales of all chunks.
  struct Packed {
    DeviceBuffer<std::uint8_t> signs;
    DeviceBuffer<float> scales;
  };

  ChunkLayout layout;
  Padding padding;
  std::vector<Rank> ranks;

  OneDeviceWorld(const ChunkLayout& of, Padding how) : layout(of), padding(how) {
    for (int r = 0; r < layout.ranks; ++r) {
      Rank rank;
      rank.worker_c = DeviceBuffer<float>(layout.padded);
      rank.server_c = DeviceBuffer<float>(layout.chunk);
      rank.signs = DeviceBuffer<std::uint8_t>(layout.packed_bytes());
      rank.served = DeviceBuffer<std::uint8_t>(layout.chunk_bytes());
      ranks.push_back(std::move(rank));
    }
  }

  // `inputs` are the buffers of the ranks, in the members of WorkerPhase from x to x_elements.
  Packed average(const std::vector<WorkerPhase>& inputs) {
    std::vector<std::vector<std::uint8_t>> sent;
    std::vector<float> worker_scales, server_scales;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      compress(ranks[r], inputs[r]);
      sent.push_back(ranks[r].signs.to_host());
      worker_scales.push_back(ranks[r].worker_scale.to_host()[0]);
    }
    const auto scales = upload(worker_scales);
    std::vector<std::uint8_t> gathered;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      serve(r, sent, scales);
      const auto served = ranks[r].served.to_host();
      gathered.insert(gathered.end(), served.begin(), served.end());
      server_scales.push_back(ranks[r].server_scale.to_host()[0]);
    }
    return {upload(gathered), upload(server_scales)};
  }

  void compress(const Rank& rank, WorkerPhase phase) const {
    phase.elements = layout.elements;
    phase.padded = layout.padded;
    phase.counted = padding == Padding::counted ? layout.padded : layout.elements;
    phase.error = {rank.worker_c.data(), rank.worker_scale.data()};
    phase.signs = rank.signs.data();
    phase.workspace = rank.workspace.data();
    require(worker_phase(phase, nullptr), "worker_phase");
  }

  void serve(std::size_t r, const std::vector<std::vector<std::uint8_t>>& sent,
             const DeviceBuffer<float>& worker_scales) const {
    const auto begin = std::ptrdiff_t(r * layout.chunk_bytes());
    const auto end = begin + std::ptrdiff_t(layout.chunk_bytes());
    std::vector<std::uint8_t> received;
    for (const auto& signs : sent) {
      received.insert(received.end(), signs.begin() + begin, signs.begin() + end);
    }
    const auto on_device = upload(received);
    ServerPhase phase;
    phase.received = on_device.data();
    phase.worker_scales = worker_scales.data();
    phase.ranks = layout.ranks;
    phase.chunk = layout.chunk;
    phase.counted = padding == Padding::counted ? layout.chunk : layout.real_in_chunk(int(r));
    phase.error = {ranks[r].server_c.data(), ranks[r].server_scale.data()};
    phase.signs = ranks[r].served.data();
    phase.workspace = ranks[r].workspace.data();
    require(server_phase(phase, nullptr), "server_phase");
  }
};

}  // namespace lambcast::cuda
