#include "experiments/scenario/whole_model.h"

#include "models/training/price/passage.h"

namespace lambcast {

void as_whole_model(const Words& words, TrainingPlan& training,
                    deepspeed::DeepSpeedConfig& config) {
  if (!training.parallelism || training.model->adapters || !runs_whole_model(*training.parallelism))
    return;
  PassOptions options = pass_options_of(*training.parallelism);
  training.parallelism.reset();
  const PassOptions usual = *usual_pass_options(training);
  if (words.find("attention") == nullptr) options.attention = usual.attention;
  if (options != usual) training.passes = options;
  const auto bucket = words.whole("gradient_bucket", 1, most_bucket);
  if (bucket && training.recipe.zero.stage > 0) config.zero.reduce_bucket_size = {*bucket, true, 0};
}

}  // namespace lambcast
