#include "validate/calibrate/measured_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/file.h"
#include "sim/base/shell_word.h"
#include "validate/calibrate/measured_series.h"

namespace lambcast::validate {

Backend backend_of_tables(std::span<const Measurement> tables, std::optional<Backend> asked) {
  std::optional<Backend> backend = asked;
  for (const Measurement& table : tables) {
    if (!table.backend) continue;
    if (backend && *table.backend != *backend)
      fail_input({table.provenance.source, 0, {}},
                 fmt::format("is a table of {}, not of {}: calibrate each separately",
                             traits_of(*table.backend).word, traits_of(*backend).word));
    backend = table.backend;
  }
  return backend.value_or(Backend::nccl);
}

std::string sources_of(std::span<const Measurement> tables) {
  std::vector<std::string> sources;
  for (const Measurement& table : tables)
    if (std::find(sources.begin(), sources.end(), table.provenance.source) == sources.end())
      sources.push_back(table.provenance.source);
  if (sources.size() <= 3) return fmt::format("{}", fmt::join(sources, "; "));
  return fmt::format("{} tables, the first: {}", tables.size(), sources.front());
}

std::string forecast_command(const std::string& description, std::span<const Measurement> tables,
                             Backend backend) {
  const Measurement& largest =
      *std::max_element(tables.begin(), tables.end(),
                        [](const auto& one, const auto& other) { return one.ranks < other.ranks; });
  const bool pair =
      largest.operation == Operation::ping_pong || largest.operation == Operation::stream;
  return fmt::format("lambcast collective --cluster {} --op {} --gpus {} --gpus-per-node {}{}",
                     shell_word(is_path(description) ? description : "./" + description),
                     pair ? "send_recv" : name_of(largest.operation), largest.ranks,
                     largest.ranks / nodes_of(largest), is_mpi(backend) ? " --backend mpi" : "");
}

}  // namespace lambcast::validate
