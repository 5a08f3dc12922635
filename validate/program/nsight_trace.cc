#include <dlfcn.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <limits>
#include <memory>
#include <type_traits>
#include <unordered_map>

#include "sim/base/error.h"
#include "validate/program/recorded_trace.h"

namespace lambcast {
namespace {

constexpr double us_per_ns = 1e-3;

// SQLite, loaded when the first export is read. Linking it would make every start of the program a
// third slower.
struct Sqlite {
  decltype(&sqlite3_open_v2) open;
  decltype(&sqlite3_close) close;
  decltype(&sqlite3_prepare_v2) prepare;
  decltype(&sqlite3_step) step;
  decltype(&sqlite3_finalize) finalize;
  decltype(&sqlite3_column_int64) whole;
  decltype(&sqlite3_column_text) text;
  decltype(&sqlite3_errmsg) message;
};

Sqlite load_sqlite() {
  void* const library = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);
  const auto load = [library](auto& function, const char* name) {
    void* const symbol = library == nullptr ? nullptr : dlsym(library, name);
    if (symbol == nullptr)
      throw Error(Exit::missing,
                  "--job-trace: an export of Nsight Systems is read by SQLite 3, which is not "
                  "installed; try: apt install libsqlite3-0");
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
  };
  Sqlite loaded{};
  load(loaded.open, "sqlite3_open_v2");
  load(loaded.close, "sqlite3_close");
  load(loaded.prepare, "sqlite3_prepare_v2");
  load(loaded.step, "sqlite3_step");
  load(loaded.finalize, "sqlite3_finalize");
  load(loaded.whole, "sqlite3_column_int64");
  load(loaded.text, "sqlite3_column_text");
  load(loaded.message, "sqlite3_errmsg");
  return loaded;
}

const Sqlite& sqlite() {
  static const Sqlite loaded = load_sqlite();
  return loaded;
}

class Database {
 public:
  explicit Database(const std::string& path) : path_(path), connection_(nullptr, sqlite().close) {
    sqlite3* opened = nullptr;
    const int status = sqlite().open(path.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
    connection_.reset(opened);
    if (status != SQLITE_OK) refuse();
  }

  // Calls `row` for each row of the query.
  void each(const std::string& query, const std::function<void(sqlite3_stmt*)>& row) const {
    sqlite3_stmt* prepared = nullptr;
    if (sqlite().prepare(connection_.get(), query.c_str(), -1, &prepared, nullptr) != SQLITE_OK)
      refuse();
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(prepared,
                                                                          sqlite().finalize);
    int status = SQLITE_ROW;
    while ((status = sqlite().step(prepared)) == SQLITE_ROW) row(prepared);
    if (status != SQLITE_DONE) refuse();
  }

  // Returns whether a table exists and has the column.
  bool has(const std::string& table, const std::string& column) const {
    bool found = false;
    each(fmt::format("SELECT 1 FROM pragma_table_info('{}') WHERE name = '{}'", table, column),
         [&](sqlite3_stmt*) { found = true; });
    return found;
  }

 private:
  [[noreturn]] void refuse() const {
    fail_input({path_, 0, "--job-trace"},
               fmt::format("is an SQLite file that is truncated or damaged ({})",
                           sqlite().message(connection_.get())),
               "nsys export --type sqlite REPORT.nsys-rep");
  }

  const std::string& path_;
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> connection_;
};

std::string text_at(sqlite3_stmt* row, int column) {
  const unsigned char* text = sqlite().text(row, column);
  return text == nullptr ? std::string() : reinterpret_cast<const char*>(text);
}

constexpr std::string_view step_names[] = {"profilerstep", "train_step", "training_step",
                                           "iteration",    "iter",       "step"};
// Returns the index in step_names of a name such as "step 7", "Iteration_7" or "ProfilerStep#7",
// and the size of step_names for any other name.
std::size_t step_name_of(std::string name) {
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (std::size_t i = 0; i < std::size(step_names); ++i) {
    if (!name.starts_with(step_names[i])) continue;
    const std::string_view number = std::string_view(name).substr(step_names[i].size());
    const auto digits = number.find_first_not_of(" _:#-=");
    if (digits != number.npos && number.find_first_not_of("0123456789", digits) == number.npos)
      return i;
  }
  return std::size(step_names);
}

class NsightReader {
 public:
  explicit NsightReader(const std::string& path) : path_(path), database_(path) {}

  RecordedTrace read() {
    check_tables();
    choose_gpu();
    read_ranges();
    read_launches();
    for (const char* table : {"KERNEL", "MEMCPY", "MEMSET"}) read_activity(table);
    std::erase_if(trace_.steps_of_gpu,
                  [](const auto& span) { return !(span.first < span.second); });
    if (database_.has("TARGET_INFO_GPU", "name"))
      database_.each("SELECT name FROM TARGET_INFO_GPU LIMIT 1",
                     [&](sqlite3_stmt* row) { trace_.gpu = text_at(row, 0); });
    return std::move(trace_);
  }

