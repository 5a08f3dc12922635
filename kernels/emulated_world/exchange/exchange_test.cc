// Each exchange: the sent value plus the error feedback equals the compensated value; messages have
// the size of the closed form; and special properties of each exchange.
#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/emulated_world/exchange/exchange_case.h"
#include "kernels/emulated_world/exchange/hierarchical_reduce_scatter.h"
#include "kernels/emulated_world/exchange/neighbour_average.h"
#include "kernels/emulated_world/exchange/plain_allreduce.h"
#include "kernels/emulated_world/exchange/power_sgd.h"
#include "kernels/emulated_world/exchange/quantised_allreduce.h"
#include "kernels/emulated_world/exchange/sparse_allreduce.h"
#include "sim/base/error.h"

using namespace lambcast;
using namespace lambcast::emulated;

TEST_CASE("a plain all-reduce is the mean, rounded if it is sent in 16 bits") {
  for (const std::size_t n : {1u, 2u, 3u, 8u}) {
    for (const auto& [format, error] :
         {std::pair{WireFormat::fp32, 1e-6}, {WireFormat::fp16, 4e-3}, {WireFormat::bf16, 3e-2}}) {
      auto buffers = random_buffers(n, 101, 7);
      const auto meant = sum(buffers, 101);
      const Wire wire = plain_allreduce(views(buffers), format);
      for (std::size_t r = 0; r < n; ++r) {
        CHECK(buffers[r] == buffers[0]);
        CHECK(wire.sent[r] == plain_allreduce_bytes(101, int(n), format));
      }
      double furthest = 0;
      for (std::size_t e = 0; e < 101; ++e) {
        furthest = std::max(furthest, std::fabs(buffers[0][e] - meant[e] / double(n)));
      }
      CHECK(furthest < error);
      if (n > 1 && format != WireFormat::fp32) CHECK(furthest > error / 100);
    }
  }
}

TEST_CASE("8 and 4 bits with error feedback: sent plus error equals the input") {
  const std::size_t elements = 1003;
  for (const std::size_t n : {2u, 3u, 8u}) {
    for (const Quantiser q : {Quantiser{WireFormat::fp8_e4m3, 0},
                              {WireFormat::fp8_e5m2, 0},
                              {WireFormat::int8, 64},
                              {WireFormat::int4, 64}}) {
      sent_plus_owed_equals_meant(
          QuantisedAllreduce{q, true}, n, elements, [&](const QuantisedAllreduce& state) {
            auto owed = sum(state.worker, elements);
            const std::size_t chunk = (elements + n - 1) / n;
            for (std::size_t e = 0; e < elements && !state.server.empty(); ++e) {
              owed[e] += double(n) * state.server[e / chunk][e % chunk];
            }
            return owed;
          });
      QuantisedAllreduce state{q, false};
      auto buffers = random_buffers(n, elements, 1);
      const Wire wire = average(state, views(buffers));
      for (const std::size_t sent : wire.sent) {
        CHECK(sent == quantised_allreduce_bytes(elements, int(n), q));
      }
      CHECK(sum(state.worker, elements) == std::vector<double>(elements));
    }
  }
}

TEST_CASE("with error feedback the mean of many calls converges to the input, without it never") {
  // The same buffers in every call: the loss of one call is the loss of every call.
  const std::size_t n = 4, elements = 256;
  const auto drift = [&](bool error_feedback) {
    QuantisedAllreduce state{{WireFormat::int4, 64}, error_feedback};
    std::vector<double> total(elements);
    for (int call = 0; call < 200; ++call) {
      auto buffers = random_buffers(n, elements, 3);
      average(state, views(buffers));
      for (std::size_t e = 0; e < elements; ++e) total[e] += buffers[0][e];
    }
    const auto meant = sum(random_buffers(n, elements, 3), elements);
    double furthest = 0;
    for (std::size_t e = 0; e < elements; ++e) {
      furthest = std::max(furthest, std::fabs(total[e] / 200 - meant[e] / double(n)));
    }
    return furthest;
  };
  CHECK(drift(true) < 2e-3);
  CHECK(drift(false) > 2e-2);
}

TEST_CASE("a non-finite value on one rank reaches all ranks in formats with scales") {
  for (const Quantiser q : {Quantiser{WireFormat::fp8_e4m3, 0}, {WireFormat::int4, 64}}) {
    for (const float bad : {NAN, HUGE_VALF}) {
      QuantisedAllreduce state{q, true};
      auto buffers = random_buffers(3, 90, 1);
      buffers[2][35] = bad;
      average(state, views(buffers));
      for (const Flat& buffer : buffers) CHECK_FALSE(std::isfinite(buffer[35]));
    }
  }
}

