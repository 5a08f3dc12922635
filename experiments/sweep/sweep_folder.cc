#include "experiments/sweep/sweep_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "experiments/output/commit.h"
#include "experiments/output/forecast_output.h"
#include "experiments/sweep/result_row.h"
#include "sim/base/csv.h"
#include "sim/base/error.h"
#include "sim/base/fnv.h"
#include "sim/base/json.h"

namespace lambcast {
namespace {

namespace fs = std::filesystem;

// beginning of the header in every version
constexpr std::string_view first_columns = "model,cluster,";
constexpr std::size_t sum_bytes = 19;  // bytes of a line of results.sums
// longest time whose rows a power cut can lose
constexpr std::chrono::seconds sync_period{10};

[[noreturn]] void refuse(const fs::path& path, std::string_view why) {
  throw Error(Exit::usage, fmt::format("{}: {}; choose another --out", path.string(), why));
}

// Returns whether the file exists. Throws Error for a pipe, which would never end, and for a
// symbolic link.
bool is_there(const fs::path& path) {
  refuse_link(path);
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) refuse(path, "is not a regular file");
  return fs::exists(status);
}

// Returns nothing if the file is not a JSON object written by this program.
std::optional<Json> read_manifest(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  Json json = parse_json(text);
  const auto is_text = [&](const char* key) {
    return json.contains(key) && json.at(key).is_string();
  };
  if (!json.is_object() || !is_text("tool") || json.at("tool") != "lambcast" ||
      !is_text("version") || !is_text("sweep_hash"))
    return std::nullopt;
  return json;
}

std::string manifest_text(const SweepPlan& plan, const std::map<std::string, std::string>& inputs,
                          std::optional<std::size_t> infeasible, bool complete) {
  Json json{{"schema_version", 1},
            {"tool", "lambcast"},
            {"version", tool_version},
            {"commit", tool_commit},
            {"name", plan.name},
            {"description", plan.description},
            {"sweep_hash", "fnv1a64:" + plan.text_hash},
            {"inputs", inputs},
            {"points", plan.points.size()},
            {"complete", complete}};
  if (infeasible) json["infeasible"] = *infeasible;
  json["axes"] = Json::object();
  for (const auto& [key, values] : axes_of(plan.points)) json["axes"][key] = values;
  json["columns"] = result_columns();
  json["command"] = plan.command;
  json["sweep"] = plan.text;
  json["flags"] = Json::array();  // one element per key with its values
  for (const auto& [key, values] : plan.flags) {
    Json flag{key};
    for (const std::string& value : values) flag.push_back(value);
    json["flags"].push_back(std::move(flag));
  }
  // Names of files may contain any bytes, which json_lines() accepts.
  return json_lines(json);
}

std::string sum_line(std::string_view row, bool ok) {
  return fmt::format("{} {}\n", fnv1a64(row), ok ? '+' : '-');
}

// The rows of a file that are unchanged since they were written.
struct GoodRows {
  std::size_t rows = 0, infeasible = 0;
  std::uintmax_t bytes = 0;  // including the header
  std::size_t behind = 0;    // whole rows from the first bad one on
};

GoodRows read_rows(const fs::path& results, const fs::path& sums, std::size_t points) {
  std::ifstream rows(results, std::ios::binary), lines(sums, std::ios::binary);
  GoodRows good;
  std::string row, line;
  std::getline(rows, row);
  good.bytes = row.size() + 1;
  // If the last line is cut off, getline() reaches the end of the file.
  for (bool damaged = false; std::getline(rows, row) && !rows.eof();) {
    damaged = damaged || !std::getline(lines, line) || line.size() + 1 != sum_bytes ||
              !line.starts_with(fnv1a64(row));
    if (damaged) {
      ++good.behind;
      continue;
    }
    if (++good.rows > points) refuse(results, "is not the results of this sweep");
    good.bytes += row.size() + 1;
    if (line.back() != '+') ++good.infeasible;
  }
  if (good.rows == points && good.behind > 0) refuse(results, "is not the results of this sweep");
  return good;
}

// Returns the start of a file, and whether the file ends there.
std::pair<std::string, bool> read_start(const fs::path& path, std::size_t bytes) {
  std::ifstream file(path, std::ios::binary);
  std::string start(bytes + 1, '\0');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<std::size_t>(file.gcount()));
  return {start.substr(0, bytes), start.size() <= bytes};
}

