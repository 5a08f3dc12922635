// The subcommands of `lambcast`, one file each. A command adds its flags to the application and
// returns the function to run after parsing. The exit code is the function's result, or the code of
// the Error that it throws.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace lambcast {

using Command = std::function<int()>;

Command add_calibrate(CLI::App& app);
Command add_simulate(CLI::App& app);
Command add_advise(CLI::App& app);
Command add_plan(CLI::App& app);
Command add_compare(CLI::App& app);
Command add_sensitivity(CLI::App& app);
Command add_solve(CLI::App& app);
Command add_sites(CLI::App& app);
Command add_sweep(CLI::App& app);
Command add_collective(CLI::App& app);
Command add_presets(CLI::App& app);
Command add_report(CLI::App& app);
Command add_rerun(CLI::App& app);
Command add_help(CLI::App& app);
Command add_validate(CLI::App& app);
Command add_measure(CLI::App& app);
Command add_survey(CLI::App& app);
Command add_freeze(CLI::App& app);
Command add_profile(CLI::App& app);

}  // namespace lambcast
