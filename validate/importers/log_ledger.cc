#include "validate/importers/log_ledger.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>

#include "validate/importers/lines.h"

namespace lambcast::validate {
namespace {

using enum Treatment;

constexpr KeyNames of_collectives[] = {
    {applied, "",
     "size|time|#wrong|nwrong|error|type|redop|root|cputime|cpu_time|i_min|i_max|min_us|max_us|"
     "dual-port|number of "
     "qps|hostname|group|device_info|graph|blocking_collectives|aggregated_iterations|agg iters|"
     "warmup iters|warmup_iters|okay|errors|args|experiment_name|collective|backend|staging|#bytes|"
     "bw average|t_min|t_max|t_typical|t_avg|avg latency|min latency|max latency|latency|bandwidth|"
     "duration|description|size_bytes|time_us|wrong|protocol|num_streams|target_bitrate|fqrate|"
     "fq_rate|host|bidir|sum_received_bidir_reverse|remote_host|local_host|bytes|seconds|"
     "bits_per_second"},
    {costless, "checks that the columns line up",
     "algbw|busbw|alg_bw|bus_bw|algbw_gbps|busbw_gbps|bw peak|msgrate|throughput"},
    {costless, "how the sizes were chosen, which stand in the rows",
     "minbytes|maxbytes|step|minimum_bytes|maximum_bytes|step_factor|step_bytes|unalign|count"},
    {costless, "how processes were started; ranks stand in their rows",
     "nthread|nthreads|ngpus|parallel_init|pid|device_hex"},
    {costless, "how often a row was repeated; its time is the mean",
     "iters|iterations|#iterations|#repetitions|per_iter_timing|per_iter_skip|omit|omitted|actual_"
     "iterations"},
    {costless, "results are checked outside the timed part; errors are read",
     "validation|validate"},
    {costless, "spread of the repetitions, next to the least and the most",
     "i_p99|i_cv%|p99_us|cv_percent|t_stdev|99% percentile|99.9% percentile"},
    {costless, "when and with what the file was written",
     "start_time|end_time|env|nccl_version|version|timestamp|timesecs|cookie|system_info|title|"
     "extra_data|accepted_connection"},
    {costless, "a mean of the rows", "average_bus_bandwidth|avg_bus_bandwidth|average_bandwidth"},
    {costless, "a setting of the tool, which its times include",
     "connection type|transport type|using srq|pcie relax order|ibv_wr* api|tx depth|rx depth|mtu|"
     "cq moderation|gid index|post list|outstand reads|link type|max inline data|rdma_cm qps|"
     "data ex. method|blksize|blocks|reverse|tos|tcp_mss_default|"
     "interval|sock_bufsize|sndbuf_actual|rcvbuf_actual|socket|local_port|remote_port|port|"
     "congestion|congestion_used|gso|gro|mptcp|dont_fragment|cpu_util"},
    {costless, "a state of the connection, which its rate includes",
     "snd_cwnd|snd_wnd|max_snd_cwnd|rtt|rttvar|pmtu|reorder|min_rtt|mean_rtt|max_rtt|max_snd_wnd"},
    {costless, "parts of the whole, which is read",
     "rank|device|start|end|streams|intervals|sum_sent|sum|sender|receiver|retransmits|cpu_"
     "utilization_"
     "percent|host_"
     "total|"
     "host_user|host_system|remote_total|remote_user|remote_system|sender_tcp_congestion|"
     "receiver_tcp_congestion"}};

// Names with one meaning as a column of a table and another as a key of JSON; here as keys of JSON.
constexpr KeyNames of_json[] = {
    {costless, "a mean of the rows", "bandwidth"},
    {costless, "a setting of the tool, which its times include", "duration"},
    {costless, "spread of the repetitions", "t_max|t_min"}};

constexpr KeyNames of_steps[] = {
    {applied, "",
     "elapsed time per iteration (ms)|elapsed time per iteration (s)|seconds|iter time (s)|"
     "train_step_timing in s|currsamplespersec|samplespersec|tps|wps|train_samples_per_second|"
     "tokens_per_second_per_gpu|train throughput/device/tokens_per_sec|"
     "throughput/device/tokens_per_second|"
     "train_steps_per_second|train_runtime|number of skipped iterations|global batch size|"
     "global_batch_size|log_history|global_step|max_steps"},
    {costless, "how far the training has come, not how long a step takes",
     "learning rate|loss scale|grad norm|grad_norm|params norm|num zeros|consumed samples|"
     "consumed tokens|number of nan iterations|iteration|epoch|step|steps|actual seqlen|"
     "curriculum seqlen|train_loss|micro_step|completed "
     "step|lr|consumed_samples|total_weights|learning_rate|num_train_epochs|best_metric|"
     "best_model_checkpoint|best_global_step|is_hyper_param_search|is_local_process_zero|"
     "is_world_process_zero|trial_name|trial_params|stateful_callbacks|total_flos|"
     "num_input_tokens_seen|save_steps|eval_steps|logging_steps|training epoch|skipped samples"},
    {costless, "the step time in another unit, by a formula of the program",
     "tflops|mfu|throughput per gpu (tflop/s/gpu)|samples per second|approx flops per gpu|"
     "tokens per gpu per second (tgs)|tokens/s/device|tflop/s/device|samples/sec|"
     "runningavgsamplespersec|tokens per gpu (tokens/s/gpu)|tokens/s/gpu inst/harmonic mean|"
     "energy per gpu (j/iter/gpu)|power per gpu (w/gpu)"},
    {costless, "the peak of a rank; --measured memory=... calibrates it",
     "memory|memallocated|maxmemallocated|peak_memory_active|peak_memory_alloc|"
     "peak_memory_reserved|hip mem usage/free/total/usage_ratio"}};

constexpr int most_depth = 64;  // nesting of JSON

std::string lower(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return std::tolower(c); });
  return small;
}

