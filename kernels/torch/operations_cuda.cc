#include <vector>

#include "kernels/cuda/adam.h"
#include "kernels/cuda/compression.h"
#include "kernels/cuda/gradient.h"
#include "kernels/cuda/lamb_tensors.h"
#include "kernels/torch/guarded.h"

using namespace lambcast;
using lambcast::cuda::require;
using lambcast::torch::adam_options;
using lambcast::torch::guarded;
using lambcast::torch::lamb_options;

static_assert(LAMBCAST_WORKSPACE == cuda::reduction_slots);

namespace {

cuda::HalfPointer half(const void* x, int format) {
  return {static_cast<std::uint16_t*>(const_cast<void*>(x)), lambcast::torch::half_format(format)};
}

cuda::Gradient gradient(const lambcast_gradient* g) {
  if (g == nullptr) return {};
  return g->format == LAMBCAST_FP32
             ? cuda::Gradient(static_cast<const float*>(g->values), g->factor)
             : cuda::Gradient(half(g->values, g->format), g->factor);
}

}  // namespace

struct lambcast_tensors {
  TensorLayout layout;
  cuda::LambTensors kept;
  cuda::DeviceBuffer<std::size_t> offsets;

  explicit lambcast_tensors(const TensorLayout& of)
      : layout(of),
        kept(of, std::vector<ParameterGroup>(of.tensors())),
        offsets(std::span<const std::size_t>(of.offsets)) {}

  cuda::LambState state(const lambcast_weights& weights, float* m, float* v) const {
    return kept.state(weights.p, m, v, half(weights.copy, weights.copy_format));
  }
};

namespace {

constexpr CoefficientAverage average = CoefficientAverage::bias_corrected;

cudaStream_t on(void* stream) { return static_cast<cudaStream_t>(stream); }

// Removes const: kernels only read here, but their state has one type for reading and writing.
float* unwritten(const float* x) { return const_cast<float*>(x); }

cuda::AdamState adam_state(const lambcast_weights& weights, const float* m, const float* v,
                           float* u, std::size_t n, const lambcast_options& options) {
  return {.p = weights.p,
          .m = unwritten(m),
          .v = unwritten(v),
          .u = u,
          .half_p = half(weights.copy, weights.copy_format),
          .elements = n,
          .unseen = lambcast::torch::unseen(options)};
}

cuda::PackedAverage packed(const std::uint8_t* signs, const float* scales, std::size_t chunk,
                           const float* mask) {
  return {.all = {.signs = signs, .scales = scales, .chunk = chunk}, .mask = mask};
}

int reported(cudaError_t status, const char* what) {
  return guarded([&] { require(status, what); });
}

}  // namespace

int lambcast_measure(const lambcast_gradient* g, size_t n, double* squared, double* workspace,
                     void* stream) {
  return reported(cuda::measure_gradient(gradient(g), n, squared, workspace, on(stream)),
                  "gradient norm");
}

int lambcast_gradient_factor(const double* squared, double loss_scale, double limit, float* factor,
                             void* stream) {
  return reported(cuda::gradient_factor(squared, loss_scale, limit, factor, on(stream)),
                  "factor of the gradient");
}

int lambcast_unscale(const lambcast_gradient* g, float* to, size_t n, void* stream) {
  return reported(cuda::unscale(gradient(g), to, n, on(stream)), "unscaling of the gradient");
}

int lambcast_tensors_create(const size_t* sizes, size_t count, lambcast_tensors** made) {
  return guarded([&] { *made = new lambcast_tensors(tensor_layout(std::span(sizes, count))); });
}
void lambcast_tensors_destroy(lambcast_tensors* tensors) { delete tensors; }

int lambcast_tensors_set(lambcast_tensors* tensors, const double* lr, const double* weight_decay,
                         void* stream) {
  return guarded([&] {
    std::vector<ParameterGroup> groups;
    for (std::size_t t = 0; t < tensors->layout.tensors(); ++t)
      groups.push_back({lr[t], weight_decay[t]});
    // With pageable memory the call returns when the source is no longer needed.
    require(cudaMemcpyAsync(tensors->kept.groups.data(), groups.data(),
                            groups.size() * sizeof groups[0], cudaMemcpyHostToDevice, on(stream)),
            "groups of the tensors");
  });
}

int lambcast_worker_phase(const float* x, const lambcast_gradient* g, size_t n, double beta1,
                          const lambcast_tensors* tensors, const float* scaling, size_t padded,
                          float* error, float* scale, uint8_t* signs, double* workspace,
                          void* stream) {
  cuda::WorkerPhase phase;
  phase.x = x;
  phase.gradient = gradient(g);
  phase.beta1 = beta1;
  if (scaling != nullptr) {
    phase.scaling = scaling;
    phase.tensor_offsets = tensors->offsets.data();
    phase.tensors = static_cast<int>(tensors->layout.tensors());
  }
  phase.elements = phase.counted = n;
  phase.padded = padded;
  phase.error = {error, scale};
  phase.signs = signs;
  phase.workspace = workspace;
  return reported(cuda::worker_phase(phase, on(stream)), "worker phase");
}

int lambcast_server_phase(const uint8_t* received, const float* scales, int ranks, size_t chunk,
                          size_t real, float* error, float* scale, uint8_t* signs,
                          double* workspace, void* stream) {
  cuda::ServerPhase phase;
  phase.received = received;
  phase.worker_scales = scales;
  phase.ranks = ranks;
  phase.chunk = chunk;
  phase.counted = real;
  phase.error = {error, scale};
  phase.signs = signs;
  phase.workspace = workspace;
  return reported(cuda::server_phase(phase, on(stream)), "server phase");
}

