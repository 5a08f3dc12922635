// Keys of a cluster description that a calibration may change, within physical bounds. The tables
// alone decide which of them take part: a fabric measured on one node does not determine its
// network.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "topologies/cluster.h"
#include "validate/measurement.h"

namespace lambcast::validate {

enum class Unit { microseconds, gigabytes_per_s, bytes, share };

struct Parameter {
  std::string key;  // dotted, as --set takes it
  Unit unit;
  double start;  // in its unit; all are positive and fitted as logarithms
  double low, high;
  double prior_width;  // of the logarithm: how far it may stray while the tables say nothing
  std::string also{};  // a key with the same value: the tables cannot tell the two apart
  // The base has no such limit: it comes in only where it explains the tables better.
  bool optional = false;
};

std::vector<Parameter> parameters_for(const Cluster& base, std::span<const Measurement> tables,
                                      Backend backend);

// "12.3 us", "17.4 GB/s", "262144 B", "0.83": as a description writes it.
std::string value_text(Unit unit, double value);

}  // namespace lambcast::validate
