// Learns topologies/priors.toml from the fabrics whose tables ship: NCCL's performance on a network
// without measurements, and the spread between fabrics.
//
//   typical   one set of factors for all fabrics of a kind, with each description as it was before
//             any fit (validate/calibrate/bases). The set forecasts their tables best, by robust
//             least squares of log(forecast / measured). Each fabric has the same number of rows in
//             each size band, however long its tables are. A factor that only one fabric determines
//             is set midway, in logarithms, between that fabric's value and the start of the
//             search, which counts as a second fabric
//   spread    of the logarithm: distance of each fabric's own best set from the typical one, as a
//             root mean square over the fabrics whose tables determine the factor, weighted by how
//             far they do. If none does, or only one, it is the width of the weak prior of the fit
//   fabrics   number of fabrics that determine the factor: their own tables, rather than the
//             typical value of the others, contribute half or more of the information
#pragma once

#include <span>
#include <string>
#include <vector>

#include "topologies/priors.h"
#include "validate/measurement.h"

namespace lambcast::validate {

struct LearningFabric {
  std::string name;
  std::string description;  // TOML before any fit
  NetworkKind network = NetworkKind::rdma;
  std::vector<Measurement> tables;
};

// Returns the fabrics whose tables ship and were measured with NCCL; `validate` is the folder of
// that name.
std::vector<LearningFabric> fabrics_to_learn_from(const std::string& validate);

// log(forecast / measured) of a row, and its size, for a fabric forecast with priors.
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

// Formats priors as topologies/priors.toml; `fabrics` are those they were learned from.
std::string priors_text(const Priors& priors, std::span<const LearningFabric> fabrics);

}  // namespace lambcast::validate
