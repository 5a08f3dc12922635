// Parses the environment in which a launcher starts a process, NAME=VALUE per line.
#include <map>

#include "sim/base/fuzz_target.h"
#include "validate/measure/launch.h"

FUZZ_TARGET(launch, text) {
  using namespace lambcast;
  using namespace lambcast::validate;
  std::map<std::string, std::string> variables;
  each_line(text, [&](std::string_view line) {
    const std::size_t equals = std::min(line.find('='), line.size());
    variables[std::string(line.substr(0, equals))] = line.substr(std::min(equals + 1, line.size()));
  });
  const Environment environment = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  is_first(environment);
  const Launch launch = launch_of(environment);
  if (launch.rank < 0 || launch.rank >= launch.processes || launch.local_rank < 0 ||
      launch.token.size() > 256 || launch.port < 0 || launch.port > 65535 ||
      (launch.processes > 1 &&
       (launch.address.empty() || launch.token.empty() == launch.token_file.empty())))
    throw std::logic_error("no launch");
}
