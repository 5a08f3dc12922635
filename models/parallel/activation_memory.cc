#include "models/parallel/activation_memory.h"

#include <algorithm>
#include <string>

#include "models/shape/block.h"
#include "sim/base/check.h"

namespace lambcast::parallel {
namespace {

// Bytes kept per sample, and the part of them that tensor parallelism does not divide.
struct Kept {
  PerSample all, whole;
};

double samples_of(const ActivationSetting& setting) {
  return static_cast<double>(setting.micro_batch) / setting.cp;
}

// Returns the bytes on one rank. `whole` is divided over tp only by sequence parallelism.
double on_rank(const Kept& kept, const ActivationSetting& setting) {
  const double all = kept.all.at(setting.seq_len);
  const double undivided = setting.sequence_parallel ? 0 : kept.whole.at(setting.seq_len);
  return samples_of(setting) * (undivided + (all - undivided) / setting.tp);
}

// Returns the rank's share of the samples, whose tokens it routes to experts.
double samples_routed(const ActivationSetting& setting) {
  return samples_of(setting) / (setting.sequence_parallel ? setting.tp : 1);
}

// Returns the bytes on a rank for the rows of its experts, which are equally loaded.
double at_experts(const Kept& kept, const ActivationSetting& setting) {
  const ExpertLoad& experts = setting.experts;
  const double all = kept.all.at(setting.seq_len), whole = kept.whole.at(setting.seq_len);
  const int tp = experts.tp == 0 ? setting.tp : experts.tp;
  // The tensor group computes each row once: on one rank, or divided over those of the expert.
  const double samples = samples_of(setting) / setting.tp;
  return samples * experts.rows * (tp * whole + (all - whole));
}

void add(PerSample& sum, const PerSample& part, double times) {
  sum.fixed += times * part.fixed;
  sum.per_token += times * part.per_token;
  sum.per_token_pair += times * part.per_token_pair;
}

// Converts bytes that are counted at 16 bits per element to the run's format. Dropout masks have
// the same size in every format.
PerSample widened(PerSample bytes, const ActivationSetting& setting, const PerSample& masks = {}) {
  const double more = setting.element_bytes / 2 - 1;
  PerSample wide = bytes;
  add(wide, bytes, more);
  add(wide, masks, -more);
  return wide;
}

Kept widened(const Kept& kept, const ActivationSetting& setting, const PerSample& masks = {}) {
  return {widened(kept.all, setting, masks), widened(kept.whole, setting, masks)};
}

// Returns the bytes that a block with this cost keeps, without scores.
Kept kept_bytes(const Cost& cost, const ActivationSetting& setting) {
  Kept kept{cost.activation_bytes, cost.whole_activation_bytes};
  const double product = setting.product_bytes / 2, attention = setting.attention_bytes / 2;
  add(kept.all, cost.product_input_bytes, product - 1);
  add(kept.whole, cost.whole_product_input_bytes, product - 1);
  add(kept.all, cost.attention_bytes, attention - 1);
  if (product < 1) add(kept.all, cost.context_bytes, product);
  if (setting.fused_gates) add(kept.all, cost.gate_bytes, setting.fp8_gates ? -2 : -1);
  return widened(kept, setting, cost.mask_bytes);
}

// Returns the tokens of a sample in a block.
std::int64_t tokens_of(const ModelShape& shape, int layer, std::int64_t seq_len) {
  const bool decodes = shape.decoder && layer >= shape.layers - shape.decoder->layers;
  return decodes ? decoder_tokens(*shape.decoder, seq_len) : seq_len;
}

// A block and, if it has experts, the cost of those that tokens choose.
struct Layer {
  const ModelShape& shape;
  const Cost& block;
  const Cost* routed;
  const ActivationSetting& setting;
  int index;

  Layer(const ModelShape& of, int layer, const ActivationSetting& with)
      : shape(of),
        block(of.blocks[static_cast<std::size_t>(layer)]),
        routed(nullptr),
        setting(with),
        index(layer) {
    const auto at = static_cast<std::size_t>(layer);
    if (at < of.expert_layers.size() && of.expert_layers[at]) routed = &of.routed[at];
  }

