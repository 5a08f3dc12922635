#include "sim/collectives/compressed_exchange.h"

namespace lambcast {

std::vector<ExchangeMessage> CompressedExchange::messages() const {
  std::vector<ExchangeMessage> all = scatter;
  all.insert(all.end(), gather.begin(), gather.end());
  return all;
}

CompressedExchange compressed_exchange(double padded, int ranks, Backend backend) {
  const Bytes signs(padded / 8), scales(4.0 * ranks);
  CompressedExchange exchange;
  if (is_mpi(backend))
    exchange.scatter = {
        {"all_to_all signs and scales", Op::all_to_all, signs + scales, "deepspeed_gather"}};
  else
    exchange.scatter = {{"all_to_all signs", Op::all_to_all, signs},
                        {"all_gather scales", Op::all_gather, scales}};
  exchange.gather = {{"all_gather signs", Op::all_gather, signs},
                     {"all_gather server scales", Op::all_gather, scales}};
  // A barrier is priced as an all_reduce of no bytes, which has the same number of rounds.
  if (backend == Backend::mpi_host)
    exchange.gather.push_back({"barrier", Op::all_reduce, Bytes(0)});
  return exchange;
}

}  // namespace lambcast
