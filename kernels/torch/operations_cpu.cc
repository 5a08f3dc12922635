#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/adam.h"
#include "kernels/reference/compression.h"
#include "kernels/reference/gradient.h"
#include "kernels/reference/lamb.h"
#include "kernels/torch/guarded.h"

using namespace lambcast;
using lambcast::torch::adam_options;
using lambcast::torch::guarded;
using lambcast::torch::lamb_options;
using lambcast::torch::unseen;

struct lambcast_tensors {
  TensorLayout layout;
  std::vector<ParameterGroup> groups;
};

namespace {

constexpr CoefficientAverage average = CoefficientAverage::bias_corrected;

// Calls f(weights), then writes the 16-bit copy.
template <typename F>
int moved(const lambcast_weights& weights, std::size_t n, F f) {
  return guarded([&] {
    f(std::span(weights.p, n));
    if (weights.copy == nullptr) return;
    const auto format = lambcast::torch::half_format(weights.copy_format);
    auto* const copy = static_cast<std::uint16_t*>(weights.copy);
    for (std::size_t e = 0; e < n; ++e) copy[e] = reference::to_half(weights.p[e], format);
  });
}

float element(const lambcast_gradient& g, std::size_t e) {
  return g.format == LAMBCAST_FP32
             ? static_cast<const float*>(g.values)[e]
             : reference::from_half(static_cast<const std::uint16_t*>(g.values)[e],
                                    lambcast::torch::half_format(g.format));
}
std::vector<float> unscaled(const lambcast_gradient& g, std::size_t n) {
  const float factor = g.factor == nullptr ? 1.0f : *g.factor;
  std::vector<float> values(n);
  for (std::size_t e = 0; e < n; ++e) values[e] = element(g, e) * factor;
  return values;
}

std::span<const float> mask_of(const float* mask, std::size_t n) {
  return mask == nullptr ? std::span<const float>() : std::span(mask, n);
}

void decode(const std::uint8_t* signs, const float* scales, std::size_t chunk, const float* mask,
            std::span<float> x) {
  const std::size_t chunks = (x.size() + chunk - 1) / chunk;
  reference::decode(std::span(signs, chunks * chunk / 8), std::span(scales, chunks), chunk, x);
  if (mask != nullptr) reference::apply_mask(x, std::span(mask, x.size()));
}

}  // namespace

int lambcast_measure(const lambcast_gradient* g, size_t n, double* squared, double*, void*) {
  double sum = 0;
  for (std::size_t e = 0; e < n; ++e) {
    const double x = element(*g, e);
    sum += x * x;
  }
  *squared = sum;
  return 0;
}

int lambcast_gradient_factor(const double* squared, double loss_scale, double limit, float* factor,
                             void*) {
  *factor = reference::clip_factor(std::sqrt(*squared), loss_scale, limit);
  return 0;
}

int lambcast_unscale(const lambcast_gradient* g, float* to, size_t n, void*) {
  return guarded([&] {
    const std::vector<float> values = unscaled(*g, n);
    std::copy(values.begin(), values.end(), to);
  });
}

int lambcast_tensors_create(const size_t* sizes, size_t count, lambcast_tensors** made) {
  return guarded([&] {
    *made = new lambcast_tensors{tensor_layout(std::span(sizes, count)),
                                 std::vector<ParameterGroup>(count)};
  });
}
void lambcast_tensors_destroy(lambcast_tensors* tensors) { delete tensors; }

int lambcast_tensors_set(lambcast_tensors* tensors, const double* lr, const double* weight_decay,
                         void*) {
  for (std::size_t t = 0; t < tensors->groups.size(); ++t)
    tensors->groups[t] = {lr[t], weight_decay[t]};
  return 0;
}

