// Flags of calibrate and validate for facts that a log may lack: --op, --ranks, --nodes and
// --in-place.
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

#include "validate/importers/importers.h"

namespace lambcast {

// Adds the flags. `hints` must outlive the parse. Returns the options, so that the command can add
// conditions.
std::vector<CLI::Option*> add_import_flags(CLI::App& command, validate::ImportHints& hints);

// Adds the flags without --nodes, for a command that has it already.
std::vector<CLI::Option*> add_import_flags_but_nodes(CLI::App& command,
                                                     validate::ImportHints& hints);

}  // namespace lambcast
