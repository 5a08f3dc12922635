// Rows of a sweep of one optimizer on one cluster, for tests of the figures.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "experiments/report/point.h"

namespace lambcast::report {

inline Point plain(double gpus, double samples_per_s) {
  Point p;
  p.model = "tiny";
  p.cluster = "box";
  p.optimizer = "lamb";
  p.backend = "nccl";
  p.status = "ok";
  p.baseline = "lamb";
  p.gpus = gpus;
  p.micro_batch = 16;
  p.grad_accum = 4;
  p.global_batch = 4096;
  p.seq_len = 128;
  p.steps = 1000;
  p.nic_Gbps = 10;
  p.samples_per_s = samples_per_s;
  p.run_time_s = p.steps * p.global_batch / samples_per_s;
  p.speedup = 1;
  return p;
}

inline Point packed(double gpus, double samples_per_s, double freeze_step = 167) {
  Point p = plain(gpus, samples_per_s);
  p.optimizer = "onebit_lamb";
  p.freeze_step = freeze_step;
  p.speedup = 2;
  return p;
}

// Returns the lines of a data file that gnuplot reads.
inline std::vector<std::string> rows(const std::string& data) {
  std::vector<std::string> found;
  std::istringstream in(data);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line[0] != '#') found.push_back(line);
  }
  return found;
}

}  // namespace lambcast::report