// Collects each key once.
class Ledger {
 public:
  Ledger(std::vector<KeyNames> known, std::vector<LedgerEntry>& entries)
      : known_(std::move(known)), entries_(entries) {}

  bool has(std::string_view key) const { return seen_.contains(lower(trimmed(key))); }

  void add(std::string_view key, int line, bool section = false) {
    const std::string name = lower(trimmed(key));
    if (name.empty() || !seen_.insert(name).second) return;
    const auto group = std::ranges::find_if(
        known_, [&](const KeyNames& keys) { return holds_name(keys.names, name, '|'); });
    LedgerEntry entry{std::string(trimmed(key)), line, named, "not read, and its cost is unknown"};
    if (section) {
      entry.treatment = costless;
      entry.reason = "a section, whose keys are listed";
    } else if (group != known_.end()) {
      entry.treatment = group->treatment;
      entry.reason = group->reason;
    } else if (name.ends_with("loss")) {
      entry.treatment = costless;
      entry.reason = "how far the training has come, not how long a step takes";
    }
    entries_.push_back(std::move(entry));
  }

 private:
  std::vector<KeyNames> known_;
  std::vector<LedgerEntry>& entries_;
  std::set<std::string> seen_;
};

int line_of(std::string_view text, const std::string& key) {
  const std::size_t at = std::min(text.find("\"" + key + "\""), text.size());
  return 1 + static_cast<int>(std::ranges::count(text.substr(0, at), '\n'));
}

// Adds the keys of an object and of all objects in it.
void add_json(const nlohmann::json& value, std::string_view text, Ledger& ledger) {
  if (value.is_object())
    for (const auto& [key, inner] : value.items()) {
      const bool section =
          inner.is_object() || (inner.is_array() && !inner.empty() && inner.front().is_object());
      if (!ledger.has(key)) ledger.add(key, line_of(text, key), section);
      add_json(inner, text, ledger);
    }
  if (value.is_array())
    for (const nlohmann::json& inner : value) add_json(inner, text, ledger);
}

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Returns the name at the end of a text: its last words without a number among them.
std::string_view name_at_end(std::string_view text) {
  text = text.substr(0, text.find_last_not_of(" :='\"") + 1);
  if (text.ends_with('/')) return {};  // "iteration 50/ 1000"
  std::size_t begin = text.size();
  while (begin > 0 && (is_name(text[begin - 1]) || contains(" /()", text.substr(begin - 1, 1))))
    --begin;
  std::string_view name = text.substr(begin);
  name.remove_prefix(std::min(name.find_first_not_of(" )/"), name.size()));
  for (std::size_t at = 0; at < name.size(); at = std::min(name.find(' ', at), name.size() - 1) + 1)
    if (name[at] == '(' || std::isdigit(static_cast<unsigned char>(name[at])) != 0) {
      const bool unit = at > 0 && name.find(' ', at) == name.npos;  // "iter time (s)"
      if (unit) break;
      name = trimmed(name.substr(std::min(name.find(' ', at), name.size())));
      at = 0;
    }
  return name;
}

