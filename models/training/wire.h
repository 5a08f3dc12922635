// Bytes and times of collectives, added up.
#pragma once

#include <cstdint>

#include "sim/base/units.h"

namespace lambcast {

// What collectives of one micro batch put on the wire, and how far their times may be off.
struct Wire {
  Bytes per_gpu, per_node;
  std::int64_t collectives = 0;
  Duration communication, shorter, longer;

  Wire& operator+=(const Wire& other) {
    per_gpu += other.per_gpu;
    per_node += other.per_node;
    collectives += other.collectives;
    communication += other.communication;
    shorter += other.shorter;
    longer += other.longer;
    return *this;
  }
};

}  // namespace lambcast
