// The all-reduce that all others replace, in 32 or 16 bits: a ring, whose partial sums are rounded
// to the format at every hop.
#pragma once

#include "kernels/emulated_world/exchange/wire.h"
#include "kernels/exchange_bytes.h"

namespace lambcast::emulated {

// Takes plain formats only: fp32, fp16, bf16.
Wire plain_allreduce(Buffers buffers, WireFormat format);

}  // namespace lambcast::emulated
