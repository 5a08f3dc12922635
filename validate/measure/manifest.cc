#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sim/base/json.h"
#include "sim/base/printable.h"
#include "validate/measure/report.h"

extern char** environ;

namespace lambcast::validate {
namespace {

// Variables that affect how a collective runs. A prefix ends in '*'.
constexpr std::array<std::string_view, 30> kAllowed{
    "NCCL_ALGO",
    "NCCL_PROTO",
    "NCCL_NET",
    "NCCL_NET_PLUGIN",
    "NCCL_IB_*",
    "NCCL_SOCKET_*",
    "NCCL_NSOCKS_*",
    "NCCL_P2P_*",
    "NCCL_SHM_DISABLE",
    "NCCL_MIN_*",
    "NCCL_MAX_*",
    "NCCL_BUFFSIZE",
    "NCCL_CROSS_NIC",
    "NCCL_NVLS_*",
    "NCCL_MNNVL_ENABLE",
    "NCCL_CUMEM_*",
    "NCCL_RUNTIME_CONNECT",
    "NCCL_SET_STACK_SIZE",
    "NCCL_RAS_ENABLE",
    "NCCL_HOSTID",
    "OMPI_MCA_coll*",
    "OMPI_MCA_pml*",
    "OMPI_MCA_btl*",
    "OMPI_MCA_mpi_yield_when_idle",
    "UCX_TLS",
    "UCX_NET_DEVICES",
    "FI_PROVIDER",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_MODULE_LOADING",
    "CUDA_DEVICE_MAX_CONNECTIONS",
};

bool allows(std::string_view pattern, std::string_view name) {
  if (pattern.back() != '*') return pattern == name;
  pattern.remove_suffix(1);
  return name.substr(0, pattern.size()) == pattern;
}

std::string processor() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

}  // namespace

std::string kernel_name() {
  utsname kernel{};
  uname(&kernel);
  return std::string(kernel.sysname) + " " + kernel.release;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::array<char, 32> text{};
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

std::vector<std::string> allowed_environment() {
  std::vector<std::string> found;
  for (const std::string_view pattern : kAllowed) {
    std::vector<std::string> matches;
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string_view text(*entry);
      if (allows(pattern, text.substr(0, text.find('=')))) matches.emplace_back(text);
    }
    std::sort(matches.begin(), matches.end());
    found.insert(found.end(), matches.begin(), matches.end());
  }
  return found;
}

std::string manifest_json(const MeasuredTable& table) {
  const MeasureOptions& o = table.options;
  Json json;
  json["schema_version"] = 1;
  json["tool"] = "lambcast measure";
  json["written"] = utc_now();
  json["backend"] = traits_of(table.backend).word;
  json["library"] = table.library;
  json["timing"] = table.timing;
  json["options"] = {{"op", name_of(o.operation)},
                     {"min_bytes", o.min_bytes},
                     {"max_bytes", o.max_bytes},
                     {"factor", o.factor},
                     {"step_bytes", o.step_bytes},
                     {"iterations", o.iterations},
                     {"warmup", o.warmup},
                     {"check_iterations", o.check_iterations},
                     {"seconds_per_size", o.seconds_per_size},
                     {"root", o.root},
                     {"rank_time", static_cast<int>(o.rank_time)},
                     {"statistic", o.statistic == Statistic::mean ? "mean" : "median"},
                     {"staging", o.staging == Staging::none ? "none" : "memcpy"},
                     {"gpus_per_process", o.gpus_per_process},
                     {"share_gpu", o.share_gpu}};
  if (!table.sharing.how.empty()) {
    json["sharing"] = {{"how", table.sharing.how},
                       {"fit_for", table.sharing.fit_for},
                       {"not_fit_for", table.sharing.unfit_for}};
  }
  json["host"] = {{"kernel", kernel_name()},
                  {"processor", processor()},
                  {"processors_online", sysconf(_SC_NPROCESSORS_ONLN)}};
  for (const RankPlace& place : table.places) {
    json["ranks"].push_back({{"host", printable(place.host)},
                             {"device", place.device},
                             {"device_name", printable(place.device_name)}});
  }
  json["environment"] = allowed_environment();
  // Variables may contain any bytes.
  return json_lines(json);
}

}  // namespace lambcast::validate
