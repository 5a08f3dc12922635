#include "tools/collective_question.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.h"
#include "sim/base/file.h"
#include "sim/collectives/symmetry.h"
#include "tools/size.h"
#include "validate/measurement.h"

namespace lambcast {
namespace {

constexpr int max_gpus = 1 << 20;
const char* const compressed = "compressed_allreduce";

// Returns the index of a word among the allowed values of a flag.
std::size_t place_of(const std::string& word, const char* flag,
                     const std::vector<std::string>& words) {
  const auto found = std::ranges::find(words, word);
  if (found == words.end()) fail_unknown({"", 0, flag}, "value", word, words);
  return static_cast<std::size_t>(found - words.begin());
}

std::vector<double> sizes_of(const CollectiveWords& words) {
  const double first = parse_size(words.begin, "-b");
  const double last = words.end.empty() ? std::max(first, 0x1p27) : parse_size(words.end, "-e");
  return sizes_between(first, last, parse_size(words.factor, "-f"));
}

Backend backend_asked(const CollectiveWords& words) {
  place_of(words.backend, "--backend", {"nccl", "mpi"});
  return backend_of(words.backend);
}

bool is_expanded(const CollectiveWords& words) {
  return static_cast<Symmetry>(place_of(words.symmetry, "--symmetry", symmetry_names())) ==
         Symmetry::off;
}

CollectiveQuestion question_of(const CollectiveWords& words, const ProcessGroup& group) {
  CollectiveQuestion question;
  CollectiveSetting& setting = question.setting;
  setting.group = group;
  setting.backend = backend_asked(words);
  if (words.algorithm != "auto") setting.algorithm = words.algorithm;
  if (words.protocol != "auto") setting.protocol = words.protocol;
  setting.expand = is_expanded(words);
  const std::size_t op = place_of(words.op, "--op", collective_names());
  question.exchange = words.op == compressed;
  if (!question.exchange) setting.op = static_cast<Op>(op);
  question.network =
      static_cast<NetworkModel>(place_of(words.network, "--network", network_model_names()));
  question.sizes = sizes_of(words);
  return question;
}

void check_range(const char* flag, int value, int most) {
  if (value < 1 || value > most)
    fail_input({"", 0, flag}, fmt::format("{} is out of range", value),
               fmt::format("1 to {}", most));
}

// Returns the group of ranks; by default, a node has as many ranks as fit on its GPUs.
ProcessGroup group_of(const CollectiveWords& words, const Cluster& cluster) {
  const int most = cluster.gpus_per_node;
  check_range("--gpus", words.gpus, max_gpus);
  check_range("--stride", words.stride, most);
  check_range("--siblings", words.siblings, most);
  ProcessGroup group{words.gpus, 1, words.stride, words.node_stride, words.siblings};
  const int room = std::max(1, most / group.slots());
  group.per_node = words.gpus_per_node.value_or(room);
  check_range("--gpus-per-node", group.per_node, room);
  group.per_node = std::min(group.per_node, words.gpus);
  if (group.slots() > most)
    fail_input({"", 0, "--siblings"},
               fmt::format("{} groups of stride {} do not fit a node of {} GPUs", words.siblings,
                           words.stride, most));
  check_range("--node-stride", words.node_stride, max_gpus / group.nodes());
  return group;
}

}  // namespace

const std::vector<std::string>& collective_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = op_names();
    all.emplace_back(compressed);
    return all;
  }();
  return names;
}

Cluster cluster_of(const CollectiveWords& words) {
  if (words.cluster.empty()) fail_input({"", 0, "--cluster"}, "is required");
  return load_cluster(words.cluster, words.settings);
}

CollectiveAnswer answer_of(const CollectiveWords& words, const Cluster& cluster) {
  const ProcessGroup group = group_of(words, cluster);
  CollectiveAnswer answer{words.op, group, backend_asked(words), 1, {}};
  answer.rows = forecast_rows(cluster, question_of(words, group));
  answer.bus_factor =
      validate::bus_factor(validate::parse_operation(words.op, {"", 0, "--op"}), group.ranks);
  return answer;
}

JobsAnswer jobs_answer_of(const CollectiveWords& words, const Cluster& cluster) {
  const Table table = Table::parse(read_file(words.jobs), words.jobs);
  JobsAnswer answer{decode_jobs(table, cluster), {}};
  answer.forecasts = forecast_jobs(cluster, answer.jobs, backend_asked(words), is_expanded(words));
  return answer;
}

}  // namespace lambcast
