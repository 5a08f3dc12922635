// The all-reduce that the other exchanges replace, in 32 or 16 bits: a ring with partial sums
// rounded to the format at every hop.
#pragma once

#include "kernels/emulated_world/exchange/wire.h"
#include "kernels/exchange_bytes.h"

namespace lambcast::emulated {

// `format` must be plain: fp32, fp16 or bf16.
Wire plain_allreduce(Buffers buffers, WireFormat format);

}  // namespace lambcast::emulated