int lambcast_owed(const float* error, const float* scale, size_t n, float* owed, void* stream) {
  return reported(cuda::resolve_errors({unwritten(error), unwritten(scale)}, owed, n, on(stream)),
                  "error feedback");
}

int lambcast_adam_step(const lambcast_weights* weights, float* m, float* v,
                       const lambcast_gradient* g, size_t n, const lambcast_options* options,
                       void* stream) {
  return reported(cuda::adam_step(adam_state(*weights, m, v, nullptr, n, *options), gradient(g),
                                  adam_options(*options), 1, on(stream)),
                  "Adam step");
}

int lambcast_adam_apply(const lambcast_weights* weights, float* m, const float* v, size_t n,
                        const lambcast_options* options, void* stream) {
  return reported(cuda::adam_apply(adam_state(*weights, m, v, nullptr, n, *options),
                                   adam_options(*options), on(stream)),
                  "1-bit Adam step");
}

int lambcast_onebit_adam_step(const lambcast_weights* weights, float* m, const float* v,
                              const uint8_t* signs, const float* scales, size_t chunk,
                              const float* mask, size_t n, const lambcast_options* options,
                              void* stream) {
  return reported(cuda::onebit_adam_step(adam_state(*weights, m, v, nullptr, n, *options),
                                         packed(signs, scales, chunk, mask), adam_options(*options),
                                         on(stream)),
                  "1-bit Adam step");
}

int lambcast_zero_one_onebit_step(const lambcast_weights* weights, float* m, const float* v,
                                  const lambcast_gradient* averaged, const uint8_t* signs,
                                  const float* scales, size_t chunk, const float* mask, size_t n,
                                  const lambcast_options* options, void* stream) {
  const cuda::AdamState state = adam_state(*weights, m, v, nullptr, n, *options);
  const AdamOptions adam = adam_options(*options);
  return reported(
      signs == nullptr
          ? cuda::zero_one_onebit_step(state, gradient(averaged), adam, on(stream))
          : cuda::zero_one_onebit_step(state, packed(signs, scales, chunk, mask), adam, on(stream)),
      "1-bit step of 0/1 Adam");
}

int lambcast_zero_one_local_step(const lambcast_weights* weights, float* m, const float* v,
                                 float* u, const lambcast_gradient* g, size_t n,
                                 const lambcast_options* options, void* stream) {
  return reported(cuda::zero_one_local_step(adam_state(*weights, m, v, u, n, *options), gradient(g),
                                            adam_options(*options), on(stream)),
                  "local step of 0/1 Adam");
}

int lambcast_zero_one_sync_begin(const lambcast_weights* weights, float* m, const float* v,
                                 float* u, const lambcast_gradient* g, size_t n,
                                 const lambcast_options* options, void* stream) {
  cuda::AdamState state = adam_state(*weights, m, v, u, n, *options);
  state.half_p = {};
  return reported(cuda::zero_one_sync_begin(state, gradient(g), adam_options(*options), on(stream)),
                  "synchronisation of 0/1 Adam");
}

int lambcast_zero_one_sync_end(const lambcast_weights* weights, float* m, const float* v, float* u,
                               const uint8_t* signs, const float* scales, size_t chunk,
                               const float* mask, size_t n, double lrs,
                               const lambcast_options* options, void* stream) {
  const cuda::AdamState state = adam_state(*weights, m, v, u, n, *options);
  const AdamOptions adam = adam_options(*options);
  return reported(signs == nullptr
                      ? cuda::zero_one_sync_end(state, lrs, adam, on(stream))
                      : cuda::zero_one_sync_end(state, packed(signs, scales, chunk, mask), lrs,
                                                adam, on(stream)),
                  "synchronisation of 0/1 Adam");
}

int lambcast_lamb_step(lambcast_tensors* tensors, const lambcast_weights* weights, float* m,
                       float* v, const lambcast_gradient* g, float* running_average,
                       float* running_weight, const lambcast_options* options, void* stream) {
  cuda::LambState state = tensors->state(*weights, m, v);
  state.running_average = running_average;
  state.running_weight = running_weight;
  const OnebitLambOptions all = lamb_options(*options);
  return reported(
      cuda::lamb_step(state, gradient(g), all.lamb, {all.coeff_beta, average}, on(stream)),
      "LAMB step");
}

int lambcast_scaling(lambcast_tensors* tensors, const float* m, float* scaling, void* stream) {
  return reported(
      cuda::scaling_coefficients(tensors->state({}, unwritten(m), nullptr), scaling, on(stream)),
      "scaling of the tensors");
}

int lambcast_onebit_lamb_step(lambcast_tensors* tensors, const lambcast_weights* weights, float* m,
                              const float* v, float* fresh_v, const uint8_t* signs,
                              const float* scales, size_t chunk, const float* mask,
                              const float* scaling, const float* running_average,
                              const float* running_weight, float* last_factor,
                              const lambcast_options* options, void* stream) {
  cuda::LambState state = tensors->state(*weights, m, unwritten(v));
  state.running_average = unwritten(running_average);
  state.running_weight = unwritten(running_weight);
  cuda::CompressedLambState compressed;
  compressed.fresh_v = fresh_v;
  compressed.scaling = unwritten(scaling);
  compressed.last_factor = last_factor;
  compressed.mask = mask;
  compressed.unseen = lambcast::torch::unseen(*options);
  compressed.signs = signs;
  compressed.scales = scales;
  compressed.chunk = chunk;
  compressed.elements = tensors->layout.elements();
  return reported(
      cuda::onebit_lamb_step(state, compressed, lamb_options(*options), average, on(stream)),
      "1-bit LAMB step");
}
