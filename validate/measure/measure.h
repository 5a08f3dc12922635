// Times real collectives. Both backends follow nccl-tests: for each size fill, run and check, warm
// up, time, report. They differ in what is timed:
//
//   MPI    each iteration by itself after a barrier, so that a row has a spread. The processes of
//          a blocking MPI call leave the barrier at slightly different times; -a 3 (the slowest
//          rank) takes that in.
//   NCCL   all iterations enqueued back to back on one stream per GPU, then one synchronisation:
//          the time is that of the whole batch over the number of iterations, no spread.
//
// Where the table has in-place columns (text, JSON) and the operation has that form, each size is
// run again in place.
//
// Operations: all of Operation but `stream`; `ping_pong` with MPI only. compressed_allreduce is
// with NCCL the whole of it, compression kernels included, from the fp32 vector of every rank to
// the decoded average; with MPI the exchange that DeepSpeed's MPI backend does, without kernels.
//
// NCCL runs over all local GPUs in one process, or over -g GPUs (one if not given) per process
// under mpirun, srun or torchrun (launch.h). share_gpu puts several ranks on one GPU
// (shared_gpu.h): -g threads of one process, or the processes of a launcher.
//
// Rows are written as sizes finish (report.h). Return 0, or 1 when a result was wrong. Throw
// Error{Exit::missing} with one sentence where the library or the hardware is not here,
// Error{Exit::usage} for options that do not fit the ranks. Only rank 0 writes to `out`. With
// share_gpu and without a launcher, a rank that fails ends the process.
#pragma once

#include <ostream>

#include "validate/measure/options.h"

namespace lambcast::validate {

int measure_mpi(const MeasureOptions& options, std::ostream& out);
int measure_nccl(const MeasureOptions& options, std::ostream& out);

}  // namespace lambcast::validate
