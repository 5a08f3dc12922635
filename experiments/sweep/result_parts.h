// results.csv in long form, which spreadsheets and data frames can pivot without its column names.
// parts.csv has a row for every part of every kind of step of every forecast point.
//
//   row             row of results.csv, from 1
//   ...             the keys of the point: columns of results.csv that are what-if keys, and
//                   settings; a key that is empty in every row is left out
//   stage           uniform, warmup, compression, silent, refresh, round or dry_run
//   steps_of_stage
//   part            forward, backward, exposed_comm, compress, decompress, optimizer or bubble
//   time_us         time in one step of that kind, as in results.csv
//
// The parts of a step add up to its step_time_us.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace lambcast {

// Returns all columns that a file may have.
const std::vector<std::string>& part_columns();

// Writes parts.csv into a folder with a results.csv, row by row, and returns its path. Throws Error
// (usage) if results.csv cannot be read or lacks a column, and if parts.csv exists and is another
// kind of file. Throws Error (failure) if it cannot be written.
std::filesystem::path write_parts(const std::filesystem::path& folder);

}  // namespace lambcast
