#include "models/deepspeed/elasticity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "models/deepspeed/known_keys.h"
#include "models/deepspeed/python_number.h"
#include "sim/base/check.h"

namespace lambcast::deepspeed {
namespace {

using hjson::Kind;
using hjson::Value;

constexpr auto highly_composite = std::to_array<Whole>(
    {1,      2,      4,      6,      12,     24,     36,     48,    60,    120,
     180,    240,    360,    720,    840,    1260,   1680,   2520,  5040,  7560,
     10080,  15120,  20160,  25200,  27720,  45360,  50400,  55440, 83160, 110880,
     166320, 221760, 277200, 332640, 498960, 554400, 665280, 720720});

std::string value_text(const Value& value) {
  return value.text.empty() ? std::string(name_of(value.kind)) : value.text;
}

Where where_of(const Section& block) { return {block.file, block.object.line, block.path}; }

Setting<Whole> read_whole(const Section& block, std::string_view key, Whole fallback) {
  Setting<Whole> number{fallback};
  read(block, key, number, std::numeric_limits<Whole>::lowest(), max_batch);
  return number;
}

// Returns the list sorted and without duplicates, which do not affect the result.
Setting<std::vector<Whole>> read_micro_batches(const Section& block) {
  constexpr std::string_view key = "micro_batch_sizes";
  const Value* value = block.object.find(key);
  if (value == nullptr)
    fail_input(where_of(block), fmt::format("Elasticity config missing {}", key));
  const Where where = where_of(block, key, value->line);
  if (value->kind != Kind::array)
    fail_input(where, fmt::format("Elasticity expected value of {} to be a list of micro batches, "
                                  "instead is: {}",
                                  key, value_text(*value)));
  if (value->items.empty()) fail_input(where, "is an empty list");
  std::set<Whole> sizes;
  for (const Value& item : value->items) {
    if (!item.whole)
      fail_input(where, fmt::format("Elasticity expected {} to only contain a list of integers, "
                                    "instead contains: {}",
                                    key, value_text(item)));
    if (*item.whole <= 0)
      fail_input(where, fmt::format("Elasticity expected {} to only contain positive integers, "
                                    "instead contains: {}",
                                    key, *item.whole));
    sizes.insert(*item.whole);
    if (sizes.size() > max_micro_batches)
      fail_input(where, fmt::format("more than {} different micro batches", max_micro_batches));
  }
  return {{sizes.begin(), sizes.end()}, true, value->line};
}

Whole least_common_multiple(const std::vector<Whole>& sizes, const Where& where) {
  Whole lcm = 1;
  for (const Whole size : sizes) {
    const Whole factor = size / std::gcd(lcm, size);
    if (lcm > max_batch / factor)
      fail_input(where, "the least common multiple of the micro batches is too large",
                 fmt::format("up to {}", max_batch));
    lcm *= factor;
  }
  return lcm;
}

// Reads the version: a number, or a text that Python's float() accepts.
ElasticityVersion read_version(const Section& block, Whole model_parallel_size) {
  const Value* value = block.object.find("version");
  const std::string text = value != nullptr ? value_text(*value) : "0.2";
  const Where where =
      where_of(block, "version", value != nullptr ? value->line : block.object.line);
  if (!is_python_number(text))
    fail_input(where, fmt::format("could not convert string to float: '{}'", text), "0.1, 0.2");
  const std::optional<PythonNumber> number = python_number(text);
  const double version = number ? number->real : real_max;
  if (model_parallel_size > 1 && version != 0.2)
    fail_input(where, fmt::format("Elasticity V{} does not support model-parallel training. Given "
                                  "model-parallel size: {}",
                                  text, model_parallel_size));
  if (version > 0.2)
    fail_input(where, fmt::format("Attempting to run elasticity version {} but runtime only "
                                  "supports up to 0.2",
                                  text));
  if (version != 0.1 && version != 0.2)
    fail_input(where, fmt::format("Unable to find elastic logic for version: {}", text),
               "0.1, 0.2");
  return version == 0.1 ? ElasticityVersion::v0_1 : ElasticityVersion::v0_2;
}

// DeepSpeed only checks whether the keys are present: null and "auto" count too.
std::optional<Where> find_other_batch(const Section& root) {
  for (const char* key :
       {"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"})
    if (const Value* value = root.object.find(key)) return where_of(root, key, value->line);
  return std::nullopt;
}

void read_gpu_range(const Section& block, Elasticity& e) {
  const Setting<Whole> low = read_whole(block, "min_gpus", e.min_gpus);
  const Setting<Whole> high = read_whole(block, "max_gpus", e.max_gpus);
  const std::string given = fmt::format("given min_gpus: {}, max_gpus: {}", low.value, high.value);
  const Where at_low = where_of(block, "min_gpus", low.line);
  if (low.value < 1 || high.value < 1)
    fail_input(low.value < 1 ? at_low : where_of(block, "max_gpus", high.line),
               "Elasticity min/max gpus must be > 0, " + given);
  if (high.value < low.value)
    fail_input(at_low, "Elasticity min_gpus cannot be greater than max_gpus, " + given);
  e.min_gpus = low.value;
  e.max_gpus = high.value;
}

// Reads the version and, for version 0.2, the GPUs per node.
void read_nodes(const Section& block, Elasticity& e) {
  const Setting<Whole> model_parallel = read_whole(block, "model_parallel_size", 1);
  const Where at_model_parallel = where_of(block, "model_parallel_size", model_parallel.line);
  if (model_parallel.value < 1)
    fail_input(at_model_parallel, fmt::format("Model-Parallel size cannot be less than 1, given "
                                              "model-parallel size: {}",
                                              model_parallel.value));
  const Setting<Whole> gpus = read_whole(block, "num_gpus_per_node", 1);
  if (gpus.value < 1)
    fail_input(where_of(block, "num_gpus_per_node", gpus.line),
               fmt::format("Number of GPUs per node cannot be less than 1, given number of GPUs "
                           "per node: {}",
                           gpus.value));
  e.version = read_version(block, model_parallel.value);
  if (model_parallel.value > 1)
    fail_input(at_model_parallel, "only data parallelism is modelled", "1");
  if (e.version == ElasticityVersion::v0_2) e.gpus_per_node = gpus.value;
}

// Returns the limit of samples per step, in version 0.2 for one node.
Whole limit_of(const Elasticity& e) { return e.max_train_batch / e.gpus_per_node; }

// Range of GPU counts, in version 0.2 of node counts.
struct Range {
  Whole low;
  Whole high;
};

// Only divisors of the batch are examined: for every valid count g, g * m divides the batch.
// DeepSpeed tries every number up to half of the batch.
std::vector<Whole> valid_counts(Whole batch, const std::vector<Whole>& micro_batches, Range range) {
  std::vector<Whole> valid;
  const auto add = [&](Whole count) {
    if (count < range.low || count > range.high) return;
    const Whole each = batch / count;
    if (std::any_of(micro_batches.begin(), micro_batches.end(),
                    [&](Whole micro) { return each % micro == 0; }))
      valid.push_back(count);
  };
  for (Whole divisor = 1; divisor <= batch / divisor; ++divisor) {
    if (batch % divisor != 0) continue;
    add(divisor);
    if (divisor != batch / divisor) add(batch / divisor);
  }
  std::sort(valid.begin(), valid.end());
  return valid;
}

struct Choice {
  Whole batch = 0;
  std::optional<std::vector<Whole>> valid;  // nothing: no candidate was chosen
};

// Computes DeepSpeed's _get_compatible_gpus_v01(). If counts are those of nodes, the limits are
// those of one node.
Choice choose(const Elasticity& e) {
  const Whole limit = limit_of(e);
  std::vector<Whole> bases = e.micro_batches;
  bases.push_back(e.lcm);
  std::set<Whole> candidates;
  for (const Whole base : bases) {
    const auto above =
        std::upper_bound(highly_composite.begin(), highly_composite.end(), limit / base);
    candidates.insert(base >= limit ? base : base * *(above - 1));
  }
  Range range{e.min_gpus / e.gpus_per_node, e.max_gpus / e.gpus_per_node};
  if (range.high == 0) range.high = limit / e.micro_batches.front();  // DeepSpeed treats 0 this way
  Choice best{e.micro_batches.front(), std::nullopt};
  for (const Whole batch : candidates) {
    std::vector<Whole> valid = valid_counts(batch, e.micro_batches, range);
    const std::size_t most = best.valid ? best.valid->size() : 0;
    const bool preferred = e.prefer_larger ? batch > best.batch : batch < best.batch;
    if (valid.size() > most || (valid.size() == most && preferred))
      best = {batch, std::move(valid)};
  }
  return best;
}

// Returns the separate batch of version 0.2 for an invalid world size, in doubles as in DeepSpeed.
// Returns nothing if rounding changes the number of ranks.
std::optional<Whole> own_batch(const Elasticity& e, Whole world) {
  const auto nodes = static_cast<double>(world) / static_cast<double>(e.gpus_per_node);
  const double ranks = nodes * static_cast<double>(e.gpus_per_node);
  if (std::floor(ranks) != static_cast<double>(world)) return std::nullopt;
  std::vector<double> batches;
  for (const Whole micro : e.micro_batches) {
    const double least = static_cast<double>(micro) * ranks;
    batches.push_back(std::floor(static_cast<double>(e.max_train_batch) / least) * least);
  }
  const auto [smallest, largest] = std::minmax_element(batches.begin(), batches.end());
  return static_cast<Whole>(e.prefer_larger ? *largest : *smallest);
}

// Returns a list of the eight valid counts nearest to `world` as text, since there may be
// thousands.
std::string list_about(const std::vector<Whole>& counts, Whole world) {
  const auto size = std::ssize(counts);
  const auto here = std::lower_bound(counts.begin(), counts.end(), world) - counts.begin();
  const auto first = std::clamp(here - 4, std::ptrdiff_t{0}, std::max(size - 8, std::ptrdiff_t{0}));
  const auto last = std::min(first + 8, size);
  return fmt::format("[{}{}{}]", first > 0 ? "..., " : "",
                     fmt::join(counts.begin() + first, counts.begin() + last, ", "),
                     last < size ? ", ..." : "");
}

}  // namespace

std::optional<Elasticity> read_elasticity(const Section& root) {
  const std::optional<Section> block = subsection(root, "elasticity");
  Setting<bool> enabled{false};
  if (block) {
    find_unknown_keys(*block, elasticity_keys());
    read(*block, "enabled", enabled);
  }
  if (!enabled.value) return std::nullopt;
  Elasticity e;
  e.where = where_of(*block);
  const Setting<Whole> limit = read_whole(*block, "max_train_batch_size", 0);
  if (!limit.given) fail_input(e.where, "Elasticity config missing max_train_batch_size");
  e.max_train_batch = limit.value;
  const Setting<std::vector<Whole>> micro_batches = read_micro_batches(*block);
  e.micro_batches = micro_batches.value;
  read_gpu_range(*block, e);
  Setting<double> min_time{0};
  read(*block, "min_time", min_time);
  if (min_time.value < 0)
    fail_input(where_of(*block, "min_time", min_time.line),
               fmt::format("Elasticity min time needs to be >= 0: given {}", min_time.value));
  read_nodes(*block, e);
  const Where at_micro = where_of(*block, "micro_batch_sizes", micro_batches.line);
  if (e.micro_batches.back() > limit_of(e))
    fail_input(at_micro, fmt::format("All micro batches must be less than or equal to "
                                     "max_acceptable_batch_size: {}",
                                     limit_of(e)));
  e.lcm = least_common_multiple(e.micro_batches, at_micro);
  Setting<bool> prefer_larger{true};
  Setting<bool> ignore{false};
  read(*block, "prefer_larger_batch", prefer_larger);
  read(*block, "ignore_non_elastic_batch_info", ignore);
  e.prefer_larger = prefer_larger.value;
  e.ignore_other_batch = ignore.value;
  e.other_batch = find_other_batch(root);
  return e;
}

ElasticBatch elastic_batch(const Elasticity& e, std::int64_t world) {
  LAMBCAST_CHECK(world > 0, "a world of {} ranks", world);
  const Choice choice = choose(e);
  std::vector<Whole> valid = choice.valid.value_or(std::vector<Whole>{});
  for (Whole& count : valid) count *= e.gpus_per_node;
  const std::string counts = list_about(valid, world);
  const bool is_valid = std::binary_search(valid.begin(), valid.end(), world);
  std::optional<Whole> train;
  if (is_valid) {
    if (choice.batch > max_batch / e.gpus_per_node)
      fail_input(
          e.where,
          fmt::format("Train batch size: {} * {} is too large", choice.batch, e.gpus_per_node),
          fmt::format("up to {}", max_batch));
    train = choice.batch * e.gpus_per_node;
  } else if (e.version == ElasticityVersion::v0_2 && choice.valid) {
    train = own_batch(e, world);
  }
  const std::string above =
      choice.batch <= limit_of(e)
          ? ""
          : fmt::format(
                "the least common multiple of the micro batches, {}, is taken though it is "
                "above the limit, {}; DeepSpeed 0.19.6 leaves it out",
                choice.batch, limit_of(e));
  if (!train)
    fail_input(e.where, fmt::format("World size ({}) is not valid with the current list of valid "
                                    "GPU counts: {}{}{}",
                                    world, counts, above.empty() ? "" : "; ", above));
  const auto micro = std::find_if(e.micro_batches.rbegin(), e.micro_batches.rend(),
                                  [&](Whole size) { return *train / world % size == 0; });
  if (micro == e.micro_batches.rend())
    fail_input(e.where, fmt::format("Unable to find divisible micro batch size world_size={}, "
                                    "final_batch_size={}, and micro_batches=[{}].",
                                    world, *train, fmt::join(e.micro_batches, ", ")));

  const Whole gas = *train / (*micro * world);
  ElasticBatch result{resolve_batch({*train, *micro, gas}, world, e.where), {}};
  const auto add = [&](Severity severity, const char* code, const std::string& sentence) {
    result.findings.push_back({severity, code, describe(e.where, sentence)});
  };
  const std::string product =
      fmt::format("train_batch_size {} = {} * {} * {} GPUs", *train, *micro, gas, world);
  if (is_valid) {
    add(Severity::note, "batch-from-elasticity",
        fmt::format("{}; valid GPU counts: {}", product, counts));
  } else {
    add(Severity::warning, "elastic-batch-of-its-own",
        fmt::format("{}, for this world size alone, which is not among the valid GPU counts: {}",
                    product, counts));
  }
  if (!above.empty()) add(Severity::warning, "elastic-batch-above-max", above);
  return result;
}

}  // namespace lambcast::deepspeed
