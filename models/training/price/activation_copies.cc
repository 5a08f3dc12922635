#include "models/training/price/activation_copies.h"

namespace lambcast {

CopyRates copy_rates(const parallel::ActivationOffload& offload, const HostCopies& copies) {
  const bool hidden = !offload.checkpoints;
  return {copies.to_host(hidden), copies.to_device(hidden), hidden};
}

void wait_for_copies(ChunkPrice& chunk, ChunkReads& reads, Bytes copied, const CopyRates& rates,
                     double off) {
  const auto wait = [&](Bandwidth rate, Duration blocks) {
    return beyond((copied / rate).scaled(off), rates.hidden ? blocks : Duration());
  };
  reads.to_host = wait(rates.down.value, chunk.blocks_forward);
  reads.to_gpu = wait(rates.up.value, chunk.blocks_backward);
  reads.copies = rates;
  chunk.forward.compute += reads.to_host;
  chunk.blocks_forward += reads.to_host;
  chunk.input_gradient.compute += reads.to_gpu;
  chunk.blocks_backward += reads.to_gpu;
}

void read_copies(const ChunkReads& reads, double passes, CostSources& sources) {
  const auto read = [&](Duration waited, std::string_view cost, const Sourced<Bandwidth>& rate) {
    if (waited > Duration()) sources.read_for(waited.scaled(passes), cost, rate.provenance);
  };
  read(reads.to_host, "host_copies", reads.copies.down);
  read(reads.to_gpu, "host_copies_to_gpu", reads.copies.up);
}

}  // namespace lambcast
