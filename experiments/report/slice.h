// A sweep has more dimensions than a picture. A slice fixes the dimensions that a figure does not
// show by fixed rules, and records the values for the caption.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/report/point.h"

namespace lambcast::report {

// Returns the warm-up of the published 1-bit LAMB run (models/optimizer/onebit_lamb.cc), which the
// figures of all optimizers use.
double published_freeze_share();

using Points = std::vector<const Point*>;

struct Slice {
  Points points;
  std::vector<std::string> facts;   // everything fixed: "bert-large", "seq_len 128", ...
  std::string batch;                // the fact about the batch: "global batch 65536"
  std::vector<std::string> folded;  // facts for the title, since rows with other values exist
};

// Returns the rows that ran with a backend that does not end with an error, with the most common
// model, sequence length and network model. For each cluster and optimizer it keeps the most common
// kernel costs, device, GPUs per node, precision, ZeRO stage, overlap, symmetry and other settings.
Slice settled(const std::vector<Point>& points);

// The rows of a report and their common slice, computed once for all figures.
struct Rows {
  Rows(const std::vector<Point>& points) : all(points), settled(report::settled(points)) {}
  const std::vector<Point>& all;  // must outlive this object
  Slice settled;
};

void keep_if(Slice& slice, const std::function<bool(const Point&)>& wanted);

// Keeps the rows with the most common value of `field`; the first in the file wins a tie. NaN and
// empty text count as values, but are not recorded in `facts` or `folded`.
void keep_most_common(Slice& slice, std::string_view label, Name Point::*field);
void keep_most_common(Slice& slice, std::string_view label, double Point::*field);

// Keeps the most common value of `field` for each cluster. An optimizer that never ran with it
// there keeps its own most common value, since stacks have their own kernels for some optimizers.
void keep_usual(Slice& slice, std::string_view label, Name Point::*field);

// Keeps one number of GPUs per node for each cluster. A single node may have fewer GPUs.
void keep_usual_gpus_per_node(Slice& slice);

// Keeps the rows of nccl if there are any, else of the most common backend. Plain and compressed
// rows are treated separately, since a compressed backend does not send plain gradients.
void keep_usual_backend(Slice& slice);

// Keeps the compressed rows with the freeze share nearest to the published one, separately for each
// number of steps.
void keep_published_freeze(Slice& slice);

// Keeps the most common NIC bandwidth of each cluster, so that a scan over bandwidths does not
// affect other figures. Of several that are equally common it keeps the least, middle and largest.
void keep_usual_nic(Slice& slice);

// Returns at most `most` of all values, evenly chosen, with the first and the last.
std::vector<double> evenly_chosen(const std::vector<double>& all, std::size_t most);

// Keeps the largest global batch for which `enough` holds (strong scaling), else the most common
// micro batch and accumulation for which it holds (weak scaling). Returns false and changes nothing
// if neither exists.
bool keep_batch(Slice& slice, const std::function<bool(const Points&)>& enough);

// Calls keep_batch(), and also keeps the most common number of steps of that batch, for which
// `enough` must hold.
bool keep_batch_and_steps(Slice& slice, const std::function<bool(const Points&)>& enough);

// Returns a number usable as a key: 0 in place of NaN, which does not equal itself. No row that ran
// has 0.
inline double or_zero(double value) { return std::isnan(value) ? 0 : value; }

// Position of a row in a figure. 0 stands for a missing number, since no row that ran has it.
struct Coordinates {
  std::array<Name, 4> names;
  std::array<double, 3> numbers = {};
  bool operator==(const Coordinates&) const = default;
};

// Keeps the fastest of the rows with equal `coordinates`, and records the fields in which they
// differed.
void keep_fastest(Slice& slice, const std::function<Coordinates(const Point&)>& coordinates);

Points of_cluster(const Points& points, const std::string& cluster);
bool any_cluster(const Points& points, const std::function<bool(const Points&)>& holds);
Points select(const Points& points, const std::function<bool(const Point&)>& wanted);
// Returns whether there are two or more values.
bool vary(const Points& points, double Point::*field);
std::vector<double> values(const Points& points, double Point::*field);  // ascending
// in the order of the file
std::vector<std::string> names(const Points& points, Name Point::*field);

// Returns what distinguishes `point` among `points`, except model, cluster, optimizer, batch and
// backend: "precision fp16", "cluster.node.gpu_link=25GB/s".
std::vector<std::string> apart(const Point& point, const std::vector<Point>& points);

// Formats the fixed values: "bert-large, global batch 65536, backend nccl".
std::string stated(const Slice& slice);

}  // namespace lambcast::report