fs::path created(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw Error(is_of_disk(error.value()) ? Exit::failure : Exit::usage,
                fmt::format("{}: {}", folder.string(), error.message()));
  return folder;
}

}  // namespace

SweepFolder::SweepFolder(const fs::path& folder, const SweepPlan& plan,
                         const std::map<std::string, std::string>& inputs, bool resume,
                         const Note& note)
    : folder_(created(folder)), plan_(plan), inputs_(inputs), lock_(folder) {
  if (!lock_.note().empty()) note(lock_.note());
  // Checks all files before any of them is read or written.
  for (const char* name : {"results.csv", "results.sums", "manifest.json"})
    is_there(folder_ / name);
  const fs::path manifest = folder_ / "manifest.json";
  const bool has_manifest = is_there(manifest);
  if (is_there(folder_ / "results.csv")) {
    if (!resume)
      throw Error(
          Exit::usage,
          fmt::format("{}: holds results already; go on with --resume, or choose another --out",
                      folder_.string()));
    check_manifest();
    open_rows(note);
    return;
  }
  if (has_manifest && !read_manifest(manifest)) refuse(manifest, "is not a manifest of lambcast");
  if (is_there(folder_ / "results.sums") && !has_manifest)
    refuse(folder_ / "results.sums", "exists, but the folder has no manifest.json of lambcast");
  replace_file(manifest, manifest_text(plan_, inputs_, std::nullopt, false));
  sums_.emplace(folder_ / "results.sums", 0);
  results_.emplace(folder_ / "results.csv", 0);
  results_->append(csv::row(result_columns()) + "\n");
}

// Throws Error (usage) naming what changed.
void SweepFolder::check_manifest() const {
  const fs::path path = folder_ / "manifest.json";
  const auto manifest = read_manifest(path);
  if (!manifest)
    refuse(path, "is missing or damaged, so the results may be those of another sweep");
  if (manifest->at("sweep_hash") != "fnv1a64:" + plan_.text_hash)
    refuse(folder_, "holds the results of another sweep");
  if (manifest->at("version") != tool_version)
    refuse(folder_, fmt::format("was begun by lambcast {}, this is {}",
                                manifest->at("version").get<std::string>(), tool_version));
  const auto before = manifest->find("inputs");
  std::vector<std::string> changed;
  for (const auto& [what, hash] : inputs_)
    if (before == manifest->end() || !before->is_object() || before->value(what, Json()) != hash)
      changed.push_back(what);
  if (!changed.empty())
    refuse(folder_, fmt::format("{} changed since the sweep began: restore it to go on",
                                fmt::join(changed, ", ")));
}

void SweepFolder::open_rows(const Note& note) {
  const fs::path results = folder_ / "results.csv", sums = folder_ / "results.sums";
  const std::string header = csv::row(result_columns()) + "\n";
  const auto [start, all] = read_start(results, header.size());
  if (all && header.starts_with(start)) {
    is_there(sums);
    sums_.emplace(sums, 0);
    results_.emplace(results, 0);
    results_->append(header);
    return;
  }
  if (start != header)
    refuse(results,
           start.starts_with(first_columns)
               ? "has the columns of another version of lambcast, which cannot be continued"
               : "is not the results of this sweep");
  if (!is_there(sums)) refuse(sums, "is missing, so the rows cannot be checked");
  const GoodRows good = read_rows(results, sums, plan_.points.size());
  if (good.behind > 0)
    note(fmt::format("{}: row {} does not match its checksum: {} rows are computed again",
                     results.string(), good.rows + 1, good.behind));
  rows_ = good.rows;
  infeasible_ = good.infeasible;
  sums_.emplace(sums, rows_ * sum_bytes);
  results_.emplace(results, good.bytes);
}

void SweepFolder::append(const std::vector<SweepRow>& rows) {
  if (rows.empty()) return;
  std::string lines, sums;
  for (const SweepRow& row : rows) {
    lines += row.text + "\n";
    sums += sum_line(row.text, row.ok);
    infeasible_ += row.ok ? 0 : 1;
  }
  sums_->append(sums);
  results_->append(lines);
  rows_ += rows.size();
  if (std::chrono::steady_clock::now() - synced_ > sync_period) sync();
}

void SweepFolder::sync() {
  sums_->sync();
  results_->sync();
  synced_ = std::chrono::steady_clock::now();
}

void SweepFolder::finish() {
  sync();
  replace_file(folder_ / "manifest.json",
               manifest_text(plan_, inputs_, infeasible_, rows_ == plan_.points.size()));
}

}  // namespace lambcast
