#include "models/deepspeed/versions.h"

#include <fmt/format.h>

#include <charconv>
#include <string>

namespace lambcast::deepspeed {
namespace {

constexpr Version least_torch{1, 8, 0}, least_nccl{2, 8, 3};
constexpr Version sums_micro_batches{0, 16, 0}, drops_loss_scale{0, 18, 3}, last_onebit{0, 19, 6};
constexpr std::int64_t many_gpus = 64;

std::string to_text(const Version& version) {
  return fmt::format("{}.{}.{}", version[0], version[1], version[2]);
}

// "2.18", "0.15.4+cu121": what follows a third number says nothing here.
Version parse_version(std::string_view text, const Where& where) {
  Version version{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < version.size(); ++i) {
    const auto [next, error] = std::from_chars(at, end, version[i]);
    if (error != std::errc() || version[i] < 0 || version[i] > 99999)
      fail_input(where, fmt::format("'{}' is no version", text), "such as 2.18.3");
    at = next;
    if (at == end || *at != '.') break;
    ++at;
  }
  if (at != end && *at != '+' && *at != '-' && *at != '.')
    fail_input(where, fmt::format("'{}' is no version", text), "such as 2.18.3");
  return version;
}

}  // namespace

Versions parse_versions(std::string_view text, const Where& where) {
  const std::vector<std::string> names{"deepspeed", "torch", "nccl"};
  Versions versions;
  std::optional<Version>* const members[] = {&versions.deepspeed, &versions.torch, &versions.nccl};
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos)
      fail_input(where, fmt::format("'{}' is not NAME=VERSION", part),
                 "deepspeed=0.15.4,nccl=2.18");
    const std::string name(part.substr(0, equals));
    std::size_t i = 0;
    while (i < names.size() && names[i] != name) ++i;
    if (i == names.size()) fail_unknown(where, "name", name, names);
    if (*members[i]) fail_input(where, fmt::format("{} is given twice", name));
    *members[i] = parse_version(part.substr(equals + 1), where);
    begin = end + 1;
  }
  return versions;
}

std::vector<Finding> check_versions(const Versions& versions, const DeepSpeedConfig& config,
                                    std::int64_t gpus, std::int64_t accumulation_steps) {
  std::vector<Finding> findings;
  if (!config.optimizer || !is_onebit(config.optimizer->type)) return findings;
  const auto add = [&](Severity severity, const char* code, std::string sentence) {
    findings.push_back({severity, code, describe({"", 0, "--versions"}, sentence)});
  };
  const bool nccl = config.optimizer->comm_backend_name.value == CommBackend::nccl;
  if (nccl && versions.torch && *versions.torch < least_torch)
    add(Severity::error, "torch-too-old",
        fmt::format("the nccl backend needs PyTorch 1.8, not {}: it, or --backend mpi",
                    to_text(*versions.torch)));
  if (nccl && versions.nccl && *versions.nccl < least_nccl && gpus >= many_gpus)
    add(Severity::warning, "nccl-too-old",
        fmt::format("{} GPUs need NCCL 2.8.3, not {}, whose exchanges of many ranks hang", gpus,
                    to_text(*versions.nccl)));
  if (!versions.deepspeed) return findings;
  const Version& release = *versions.deepspeed;
  if (release > last_onebit)
    add(Severity::warning, "onebit-removed",
        fmt::format("DeepSpeed {} has no 1-bit optimizers; 0.19.6 was the last with them",
                    to_text(release)));
  else if (release >= drops_loss_scale && config.fp16.enabled.value)
    add(Severity::warning, "loss-not-scaled",
        "with fp16 the loss is not multiplied by its scale, but gradients are divided by it: they "
        "are some 65,536 times too small; 0.15.4 does both");
  else if (release >= sums_micro_batches && release < drops_loss_scale && accumulation_steps > 1)
    add(Severity::warning, "gradients-not-averaged",
        fmt::format("in the compression stage gradients are the sum of {} micro batches, not their "
                    "mean: {} times as large as in the warm-up; 0.15.4 divides",
                    accumulation_steps, accumulation_steps));
  return findings;
}

}  // namespace lambcast::deepspeed
