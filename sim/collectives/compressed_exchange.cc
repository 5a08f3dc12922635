#include "sim/collectives/compressed_exchange.h"

namespace lambcast {

CompressedExchange compressed_exchange(double padded, int ranks, Backend backend) {
  const Bytes signs(padded / 8), scales(4.0 * ranks);
  return {{{"all_to_all signs", Op::all_to_all, signs, is_mpi(backend) ? "deepspeed_gather" : ""},
           {"all_gather scales", Op::all_gather, scales}},
          {{"all_gather signs", Op::all_gather, signs},
           {"all_gather server scales", Op::all_gather, scales}}};
}

}  // namespace lambcast
