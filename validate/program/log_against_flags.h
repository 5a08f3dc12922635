// Comparison of the settings of a log with the flags of a user. A setting that the flags leave open
// is filled from the log. A flag that contradicts the log is refused with both values and the line.
//
// Compared are layout, GPUs, batch, sequence length, ZeRO stage, number format, recomputation,
// framework, optimizer, fusion and sizes of the model (vocabularies may differ by their padding):
// by the words of flags first, then as the run is resolved, so that the values of files and presets
// count too. All other settings are filled alone, since flags may be more exact than the importer
// of a program's arguments.
#pragma once

#include <string>

#include "validate/program/log_settings.h"
#include "validate/replay/source.h"

namespace lambcast {

// Fills what the flags leave open, and returns the sentence that lists it. Throws Error (usage)
// if a flag contradicts the log.
std::string fill_from_log(const LogSettings& settings, const std::string& file,
                          SourceFigure& figure);

// Throws Error (usage) if the run of the flags and their files, as resolved, contradicts the log:
// GPUs, layout, batch, sequence length and sizes of the model.
void check_against_log(const LogSettings& settings, const std::string& file,
                       const SourceFigure& figure);

}  // namespace lambcast
