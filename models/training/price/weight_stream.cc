#include "models/training/price/weight_stream.h"

#include <algorithm>

namespace lambcast {

Duration WeightStream::of(int blocks) const {
  return gather * (blocks - kept) + scatter * blocks + outer_gather + outer_scatter;
}

WeightStream operator+(const WeightStream& a, const WeightStream& b) {
  return {a.gather + b.gather, a.scatter + b.scatter, a.outer_gather + b.outer_gather,
          a.outer_scatter + b.outer_scatter, std::min(a.kept, b.kept)};
}

Duration exposed_on_stream(const WeightStream& stream, int blocks, Duration pass) {
  const Duration block = pass.scaled(1.0 / blocks);
  const bool scatters = stream.scatter > Duration();
  const auto gather_of = [&](int i) { return i < stream.kept ? Duration() : stream.gather; };
  Duration computed, wire = stream.outer_gather + gather_of(0), gathered = wire;
  for (int i = 0; i < blocks; ++i) {
    const Duration start = std::max(computed, gathered);
    computed = start + block;
    if (i + 1 < blocks) gathered = wire = std::max(wire, start) + gather_of(i + 1);
    if (scatters) wire = std::max(wire, computed) + stream.scatter;
  }
  return (scatters ? std::max(computed, wire) : computed) + stream.outer_scatter - block * blocks;
}

}  // namespace lambcast
