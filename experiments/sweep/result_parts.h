// results.csv in long form, which spreadsheets and data frames pivot without knowing its columns:
// parts.csv has a row for every part of every kind of step of every point that was forecast.
//
//   row             of results.csv, from 1
//   ...             the keys of the point: the columns of results.csv that a what-if has too, and
//                   settings; one that is empty in every row is left out
//   stage           uniform, warmup, compression, silent, refresh, round or dry_run
//   steps_of_stage
//   part            forward, backward, exposed_comm, compress, decompress, optimizer or bubble
//   time_us         of one step of that kind, as results.csv has it
//
// The parts of a step add up to its step_time_us.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace lambcast {

// All columns that a file may have.
const std::vector<std::string>& part_columns();

// Writes parts.csv into a folder that holds results.csv, row by row, and returns its path. Throws
// Error (usage) where results.csv cannot be read or lacks a column, and where parts.csv is there
// and something else; (failure) where it cannot be written.
std::filesystem::path write_parts(const std::filesystem::path& folder);

}  // namespace lambcast