TEST_CASE("hierarchical int4 and int8: every rank's shard of the mean, and the error feedback") {
  const std::size_t elements = 1003;
  for (const auto& [nodes, per_node] : {std::pair{1, 4}, {2, 2}, {3, 2}, {4, 1}, {2, 4}}) {
    const std::size_t n = std::size_t(nodes * per_node), shard = (elements + n - 1) / n;
    const Quantiser in_node{WireFormat::int8, 32}, between{WireFormat::int4, 32};
    HierarchicalReduceScatter state{per_node, in_node, between, true};
    std::vector<double> owed_before(elements);
    for (unsigned call = 0; call < 3; ++call) {
      auto buffers = random_buffers(n, elements, 50 + call);
      const auto meant = sum(buffers, elements);
      const Wire wire = average(state, views(buffers));
      for (const std::size_t sent : wire.sent) {
        CHECK(sent ==
              hierarchical_reduce_scatter_bytes(elements, nodes, per_node, in_node, between));
      }
      auto owed = sum(state.worker, elements);
      for (std::size_t r = 0; r < n; ++r) {
        for (std::size_t e = 0; e < state.between[r].size(); ++e) {
          // The error feedback of rank r for peer k belongs to shard k g + j.
          const std::size_t target =
              ((e / shard) * std::size_t(per_node) + r % std::size_t(per_node)) * shard + e % shard;
          if (target < elements) owed[target] += state.between[r][e];
        }
      }
      for (std::size_t e = 0; e < elements; ++e) {
        REQUIRE(double(n) * buffers[e / shard][e % shard] + owed[e] ==
                Approx(meant[e] + owed_before[e]).margin(2e-5));
      }
      owed_before = owed;
    }
  }
  HierarchicalReduceScatter state{3, {}, {}, false};
  auto buffers = random_buffers(4, 8, 1);
  CHECK_THROWS_WITH(average(state, views(buffers)), "per_node: must divide the 4 ranks");
}

TEST_CASE("PowerSGD: sent plus error equals the input, and vectors are sent whole") {
  // Two matrices, with a vector before, between and after them.
  const std::vector<PowerSgd::Matrix> matrices{{3, {12, 7}}, {100, {5, 20}}};
  const std::size_t elements = 205;
  for (const std::size_t n : {2u, 3u, 8u}) {
    for (const bool warm_start : {true, false}) {
      for (const int iterations : {1, 3})
        sent_plus_owed_equals_meant(
            PowerSgd{matrices, 2, warm_start, iterations}, n, elements,
            [&](const PowerSgd& state) { return sum(state.owed, elements); });
    }
    PowerSgd state{matrices, 2};
    auto buffers = random_buffers(n, elements, 1);
    const auto meant = sum(buffers, elements);
    const Wire wire = average(state, views(buffers));
    const std::size_t vectors = elements - 12 * 7 - 5 * 20;
    for (const std::size_t sent : wire.sent) {
      CHECK(sent == power_sgd_bytes(12, 7, 2, int(n)) + power_sgd_bytes(5, 20, 2, int(n)) +
                        plain_allreduce_bytes(vectors, int(n), WireFormat::fp32));
    }
    PowerSgd turning{.matrices = matrices, .rank = 2, .warm_start = false, .iterations = 3};
    auto again = random_buffers(n, elements, 1);
    for (const std::size_t sent : average(turning, views(again)).sent) {
      CHECK(sent == power_sgd_bytes(12, 7, 2, int(n), 3) + power_sgd_bytes(5, 20, 2, int(n), 3) +
                        plain_allreduce_bytes(vectors, int(n), WireFormat::fp32));
    }
    for (const std::size_t e : {0u, 90u, 204u}) {
      CHECK(buffers[0][e] == Approx(meant[e] / double(n)).epsilon(1e-5));
      CHECK(state.owed[0][e] == 0);
    }
  }
}

