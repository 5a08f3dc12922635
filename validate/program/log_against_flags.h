// Compares the settings of a log with the flags of a user. Settings that the flags leave open are
// filled from the log. A flag that contradicts the log is rejected, with both values and the line.
//
// The comparison covers layout, GPUs, batch, sequence length, ZeRO stage, number format,
// recomputation, framework, optimizer, fusion and sizes of the model (vocabularies may differ by
// their padding): first by the text of flags, then by the resolved run, so that values of files and
// presets count too. All other settings are only filled, not compared, since flags may be more
// exact than the importer of a program's arguments.
#pragma once

#include <string>

#include "validate/program/log_settings.h"
#include "validate/replay/source.h"

namespace lambcast {

// Fills the settings that the flags leave open; returns a sentence that lists them. Throws Error
// (usage) if a flag contradicts the log.
std::string fill_from_log(const LogSettings& settings, const std::string& file,
                          SourceFigure& figure);

// Throws Error (usage) if the resolved run (flags and files) contradicts the log in GPUs, layout,
// batch, sequence length or sizes of the model.
void check_against_log(const LogSettings& settings, const std::string& file,
                       const SourceFigure& figure);

}  // namespace lambcast
