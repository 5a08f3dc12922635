#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "experiments/forecast_output.h"
#include "experiments/result_row.h"
#include "experiments/sweep.h"
#include "models/training/forecast.h"
#include "sim/base/csv.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr std::size_t chunk_points = 32;
constexpr std::string_view first_columns = "model,cluster,";  // of every version

std::string read_all(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Through a second file, so that a kill leaves the old text or the new one.
void write_all(const fs::path& path, const std::string& text) {
  const fs::path part = path.string() + ".part";
  std::ofstream file(part, std::ios::binary | std::ios::trunc);
  file << text;
  std::error_code error;
  if (file.flush()) fs::rename(part, path, error);
  if (!file || error)
    throw Error(Exit::failure, fmt::format("{}: cannot be written", path.string()));
}

std::string manifest_text(const SweepPlan& plan, const SweepSummary* summary) {
  Json json{{"schema_version", 1},
            {"tool", "lambcast"},
            {"version", tool_version},
            {"name", plan.name},
            {"description", plan.description},
            {"sweep_hash", "fnv1a64:" + plan.text_hash},
            {"points", plan.points.size()},
            {"complete", summary != nullptr && summary->complete}};
  if (summary != nullptr) json["infeasible"] = summary->infeasible;
  json["axes"] = Json::object();
  for (const auto& [key, values] : axes_of(plan.points)) json["axes"][key] = values;
  json["columns"] = result_columns();
  return json.dump(2) + "\n";
}

// Rows that are whole, after cutting a torn last line off the file.
std::size_t recover(const fs::path& path, const std::string& header, std::size_t points) {
  const std::string text = read_all(path);
  if ((header + "\n").starts_with(text)) {
    write_all(path, header + "\n");
    return 0;
  }
  const std::size_t whole = text.rfind('\n') + 1;
  const auto rows =
      std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(whole), '\n') - 1;
  // Of this sweep, as its hash says, but with the columns of another version.
  if (text.starts_with(first_columns) && !text.starts_with(header + "\n"))
    throw Error(Exit::usage,
                fmt::format("{}: has the columns of another version of lambcast, which cannot be "
                            "continued; choose another --out",
                            path.string()));
  if (!text.starts_with(header + "\n") || static_cast<std::size_t>(rows) > points)
    throw Error(Exit::usage, fmt::format("{}: is not the results of this sweep", path.string()));
  if (whole < text.size()) fs::resize_file(path, whole);
  return static_cast<std::size_t>(rows);
}

// Two sweeps that write into one folder would mix their rows. The lock ends with the process,
// however that ends.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& folder) : file_(open(folder.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (file_ < 0 || flock(file_, LOCK_EX | LOCK_NB) == 0) return;
    close(file_);
    throw Error(Exit::usage, fmt::format("{}: another sweep writes there now", folder.string()));
  }
  ~FolderLock() { close(file_); }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_;
};

// Where to go on: the number of rows on disk that belong to this plan.
std::size_t open_results(const SweepPlan& plan, const SweepOptions& options,
                         const std::string& header) {
  const fs::path results = options.out / "results.csv", manifest = options.out / "manifest.json";
  if (fs::exists(results)) {
    if (!options.resume)
      throw Error(
          Exit::usage,
          fmt::format("{}: holds results already; go on with --resume, or choose another --out",
                      options.out.string()));
    const Json old = Json::parse(read_all(manifest), nullptr, false);
    if (old.is_discarded() || old.value("sweep_hash", "") != "fnv1a64:" + plan.text_hash)
      throw Error(Exit::usage,
                  fmt::format("{}: holds the results of another sweep; choose another --out",
                              options.out.string()));
    return recover(results, header, plan.points.size());
  }
  write_all(manifest, manifest_text(plan, nullptr));
  write_all(results, header + "\n");
  return 0;
}

// Workers take chunks in order; the caller writes them in order.
class Workers {
 public:
  Workers(const SweepPlan& plan, std::size_t first, int jobs) : plan_(plan), next_(first) {
    for (int i = 0; i < jobs; ++i) threads_.emplace_back([this] { work(); });
  }
  ~Workers() {
    {
      // Under the lock, or a worker about to wait would miss it.
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    free_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  // The rows of the chunk that begins at `begin`, once they are done.
  std::string wait_for(std::size_t begin) {
    std::unique_lock lock(mutex_);
    written_ = begin;
    free_.notify_all();
    done_.wait(lock, [&] { return chunks_.contains(begin) || failure_ != nullptr; });
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    auto chunk = chunks_.extract(begin);
    return std::move(chunk.mapped());
  }

 private:
  void work() {
    CollectiveCosts costs;
    try {
      while (true) {
        std::size_t begin = 0;
        {
          std::unique_lock lock(mutex_);
          // Not too far ahead of the writer, so that memory stays bounded.
          free_.wait(lock, [&] { return stop_ || next_ < written_ + 4096; });
          if (stop_ || next_ >= plan_.points.size()) return;
          begin = next_;
          next_ = std::min(next_ + chunk_points, plan_.points.size());
        }
        std::string rows;
        for (std::size_t i = begin; i < std::min(begin + chunk_points, plan_.points.size()); ++i)
          rows += sweep_row(plan_.points[i], catalog_, costs) + "\n";
        const std::lock_guard lock(mutex_);
        chunks_[begin] = std::move(rows);
        done_.notify_all();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      done_.notify_all();
    }
  }

  const SweepPlan& plan_;
  Catalog catalog_;
  std::mutex mutex_;
  std::condition_variable done_, free_;
  std::map<std::size_t, std::string> chunks_;
  std::size_t next_;
  std::size_t written_ = 0;
  std::exception_ptr failure_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

std::string sweep_row(const WhatIf& point, Catalog& catalog, CollectiveCosts& costs) {
  std::string row;
  try {
    const Scenario scenario = resolve(point, catalog);
    row = csv::row(result_row(scenario, forecast(scenario.training, costs)));
  } catch (const Error& error) {
    row = csv::row(infeasible_row(point, error.what()));
  }
  // A row is a line: resuming counts on it.
  std::replace(row.begin(), row.end(), '\n', ' ');
  return row;
}

SweepSummary run_sweep(const SweepPlan& plan, const SweepOptions& options) {
  const std::string header = csv::row(result_columns());
  std::error_code error;
  fs::create_directories(options.out, error);
  if (error) throw Error(Exit::usage, fmt::format("{}: {}", options.out.string(), error.message()));
  const FolderLock lock(options.out);
  const std::size_t first = open_results(plan, options, header);
  SweepSummary summary;
  summary.points = plan.points.size();
  std::ofstream results(options.out / "results.csv", std::ios::binary | std::ios::app);
  {
    Workers workers(plan, first, std::max(1, options.jobs));
    for (std::size_t begin = first; begin < plan.points.size(); begin += chunk_points) {
      results << workers.wait_for(begin);
      if (!results.flush())
        throw Error(Exit::failure,
                    fmt::format("{}: cannot be written", (options.out / "results.csv").string()));
      const std::size_t done = std::min(begin + chunk_points, plan.points.size());
      summary.written = done - first;
      if (options.progress && !options.progress(done, plan.points.size())) break;
    }
  }
  summary.complete = first + summary.written == plan.points.size();
  const csv::Table table = csv::parse(read_all(options.out / "results.csv"), "results.csv");
  for (std::size_t i = 0; i < table.rows.size(); ++i)
    if (table.text(i, "status") != "ok") ++summary.infeasible;
  write_all(options.out / "manifest.json", manifest_text(plan, &summary));
  return summary;
}

}  // namespace lambcast