  // Returns the bytes of the block, with the load of experts for the part `experts`.
  double bytes(const Kept& all, const Kept& experts) const {
    if (routed == nullptr) return on_rank(all, setting);
    return on_rank(all, setting) - on_rank(experts, setting) + at_experts(experts, setting);
  }
  double without_scores() const {
    return bytes(kept_bytes(block, setting), routed ? kept_bytes(*routed, setting) : Kept{}) +
           one_hot();
  }
  PerSample scores() const { return widened(block.score_bytes, setting, block.score_mask_bytes); }
  double awaiting_weight() const {
    return bytes(widened(operands(block), setting),
                 routed ? widened(operands(*routed), setting) : Kept{});
  }
  double alternate() const {
    return bytes(widened(alternates(block, input_16_bit()), setting),
                 routed ? widened(alternates(*routed, {}), setting) : Kept{});
  }

  // Returns the bytes that router and experts keep in addition to their input.
  double by_experts() const {
    if (routed == nullptr) return 0;
    double bytes = at_experts(kept_bytes(*routed, setting), setting) + one_hot();
    if (shape.shared_ffn > 0)
      bytes += on_rank(kept_bytes(shared_experts_cost(shape), setting), setting);
    return bytes - on_rank(input(), setting);
  }

  // Returns the part of the `kept` bytes that waits in the host's memory.
  double copied(double kept) const {
    const ActivationOffload& offload = setting.offload;
    if (offload.checkpoints || index < offload.blocks) return kept;
    using enum OffloadModule;
    const double norms = offload.has(attn_norm) + offload.has(mlp_norm);
    const double product = setting.product_bytes / 2, attention = setting.attention_bytes / 2;
    Kept sum;
    for (PerSample* part : {&sum.all, &sum.whole})
      add(*part, input_16_bit(), norms + (offload.has(qkv_linear) ? product : 0));
    if (offload.has(core_attn)) add(sum.all, block.attention_bytes, attention);
    if (offload.has(core_attn) != offload.has(attn_proj))
      add(sum.all, block.context_bytes, offload.has(attn_proj) ? 1 : -attention);
    return offload.share * (on_rank(widened(sum, setting), setting) + copied_by_experts());
  }

  // Returns the bytes of one-hot gating while the block computes.
  double gating() const {
    if (routed == nullptr || !setting.experts.one_hot) return 0;
    const auto k = static_cast<double>(shape.experts_per_token);
    return tokens() * places() * std::max(6.0, 4 * k);
  }

  Kept input() const {
    const PerSample bytes = input_16_bit();
    return widened({bytes, bytes}, setting);
  }

 private:
  PerSample input_16_bit() const { return {0, 2.0 * static_cast<double>(shape.hidden), 0}; }
  static Kept operands(const Cost& cost) {
    return {cost.matrix_operand_bytes, cost.whole_matrix_operand_bytes};
  }
  // Bytes that a block keeps if every second product is recomputed. If it is compiled, only its
  // input is kept from the part that tensor parallelism leaves whole.
  Kept alternates(const Cost& cost, const PerSample& read) const {
    Kept kept{cost.alternate_bytes, cost.alternate_whole_bytes};
    if (!setting.fused_gates) return kept;
    add(kept.all, cost.alternate_whole_bytes, -1);
    add(kept.all, read, 1);
    kept.whole = read;
    return kept;
  }

  double copied_by_experts() const {
    if (routed == nullptr || !setting.offload.of_experts()) return 0;
    Kept sum;
    const PerSample& in = routed->whole_product_input_bytes;
    if (setting.offload.has(OffloadModule::expert_fc1)) {
      add(sum.all, in, setting.product_bytes / 2);
      sum.whole = sum.all;
    }
    if (setting.offload.has(OffloadModule::moe_act)) {
      add(sum.all, routed->product_input_bytes, 1);
      add(sum.all, in, -1);
      add(sum.all, routed->gate_bytes, 1);
    }
    return at_experts(widened(sum, setting), setting);
  }

  double tokens() const {
    return samples_routed(setting) * static_cast<double>(tokens_of(shape, index, setting.seq_len));
  }
  double places() const {
    return tokens() * static_cast<double>(shape.experts_per_token) * setting.experts.rows;
  }

