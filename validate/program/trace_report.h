// The parts of a traced step next to those of the forecast of the run:
//
//   products, attention,     measured: kernels of the kind (job_trace.h), copies among the rest
//   element-wise and rest    forecast: the passes, divided as the pieces of all blocks, embedding
//                            and head are (models/device/block_time.h); optimizer and compression
//                            are part of the rest
//   exposed communication    measured: collectives while nothing computes, with waits for ranks
//                            forecast: the same without those waits
//   gaps                     measured: no kernel runs
//                            forecast: the bubble of a pipeline
//
// Both columns add up to the step. The largest disagreement is that of the largest difference in
// time. Without kernels of the model and rates of the GPU the forecast of computing is not divided.
//
// Not modelled: gaps of a host that starts kernels too slowly are part of the forecast's passes.
#pragma once

#include <string>

#include "validate/program/job_trace.h"

namespace lambcast {

// Throws Error (usage) if the trace is of another GPU than the run's.
std::string trace_report(const JobTrace& trace, const SourceFigure& figure);

}  // namespace lambcast