TEST_CASE(
    "PowerSGD of a matrix of its rank has no error; a warm start finds the larger directions") {
  const std::size_t rows = 16, columns = 12;
  const auto rank_two = [&] {
    auto a = random_buffers(1, rows * 2, 1)[0], b = random_buffers(1, columns * 2, 2)[0];
    Flat m(rows * columns);
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) {
        m[i * columns + j] = 10 * a[2 * i] * b[2 * j] + a[2 * i + 1] * b[2 * j + 1];
      }
    }
    return m;
  }();
  const auto owed_norm = [&](PowerSgd state, int calls) {
    for (int call = 0; call < calls; ++call) {
      std::vector<Flat> buffers(2, rank_two);
      state.owed.clear();  // each call sees the same matrix
      average(state, views(buffers));
    }
    double squares = 0;
    for (const float x : state.owed[0]) squares += double(x) * x;
    return std::sqrt(squares);
  };
  const PowerSgd two{{{0, {rows, columns}}}, 2};
  CHECK(owed_norm(two, 1) < 1e-5);
  PowerSgd one{{{0, {rows, columns}}}, 1};
  const double first = owed_norm(one, 1), later = owed_norm(one, 8);
  CHECK(later < 0.95 * first);
  one.warm_start = false;
  CHECK(owed_norm(one, 8) > 1.02 * later);
  // Several iterations in one call reach the factors that a warm start reaches over several calls.
  one.iterations = 8;
  CHECK(owed_norm(one, 1) < 1.001 * later);
}

TEST_CASE("sparse exchanges: sent plus error equals the input") {
  const std::size_t elements = 500;
  for (const std::size_t n : {2u, 3u, 8u}) {
    for (const auto choice : {SparseAllreduce::Choice::top, SparseAllreduce::Choice::random}) {
      for (const std::size_t kept : {1u, 50u, 500u}) {
        sent_plus_owed_equals_meant(
            SparseAllreduce{choice, kept}, n, elements,
            [&](const SparseAllreduce& state) { return sum(state.owed, elements); });
        SparseAllreduce state{choice, kept};
        auto buffers = random_buffers(n, elements, 1);
        const Wire wire = average(state, views(buffers));
        for (const std::size_t sent : wire.sent) {
          CHECK(sent == (choice == SparseAllreduce::Choice::top ? top_k_bytes(kept, int(n))
                                                                : random_k_bytes(kept, int(n))));
        }
      }
    }
  }
  SparseAllreduce state{SparseAllreduce::Choice::top, 9};
  auto buffers = random_buffers(2, 8, 1);
  CHECK_THROWS_WITH(average(state, views(buffers)), "kept: 9 (allowed: 1 to 8)");
}

TEST_CASE("chunked exchanges: sent plus error equals the input, in messages of the closed form") {
  for (const ChunkCode code : {ChunkCode::largest, ChunkCode::cosines}) {
    for (const std::size_t elements : {500u, 4096u, 9000u}) {
      for (const std::size_t kept : {1u, 64u, 4096u}) {
        sent_plus_owed_equals_meant(
            ChunkedGather{code, kept}, 3, elements,
            [&](const ChunkedGather& state) { return sum(state.owed, elements); });
        ChunkedGather state{code, kept};
        auto buffers = random_buffers(3, elements, 1);
        for (const std::size_t sent : average(state, views(buffers)).sent)
          CHECK(sent == chunked_bytes(code, elements, kept, 3));
      }
    }
    // With the same buffers in each call, error feedback makes the mean of the results converge to
    // the mean of the buffers.
    ChunkedGather state{code, 64};
    std::vector<double> total(4096);
    for (int call = 0; call < 400; ++call) {
      auto buffers = random_buffers(3, 4096, 8);
      average(state, views(buffers));
      for (std::size_t e = 0; e < 4096; ++e) total[e] += buffers[0][e] / 400;
    }
    const auto meant = sum(random_buffers(3, 4096, 8), 4096);
    double error = 0, all = 0;
    for (std::size_t e = 0; e < 4096; ++e) {
      error += std::pow(total[e] - meant[e] / 3, 2);
      all += std::pow(meant[e] / 3, 2);
    }
    CHECK(error < 0.2 * all);
  }
  ChunkedGather state{ChunkCode::largest, 4097};
  auto buffers = random_buffers(2, 8, 1);
  CHECK_THROWS_WITH(average(state, views(buffers)), "kept: 4097 (allowed: 1 to 4096)");
}

TEST_CASE(
    "every element is sent in the end: by top-k when its error has grown, by random-k by chance") {
  for (const auto choice : {SparseAllreduce::Choice::top, SparseAllreduce::Choice::random}) {
    SparseAllreduce state{choice, 10};
    std::vector<double> received(100);
    for (int call = 0; call < 400; ++call) {
      auto buffers = random_buffers(3, 100, 8);
      for (Flat& buffer : buffers) {
        for (float& x : buffer) x += 1;  // so that nothing cancels
      }
      average(state, views(buffers));
      for (std::size_t e = 0; e < 100; ++e) received[e] += buffers[0][e];
    }
    for (std::size_t e = 0; e < 100; ++e) CHECK(received[e] / 400 > 0.3);
  }
}