  double one_hot() const {
    if (routed == nullptr || !setting.experts.one_hot) return 0;
    const double each = setting.element_bytes;
    return places() * each * (2 * tokens() + static_cast<double>(shape.hidden));
  }
};

// Activations that a chunk keeps for one micro batch.
struct ChunkActivations {
  double kept = 0;
  double awaiting_weight = 0;
  double copied = 0;
};

ChunkActivations chunk_activations(const ModelShape& shape, const ChunkContent& content,
                                   const ActivationSetting& setting, Bytes head) {
  ChunkActivations chunk;
  for (int layer = content.first_layer; layer < content.first_layer + content.layers; ++layer) {
    const LayerActivations activations = layer_activations(shape, layer, setting);
    chunk.kept += (activations.kept - activations.copied).value();
    chunk.copied += activations.copied.value();
    chunk.awaiting_weight += activations.awaiting_weight.value();
  }
  if (content.embedding)
    chunk.kept +=
        on_rank({shape.embedding_activation_bytes, shape.embedding_activation_bytes}, setting);
  if (content.head) chunk.kept += head.value();
  return chunk;
}

Bytes head_activations(const ModelShape& shape, const ActivationSetting& setting) {
  const PerSample& masks = shape.embedding_activation_bytes;
  const double head =
      on_rank({shape.outside.activation_bytes, shape.outside.whole_activation_bytes}, setting) -
      on_rank({masks, masks}, setting);
  // The softmax of the logits is kept in fp32 in every format.
  const PerSample logits{0, 4 * shape.head_share * static_cast<double>(shape.vocab), 0};
  const double same = std::min(head, on_rank({logits, {}}, setting));
  return Bytes(same + setting.element_bytes / 2 * (head - same));
}

}  // namespace

const std::vector<std::string>& recompute_names() {
  static const std::vector<std::string> names{"none", "selective", "alternate", "full"};
  return names;
}

std::string_view name_of(Recompute recompute) {
  return recompute_names()[static_cast<std::size_t>(recompute)];
}

LayerActivations layer_activations(const ModelShape& shape, int layer,
                                   const ActivationSetting& setting) {
  const Layer of(shape, layer, setting);
  const double without_scores = of.without_scores();
  const double all =
      without_scores + (setting.fused_attention ? 0 : on_rank({of.scores(), {}}, setting));
  LayerActivations activations;
  activations.awaiting_weight = Bytes(of.awaiting_weight());
  double kept = all;
  switch (setting.recompute) {
    case Recompute::none:
      break;
    case Recompute::selective:
      kept = without_scores;
      break;
    case Recompute::alternate:
      kept = of.alternate();
      break;
    case Recompute::full: {
      const Kept input = of.input();
      kept = on_rank({input.all, setting.divides_checkpoints ? PerSample{} : input.whole}, setting);
      break;
    }
  }
  if (setting.experts.recomputed) kept -= of.by_experts();
  activations.kept = Bytes(kept);
  activations.copied = Bytes(of.copied(kept));
  const Bytes again =
      setting.recompute == Recompute::full ? Bytes(all) : Bytes(all) - activations.kept;
  activations.recomputed = again + Bytes(of.gating());
  return activations;
}

Bytes copied_activations(const ModelShape& shape, const ChunkContent& content,
                         const ActivationSetting& setting) {
  return Bytes(chunk_activations(shape, content, setting, {}).copied);
}

std::vector<StageActivations> activation_memory(const ModelShape& shape, const Pipeline& pipeline,
                                                std::span<const ChunkContent> contents,
                                                const ActivationSetting& setting) {
  LAMBCAST_CHECK(contents.size() == static_cast<std::size_t>(pipeline.positions()),
                 "{} chunks for {}", contents.size(), pipeline.positions());
  const Bytes head = head_activations(shape, setting);
  const double copies_at_once = setting.offload.checkpoints ? 1 : 2;
  std::vector<StageActivations> stages;
  for (int stage = 0; stage < pipeline.stages; ++stage) {
    StageActivations activations;
    std::vector<double> kept, awaiting, copied;
    Bytes under_way;
    for (int chunk = 0; chunk < pipeline.chunks; ++chunk) {
      const ChunkContent& content =
          contents[static_cast<std::size_t>(pipeline.position(stage, chunk))];
      const ChunkActivations of_chunk = chunk_activations(shape, content, setting, head);
      kept.push_back(of_chunk.kept);
      awaiting.push_back(of_chunk.awaiting_weight);
      copied.push_back(of_chunk.copied);
      if (content.head) activations.head = head;
      for (int layer = content.first_layer; layer < content.first_layer + content.layers; ++layer) {
        const LayerActivations of_layer = layer_activations(shape, layer, setting);
        activations.recomputed = std::max(activations.recomputed, of_layer.recomputed);
        under_way = std::max(under_way, of_layer.copied * copies_at_once);
      }
    }
    const auto slots = stage_slots(shortest_alike(pipeline), stage);
    activations.kept = Bytes(peak_held(slots, kept, awaiting)) + under_way;
    activations.host = Bytes(peak_held(slots, copied, std::vector<double>(copied.size())));
    stages.push_back(activations);
  }
  return stages;
}

}  // namespace lambcast::parallel
