// Learns topologies/priors.toml from the fabrics whose tables ship: what NCCL makes of a network
// that nobody measured, and by how much fabrics differ.
//
// typical   one set of factors for all fabrics of a kind, each description otherwise as it was
//           before any fit (validate/calibrate/bases): that which forecasts their tables best, by
//           robust least squares of log(forecast / measured) over as many rows of each band of size
//           from each fabric, however long its tables are. What one fabric alone feels is not
//           typical of any other: midway, in logarithms, between its value and where the search
//           begins, which counts as a second fabric
// spread    of the logarithm: how far each fabric's own best set lies from it, root mean square
//           over the fabrics whose tables determine the factor, each counting as much as they do;
//           where none does, or one alone feels it, the width of the weak prior that it was
//           fitted under
// fabrics   how many determine it: their tables rather than what is typical of the rest contribute
//           half or more of what their own best set knows of it
#pragma once

#include <span>
#include <string>
#include <vector>

#include "topologies/priors.h"
#include "validate/measurement.h"

namespace lambcast::validate {

struct LearningFabric {
  std::string name;
  std::string description;  // TOML, before any fit
  NetworkKind network = NetworkKind::rdma;
  std::vector<Measurement> tables;
};

// The fabrics of the tables that ship and NCCL ran on; `validate` is the folder of that name.
std::vector<LearningFabric> fabrics_to_learn_from(const std::string& validate);

// log(forecast / measured) of every row, and its size, of a fabric under priors.
struct RowError {
  Bytes size;
  double error = 0;
};
std::vector<RowError> errors_under(const LearningFabric& fabric, const Priors& priors);

// Learns from the fabrics of one kind, without the fabric `without` if that is not empty. Sets the
// spreads only if requested.
Priors::OfKind learn_kind(std::span<const LearningFabric> fabrics, NetworkKind network,
                          const std::string& without, bool with_spreads);

Priors learn_priors(std::span<const LearningFabric> fabrics);

// As topologies/priors.toml, learned from these.
std::string priors_text(const Priors& priors, std::span<const LearningFabric> fabrics);

}  // namespace lambcast::validate
