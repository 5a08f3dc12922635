// The parts of a traced step next to those of the forecast of the run:
//
//   part                      measured                       forecast
//   products                  kernels of the kind            forward and backward passes, divided
//   as attention                 (job_trace.h)                  the pieces of all blocks, embedding
//   and element-wise and rest     copies too                     head are
//   (models/device/block_time.h);
//                                                            the rest has optimizer and compression
//   exposed communication     collectives while no kernel    exposed communication
//                             computes, waits for ranks
//                             included
//   gaps                      no kernel runs                 pipeline bubble
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
