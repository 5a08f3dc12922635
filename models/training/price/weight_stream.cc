#include "models/training/price/weight_stream.h"

#include <algorithm>

namespace lambcast {

Duration WeightStream::of(int blocks) const {
  return (gather + scatter) * blocks + outer_gather + outer_scatter;
}

WeightStream operator+(const WeightStream& a, const WeightStream& b) {
  return {a.gather + b.gather, a.scatter + b.scatter, a.outer_gather + b.outer_gather,
          a.outer_scatter + b.outer_scatter};
}

Duration exposed_on_stream(const WeightStream& stream, int blocks, Duration pass) {
  const Duration block = pass.scaled(1.0 / blocks);
  const bool scatters = stream.scatter > Duration();
  Duration computed, wire = stream.outer_gather + stream.gather, gathered = wire;
  for (int i = 0; i < blocks; ++i) {
    const Duration start = std::max(computed, gathered);
    computed = start + block;
    if (i + 1 < blocks) gathered = wire = std::max(wire, start) + stream.gather;
    if (scatters) wire = std::max(wire, computed) + stream.scatter;
  }
  return (scatters ? std::max(computed, wire) : computed) + stream.outer_scatter - block * blocks;
}

}  // namespace lambcast
