#include "tools/what_if_flags.h"

#include <algorithm>
#include <string>

#include "sim/base/error.h"

namespace lambcast {
namespace {

std::string flag_of(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return "--" + key;
}

}  // namespace

void add_what_if_flags(CLI::App& command, WhatIf& what_if) {
  for (const WhatIfKey& row : what_if_table()) {
    const std::string key(row.name);
    const std::string group(row.group);
    if (row.is_switch)
      command
          .add_flag_function(
              flag_of(key), [&what_if, key](std::int64_t) { what_if[key] = "true"; }, help_of(row))
          ->group(group);
    else
      command
          .add_option_function<std::string>(
              flag_of(key), [&what_if, key](const std::string& value) { what_if[key] = value; },
              help_of(row))
          ->type_name(std::string(name_of(row.type)))
          ->group(group);
  }
  command
      .add_option_function<std::vector<std::string>>(
          "--set",
          [&what_if](const std::vector<std::string>& settings) {
            for (const std::string& setting : settings) {
              const auto equals = setting.find('=');
              if (equals == std::string::npos || equals == 0)
                fail_input({"", 0, "--set"}, "'" + setting + "' is not KEY=VALUE",
                           "cluster.KEY=VALUE, device.KEY=VALUE, model.KEY=VALUE or run.KEY=VALUE");
              std::string key = setting.substr(0, equals);
              if (key.starts_with("run.")) key = key.substr(4);
              const std::string value = setting.substr(equals + 1);
              const auto [said, added] = what_if.emplace(key, value);
              if (!added && said->second != value)
                fail_input({"", 0, "--set"}, "'" + setting + "' contradicts " +
                                                 (key.find('.') == std::string::npos
                                                      ? flag_of(key) + " " + said->second
                                                      : "--set " + key + "=" + said->second));
            }
          },
          "change any key of the cluster, device, model or run: cluster.nic.bandwidth=10Gbit/s")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE")
      ->group("What runs where");
}

}  // namespace lambcast
