// The kernels of the exchanges other than 1-bit compression, compared with their references.
#include <cstring>

#include "kernels/cuda/gpu_test.h"
#include "kernels/cuda/local_steps.h"
#include "kernels/cuda/low_rank.h"
#include "kernels/cuda/quantisation.h"
#include "kernels/cuda/sparse.h"
#include "kernels/cuda/top_k.h"
#include "kernels/reference/quantisation.h"
#include "kernels/reference/sparse.h"

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

constexpr std::size_t few_elements = emulated_device ? 9003 : 100003;  // not a multiple of 4

const std::vector<Quantiser> quantisers{
    {WireFormat::fp8_e4m3, 0},   {WireFormat::fp8_e5m2, 0}, {WireFormat::int8, 0},
    {WireFormat::fp8_e4m3, 512}, {WireFormat::int8, 256},   {WireFormat::int4, 2048},
    {WireFormat::int4, 4096},    {WireFormat::int4, 8},     {WireFormat::int4, 0},
    {WireFormat::fp8_e5m2, 24},  {WireFormat::int8, 1000},  {WireFormat::int8, 2048}};

// Compares bits, so that equal NaNs are equal.
bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
}

struct OnDevice {
  DeviceBuffer<std::uint8_t> payload;
  DeviceBuffer<float> scales;
  OnDevice(const Quantiser& q, std::size_t elements)
      : payload(payload_bytes(q.format, elements)), scales(scale_count(q, elements)) {}
};

