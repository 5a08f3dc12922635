#include "validate/measure/measure.h"

namespace lambcast::validate {

int measure_nccl(const MeasureOptions&, std::ostream&) {
  throw Error(Exit::missing,
              "this lambcast was built without CUDA and NCCL: install both and build again to "
              "measure with --backend nccl");
}

}  // namespace lambcast::validate