 private:
  void check_tables() const {
    if (database_.has(kernel_table, "start")) return;
    const bool graphs = database_.has("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "start");
    fail_input({path_, 0, "--job-trace"},
               graphs ? "traces CUDA graphs as a whole, without their kernels"
                      : "is an SQLite file without kernels of Nsight Systems",
               graphs ? "nsys profile --cuda-graph-trace=node"
                      : "nsys profile --trace=cuda,nvtx, then nsys export --type sqlite");
  }

  // Chooses the GPU with the lowest number, and one of its processes.
  void choose_gpu() {
    if (!database_.has(kernel_table, "deviceId")) return;
    const bool names_process = database_.has(kernel_table, "globalPid");
    trace_.gpus = 0;
    database_.each(fmt::format("SELECT DISTINCT deviceId, {} FROM {} ORDER BY 1, 2",
                               names_process ? "globalPid" : "0", kernel_table),
                   [&](sqlite3_stmt* row) {
                     if (++trace_.gpus > 1) return;
                     process_ = names_process ? sqlite().whole(row, 1) : any_process;
                     of_gpu_ = fmt::format("WHERE deviceId = {}", sqlite().whole(row, 0));
                     if (names_process) of_gpu_ += fmt::format(" AND globalPid = {}", process_);
                   });
  }

  // Reads the ranges of the chosen process that mark steps, with the first name of step_names that
  // occurs. A thread's number without its lower 24 bits identifies its process.
  void read_ranges() {
    if (!database_.has("NVTX_EVENTS", "end")) return;
    const bool by_id = database_.has("NVTX_EVENTS", "textId");
    const std::string process =
        process_ == any_process || !database_.has("NVTX_EVENTS", "globalTid")
            ? ""
            : fmt::format("AND globalTid >> 24 = {}", process_ >> 24);
    std::size_t best = std::size(step_names);
    database_.each(
        fmt::format(
            "SELECT start, end, {} FROM NVTX_EVENTS WHERE end > start {} ORDER BY start",
            by_id ? "COALESCE(text, (SELECT value FROM StringIds WHERE id = textId))" : "text",
            process),
        [&](sqlite3_stmt* row) {
          const std::size_t name = step_name_of(text_at(row, 2));
          if (name > best || name == std::size(step_names)) return;
          if (name < best) ranges_.clear();
          best = name;
          ranges_.emplace_back(sqlite().whole(row, 0), sqlite().whole(row, 1));
        });
    for (const auto& [begin, end] : ranges_)
      trace_.steps.emplace_back(static_cast<double>(begin) * us_per_ns,
                                static_cast<double>(end) * us_per_ns);
  }

  // Assigns each call of the process to a step, by the call's number.
  void read_launches() {
    const std::string table = "CUPTI_ACTIVITY_KIND_RUNTIME";
    if (ranges_.empty() || !database_.has(table, "correlationId")) return;
    const bool by_process = process_ != any_process && database_.has(table, "globalTid");
    database_.each(
        fmt::format("SELECT start, correlationId FROM {} {}", table,
                    by_process ? fmt::format("WHERE globalTid >> 24 = {}", process_ >> 24) : ""),
        [&](sqlite3_stmt* row) {
          const sqlite3_int64 at = sqlite().whole(row, 0);
          const auto after = std::ranges::upper_bound(
              ranges_, at, {}, &std::pair<sqlite3_int64, sqlite3_int64>::first);
          if (after == ranges_.begin() || at >= std::prev(after)->second) return;
          step_of_call_[sqlite().whole(row, 1)] =
              static_cast<std::size_t>(std::prev(after) - ranges_.begin());
        });
    if (!step_of_call_.empty())
      trace_.steps_of_gpu.assign(ranges_.size(), {std::numeric_limits<double>::infinity(), 0});
  }

  void read_activity(const std::string& kind) {
    const std::string table = "CUPTI_ACTIVITY_KIND_" + kind;
    if (!database_.has(table, "start")) return;
    const bool named = kind == "KERNEL";
    std::unordered_map<sqlite3_int64, KernelKind> kinds;
    if (named)
      database_.each("SELECT id, value FROM StringIds", [&](sqlite3_stmt* row) {
        kinds[sqlite().whole(row, 0)] = kind_of_kernel(text_at(row, 1));
      });
    const char* name = !named                                  ? "0"
                       : database_.has(table, "demangledName") ? "demangledName"
                                                               : "shortName";
    const char* call = database_.has(table, "correlationId") ? "correlationId" : "0";
    database_.each(fmt::format("SELECT start, end, {}, {} FROM {} {}", name, call, table, of_gpu_),
                   [&](sqlite3_stmt* row) {
                     const double begin = static_cast<double>(sqlite().whole(row, 0)) * us_per_ns;
                     const double end = static_cast<double>(sqlite().whole(row, 1)) * us_per_ns;
                     const auto known = kinds.find(sqlite().whole(row, 2));
                     trace_.kernels.push_back({begin, end,
                                               !named                 ? KernelKind::copies
                                               : known == kinds.end() ? KernelKind::other
                                                                      : known->second});
                     const auto step = step_of_call_.find(sqlite().whole(row, 3));
                     if (step == step_of_call_.end()) return;
                     auto& span = trace_.steps_of_gpu[step->second];
                     span = {std::min(span.first, begin), std::max(span.second, end)};
                   });
  }

  static constexpr const char* kernel_table = "CUPTI_ACTIVITY_KIND_KERNEL";
  static constexpr sqlite3_int64 any_process = -1;

  const std::string& path_;
  Database database_;
  RecordedTrace trace_;
  sqlite3_int64 process_ = any_process;
  std::string of_gpu_;
  std::vector<std::pair<sqlite3_int64, sqlite3_int64>> ranges_;  // of steps, in ns
  std::unordered_map<sqlite3_int64, std::size_t> step_of_call_;
};

}  // namespace

RecordedTrace read_nsight(const std::string& path) { return NsightReader(path).read(); }

}  // namespace lambcast
