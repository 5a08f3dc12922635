#include "kernels/reference/compression.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "sim/base/error.h"

using namespace lambcast;
using namespace lambcast::reference;

TEST_CASE("padding is a multiple of n * lcm(n, 8)") {
  // BERT-Large has 335,184,706 elements; the padded sizes are n * lcm(n, 8) * ceil(N / that).
  CHECK(chunk_layout(335184706, 8).padded == 335184768);
  CHECK(chunk_layout(335184706, 64).padded == 335187968);
  CHECK(chunk_layout(335184706, 128).padded == 335200256);
  // n * lcm(n, 8): 8, 2*8, 3*24, 6*24, 8*8, 12*24, 64*64. One element is padded to one unit.
  const int ranks[] = {1, 2, 3, 6, 8, 12, 64};
  const std::size_t unit[] = {8, 16, 72, 144, 64, 288, 4096};
  for (int i = 0; i < 7; ++i) {
    const ChunkLayout one = chunk_layout(1, ranks[i]);
    CHECK(one.padded == unit[i]);
    CHECK(one.chunk * static_cast<std::size_t>(ranks[i]) == one.padded);
    CHECK(one.chunk % 8 == 0);
    CHECK(chunk_layout(unit[i] + 1, ranks[i]).padded == 2 * unit[i]);
    CHECK(chunk_layout(0, ranks[i]).padded == 0);
  }
  CHECK_THROWS_WITH(chunk_layout(8, 0), "ranks: must be at least 1");
}

TEST_CASE("the real elements of all chunks add up to the buffer") {
  for (const int n : {1, 3, 8, 12}) {
    for (const std::size_t elements : {1u, 70u, 145u, 1000u}) {
      const ChunkLayout layout = chunk_layout(elements, n);
      std::size_t sum = 0;
      for (int r = 0; r < n; ++r) sum += layout.real_in_chunk(r);
      CHECK(sum == elements);
    }
  }
}

TEST_CASE("element 0 is the most significant bit, zero is plus") {
  // + - - - - - - +   +      -> 1000'0001, 1(000'0000)
  const std::vector<float> x{1, -1, -2, -3, -4, -5, -6, 7, 8};
  std::vector<std::uint8_t> signs(2);
  pack_signs(x, signs);
  CHECK(signs[0] == 0x81);
  CHECK(signs[1] == 0x80);
  std::vector<float> back(9);
  unpack_signs(signs, back);
  CHECK(back == std::vector<float>{1, -1, -1, -1, -1, -1, -1, 1, 1});
}

TEST_CASE("0, -0.0 and NaN pack as plus, but the sign bit rule packs -0.0 as minus") {
  const std::vector<float> x{0.0f, -0.0f, std::numeric_limits<float>::quiet_NaN(), -1e-45f};
  std::vector<std::uint8_t> signs(1);
  pack_signs(x, signs);
  CHECK(signs[0] == 0xe0);
  pack_signs(x, signs, SignRule::sign_bit);
  CHECK((signs[0] & 0xc0) == 0x80);
}

TEST_CASE("the scale is the root mean square, not the mean magnitude") {
  // x = (3, -4, 0 x 6): ||x|| = 5, so the scale is 5 / sqrt(8); the mean magnitude would be 7 / 8.
  std::vector<float> error(8, 0.0f);
  std::vector<std::uint8_t> signs(1);
  const std::vector<float> x{3, -4, 0, 0, 0, 0, 0, 0};
  const float scale = worker_phase(x, error, signs, Padding::excluded);
  CHECK(scale == Approx(5 / std::sqrt(8.0)).epsilon(1e-7));
  CHECK(signs[0] == 0xbf);
  // error = c - scale * sgn(c): a zero has the error -scale, since it was sent as +scale.
  CHECK(error[0] == 3 - scale);
  CHECK(error[1] == -4 + scale);
  CHECK(error[2] == -scale);
}

TEST_CASE("padding counts in DeepSpeed's scale but not by default") {
  // Four real elements of 2 in a buffer of eight. Excluded: rms = 2. Counted: sqrt(16 / 8).
  const std::vector<float> x(4, 2.0f);
  std::vector<float> error(8, 0.0f);
  std::vector<std::uint8_t> signs(1);
  CHECK(worker_phase(x, error, signs, Padding::excluded) == 2.0f);
  CHECK(error == std::vector<float>(8, 0.0f));
  const float scale = worker_phase(x, error, signs, Padding::counted);
  CHECK(scale == Approx(std::sqrt(2.0)).epsilon(1e-7));
  CHECK(error[7] == -scale);  // the padding was sent as +scale
}

TEST_CASE("the server folds 1/n into the scale and adds the ranks") {
  // Three ranks with scales 1, 2, 4 send + - + for every element: y = 1/3 - 2/3 + 4/3 = 1.
  const std::vector<float> scales{1, 2, 4};
  std::vector<std::uint8_t> received{0xff, 0x00, 0xff};
  std::vector<float> error(8, 0.0f);
  std::vector<std::uint8_t> signs(1);
  const float third = static_cast<float>(1.0 / 3.0);
  const float sum = (1 * third + -2 * third) + 4 * third;
  const float scale = server_phase(received, scales, error, signs, 8, Padding::excluded);
  CHECK(scale == Approx(sum).epsilon(1e-7));
  CHECK(signs[0] == 0xff);
  for (const float owed : error) CHECK(owed == sum - scale);
}

TEST_CASE("the server adds four ranks at a time") {
  // 2^24 + 1 is 2^24 in float: the ones survive only if they are first added to each other.
  const float large = 0x1p24f;
  const std::vector<float> scales{6 * large, 6, 6, 6, 6, 6};  // times 1/6
  std::vector<std::uint8_t> received(6, 0xff), signs(1);
  std::vector<float> error(8, 0.0f);
  const float scale = server_phase(received, scales, error, signs, 8, Padding::excluded);
  const float share = static_cast<float>(1.0 / 6.0);
  const float six = 6 * share, first = ((6 * large * share + six) + six) + six;
  CHECK(error[0] + scale == first + (six + six));
}

TEST_CASE("every chunk decodes with its own server scale") {
  const std::vector<std::uint8_t> signs{0xf0, 0x0f};
  const std::vector<float> scales{1, 2};
  std::vector<float> x(13);  // without the three elements of padding
  decode(signs, scales, 8, x);
  CHECK(x == std::vector<float>{1, 1, 1, 1, -1, -1, -1, -1, -2, -2, -2, -2, 2});
}

TEST_CASE("one NaN or infinity makes every decoded element non-finite") {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> x(16, 1.0f), error(16, 0.0f);
    x[5] = bad;
    std::vector<std::uint8_t> signs(2);
    const std::vector<float> scales{worker_phase(x, error, signs, Padding::excluded)};
    decode(signs, scales, 16, x);
    for (const float value : x) CHECK_FALSE(std::isfinite(value));
  }
}

TEST_CASE("the momentum is scaled after the update, and the mask clears masked elements") {
  std::vector<float> m{1, 2};
  update_momentum(m, std::vector<float>{3, 4}, 0.5, 10);
  CHECK(m == std::vector<float>{20, 30});  // (0.5 m + 0.5 g) * 10
  apply_mask(m, std::vector<float>{1, 0});
  CHECK(m == std::vector<float>{20, 0});
}