// Adds the names in front of numbers: "iteration 5/ 10 | lm loss: 2.1", "SamplesPerSec=41.2".
void add_names(std::string_view row, int line, Ledger& ledger) {
  constexpr std::string_view digits = "0123456789";
  for (std::size_t at = row.find_first_of(digits); at != row.npos;
       at = row.find_first_of(digits, row.find_first_not_of("0123456789.,Ee+-", at))) {
    const bool inside =
        at > 0 && (is_name(row[at - 1]) || row[at - 1] == '/' || row[at - 1] == '(');
    const std::string_view name = inside ? "" : name_at_end(row.substr(0, at));
    // "timer.py:260" names a line of a program.
    const bool suffix = !name.empty() && name.data() != row.data() && name.data()[-1] == '.';
    if (!name.empty() && !suffix && std::isalpha(static_cast<unsigned char>(name.front())) != 0)
      ledger.add(name, line);
  }
}

// Adds the settings of a line of perftest: "Dual-port    : OFF    Device   : mlx5_0".
void add_settings(std::string_view row, int line, Ledger& ledger) {
  for (std::size_t at = row.find(':'); at != row.npos; at = row.find(':', at + 1)) {
    const std::string_view before = trimmed(row.substr(0, at));
    const std::size_t gap = std::max(before.rfind("  ") + 1, before.rfind('\t') + 1);
    ledger.add(before.substr(std::min(gap, before.size())), line);
  }
}

bool is_step(std::string_view row) {
  for (const std::string_view label :
       {"elapsed time per iteration", "SamplesPerSec=", " tps: ", " wps: ", "iter time (s):",
        "tokens_per_second_per_gpu:", "throughput/device/tokens_per_sec", "train_step_timing in s",
        "completed step:", "'train_samples_per_second':"})
    if (contains(row, label)) return true;
  return false;
}

// Adds the columns of a table's heading, without units: "BW peak[MB/sec]", "t_min[usec]". Prefixes
// of launchers stand in front of the sizes.
void add_columns(std::string_view row, int line, Ledger& ledger) {
  const auto words = words_of(row);
  const auto first = std::ranges::find_if(words, [](std::string_view word) {
    return contains(lower(word), "size") || contains(lower(word), "bytes");
  });
  for (auto word = first; word != words.end(); ++word) {
    const bool two = *word == "BW" || *word == "Avg" || *word == "Min" || *word == "Max" ||
                     (word->ends_with("%") && *word != "i_cv%");
    std::string name(*word);
    if (two && word + 1 != words.end()) name.append(" ").append(*++word);
    name = name.substr(0, name.find_first_of("[("));
    if (name.find_first_not_of("0123456789") != name.npos) ledger.add(name, line);
  }
}

bool is_heading(std::string_view row) {
  const std::string plain = lower(row);
  const bool sizes = contains(plain, "size") || contains(plain, "bytes");
  const bool times = contains(plain, " time ") || contains(plain, "t_avg[") ||
                     contains(plain, "t_typical[") || contains(plain, "bw average") ||
                     contains(plain, "latency(us)") || contains(plain, "bandwidth (") ||
                     contains(plain, "duration ");
  return sizes && times;
}

}  // namespace

std::span<const KeyNames> collective_keys() { return of_collectives; }
std::span<const KeyNames> step_keys() { return of_steps; }

std::vector<LedgerEntry> log_ledger(std::string_view text) {
  std::vector<LedgerEntry> entries;
  const auto shallow = [](int depth, auto, auto&) { return depth < most_depth; };
  const auto json = nlohmann::json::parse(text, shallow, false);
  std::vector<KeyNames> known;
  if (json.is_object()) known.assign(std::begin(of_json), std::end(of_json));
  known.insert(known.end(), std::begin(of_collectives), std::end(of_collectives));
  Ledger collectives(known, entries);
  Ledger steps({std::begin(of_steps), std::end(of_steps)}, entries);
  const bool of_trainer = json.is_object() && json.contains("log_history");
  if (json.is_object()) add_json(json, text, of_trainer ? steps : collectives);
  int line = 0;
  const std::string plain = json.is_object() ? "" : without_colours(text);
  bool settings = false;  // in the settings of perftest, which end at its connection
  for (const std::string_view row : lines_of(plain)) {
    ++line;
    settings = (settings || contains(row, "Dual-port ")) && !contains(row, " address: LID");
    if (settings && contains(row, ":"))
      add_settings(row, line, collectives);
    else if (is_step(row))
      add_names(row, line, steps);
    else if (contains(row, "nThread "))
      add_names(row, line, collectives);
    else if (starts_with(row, "size_bytes,"))
      for (std::size_t at = 0; at < row.size();
           at = std::min(row.find(',', at), row.size() - 1) + 1)
        collectives.add(row.substr(at, row.find(',', at) - at), line);
    else if (is_heading(row))
      add_columns(row, line, collectives);
  }
  return entries;
}

}  // namespace lambcast::validate
