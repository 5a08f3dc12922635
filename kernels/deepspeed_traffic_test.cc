#include "kernels/deepspeed_traffic.h"

#include <catch2/catch.hpp>

using namespace lambcast;

TEST_CASE("the operations in DeepSpeed's source add up to the count of a dispatch mode") {
  CHECK(bytes_per_element(deepspeed_onebit_lamb_warm_up()) == 132);
  CHECK(bytes_per_element(deepspeed_onebit_lamb_compression()) == 216);
  CHECK(bytes_per_element(deepspeed_zero_one_onebit_round()) == 88);
  CHECK(bytes_per_element(deepspeed_fp16_unfused_wrapper()) == deepspeed_lamb_wrapper_bytes);
  // A synchronisation is a local step, which also adds to u (20 bytes), and then rewinds, rescales
  // and moves the weights.
  CHECK(deepspeed_zero_one_synchronisation_bytes >
        bytes_per_element(deepspeed_zero_one_onebit_round()) + 20 + 20 + 28 + 20 + 40);
  // 188 bytes were counted at 8 ranks, including padding and the small chunks' scales.
  CHECK(deepspeed_exchange_bytes_per_element(8) == Approx(188).epsilon(0.02));
}

TEST_CASE("the kernels move at most a third of DeepSpeed's bytes") {
  // cuda/lamb.h and cuda/compression.h: lamb_step 40; onebit_lamb_step, which decodes, after
  // worker_phase of a momentum and server_phase at n = 8.
  CHECK(40 < bytes_per_element(deepspeed_onebit_lamb_warm_up()) / 3);
  const double ours = 36.25 + 16.125 + 1.141;
  CHECK(ours < (bytes_per_element(deepspeed_onebit_lamb_compression()) +
                deepspeed_exchange_bytes_per_element(8)) /
                   6);
}
