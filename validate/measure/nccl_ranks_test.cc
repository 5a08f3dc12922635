#include "validate/measure/nccl_ranks.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <sstream>

#include "validate/measure/fake_nccl.h"

using namespace lambcast;
using namespace lambcast::validate;

namespace {

constexpr Operation kOperations[] = {Operation::all_reduce,          Operation::all_gather,
                                     Operation::reduce_scatter,      Operation::all_to_all,
                                     Operation::broadcast,           Operation::send_recv,
                                     Operation::compressed_allreduce};

struct Outcome {
  int code;
  std::string text;
};

// One thread for all ranks, each on a device of its own, as over the GPUs of one machine.
Outcome measure(Operation operation, int ranks, FakeFault fault = FakeFault::none) {
  MeasuredTable head;
  head.options.operation = operation;
  head.options.min_bytes = 60;
  head.options.max_bytes = 5000;
  head.options.factor = 9;
  head.options.iterations = 2;
  head.options.check_iterations = 2;
  head.options.root = std::min(1, ranks - 1);
  head.backend = "nccl";
  head.has_spread = false;
  const cuda::NcclApi nccl = fake_nccl(fault);
  LocalRanks local{nccl, {}, 0, ranks, false};
  for (int rank = 0; rank < ranks; ++rank) local.devices.push_back(rank);
  std::ostringstream out;
  const int code = measure_ranks(head, local, *meet_over_tcp({}, 1), out);
  return {code, out.str()};
}

}  // namespace

TEST_CASE("every operation over several ranks comes out exact, padding included") {
  for (const Operation operation : kOperations) {
    for (const int ranks : {1, 2, 3, 4, 8}) {
      INFO(name_of(operation) << " on " << ranks << " ranks");
      const Outcome outcome = measure(operation, ranks);
      CHECK(outcome.code == 0);
      CHECK_THAT(outcome.text, Catch::Contains("# Out of bounds values : 0 OK"));
      // 60, 540 and 4860 bytes, down to whole blocks: three rows, each checked.
      std::istringstream lines(outcome.text);
      int rows = 0;
      for (std::string line; std::getline(lines, line);) {
        if (line[0] == '#') continue;
        ++rows;
        CHECK_THAT(line, Catch::EndsWith(" 0"));
      }
      CHECK(rows == 3);
    }
  }
}

TEST_CASE("a flipped bit is seen in every operation") {
  for (const Operation operation : kOperations) {
    INFO(name_of(operation));
    const Outcome outcome = measure(operation, 3, FakeFault::flipped_bit);
    CHECK(outcome.code == 1);
    CHECK_THAT(outcome.text, Catch::Contains("FAILED"));
  }
}

TEST_CASE("data of the wrong rank is seen in every operation that could have it") {
  for (const Operation operation : {Operation::all_gather, Operation::all_to_all,
                                    Operation::broadcast, Operation::compressed_allreduce}) {
    INFO(name_of(operation));
    CHECK(measure(operation, 3, FakeFault::swapped_senders).code == 1);
  }
}
