// A sweep has more dimensions than a picture. A slice fixes the dimensions that a figure does not
// show, by stated rules, and records what it fixed for the caption.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/report/point.h"

namespace lambcast::report {

// The warm-up of the published 1-bit LAMB run (models/optimizer/onebit_lamb.cc), which figures of
// every optimizer have in common.
double published_freeze_share();

using Points = std::vector<const Point*>;

struct Slice {
  Points points;
  std::vector<std::string> facts;   // everything fixed: "bert-large", "seq_len 128", ...
  std::string batch;                // the one of them about the batch: "global batch 65536"
  std::vector<std::string> folded;  // those of them that a title names: other values exist
};

// The rows that ran, of the most common model, sequence length and network model, and per cluster
// and optimizer of the most common kernel costs, device, GPUs per node, precision, ZeRO stage,
// overlap, symmetry and other settings.
Slice settled(const std::vector<Point>& points);

// The rows of a report with what is settled of them, found once for all its figures.
struct Rows {
  Rows(const std::vector<Point>& points) : all(points), settled(report::settled(points)) {}
  const std::vector<Point>& all;  // to outlive this
  Slice settled;
};

void keep_if(Slice& slice, const std::function<bool(const Point&)>& wanted);

// Keeps the rows with the most common value of `field`; the first in the file wins a tie. NaN and
// empty count as a value, but are not stated.
void keep_most_common(Slice& slice, std::string_view label, Name Point::*field);
void keep_most_common(Slice& slice, std::string_view label, double Point::*field);

// Per cluster keeps the most common value of `field`; an optimizer that never ran with it there
// keeps its own most common one, since stacks run kernels of their own for some optimizers.
void keep_usual(Slice& slice, std::string_view label, Name Point::*field);

// Keeps one number of GPUs per node for each cluster. A single node may have fewer GPUs.
void keep_usual_gpus_per_node(Slice& slice);

// Keeps the rows of nccl if there are any, else of the most common backend. Plain and compressed
// rows are treated separately, since a compressed backend carries no plain gradients.
void keep_usual_backend(Slice& slice);

// Keeps the compressed rows with the freeze share nearest to the published one, for each number of
// steps on its own.
void keep_published_freeze(Slice& slice);

// Keeps the most common NIC bandwidth of each cluster: a scan over bandwidths must not blur other
// figures.
void keep_usual_nic(Slice& slice);

// Keeps the largest global batch for which `enough` holds (strong scaling), else the most common
// micro batch and accumulation for which it holds (weak scaling). False, and nothing changed,
// where neither does.
bool keep_batch(Slice& slice, const std::function<bool(const Points&)>& enough);

// The same, keeping the most common number of steps of that batch, for which `enough` is to hold.
bool keep_batch_and_steps(Slice& slice, const std::function<bool(const Points&)>& enough);

// Position of a row in a figure. A missing number is 0, which no row that ran has.
struct Coordinates {
  std::array<Name, 4> names;
  std::array<double, 3> numbers = {};
  bool operator==(const Coordinates&) const = default;
};

// Keeps the fastest of the rows with the same `coordinates`, and records in what they differed.
void keep_fastest(Slice& slice, const std::function<Coordinates(const Point&)>& coordinates);

Points of_cluster(const Points& points, const std::string& cluster);
bool any_cluster(const Points& points, const std::function<bool(const Points&)>& holds);
Points select(const Points& points, const std::function<bool(const Point&)>& wanted);
bool vary(const Points& points, double Point::*field);                     // two values at least
std::vector<double> values(const Points& points, double Point::*field);    // ascending
std::vector<std::string> names(const Points& points, Name Point::*field);  // as in the file

// Returns what distinguishes `point` among `points`, except model, cluster, optimizer, batch and
// backend: "precision fp16", "cluster.node.gpu_link=25GB/s".
std::vector<std::string> apart(const Point& point, const std::vector<Point>& points);

// "bert-large, global batch 65536, backend nccl".
std::string stated(const Slice& slice);

}  // namespace lambcast::report
