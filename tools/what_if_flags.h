// The what-if flags that simulate (and later commands) share: every key of WhatIf as --key-with-
// dashes, and --set KEY=VALUE.
#pragma once

#include <CLI/CLI.hpp>

#include "experiments/scenario.h"

namespace lambcast {

// `what_if` must outlive the parse.
void add_what_if_flags(CLI::App& command, WhatIf& what_if);

}  // namespace lambcast
