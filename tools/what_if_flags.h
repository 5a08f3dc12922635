// The what-if flags that several commands share: every key of WhatIf as --key-with-dashes, and
// --set KEY=VALUE.
#pragma once

#include <CLI/CLI.hpp>

#include "experiments/scenario/scenario.h"

namespace lambcast {

// Adds the flags; `what_if` must outlive the parse.
void add_what_if_flags(CLI::App& command, WhatIf& what_if);

// Restricts add_what_if_flags to the flags that occur among `words`; null: no restriction. CLI11
// compares each new flag with all others, which takes longer than a small forecast.
void declare_only(const std::vector<std::string>* words);

// Replaces each switch, with or without "true" or "false" after it, by --switch=VALUE, so that no
// word after it is taken for its value.
std::vector<std::string> with_switches_spelled_out(std::vector<std::string> words);

}  // namespace lambcast
