#include "validate/importers/importers.h"

#include <fmt/format.h>

#include "validate/importers/lines.h"

namespace lambcast::validate {
namespace {

// Our CSV says all that the hints could, but may leave the nodes out: what contradicts it is
// refused.
std::vector<Measurement> import_csv(std::string_view text, std::string_view name,
                                    const ImportHints& hints) {
  const std::string file(name);
  Measurement m = read_measurement_csv(text, file);
  if (hints.operation && *hints.operation != m.operation) {
    fail_input({file, 0, "--op"}, fmt::format("is a table of {}, not of {}", name_of(m.operation),
                                              name_of(*hints.operation)));
  }
  const auto agree = [&](const char* flag, std::optional<int> said, std::optional<int> hint) {
    if (said && hint && *said != *hint) {
      fail_input({file, 0, flag}, fmt::format("the file says {}, not {}", *said, *hint));
    }
  };
  agree("--ranks", m.ranks, hints.ranks);
  agree("--nodes", m.nodes, hints.nodes);
  if (hints.nodes) m.nodes = hints.nodes;
  return {m};
}

}  // namespace

std::vector<Measurement> import_measurements(std::string_view text, std::string_view name,
                                             const ImportHints& hints) {
  if (starts_with(trimmed(text), "\n") || trimmed(text).empty()) {
    text = text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  }
  const bool json = starts_with(trimmed(text), "{");
  if (json && contains(text, "\"results\"")) return import_nccl_tests_json(text, name, hints);
  const auto other = json                                   ? import_iperf3
                     : contains(text, "# OSU ")             ? import_osu
                     : contains(text, "#bytes")             ? import_perftest
                     : contains(text, "size_bytes,time_us") ? import_csv
                                                            : nullptr;
  if (other == nullptr) return import_nccl_tests_text(text, name, hints);
  if (hints.in_place) {
    fail_input({std::string(name), 0, "--in-place"}, "only nccl-tests prints in-place columns");
  }
  return other(text, name, hints);
}

}  // namespace lambcast::validate
