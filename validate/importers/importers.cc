#include "validate/importers/importers.h"

#include "validate/importers/lines.h"

namespace lambcast::validate {

std::vector<Measurement> import_measurements(std::string_view text, std::string_view name,
                                             const ImportHints& hints) {
  if (starts_with(trimmed(text), "\n") || trimmed(text).empty()) {
    text = text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  }
  if (starts_with(trimmed(text), "{")) {
    return contains(text, "\"results\"") ? import_nccl_tests_json(text, name, hints)
                                         : import_iperf3(text, name, hints);
  }
  if (contains(text, "# OSU MPI")) return import_osu(text, name, hints);
  if (contains(text, "#bytes")) return import_perftest(text, name, hints);
  if (contains(text, "size_bytes,time_us")) return {read_measurement_csv(text, name)};
  return import_nccl_tests_text(text, name, hints);
}

}  // namespace lambcast::validate