// Checks messages and error feedback: the error of one message is added to the next.
void quantises_as_the_reference(std::size_t elements, const std::vector<Quantiser>& of) {
  const DeviceBuffer<double> workspace(reduction_slots);
  for (const Quantiser& q : of) {
    for (const bool feedback : {false, true}) {
      const OnDevice message(q, elements);
      const DeviceBuffer<float> owed(elements), error(elements);
      std::vector<float> left(elements);
      for (unsigned call = 1; call <= 3; ++call) {
        auto x = random_values(elements, call);
        x[0] = -0.0f;
        x[elements / 2] = 1e-8f;
        const auto dx = upload(x);
        const Quantise phase{dx.data(),
                             feedback ? owed.data() : nullptr,
                             elements,
                             q,
                             message.payload.data(),
                             message.scales.data(),
                             workspace.data()};
        for (std::size_t e = 0; feedback && e < elements; ++e) x[e] += left[e];
        const auto expected = reference::quantise_owed(x, q);
        left = x;
        require(quantise(phase, nullptr), "quantise");
        CHECK((message.payload.to_host() == expected.payload));
        CHECK((message.scales.to_host() == expected.scales));
        if (!feedback) continue;
        if (q.block != 0) {
          CHECK((owed.to_host() == left));
          CHECK(resolve_errors(phase, error.data(), nullptr) == cudaErrorInvalidValue);
        } else {
          require(resolve_errors(phase, error.data(), nullptr), "resolve_errors");
          CHECK((error.to_host() == left));
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("quantised messages and error feedback on the GPU have the reference's bits") {
  NEED_GPUS(1);
  quantises_as_the_reference(few_elements, quantisers);
  quantises_as_the_reference(3, quantisers);
}

TEST_CASE("quantised messages over many passes equal the reference's", "[large]") {
  NEED_GPUS(1);
  quantises_as_the_reference(many_passes, {{WireFormat::fp8_e4m3, 0}, {WireFormat::int4, 2048}});
}

TEST_CASE("messages with scales of 0, subnormal, huge or infinite have the reference's bits") {
  NEED_GPUS(1);
  constexpr std::size_t block = 256;
  const std::vector<float> factors{0, 0x1p-148f, 0x1p-140f, 0x1p-120f, 0x1p-62f, 0x1p-50f,
                                   1, 0x1p61f,   0x1p70f,   0x1p126f,  HUGE_VALF};
  const std::size_t elements = block * factors.size() - 3;
  auto x = random_values(elements, 1);
  for (std::size_t e = 0; e < elements; ++e) {
    const float factor = factors[e / block];
    // For an infinite factor: one infinity among finite numbers.
    if (factor != HUGE_VALF)
      x[e] *= factor;
    else if (e % block == 9)
      x[e] = -HUGE_VALF;
  }
  const DeviceBuffer<double> workspace(reduction_slots);
  const auto one_nan = [](std::vector<float> values) {
    for (float& v : values)
      if (std::isnan(v)) v = NAN;
    return values;
  };
  for (const auto format :
       {WireFormat::fp8_e4m3, WireFormat::fp8_e5m2, WireFormat::int8, WireFormat::int4})
    for (const std::size_t of : {block, std::size_t{0}}) {
      const Quantiser q{format, of};
      const auto dx = upload(x);
      const DeviceBuffer<float> owed(elements);
      const OnDevice message(q, elements);
      auto left = x;
      for (float& c : left) c += 0.0f;  // error feedback: -0 becomes 0
      const auto expected = reference::quantise_owed(left, q);
      require(quantise({dx.data(), owed.data(), elements, q, message.payload.data(),
                        message.scales.data(), workspace.data()},
                       nullptr),
              "quantise");
      CHECK((message.payload.to_host() == expected.payload));
      CHECK((message.scales.to_host() == expected.scales));
      if (of != 0) CHECK(same_bits(one_nan(owed.to_host()), one_nan(left)));
    }
}

namespace {

void adds_up_as_the_reference(const Quantiser& q, unsigned count, std::size_t elements) {
  INFO("format " << int(q.format) << ", block " << q.block << ", " << count << " messages of "
                 << elements);
  std::vector<reference::Message> messages;
  std::vector<std::uint8_t> payloads;
  std::vector<float> scales, expected(elements);
  for (unsigned m = 0; m < count; ++m) {
    messages.push_back(reference::quantise(random_values(elements, m + 1), q));
    payloads.insert(payloads.end(), messages[m].payload.begin(), messages[m].payload.end());
    scales.insert(scales.end(), messages[m].scales.begin(), messages[m].scales.end());
  }
  reference::dequantise_sum(messages, q, 1.0f / 3, expected);
  const auto device_payloads = upload(payloads);
  const auto device_scales = upload(scales);
  const DeviceBuffer<float> x(elements);
  const DequantiseSum phase{
      device_payloads.data(), device_scales.data(), int(count), elements, q, 1.0f / 3, x.data()};
  require(dequantise_sum(phase, nullptr), "dequantise_sum");
  CHECK(same_bits(x.to_host(), expected));
}

}  // namespace

TEST_CASE("messages are summed in order, as in the reference") {
  NEED_GPUS(1);
  for (const Quantiser& q : quantisers) {
    for (const unsigned count : {1u, 3u, 9u}) {
      adds_up_as_the_reference(q, count, few_elements);
      // Every message of whole words; then messages that end two bytes (int4: one byte) after a
      // word.
      adds_up_as_the_reference(q, count, few_elements / 8 * 8);
      adds_up_as_the_reference(q, count, few_elements / 8 * 8 + 2);
    }
    adds_up_as_the_reference(q, 3, 3);
  }
}

TEST_CASE("a NaN makes its block of a message NaN, and wrong arguments are rejected") {
  NEED_GPUS(1);
  const Quantiser q{WireFormat::int8, 256};
  auto x = random_values(1024, 1);
  x[300] = NAN;
  const auto dx = upload(x);
  const OnDevice message(q, 1024);
  const DeviceBuffer<double> workspace(reduction_slots);
  Quantise phase{dx.data(),       nullptr, 1024, q, message.payload.data(), message.scales.data(),
                 workspace.data()};
  require(quantise(phase, nullptr), "quantise");
  const auto scales = message.scales.to_host();
  for (std::size_t b = 0; b < 4; ++b) CHECK(std::isnan(scales[b]) == (b == 1));
  for (const Quantiser bad :
       {Quantiser{WireFormat::int8, 12}, {WireFormat::int8, 8192}, {WireFormat::fp16, 0}}) {
    phase.quantiser = bad;
    CHECK(quantise(phase, nullptr) == cudaErrorInvalidValue);
  }
  phase.quantiser = q;
  phase.x += 1;
  CHECK(quantise(phase, nullptr) == cudaErrorMisalignedAddress);
}

namespace {

// Compares the selection of the largest k elements of x plus the error feedback, or of the error
// feedback alone without x.
void finds_the_largest(const std::vector<float>& values, std::size_t k, bool with_x = false) {
  const std::size_t elements = values.size();
  const std::vector<float> x = with_x ? random_values(elements, 7) : std::vector<float>(elements);
  std::vector<float> c = values;
  for (std::size_t e = 0; with_x && e < elements; ++e) c[e] += x[e];
  const auto indices = reference::top_k_indices(c, k);
  const auto sent = reference::take(c, indices);
  const auto dx = upload(x), dc = upload(values);
  const DeviceBuffer<std::uint32_t> device_indices(k);
  const DeviceBuffer<float> device_values(k);
  const DeviceBuffer<double> workspace(top_k_workspace(elements, k));
  const SparseMessage message{device_indices.data(), device_values.data(), k};
  require(
      top_k(with_x ? dx.data() : nullptr, dc.data(), elements, message, workspace.data(), nullptr),
      "top_k");
  CHECK((device_indices.to_host() == indices));
  CHECK(same_bits(device_values.to_host(), sent));
  CHECK(same_bits(dc.to_host(), c));

  DeviceBuffer<float> sums = upload(values);
  std::vector<float> sum = values;
  reference::add_at(sum, indices, sent, 0.5f);
  require(add_at(sums.data(), message, 0.5f, nullptr), "add_at");
  auto summed = sums.to_host();
  // The bits of a NaN sum differ on a GPU.
  for (std::vector<float>* of : {&summed, &sum})
    for (float& s : *of)
      if (std::isnan(s)) s = NAN;
  CHECK(same_bits(summed, sum));
}

// top_k's list has room for 16,384 more than 2 k elements; of this many, less than half are
// candidates.
constexpr std::size_t more_than_a_list = 40'003;

// Returns the first element of the quad that top_k samples from a group of 256.
std::size_t sampled_quad(std::size_t group, std::size_t elements) {
  std::uint64_t bits = group + 0x9e3779b97f4a7c15u;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  bits ^= bits >> 31;
  const std::size_t begin = 256 * group,
                    quads = (std::min<std::size_t>(256, elements - begin) + 3) / 4;
  return begin + 4 * (bits % quads);
}

}  // namespace

TEST_CASE("top_k's workspace is 16 bytes for each kept element, one for each 512, and 0.27 MB") {
  for (const std::size_t elements : {std::size_t{1} << 26, std::size_t{1} << 30})
    for (const double share : {0.001, 0.01, 0.1}) {
      const auto kept = static_cast<std::size_t>(share * static_cast<double>(elements));
      const double says =
          16 * static_cast<double>(kept) + static_cast<double>(elements) / 512 + 0.27e6;
      CHECK(8 * static_cast<double>(top_k_workspace(elements, kept)) == Approx(says).epsilon(0.02));
    }
}

TEST_CASE("the k largest on the GPU equal the reference's, also among equal values") {
  NEED_GPUS(1);
  auto values = random_values(few_elements, 1);
  for (const bool with_x : {false, true})
    for (const std::size_t k : {std::size_t{1}, few_elements / 100, few_elements / 2, few_elements})
      finds_the_largest(values, k, with_x);
  for (std::size_t e = 0; e < few_elements; e += 3)
    values[e] = e % 2 ? 0.25f : -0.25f;  // a third are equal
  finds_the_largest(values, few_elements / 2 + few_elements / 10);
  finds_the_largest(std::vector<float>(few_elements, 0.0f), 100);
  values[77] = NAN;
  values[5] = -HUGE_VALF;
  finds_the_largest(values, 2);
  finds_the_largest({1, -2, 3}, 2);
  CHECK(top_k(nullptr, nullptr, 3, {nullptr, nullptr, 4}, nullptr, nullptr) ==
        cudaErrorInvalidValue);
}

TEST_CASE(
    "the k largest are found if the list of candidates has too many, too few or some of them") {
  NEED_GPUS(1);
  finds_the_largest(random_values(more_than_a_list, 1), 400, true);
  // More equal values than the list holds, and a few larger ones.
  std::vector<float> values(more_than_a_list, 0.5f);
  for (std::size_t e = 100; e < more_than_a_list; e += 997) values[e] = -2;
  finds_the_largest(values, 400);
  // Only sampled elements are large, but fewer than k: the sample predicts 39 above the threshold.
  values = random_values(more_than_a_list, 2);
  for (std::size_t g = 0; 256 * g < more_than_a_list; ++g)
    for (std::size_t i = 0; i < 4; ++i)
      if (const auto e = sampled_quad(g, more_than_a_list) + i; e < more_than_a_list)
        values[e] = 10 + values[e];
  finds_the_largest(values, 1000);
}

TEST_CASE("the k largest over many passes equal the reference's", "[large]") {
  NEED_GPUS(1);
  finds_the_largest(random_values(many_passes, 1), many_passes / 100);
}

TEST_CASE(
    "random elements on the GPU equal the reference's, and error feedback is the unsent part") {
  NEED_GPUS(1);
  for (const std::size_t k : {std::size_t{1}, few_elements / 100, few_elements}) {
    const auto x = random_values(few_elements, 1), owed = random_values(few_elements, 2);
    std::vector<float> c = owed;
    for (std::size_t e = 0; e < few_elements; ++e) c[e] += x[e];
    const auto dx = upload(x), dc = upload(owed);
    require(add_owed(dx.data(), dc.data(), few_elements, nullptr), "add_owed");
    CHECK((dc.to_host() == c));
    const auto indices = reference::random_k_indices(9, k, few_elements);
    const auto sent = reference::take(c, indices);
    const DeviceBuffer<std::uint32_t> device_indices(k);
    const DeviceBuffer<float> device_values(k);
    require(random_k(dc.data(), few_elements, 9, {device_indices.data(), device_values.data(), k},
                     nullptr),
            "random_k");
    CHECK((device_indices.to_host() == indices));
    CHECK((device_values.to_host() == sent));
    CHECK((dc.to_host() == c));
  }
  CHECK(random_k(nullptr, 3, 1, {nullptr, nullptr, 4}, nullptr) == cudaErrorInvalidValue);
}

TEST_CASE("PowerSGD on the GPU agrees with the reference") {
  NEED_GPUS(1);
  for (const auto& [shape, rank] : {std::pair{reference::MatrixShape{70, 33}, 1},
                                    {{300, 45}, 4},
                                    {{33, 130}, 6},
                                    {{5, 7}, 7},
                                    // Rows of whole quads, more columns than fit at a time, and
                                    // more rows than a part has.
                                    {{23, 1100}, 4},
                                    {{70, 132}, 9},
                                    {{301, 44}, 4},
                                    {{301, 44}, 8}}) {
    const std::size_t n = shape.elements(), r = std::size_t(rank);
    const auto x = random_values(n, 1), before = random_values(n, 2);
    std::vector<float> m = before, q = random_values(shape.columns * r, 3), p(shape.rows * r),
                       sent(n);
    const auto dx = upload(x), owed = upload(before), dq = upload(q);
    const DeviceBuffer<float> dp(shape.rows * r), dsent(n);
    const DeviceBuffer<double> workspace(low_rank_workspace(shape, rank));
    const LowRank matrix{shape,     rank,      dx.data(),       owed.data(),
                         dp.data(), dq.data(), workspace.data()};
    for (std::size_t e = 0; e < n; ++e) m[e] += x[e];
    reference::project(m, shape, q, rank, p);
    require(project(matrix, nullptr), "project");
    CHECK((owed.to_host() == m));
    CHECK(relative_distance(dp.to_host(), p) < 1e-6);
    reference::orthonormalise(p, shape.rows, rank);
    require(orthonormalise(matrix, nullptr), "orthonormalise");
    if (shape.rows >= r + 5) CHECK(relative_distance(dp.to_host(), p) < 1e-4);
    // From here on P is the same on both sides: a nearly dependent column magnifies the rounding of
    // a sum.
    require(cudaMemcpy(dp.data(), p.data(), 4 * p.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
    reference::back_project(m, shape, p, rank, q);
    require(back_project(matrix, nullptr), "back_project");
    CHECK(relative_distance(dq.to_host(), q) < 1e-6);
    require(cudaMemcpy(dq.data(), q.data(), 4 * q.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
    // A further iteration does not change M.
    LowRank further = matrix;
    further.x = nullptr;
    std::vector<float> again(p.size());
    reference::project(m, shape, q, rank, again);
    require(project(further, nullptr), "project");
    CHECK(relative_distance(dp.to_host(), again) < 1e-6);
    CHECK((owed.to_host() == m));
    require(cudaMemcpy(dp.data(), p.data(), 4 * p.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
    reference::expand(p, q, shape, rank, m, sent);
    require(expand(matrix, dsent.data(), nullptr), "expand");
    CHECK((dsent.to_host() == sent));
    CHECK((owed.to_host() == m));
  }
}

TEST_CASE("entries of PowerSGD's factors are within the rounding that low_rank.h states") {
  NEED_GPUS(1);
  constexpr double bit = 0x1p-24;
  const reference::MatrixShape shape{600, 1500};
  constexpr int rank = 5;
  const auto x = random_values(shape.elements(), 1), q = random_values(shape.columns * rank, 2);
  const auto dx = upload(x), dq = upload(q);
  const DeviceBuffer<float> owed(x.size()), dp(shape.rows * rank);
  const DeviceBuffer<double> workspace(low_rank_workspace(shape, rank));
  const LowRank matrix{shape, rank, dx.data(), owed.data(), dp.data(), dq.data(), workspace.data()};
  require(project(matrix, nullptr), "project");
  require(back_project(matrix, nullptr), "back_project");
  const auto p = dp.to_host(), back = dq.to_host();
  std::vector<double> sums(p.size()), sizes(p.size()), back_sums(q.size()), back_sizes(q.size());
  for (std::size_t e = 0; e < x.size(); ++e) {
    for (std::size_t k = 0; k < rank; ++k) {
      const std::size_t row = e / shape.columns * rank + k, column = e % shape.columns * rank + k;
      const double forward = double(x[e]) * q[column], backward = double(x[e]) * p[row];
      sums[row] += forward;
      sizes[row] += std::fabs(forward);
      back_sums[column] += backward;
      back_sizes[column] += std::fabs(backward);
    }
  }
  for (std::size_t i = 0; i < p.size(); ++i) {
    REQUIRE(std::fabs(p[i] - sums[i]) <= 3 * bit * sizes[i] + bit * std::fabs(sums[i]));
  }
  for (std::size_t i = 0; i < q.size(); ++i) {
    REQUIRE(std::fabs(back[i] - back_sums[i]) <=
            3 * bit * back_sizes[i] + bit * std::fabs(back_sums[i]));
  }
}

TEST_CASE("the outer step and the average with neighbours equal the reference's") {
  NEED_GPUS(1);
  for (const reference::OuterOptions options :
       {reference::OuterOptions{}, {0.7, 0.9, true}, {0.7, 0.9, false}}) {
    auto anchor = random_values(few_elements, 1), mean = random_values(few_elements, 2);
    std::vector<float> velocity =
        options.momentum != 0 ? random_values(few_elements, 3) : std::vector<float>();
    const auto da = upload(anchor), dm = upload(mean), dv = upload(velocity);
    reference::outer_step(anchor, mean, velocity, options);
    require(
        outer_step({da.data(), dv.data(), dm.data(), dm.data(), few_elements}, options, nullptr),
        "outer_step");
    CHECK((da.to_host() == anchor));
    CHECK((dm.to_host() == anchor));
    CHECK((dv.to_host() == velocity));
  }
  const auto a = random_values(few_elements, 1), b = random_values(few_elements, 2),
             c = random_values(few_elements, 3);
  const auto da = upload(a), db = upload(b), dc = upload(c);
  const std::vector<float> weights{0.5f, 0.3f, 0.2f};
  std::vector<float> x(few_elements);
  reference::weighted_sum(std::vector<std::span<const float>>{a, b, c}, weights, x);
  const DeviceBuffer<float> dx(few_elements);
  const std::vector<const float*> buffers{da.data(), db.data(), dc.data()};
  require(weighted_sum(buffers, weights, dx.data(), few_elements, nullptr), "weighted_sum");
  CHECK((dx.to_host() == x));
  CHECK(weighted_sum(buffers, {}, dx.data(), few_elements, nullptr) == cudaErrorInvalidValue);
}
