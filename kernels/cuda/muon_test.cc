#include "kernels/cuda/muon.h"

#include "kernels/cuda/gpu_test.h"

using namespace lambcast;
using namespace lambcast::cuda;

TEST_CASE("Muon on the GPU equals the reference, for wide, tall and square matrices") {
  NEED_GPUS(1);
  for (const reference::MatrixShape shape :
       {reference::MatrixShape{64, 64}, {33, 90}, {90, 33}, {8, 200}}) {
    for (const bool nesterov : {true, false}) {
      INFO(shape.rows << " x " << shape.columns);
      const reference::Muon rule{{.lr = 0.1, .weight_decay = 0.5, .nesterov = nesterov}};
      const reference::Part part = reference::whole_part(shape);
      reference::Muon::State state = rule.state(part);
      auto p = random_values(shape.elements(), 1);
      const auto initial = p;
      const auto device_p = upload(p), device_m = upload(state.m);
      DeviceBuffer<std::uint16_t> half(shape.elements());
      MuonStep muon(shape, rule.options);
      for (unsigned k = 1; k <= 3; ++k) {
        const auto g = random_values(shape.elements(), 10 + k);
        const reference::View view{part, p, g};
        rule.take(0, view, state, rule.sums(0, view, state, int(k)), int(k));
        rule.apply(view, state, int(k));
        muon.step(device_p.data(), device_m.data(), upload(g).data(),
                  HalfPointer(half.data(), HalfFormat::bf16), nullptr);
      }
      const auto found = device_p.to_host();
      CHECK((device_m.to_host() == state.m));
      CHECK(relative_distance(found, p) < 0.02);
      CHECK(relative_distance(initial, p) > 0.1);
      const auto copy = half.to_host();
      for (std::size_t e = 0; e < found.size(); ++e)
        REQUIRE(copy[e] == reference::to_half(found[e], HalfFormat::bf16));
    }
  }
}

TEST_CASE("Muon on the GPU: a gradient of zeros moves nothing but the decay, vectors are refused") {
  NEED_GPUS(1);
  const reference::MatrixShape shape{16, 24};
  const auto p = random_values(shape.elements(), 1);
  const auto device_p = upload(p);
  const DeviceBuffer<float> m(shape.elements()), g(shape.elements());
  MuonStep muon(shape, {.lr = 0.5, .weight_decay = 0.5});
  muon.step(device_p.data(), m.data(), g.data(), {}, nullptr);
  const auto found = device_p.to_host();
  for (std::size_t e = 0; e < p.size(); ++e) CHECK(found[e] == 0.75F * p[e]);
  CHECK_THROWS_WITH(MuonStep({1, 24}, {}), "a matrix of 1 x 24 (allowed: 2 x 2 and more)");
  CHECK_THROWS_WITH(MuonStep(shape, {.iterations = {.in_bf16 = false}}),
                    "in_bf16: false (allowed: true, on a GPU)");
}
