// Waits of the passes for copies of activations between GPU and host, by the closed form of
// models/parallel/activation_offload.h.
#pragma once

#include "models/training/price/cost_source.h"
#include "models/training/price/pass_price.h"

namespace lambcast {

// Returns the rates of the copies of `offload`.
CopyRates copy_rates(const parallel::ActivationOffload& offload, const HostCopies& copies);

// Prolongs the passes of a chunk that copies `copied` bytes each way, and sets the waits and the
// rates in `reads`. `off` is a factor on the times of copies.
void wait_for_copies(ChunkPrice& chunk, ChunkReads& reads, Bytes copied, const CopyRates& rates,
                     double off);

// Records the rates of copies for which `passes` micro batches wait.
void read_copies(const ChunkReads& reads, double passes, CostSources& sources);

}  // namespace lambcast
