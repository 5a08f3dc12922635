// The files of a sweep on disk, and how a sweep resumes from them.
//
//   results.csv     a header and one row per point, in the order of the plan: always a prefix of it
//   results.sums    one line per row: FNV-1a of the row as 16 hex digits, then + for a row that is
//                   "ok" or - for one that is not. It is written before the row, so that every
//                   whole row has its line
//   manifest.json   the sweep, hashes of all files that it reads, the version of the program, and
//                   "complete" once the last row is written
//
// A sweep that resumes checks the rows against their sums. It truncates the file after the last
// good row, whether torn by a kill or damaged by hand, and computes again from there. Nothing is
// ever appended after an unchecked row. Resuming is rejected if the plan, a file that it names, or
// the program has changed, since old and new rows would not be comparable.
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

  // Creates the folder, or finds the existing rows if `resume` is set. `inputs` are the hashes of
  // the files that the sweep reads. Throws Error (usage) if the folder holds results and `resume`
  // is not set, if it holds results of another sweep or foreign files, or if another process writes
  // it. Throws Error (failure) if it cannot be written. `note` receives notes for the user.
  SweepFolder(const std::filesystem::path& folder, const SweepPlan& plan,
              const std::map<std::string, std::string>& inputs, bool resume, const Note& note);

  std::size_t rows() const { return rows_; }
  std::size_t infeasible() const { return infeasible_; }

  // Appends rows. Throws Error (failure) if they cannot be written, for example if the disk is
  // full.
  void append(const std::vector<SweepRow>& rows);
  // Writes everything to disk and updates the manifest: complete if no row is missing.
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
