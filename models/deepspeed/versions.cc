#include "models/deepspeed/versions.h"

#include <fmt/format.h>

#include <string>

#include "models/deepspeed/recipe.h"
#include "models/recipe/wrapper.h"

namespace lambcast::deepspeed {
namespace {

constexpr Version least_torch{1, 8, 0}, least_nccl{2, 8, 3};
constexpr std::int64_t many_gpus = 64;

struct VersionFindings {
  std::vector<Finding> list;
  void add(Severity severity, const char* code, const char* key, std::string_view sentence) {
    list.push_back({severity, code, describe({"", 0, key}, sentence)});
  }
};

constexpr const char* release_key = "--deepspeed-version";

void check_libraries(VersionFindings& out, const Versions& versions, const DeepSpeedConfig& config,
                     std::int64_t gpus) {
  if (config.optimizer->comm_backend_name.value != "nccl") return;
  if (versions.torch && *versions.torch < least_torch)
    out.add(Severity::error, "torch-too-old", "--versions",
            fmt::format(
                "the nccl backend needs PyTorch 1.8 or newer, and this is {}; try: --backend mpi",
                text_of(*versions.torch)));
  if (versions.nccl && *versions.nccl < least_nccl && gpus >= many_gpus)
    out.add(Severity::warning, "nccl-too-old", "--versions",
            fmt::format("{} GPUs need NCCL 2.8.3: exchanges of many ranks hang in {}", gpus,
                        text_of(*versions.nccl)));
}

void check_onebit_release(VersionFindings& out, const DeepSpeedConfig& config, std::int64_t gas) {
  const Version& of = config.release.value;
  if (!config.release.given) {
    out.add(Severity::note, "onebit-removed", release_key,
            fmt::format("DeepSpeed removed its 1-bit optimizers on 2026-09-12. {} is the newest "
                        "release known to have them; 0.15.4 is the last that scales losses and "
                        "averages gradients correctly. Try: --deepspeed-version VERSION for the "
                        "findings of your release",
                        text_of(release::newest)));
    return;
  }
  if (of > release::newest) {
    out.add(Severity::warning, "onebit-removed", release_key,
            fmt::format("DeepSpeed removed its 1-bit optimizers on 2026-09-12; {} was the newest "
                        "release known to have them, not {}",
                        text_of(release::newest), text_of(of)));
    return;
  }
  if (of >= release::drops_loss_scale && config.fp16.enabled.value)
    out.add(
        Severity::warning, "loss-not-scaled", release_key,
        "with fp16 the loss is not multiplied by its scale, but gradients are divided by it: they "
        "are some 65,536 times too small; 0.15.4 does both");
  if (of >= release::sums_micro_batches && of < release::drops_loss_scale && gas > 1)
    out.add(Severity::warning, "gradients-not-averaged", release_key,
            fmt::format("in the compression stage gradients are the sum of {} micro batches, not "
                        "their mean: {} times as large as in the warm-up; 0.15.4 divides",
                        gas, gas));
}

void check_wrapper(VersionFindings& out, const DeepSpeedConfig& config, std::int64_t gpus,
                   bool pipeline) {
  const Version& of = config.release.value;
  const Recipe recipe = recipe_of(config);
  if (wrapper_of(recipe) == Wrapper::fp16 && config.fp16.enabled.value &&
      of >= release::updates_nothing && of < release::updates_again)
    out.add(Severity::warning, "nothing-updated", release_key,
            fmt::format("under fp16 and without ZeRO FP16_Optimizer of {} returns before it has "
                        "updated anything; 0.18.2 steps again",
                        text_of(of)));
  const bool in_bf16 = recipe.precision.weights == DataType::bf16 && config.zero.stage.value == 0;
  if (!in_bf16 || gpus == 1 || config.release.given) return;
  if (pipeline && config.grad_accum_dtype.value) return;
  // In a pipeline, every release shards states, so only the sums differ.
  constexpr const char* pipelined[] = {
      "sums gradients in fp32; from 0.17.6 on sums are in bf16",
      "sums gradients in bf16, as since 0.17.6; earlier releases sum in fp32"};
  constexpr const char* whole =
      "holds all states on every GPU and sums gradients in bf16, as since 0.17.6; earlier releases "
      "shard them over the GPUs, gather the weights after each step and sum in fp32";
  constexpr const char* shared =
      "shards states over the GPUs, gathers the weights after each step and sums gradients in "
      "fp32; "
      "from 0.17.6 on every GPU holds all states, and sums are in bf16";
  out.add(
      Severity::note, "bf16-by-release", release_key,
      fmt::format("without ZeRO, DeepSpeed {} {}; try: --deepspeed-version with that of your job",
                  text_of(of),
                  pipeline                           ? pipelined[of >= release::wraps_bf16_as_fp16]
                  : of < release::wraps_bf16_as_fp16 ? shared
                                                     : whole));
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
                                    std::int64_t gpus, std::int64_t accumulation_steps,
                                    bool pipeline) {
  if (!config.optimizer) return {};
  VersionFindings out;
  if (is_onebit(config.optimizer->type)) {
    check_libraries(out, versions, config, gpus);
    check_onebit_release(out, config, accumulation_steps);
  }
  check_wrapper(out, config, gpus, pipeline);
  return std::move(out.list);
}

}  // namespace lambcast::deepspeed
