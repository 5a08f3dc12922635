#include "experiments/unread_keys.h"

#include <fmt/format.h>

namespace lambcast {
namespace {

using parallel::Sharding;

struct Unread {
  std::string_view key;
  bool (*unread)(const Parallelism& how);
  std::string_view why;
};

constexpr Unread table[] = {
    {"context_exchange", [](const Parallelism& how) { return how.layout.cp == 1; },
     "it says how ranks exchange that divide a sequence, and cp is 1"},
    {"tensor_overlap", [](const Parallelism& how) { return how.layout.tp == 1; },
     "it hides what tensor parallelism sends, and tp is 1"},
    {"split", [](const Parallelism& how) { return how.layout.pp * how.layout.virtual_stages == 1; },
     "it lays layers over the stages of a pipeline, and pp is 1"},
    {"order",
     [](const Parallelism& how) {
       return how.layout.tp * how.layout.cp * how.layout.pp * how.layout.ep == 1;
     },
     "all ranks are replicas, on whichever GPU"},
    {"eager_loss", [](const Parallelism& how) { return how.framework.fusion != Fusion::compiled; },
     "it takes the loss out of what is compiled, and nothing is (--fusion compiled)"},
    {"shard_handling_us", [](const Parallelism& how) { return how.sharding != Sharding::weights; },
     "it is spent on weights that ranks share (--zero-stage 3)"},
    {"gradient_bucket",
     [](const Parallelism& how) {
       return how.replicas() == 1 || how.sharding == Sharding::weights ||
              !(how.framework.overlaps_gradients || how.framework.overlaps_weights);
     },
     "gradients and weights go in buckets where replicas overlap them with the passes (--overlap, "
     "up to --zero-stage 2)"},
    {"overlap", [](const Parallelism& how) { return how.sharding == Sharding::weights; },
     "with shared weights gradients are scattered block by block, as the framework does it"},
};

}  // namespace

std::vector<Finding> find_unread(const Words& words, const Parallelism& how) {
  std::vector<Finding> findings;
  for (const auto& [key, unread, why] : table) {
    const std::string* const value = words.find(key);
    if (value == nullptr || *value == "none" || *value == "false" || !unread(how)) continue;
    findings.push_back({Severity::note, "layout-no-effect",
                        fmt::format("{}: has no effect: {}", flag(key).key, why)});
  }
  return findings;
}

}  // namespace lambcast
