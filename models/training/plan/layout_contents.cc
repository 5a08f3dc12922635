#include "models/training/plan/layout_contents.h"

#include <algorithm>

#include "models/training/plan/expert_rows.h"

namespace lambcast {

namespace {

std::vector<parallel::ChunkContent> chunks_of(const ModelShape& model, parallel::SplitMethod method,
                                              const parallel::Pipeline& pipeline) {
  const auto layers = static_cast<int>(model.layers);
  if (pipeline.positions() == 1) return {{0, layers, true, true}};
  return parallel::split_stages(method, layers, pipeline.positions());
}

parallel::ExpertLoad expert_load(const ModelShape& model, const Parallelism& how) {
  if (model.experts == 0) return {};
  return {.rows = rows_per_choice(how),
          .tp = how.layout.expert_tp(),
          .one_hot = how.experts.routing == Routing::one_hot,
          .recomputed = how.repeated == Repeated::experts};
}

}  // namespace

parallel::ActivationSetting activation_setting(const TrainingPlan& training, std::int64_t seq_len) {
  const Parallelism& how = *training.parallelism;
  parallel::ActivationSetting setting;
  setting.tp = how.layout.tp;
  setting.cp = how.layout.cp;
  setting.sequence_parallel = how.sequence_parallel;
  setting.fused_attention = how.attention != AttentionKernel::unfused;
  setting.element_bytes = how.activation_bytes();
  setting.product_bytes = std::min(2.0, bytes_per_element(how.format));
  setting.attention_bytes = how.fp8_attention ? 1 : 2;
  setting.fused_gates = how.framework.fusion != Fusion::eager;
  setting.fp8_gates = how.fp8_gates;
  setting.recompute = how.recompute;
  setting.divides_checkpoints = how.partitions_activations;
  setting.experts = expert_load(*training.model, how);
  setting.micro_batch = training.batch.micro;
  setting.offload = how.offload;
  setting.seq_len = seq_len;
  return setting;
}

LayoutContents contents_of(const TrainingPlan& training) {
  const Parallelism& how = *training.parallelism;
  const parallel::Pipeline pipeline = how.pipeline(training.batch.gas);
  LayoutContents contents;
  contents.chunks = chunks_of(*training.model, how.framework.split, pipeline);
  contents.parameters =
      parallel::rank_parameters(*training.model, how.layout, pipeline, contents.chunks);
  return contents;
}

PipelinePlan computation_of(const TrainingPlan& training, std::int64_t seq_len) {
  PipelinePlan plan;
  plan.pipeline = training.parallelism->pipeline(training.batch.gas);
  plan.chunks = chunks_of(*training.model, training.parallelism->framework.split, plan.pipeline);
  plan.stacks = stacks_of(training, seq_len);
  plan.block = plan.stacks.empty() ? block_work_of(training, seq_len) : plan.stacks.back().block;
  plan.experts = expert_plan(*training.model, *training.parallelism, plan.block);
  if (!training.parallelism->offload.any()) return plan;
  for (const parallel::ChunkContent& content : plan.chunks)
    plan.copied_activations.push_back(parallel::copied_activations(
        *training.model, content, activation_setting(training, seq_len)));
  return plan;
}

double optimized_tensors(const ModelShape& shape, const parallel::ParallelLayout& layout) {
  const std::int64_t matrices = shape.experts * shape.hidden * shape.ffn;  // in one layer's experts
  const bool stacked = std::ranges::any_of(shape.tensors, [&](const Tensor& tensor) {
    return tensor.expert && tensor.elements >= matrices;
  });
  double tensors = 0;
  for (const Tensor& tensor : shape.tensors)
    if (tensor.optimized) tensors += tensor.expert && !stacked ? 1.0 / layout.ep : 1;
  return tensors / layout.pp;
}

bool autocasts(const Parallelism& how) {
  return how.framework.autocast && how.format != MatrixFormat::single;
}

BlockWork block_work_of(const TrainingPlan& training, const PyramidStage& stage) {
  BlockWork work = block_work_of(training, stage.tokens);
  work.hidden = stage.hidden;
  work.heads = work.kv_heads = stage.heads;
  work.ffn = stage.ffn;
  work.windows = stage.windows;
  return work;
}

std::vector<BlocksAlike> stacks_of(const TrainingPlan& training, std::int64_t seq_len) {
  const ModelShape& model = *training.model;
  std::vector<BlocksAlike> stacks;
  int layers = 0;
  const auto add = [&](std::int64_t alike, const BlockWork& block) {
    stacks.push_back({layers,
                      static_cast<int>(alike),
                      block,
                      expert_plan(model, *training.parallelism, block),
                      {}});
    layers += stacks.back().layers;
  };
  for (const PyramidStage& stage : model.pyramid) add(stage.layers, block_work_of(training, stage));
  if (model.decoder) {
    BlockWork block = block_work_of(training, seq_len);
    add(model.layers - model.decoder->layers, block);
    block.encoder_tokens = seq_len;
    block.seq_len = decoder_tokens(*model.decoder, seq_len);
    block.causal = true;
    add(model.decoder->layers, block);
  }
  return stacks;
}

BlockWork block_work_of(const TrainingPlan& training, std::int64_t seq_len) {
  const Parallelism& how = *training.parallelism;
  BlockWork work = block_work(*training.model, training.batch.micro, seq_len);
  work.tensor_parallel = how.layout.tp;
  work.context_parallel = how.layout.cp;
  work.sequence_parallel = how.sequence_parallel;
  work.format = how.format;
  work.attention = how.attention;
  work.fp8_attention = how.fp8_attention;
  work.fusion = how.framework.fusion;
  work.eager_loss = how.framework.eager_loss;
  const bool traced = how.framework.ring == Ring::eager && work.fusion == Fusion::compiled;
  work.ring = traced ? Ring::traced : how.framework.ring;
  work.exchanges_heads = how.framework.context_exchange == ContextExchange::heads;
  work.repeated = how.repeated;
  work.dropout = training.model->dropout;
  // In GPT and MPT, queries, keys and values are one product in every framework.
  work.separate_products = how.framework.separate_products && work.rotary;
  work.autocast = autocasts(how);
  // Products under autocast write 16-bit gradients, which a separate kernel widens.
  work.fp32_gradients = how.framework.fp32_gradients && !work.autocast;
  return work;
}

}  // namespace lambcast
