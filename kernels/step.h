// Kinds of a distributed optimizer's step, in the emulated world and through NCCL.
#pragma once

namespace lambcast {

enum class Step {
  dry_run,  // DeepSpeed's first call (see DryRun)
  skipped,  // a gradient overflowed: no rank moves, no state changes
  full,     // gradients averaged in full precision
  onebit,   // one compressed_allreduce
  silent,   // no communication (0/1 Adam, and DeepSpeed's first step after some resumes)
};

}  // namespace lambcast
