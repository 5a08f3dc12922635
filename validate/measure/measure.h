// Times real collectives. Both backends follow nccl-tests: for each size fill, run and check, warm
// up, time, report. They differ in the timed interval:
//
//   MPI    one iteration at a time, each after a barrier, so that a row has a spread. The
//          processes of a blocking MPI call leave the barrier at slightly different times; -a 3
//          (the slowest rank) includes that difference.
//   NCCL   all iterations enqueued back to back on one stream per GPU, then one synchronisation:
//          the time is that of the whole batch divided by the iterations; no spread.
//
// If the operation has an in-place form, each size is run again in place, as in training.
//
// Operations: all of Operation except `stream`; `ping_pong` with MPI only. compressed_allreduce
// with NCCL is timed completely, from the fp32 vector of every rank to the decoded average,
// including compression kernels. With MPI it is the exchange of DeepSpeed's MPI backend, without
// kernels.
//
// NCCL runs over all local GPUs in one process, or over -g GPUs (one if not given) per process
// under mpirun, srun or torchrun (launch.h). share_gpu puts several ranks on one GPU
// (shared_gpu.h): -g threads of one process, or the processes of a launcher.
//
// Rows are written as sizes finish (report.h). Return 0, or 1 if a result was wrong. Throw
// Error{Exit::missing} with one sentence if the library or the hardware is missing,
// Error{Exit::usage} for options that do not fit the ranks. Only rank 0 writes to `out`. With
// share_gpu and without a launcher, a rank that fails ends the process.
#pragma once

#include <ostream>

#include "validate/measure/options.h"

namespace lambcast::validate {

int measure_mpi(const MeasureOptions& options, std::ostream& out);
int measure_nccl(const MeasureOptions& options, std::ostream& out);

}  // namespace lambcast::validate
