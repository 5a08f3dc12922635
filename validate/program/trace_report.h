// Compares the parts of a traced step with those of the forecast:
//
//   products, attention,     measured: kernels of the kind (job_trace.h); copies count as rest
//   element-wise and rest    forecast: the passes, divided in proportion to the pieces of all
//                            blocks, embedding and head (models/device/block_time.h); optimizer
//                            and compression count as rest
//   exposed communication    measured: collectives while nothing computes, including waits
//                            forecast: without waits for other ranks
//   gaps                     measured: no kernel runs
//                            forecast: the bubble of a pipeline
//
// Both columns add up to the step. The largest disagreement is the largest difference in time.
// Without kernels of the model and rates of the GPU, the forecast of computation is not divided.
//
// Not modelled: gaps of a host that starts kernels too slowly are part of the forecast's passes.
#pragma once

#include <string>
#include <vector>

#include "topologies/program_level.h"
#include "validate/program/job_trace.h"

namespace lambcast {

// Throws Error (usage) if the trace is of another GPU than the run's.
std::string trace_report(const JobTrace& trace, const SourceFigure& figure);

// Returns the levels of the kinds of kernels in the traced run: measured over forecast time m_k /
// f_k, divided by sum m_k / sum f_k. The forecast is that of the program without a measured level;
// updates count among the measured element-wise kernels and are subtracted as forecast. All are 1
// if the passes are not priced kernel by kernel or the trace has no kernel of a forecast kind: an
// unfused attention runs as products and element-wise kernels.
KindLevels kind_levels(const JobTrace& trace, const SourceFigure& figure);

// Returns the levels of the kinds over several traces: the median of each kind. Traces whose levels
// are all 1 do not take part.
KindLevels median_of(std::vector<KindLevels> levels);

}  // namespace lambcast
