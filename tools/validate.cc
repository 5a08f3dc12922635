#include <fmt/format.h>

#include <memory>

#include "sim/base/file.h"
#include "tools/commands.h"
#include "validate/replay/replay.h"

namespace lambcast {

Command add_validate(CLI::App& app) {
  auto against = std::make_shared<std::string>();
  auto canary = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("validate", "forecast against measurement; exit code 3 past the limits");
  command->add_option("--against", *against,
                      "cases of your own, as validate/replay/published/*.csv");
  command->add_flag("--canary", *canary, "add a case that is wrong on purpose: must exit with 3");
  return [against, canary] {
    std::vector<ReplayCase> cases =
        against->empty() ? published_cases() : parse_cases(read_file(*against), *against);
    if (*canary) cases.push_back(canary_case());
    const ReplaySummary summary = replay(cases);
    fmt::print("{}", replay_table(summary));
    return static_cast<int>(summary.within ? Exit::done : Exit::limit);
  };
}

}  // namespace lambcast
