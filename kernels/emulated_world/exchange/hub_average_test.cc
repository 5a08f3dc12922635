#include "kernels/emulated_world/exchange/hub_average.h"

#include <catch2/catch.hpp>

#include "kernels/emulated_world/exchange/exchange_case.h"
#include "kernels/emulated_world/plain.h"
#include "kernels/emulated_world/training.h"

using namespace lambcast;
using namespace lambcast::emulated;

TEST_CASE("a relay: sent plus error equals the input, in one message each way") {
  for (const Quantiser q : {Quantiser{WireFormat::int8, 64}, {WireFormat::int4, 64}}) {
    for (const std::size_t n : {2u, 5u}) {
      sent_plus_owed_equals_meant(RelayAverage{q, true}, n, 1003, [&](const RelayAverage& state) {
        auto owed = sum(state.worker, 1003);
        for (std::size_t e = 0; e < state.relay.size(); ++e) owed[e] += double(n) * state.relay[e];
        return owed;
      });
    }
  }
  // 1,024 elements of 4 bits, and 16 scales.
  RelayAverage state{{WireFormat::int4, 64}, false};
  auto buffers = random_buffers(3, 1024, 1);
  const HubWire wire = average(state, views(buffers));
  CHECK(wire.put == 512 + 16 * 4);
  CHECK(wire.got == wire.put);
}

TEST_CASE("a store: the values of the all-gather, in one message out and those of all ranks in") {
  for (const ChunkCode code : {ChunkCode::largest, ChunkCode::cosines}) {
    StoreAverage state{{code, 64}};
    ChunkedGather ring{code, 64};
    for (unsigned call = 0; call < 3; ++call) {
      auto buffers = random_buffers(3, 5000, call), gathered = buffers;
      const HubWire wire = average(state, views(buffers));
      average(ring, views(gathered));
      CHECK(buffers == gathered);
      CHECK(wire.put == chunk_message_bytes(code, 5000, 64));
      CHECK(wire.got == 3 * wire.put);
    }
  }
}

TEST_CASE("a single rank sends nothing to a hub and keeps its buffer") {
  auto buffers = random_buffers(1, 100, 1);
  const auto before = buffers;
  RelayAverage relay{{WireFormat::int8, 64}, true};
  StoreAverage store;
  CHECK(average(relay, views(buffers)).put == 0);
  CHECK(average(store, views(buffers)).got == 0);
  CHECK(buffers == before);
}

TEST_CASE("Adam learns through a relay and through a store") {
  const iris::Problem problem = iris::network();
  const double start = problem.loss(problem.initial, 0, 1, {});
  const auto loss_through = [&](auto hub) {
    Adam o = adam(world_of(problem, 4), {.bias_correction = true});
    for (int k = 0; k < 600; ++k) {
      auto g = gradients(problem, o);
      average(hub, views(g));
      o.options.lr = 0.01 * (1 - k / 600.0);
      step(o, g);
    }
    return problem.loss(o.p, 0, 1, {});
  };
  CHECK(loss_through(RelayAverage{{WireFormat::int4, 64}, true}) < 0.06 * start);
  CHECK(loss_through(StoreAverage{{ChunkCode::largest, 16}}) < 0.06 * start);
}
