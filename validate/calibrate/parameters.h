// Keys of a cluster description that a calibration may change, within physical bounds. The tables
// decide which of them are fitted: a fabric measured on one node does not determine its network.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "topologies/cluster.h"
#include "validate/measurement.h"

namespace lambcast::validate {

enum class Unit { microseconds, gigabytes_per_s, bytes, share };

struct Parameter {
  std::string key;  // dotted, as accepted by --set
  Unit unit;
  double start;  // in its unit; all are positive and fitted as logarithms
  double low, high;
  double prior_width;  // of the logarithm: typical distance from `start` without data
  // Another key that is set to the same value, since the tables cannot separate the two.
  std::string also{};
  // The base has no such limit; it is added only if it explains the tables better.
  bool optional = false;
};

std::vector<Parameter> parameters_for(const Cluster& base, std::span<const Measurement> tables,
                                      Backend backend);

// Formats a value as in a description: "12.3 us", "17.4 GB/s", "262144 B", "0.83".
std::string value_text(Unit unit, double value);

}  // namespace lambcast::validate