int lambcast_worker_phase(const float* x, const lambcast_gradient* gradient, size_t n, double beta1,
                          const lambcast_tensors* tensors, const float* scaling, size_t padded,
                          float* error, float* scale, uint8_t* signs, double*, void*) {
  return guarded([&] {
    const std::vector<float> g =
        gradient == nullptr ? std::vector<float>() : unscaled(*gradient, n);
    std::vector<float> sent = x == nullptr ? g : std::vector<float>(x, x + n);
    if (x != nullptr && gradient != nullptr) {
      const TensorLayout whole = tensor_layout(std::vector<std::size_t>{n});
      const TensorLayout& layout = scaling == nullptr ? whole : tensors->layout;
      for (std::size_t t = 0; t < layout.tensors(); ++t) {
        reference::update_momentum(layout.view(std::span(sent), t), layout.view(std::span(g), t),
                                   beta1, scaling == nullptr ? 1.0f : scaling[t]);
      }
    }
    *scale = reference::worker_phase(sent, std::span(error, padded), std::span(signs, padded / 8),
                                     Padding::excluded);
  });
}

int lambcast_server_phase(const uint8_t* received, const float* scales, int ranks, size_t chunk,
                          size_t real, float* error, float* scale, uint8_t* signs, double*, void*) {
  return guarded([&] {
    const std::size_t n = static_cast<std::size_t>(ranks);
    *scale = reference::server_phase(std::span(received, n * chunk / 8), std::span(scales, n),
                                     std::span(error, chunk), std::span(signs, chunk / 8), real,
                                     Padding::excluded);
  });
}

// The reference already leaves the error feedback in `error`.
int lambcast_owed(const float* error, const float*, size_t n, float* owed, void*) {
  std::copy(error, error + n, owed);
  return 0;
}

int lambcast_adam_step(const lambcast_weights* weights, float* m, float* v,
                       const lambcast_gradient* g, size_t n, const lambcast_options* options,
                       void*) {
  return moved(*weights, n, [&](std::span<float> p) {
    reference::adam_step(p, std::span(m, n), std::span(v, n), unscaled(*g, n),
                         adam_options(*options), 1);
  });
}

int lambcast_adam_apply(const lambcast_weights* weights, float* m, const float* v, size_t n,
                        const lambcast_options* options, void*) {
  return moved(*weights, n, [&](std::span<float> p) {
    reference::adam_apply(p, std::span(m, n), std::span(v, n), adam_options(*options),
                          unseen(*options));
  });
}

int lambcast_onebit_adam_step(const lambcast_weights* weights, float* m, const float* v,
                              const uint8_t* signs, const float* scales, size_t chunk,
                              const float* mask, size_t n, const lambcast_options* options, void*) {
  return moved(*weights, n, [&](std::span<float> p) {
    decode(signs, scales, chunk, mask, std::span(m, n));
    reference::adam_apply(p, std::span(m, n), std::span(v, n), adam_options(*options),
                          unseen(*options));
  });
}

int lambcast_zero_one_onebit_step(const lambcast_weights* weights, float* m, const float* v,
                                  const lambcast_gradient* averaged, const uint8_t* signs,
                                  const float* scales, size_t chunk, const float* mask, size_t n,
                                  const lambcast_options* options, void*) {
  return moved(*weights, n, [&](std::span<float> p) {
    std::vector<float> mean = signs == nullptr ? unscaled(*averaged, n) : std::vector<float>(n);
    if (signs != nullptr) decode(signs, scales, chunk, mask, mean);
    reference::zero_one_onebit_step(p, std::span(m, n), std::span(v, n), mean,
                                    adam_options(*options), unseen(*options));
  });
}

int lambcast_zero_one_local_step(const lambcast_weights* weights, float* m, const float* v,
                                 float* u, const lambcast_gradient* g, size_t n,
                                 const lambcast_options* options, void*) {
  return moved(*weights, n, [&](std::span<float> p) {
    reference::zero_one_local_step(p, std::span(m, n), std::span(v, n), std::span(u, n),
                                   unscaled(*g, n), adam_options(*options), unseen(*options));
  });
}