TEST_CASE("averaging with neighbours keeps the mean and reduces the spread") {
  const auto spread = [](const std::vector<Flat>& all) {
    double squares = 0;
    const auto mean = sum(all, all[0].size());
    for (const Flat& flat : all) {
      for (std::size_t e = 0; e < flat.size(); ++e) {
        const double off = flat[e] - mean[e] / double(all.size());
        squares += off * off;
      }
    }
    return squares;
  };
  for (const std::size_t n : {2u, 5u, 8u}) {
    for (const Graph graph : {Graph::ring, Graph::one_peer_exponential}) {
      auto buffers = random_buffers(n, 40, 9);
      if (n == 5 && graph == Graph::one_peer_exponential) {
        CHECK_THROWS_WITH(average_with_neighbours(graph, 0, views(buffers), WireFormat::fp32),
                          "ranks: must be a power of two for the exponential graph");
        continue;
      }
      const auto before = sum(buffers, 40);
      double last = spread(buffers);
      for (std::size_t call = 0; call < 3; ++call) {
        const Wire wire = average_with_neighbours(graph, call, views(buffers), WireFormat::fp32);
        for (const std::size_t sent : wire.sent) {
          CHECK(sent == neighbour_bytes(40, neighbours(graph, int(n)), WireFormat::fp32));
        }
        const auto after = sum(buffers, 40);
        for (std::size_t e = 0; e < 40; ++e) CHECK(after[e] == Approx(before[e]).margin(1e-5));
        if (last > 1e-9) CHECK(spread(buffers) < 0.8 * last);
        last = spread(buffers);
      }
      // log2 8 calls of the exponential graph are an all-reduce.
      if (n == 8 && graph == Graph::one_peer_exponential) CHECK(last < 1e-9);
    }
  }
}

TEST_CASE("closed forms of the exchanges, by hand") {
  // 1 Mi elements, 8 ranks, chunks of 128 Ki elements.
  const std::size_t n = 1 << 20, chunk = n / 8;
  CHECK(plain_allreduce_bytes(n, 8, WireFormat::fp16) == 2 * 7 * 2 * chunk);
  CHECK(onebit_allreduce_bytes(n, 8) == 2 * 7 * chunk / 8 + 8 * 7);
  CHECK(quantised_allreduce_bytes(n, 8, {WireFormat::fp8_e4m3, 0}) == 2 * 7 * (chunk + 4));
  CHECK(quantised_allreduce_bytes(n, 8, {WireFormat::int4, 256}) ==
        2 * 7 * (chunk / 2 + chunk / 256 * 4));
  // 2 nodes of 4 ranks: three messages of two shards within the node, one of a shard to the other
  // node.
  CHECK(hierarchical_reduce_scatter_bytes(n, 2, 4, {WireFormat::int8, 256},
                                          {WireFormat::int4, 256}) ==
        3 * (2 * chunk + 2 * chunk / 64) + chunk / 2 + chunk / 64);
  CHECK(power_sgd_bytes(1024, 1024, 4, 8) == 2 * 2 * 7 * 4 * 1024 * 4 / 8);
  CHECK(top_k_bytes(1000, 8) == 7 * 8000);
  CHECK(random_k_bytes(1000, 8) == 2 * 7 * 4 * 125);
  CHECK(neighbour_bytes(n, 2, WireFormat::bf16) == 4 * n);
  // 256 chunks: SparseLoCo's 0.219 bits of an element, and Psyche's 0.0166.
  CHECK(chunk_message_bytes(ChunkCode::largest, n, 64) == 256 * 64 * 14 / 8 + 16);
  CHECK(chunk_message_bytes(ChunkCode::cosines, n, 4) == 256 * 4 * 17 / 8 + 4);
  CHECK(chunk_message_bytes(ChunkCode::largest, 4096 + 10, 64) == (74 * 14 + 7) / 8 + 16);
  CHECK(chunked_bytes(ChunkCode::cosines, 10, 4, 8) == 7 * (4 + 9));
  for (const std::size_t bytes :
       {plain_allreduce_bytes(n, 1, WireFormat::fp32), onebit_allreduce_bytes(n, 1),
        quantised_allreduce_bytes(n, 1, {}), hierarchical_reduce_scatter_bytes(n, 1, 1, {}, {}),
        power_sgd_bytes(8, 8, 4, 1), top_k_bytes(9, 1), random_k_bytes(9, 1)}) {
    CHECK(bytes == 0);
  }
}
