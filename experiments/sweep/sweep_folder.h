// What a sweep keeps on disk, and how it finds it again.
//
//   results.csv     a header and one row per point, in the order of the plan: always a prefix of it
//   results.sums    one line per row: FNV-1a of the row, as 16 hex digits, and + for a row that is
//                   "ok" or - for one that is not; written before the row, so that a row that is
//                   whole has its line
//   manifest.json   what the sweep is, hashes of all that it reads, the version of the program; and
//                   once the last row is there, "complete"
//
// A sweep that goes on reads the rows against their sums. It cuts the file behind the last good
// row, be it torn by a kill or damaged by hand, and computes again from there; nothing is ever
// appended behind a row that was not checked. It is refused where the plan, a file that it names,
// or the program is not what it was, since old and new rows would not belong together.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/sweep/folder_lock.h"
#include "experiments/sweep/sweep_executor.h"
#include "experiments/sweep/sweep_plan.h"
#include "sim/base/durable_file.h"

namespace lambcast {

class SweepFolder {
 public:
  using Note = std::function<void(const std::string&)>;

  // Creates the folder, or finds the rows that are there when `resume` is set. `inputs` are the
  // hashes of what the sweep reads. Throws Error (usage) when the folder holds results already and
  // `resume` is not set, holds those of another sweep, files of somebody else, or is being written
  // by another process; (failure) when it cannot be written. `note` is told what a user should
  // know.
  SweepFolder(const std::filesystem::path& folder, const SweepPlan& plan,
              const std::map<std::string, std::string>& inputs, bool resume, const Note& note);

  std::size_t rows() const { return rows_; }
  std::size_t infeasible() const { return infeasible_; }

  // Throws Error (failure) when they cannot be written, as on a full disk.
  void append(const std::vector<SweepRow>& rows);
  // Brings all to disk, and the manifest up to date: complete when no row is missing.
  void finish();

 private:
  void check_manifest() const;
  void open_rows(const Note& note);
  void sync();

  std::filesystem::path folder_;
  const SweepPlan& plan_;
  std::map<std::string, std::string> inputs_;
  FolderLock lock_;
  std::optional<AppendedFile> results_, sums_;
  std::size_t rows_ = 0, infeasible_ = 0;
  std::chrono::steady_clock::time_point synced_ = std::chrono::steady_clock::now();
};

}  // namespace lambcast
