#include "models/parallel/activation_memory.h"

#include <algorithm>
#include <string>

#include "sim/base/check.h"

namespace lambcast::parallel {
namespace {

// Bytes on one rank of a cost per sample, of which `whole` are not divided over tp unless sequence
// parallelism does it.
double on_rank(const PerSample& bytes, const PerSample& whole, const ActivationSetting& setting) {
  const double all = bytes.at(setting.seq_len);
  const double undivided = setting.sequence_parallel ? 0 : whole.at(setting.seq_len);
  return static_cast<double>(setting.micro_batch) / setting.cp *
         (undivided + (all - undivided) / setting.tp);
}

void add(PerSample& sum, const PerSample& part, double times) {
  sum.fixed += times * part.fixed;
  sum.per_token += times * part.per_token;
  sum.per_token_pair += times * part.per_token_pair;
}

// All that a block keeps but its scores, and of it what tensor parallelism leaves whole.
struct KeptBytes {
  PerSample all, whole;
};

KeptBytes kept_bytes(const Cost& block, const ActivationSetting& setting) {
  KeptBytes kept{block.activation_bytes, block.whole_activation_bytes};
  const double product = setting.product_bytes / 2, attention = setting.attention_bytes / 2;
  add(kept.all, block.product_input_bytes, product - 1);
  add(kept.whole, block.whole_product_input_bytes, product - 1);
  add(kept.all, block.attention_bytes, attention - 1);
  if (product < 1) add(kept.all, block.context_bytes, product);
  if (setting.fused_gates) add(kept.all, block.gate_bytes, setting.fp8_gates ? -2 : -1);
  return kept;
}

// What a chunk keeps of one micro batch.
struct ChunkActivations {
  double kept = 0;
  double awaiting_weight = 0;
};

ChunkActivations chunk_activations(const ModelShape& shape, const ChunkContent& content,
                                   const ActivationSetting& setting, Bytes head) {
  ChunkActivations chunk;
  for (int layer = content.first_layer; layer < content.first_layer + content.layers; ++layer) {
    const LayerActivations activations =
        layer_activations(shape.blocks[static_cast<std::size_t>(layer)], shape.hidden, setting);
    chunk.kept += activations.kept.value();
    chunk.awaiting_weight += activations.awaiting_weight.value();
  }
  if (content.embedding)
    chunk.kept +=
        on_rank(shape.embedding_activation_bytes, shape.embedding_activation_bytes, setting);
  if (content.head) chunk.kept += head.value();
  return chunk;
}

Bytes head_activations(const ModelShape& shape, const ActivationSetting& setting) {
  const PerSample& masks = shape.embedding_activation_bytes;
  return Bytes(
      on_rank(shape.outside.activation_bytes, shape.outside.whole_activation_bytes, setting) -
      on_rank(masks, masks, setting));
}

}  // namespace

const std::vector<std::string>& recompute_names() {
  static const std::vector<std::string> names{"none", "selective", "alternate", "full"};
  return names;
}

std::string_view name_of(Recompute recompute) {
  return recompute_names()[static_cast<std::size_t>(recompute)];
}

LayerActivations layer_activations(const Cost& block, std::int64_t hidden,
                                   const ActivationSetting& setting) {
  const auto [bytes, whole] = kept_bytes(block, setting);
  const double without_scores = on_rank(bytes, whole, setting);
  const double all =
      without_scores + (setting.fused_attention ? 0 : on_rank(block.score_bytes, {}, setting));
  LayerActivations layer;
  layer.awaiting_weight =
      Bytes(on_rank(block.matrix_operand_bytes, block.whole_matrix_operand_bytes, setting));
  switch (setting.recompute) {
    case Recompute::none:
      layer.kept = Bytes(all);
      break;
    case Recompute::selective:
      layer.kept = Bytes(without_scores);
      layer.recomputed = Bytes(all) - layer.kept;
      break;
    case Recompute::alternate:
      layer.kept = Bytes(on_rank(block.alternate_bytes, block.alternate_whole_bytes, setting));
      layer.recomputed = Bytes(all) - layer.kept;
      break;
    case Recompute::full: {
      const PerSample input = {0, 2.0 * static_cast<double>(hidden), 0};
      layer.kept =
          Bytes(on_rank(input, setting.divides_checkpoints ? PerSample{} : input, setting));
      layer.recomputed = Bytes(all);
      break;
    }
  }
  return layer;
}

std::vector<StageActivations> activation_memory(const ModelShape& shape, const Pipeline& pipeline,
                                                std::span<const ChunkContent> contents,
                                                const ActivationSetting& setting) {
  LAMBCAST_CHECK(contents.size() == static_cast<std::size_t>(pipeline.positions()),
                 "{} chunks for {}", contents.size(), pipeline.positions());
  const Bytes head = head_activations(shape, setting);
  std::vector<StageActivations> stages;
  for (int stage = 0; stage < pipeline.stages; ++stage) {
    StageActivations activations;
    std::vector<double> kept;
    std::vector<double> awaiting;
    for (int chunk = 0; chunk < pipeline.chunks; ++chunk) {
      const ChunkContent& content =
          contents[static_cast<std::size_t>(pipeline.position(stage, chunk))];
      const ChunkActivations of_chunk = chunk_activations(shape, content, setting, head);
      kept.push_back(of_chunk.kept);
      awaiting.push_back(of_chunk.awaiting_weight);
      if (content.head) activations.head = head;
      for (int layer = content.first_layer; layer < content.first_layer + content.layers; ++layer)
        activations.recomputed = std::max(
            activations.recomputed,
            layer_activations(shape.blocks[static_cast<std::size_t>(layer)], shape.hidden, setting)
                .recomputed);
    }
    activations.kept =
        Bytes(peak_held(stage_slots(shortest_alike(pipeline), stage), kept, awaiting));
    stages.push_back(activations);
  }
  return stages;
}

}  // namespace lambcast::parallel
