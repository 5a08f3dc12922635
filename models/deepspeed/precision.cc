#include "models/deepspeed/precision.h"

#include <fmt/format.h>

namespace lambcast::deepspeed {

std::vector<Finding> settle_auto_precision(DeepSpeedConfig& config) {
  const std::optional<Where>& fp16 = config.auto_fp16;
  const std::optional<Where>& bf16 = config.auto_bf16;
  if (!fp16 && !bf16) return {};
  bool& fp16_on = config.fp16.enabled.value;
  bool& bf16_on = config.bf16_enabled.value;
  if (!fp16_on && !bf16_on) {
    const bool scales_loss =
        config.optimizer && (is_lamb(config.optimizer->type) || is_onebit(config.optimizer->type));
    (bf16 && !(fp16 && scales_loss) ? bf16_on : fp16_on) = true;
  }
  const std::string_view name = fp16_on ? "fp16" : "bf16";
  const bool file_says = !(fp16_on ? fp16 : bf16);
  return {{Severity::warning, "auto-precision",
           describe(bf16 ? *bf16 : *fp16,
                    fmt::format("\"auto\" is filled in by the Trainer of Hugging Face from its "
                                "--fp16 and --bf16: computed in {}{}; try: --precision for another",
                                name, file_says ? ", which the file turns on" : ""))}};
}

}  // namespace lambcast::deepspeed
