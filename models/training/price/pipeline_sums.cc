#include "models/training/price/pipeline_sums.h"

namespace lambcast {

void sum_up(const parallel::Pipeline& pipeline, const std::vector<Wire>& wires,
            PipelinePrice& price) {
  const std::int64_t m = pipeline.micro_batches;
  const auto stages = static_cast<std::size_t>(pipeline.stages);
  for (auto* durations :
       {&price.forward, &price.backward, &price.communication, &price.exposed, &price.meeting})
    durations->resize(stages);
  for (auto* bytes : {&price.wire_bytes_per_gpu, &price.network_bytes_per_node})
    bytes->resize(stages);
  price.num_collectives.resize(stages);
  for (int position = 0; position < pipeline.positions(); ++position) {
    const auto p = static_cast<std::size_t>(position);
    const auto s = static_cast<std::size_t>(pipeline.stage_at(position));
    const ChunkPrice& chunk = price.chunks[p];
    price.forward[s] += chunk.forward.compute * m;
    price.backward[s] += (chunk.input_gradient.compute + chunk.weight_gradient.compute) * m;
    price.communication[s] += wires[p].communication * m;
    price.meeting[s] += wires[p].meeting * m;
    price.exposed[s] += (chunk.forward.exposed + chunk.input_gradient.exposed) * m;
    price.wire_bytes_per_gpu[s] += wires[p].per_gpu * static_cast<double>(m);
    price.network_bytes_per_node[s] += wires[p].per_node * static_cast<double>(m);
    price.num_collectives[s] += wires[p].collectives * m;
  }
}

}  // namespace lambcast