int lambcast_zero_one_sync_begin(const lambcast_weights* weights, float* m, const float* v,
                                 float* u, const lambcast_gradient* g, size_t n,
                                 const lambcast_options* options, void*) {
  return guarded([&] {
    const std::span p(weights->p, n), all(u, n);
    reference::zero_one_local_step(p, std::span(m, n), std::span(v, n), all, unscaled(*g, n),
                                   adam_options(*options), unseen(*options));
    reference::zero_one_sync_begin(p, std::span(v, n), all, adam_options(*options),
                                   unseen(*options));
  });
}

int lambcast_zero_one_sync_end(const lambcast_weights* weights, float* m, const float* v, float* u,
                               const uint8_t* signs, const float* scales, size_t chunk,
                               const float* mask, size_t n, double lrs,
                               const lambcast_options* options, void*) {
  return moved(*weights, n, [&](std::span<float> p) {
    if (signs != nullptr) decode(signs, scales, chunk, mask, std::span(u, n));
    reference::zero_one_sync_end(p, std::span(m, n), std::span(v, n), std::span(u, n), lrs,
                                 adam_options(*options), unseen(*options));
  });
}

int lambcast_lamb_step(lambcast_tensors* tensors, const lambcast_weights* weights, float* m,
                       float* v, const lambcast_gradient* g, float* running_average,
                       float* running_weight, const lambcast_options* options, void*) {
  const TensorLayout& layout = tensors->layout;
  const std::size_t n = layout.elements();
  return moved(*weights, n, [&](std::span<float> p) {
    const OnebitLambOptions all = lamb_options(*options);
    const std::vector<float> mean = unscaled(*g, n);
    for (std::size_t t = 0; t < layout.tensors(); ++t) {
      const auto ratio = reference::lamb_step(
          layout.view(p, t), layout.view(std::span(m, n), t), layout.view(std::span(v, n), t),
          layout.view(std::span(mean), t), in_group(all.lamb, tensors->groups, t));
      reference::RunningCoefficient running{running_average[t], running_weight[t]};
      reference::add(running, ratio, all.coeff_beta, average);
      running_average[t] = running.average;
      running_weight[t] = running.weight;
    }
  });
}

int lambcast_scaling(lambcast_tensors* tensors, const float* m, float* scaling, void*) {
  return guarded([&] {
    const auto all = reference::scaling_coefficients(std::span(m, tensors->layout.elements()),
                                                     tensors->layout, {});
    std::copy(all.begin(), all.end(), scaling);
  });
}

int lambcast_onebit_lamb_step(lambcast_tensors* tensors, const lambcast_weights* weights, float* m,
                              const float* v, float* fresh_v, const uint8_t* signs,
                              const float* scales, size_t chunk, const float* mask,
                              const float* scaling, const float* running_average,
                              const float* running_weight, float* last_factor,
                              const lambcast_options* options, void*) {
  const TensorLayout& layout = tensors->layout;
  const std::size_t n = layout.elements();
  return moved(*weights, n, [&](std::span<float> p) {
    std::vector<float> decoded(n);
    decode(signs, scales, chunk, nullptr, decoded);
    for (std::size_t t = 0; t < layout.tensors(); ++t) {
      OnebitLambOptions own = lamb_options(*options);
      own.lamb = in_group(own.lamb, tensors->groups, t);
      const std::size_t size = layout.size(t);
      reference::onebit_lamb_step(
          layout.view(p, t), layout.view(std::span(m, n), t), layout.view(std::span(v, n), t),
          layout.view(std::span(fresh_v, n), t), layout.view(std::span<const float>(decoded), t),
          mask_of(mask == nullptr ? nullptr : mask + layout.offsets[t], size), scaling[t],
          reference::frozen_coefficient({running_average[t], running_weight[t]}, average),
          last_factor[t], own, unseen(*options));
    }
  });
}
