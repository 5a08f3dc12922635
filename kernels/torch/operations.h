// C interface to the work of one rank between the collectives of a 1-bit optimizer. A Python
// package calls it by ctypes. No PyTorch header is used, so that one library works with each
// release of PyTorch. Two libraries have this interface:
//
//   liblambcast_torch_cpu.so    operations_cpu.cc, on the references
//   liblambcast_torch_cuda.so   operations_cuda.cc, on the kernels: pointers are device memory
//                               aligned to 16 bytes, work is enqueued on `stream`, nothing waits
//
// operations.cc is in both. Functions return 0, or another number, after which lambcast_error()
// returns the reason in one line. The state is in the caller's flat fp32 buffers. Gradients may
// have 16 bits, and a copy of the weights in 16 bits may be kept. n is the number of elements, C
// the chunk that a rank serves. lambcast_owed() computes the error feedback after a phase, which
// the kernels keep unresolved (cuda/compression.h). Workspaces are LAMBCAST_WORKSPACE doubles.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LAMBCAST_WORKSPACE 4096

// The Python package has DeepSpeed's names and defaults for these options.
struct lambcast_options {
  double lr, beta1, beta2, eps, weight_decay;
  double max_coeff, min_coeff, coeff_beta, factor_max, factor_min, factor_threshold;  // LAMB
  int moves_unseen;  // 1: Unseen::move of kernels/options.h, 0: stay
};

// Formats of elements.
#define LAMBCAST_FP32 0
#define LAMBCAST_FP16 1
#define LAMBCAST_BF16 2

// A gradient in its original format, and the factor that unscales and clips it, one float in the
// same memory as the values (null: 1). A step reads the values and multiplies by the factor in
// fp32.
struct lambcast_gradient {
  const void* values;
  int format;
  const float* factor;
};

// The fp32 weights and their copy in 16 bits, which a step also writes; null: no copy.
struct lambcast_weights {
  float* p;
  void* copy;
  int copy_format;
};

const char* lambcast_error(void);
// Returns Np of kernels/layout.h; 0 for fewer than one rank.
size_t lambcast_padded(size_t n, int ranks);

// *squared = sum g^2 without the factor, which is infinite or NaN exactly if an element is; then
// *factor = 1 / (loss_scale * max(1, (sqrt(*squared) / loss_scale + 1e-6) / limit)). limit 0: none.
int lambcast_measure(const struct lambcast_gradient* g, size_t n, double* squared,
                     double* workspace, void* stream);
int lambcast_gradient_factor(const double* squared, double loss_scale, double limit, float* factor,
                             void* stream);
// to = g * factor, in fp32; an fp32 gradient may be unscaled in place.
int lambcast_unscale(const struct lambcast_gradient* g, float* to, size_t n, void* stream);

// The tensors of a buffer and LAMB's state for them.
struct lambcast_tensors;
int lambcast_tensors_create(const size_t* sizes, size_t count, struct lambcast_tensors** made);
void lambcast_tensors_destroy(struct lambcast_tensors* tensors);
// Sets learning rate and weight decay of every tensor; both arrays are in host memory.
int lambcast_tensors_set(struct lambcast_tensors* tensors, const double* lr,
                         const double* weight_decay, void* stream);

// Runs the worker phase of compressed_allreduce (reference/compression.h). With `x` only or
// `gradient` only, that is the buffer. With both, `x` is the momentum before this step, whose
// tensors are scaled if `tensors` and `scaling` are given. `error` and `scale`, initially zero, are
// kept between calls; *scale is sent with the signs.
int lambcast_worker_phase(const float* x, const struct lambcast_gradient* gradient, size_t n,
                          double beta1, const struct lambcast_tensors* tensors,
                          const float* scaling, size_t padded, float* error, float* scale,
                          uint8_t* signs, double* workspace, void* stream);
int lambcast_server_phase(const uint8_t* received, const float* scales, int ranks, size_t chunk,
                          size_t real, float* error, float* scale, uint8_t* signs,
                          double* workspace, void* stream);
// Writes the first n elements of the error feedback that `error` and `scale` represent. To load
// error feedback, copy it to `error` and set the scale to 0.
int lambcast_owed(const float* error, const float* scale, size_t n, float* owed, void* stream);

// Steps of reference/adam.h. Averages over the ranks are packed as the signs and scales of chunks,
// which the steps decode. If `signs` is null, there is a single rank, and the average is `averaged`
// (read only then) or u. `mask` may be null. lambcast_adam_apply is the compressed step of 1-bit
// Adam with the average already in m.
int lambcast_adam_step(const struct lambcast_weights* weights, float* m, float* v,
                       const struct lambcast_gradient* g, size_t n,
                       const struct lambcast_options* options, void* stream);
int lambcast_adam_apply(const struct lambcast_weights* weights, float* m, const float* v, size_t n,
                        const struct lambcast_options* options, void* stream);
int lambcast_onebit_adam_step(const struct lambcast_weights* weights, float* m, const float* v,
                              const uint8_t* signs, const float* scales, size_t chunk,
                              const float* mask, size_t n, const struct lambcast_options* options,
                              void* stream);
int lambcast_zero_one_onebit_step(const struct lambcast_weights* weights, float* m, const float* v,
                                  const struct lambcast_gradient* averaged, const uint8_t* signs,
                                  const float* scales, size_t chunk, const float* mask, size_t n,
                                  const struct lambcast_options* options, void* stream);
int lambcast_zero_one_local_step(const struct lambcast_weights* weights, float* m, const float* v,
                                 float* u, const struct lambcast_gradient* g, size_t n,
                                 const struct lambcast_options* options, void* stream);
// Makes a local step, after which u is to be averaged. The 16-bit copy is written only at the end.
int lambcast_zero_one_sync_begin(const struct lambcast_weights* weights, float* m, const float* v,
                                 float* u, const struct lambcast_gradient* g, size_t n,
                                 const struct lambcast_options* options, void* stream);
int lambcast_zero_one_sync_end(const struct lambcast_weights* weights, float* m, const float* v,
                               float* u, const uint8_t* signs, const float* scales, size_t chunk,
                               const float* mask, size_t n, double lrs,
                               const struct lambcast_options* options, void* stream);

// As in zero_one_policy.h: lambcast_zero_one_kind() returns the kind of step `step`, and
// lambcast_zero_one_advance() updates the policy. Initially the counters are 0, the intervals 1,
// and `frozen` (0 or 1) is 0.
#define LAMBCAST_FULL 0
#define LAMBCAST_ONEBIT 1
#define LAMBCAST_SILENT 2
struct lambcast_zero_one_policy {
  int var_interval, var_counter, local_interval, local_counter, frozen;
};
int lambcast_zero_one_kind(const struct lambcast_zero_one_policy* policy, int step);
void lambcast_zero_one_advance(struct lambcast_zero_one_policy* policy, int step,
                               int var_freeze_step, int var_update_scaler, int local_step_scaler,
                               int local_step_clipper);

// Steps of reference/lamb.h. The learning rate and weight decay of the tensors are used, not those
// of `options`. Arrays of one float per tensor: the running average of the trust ratio and its
// weight (initially zero), scaling, last_factor (initially one).
int lambcast_lamb_step(struct lambcast_tensors* tensors, const struct lambcast_weights* weights,
                       float* m, float* v, const struct lambcast_gradient* g,
                       float* running_average, float* running_weight,
                       const struct lambcast_options* options, void* stream);
int lambcast_scaling(struct lambcast_tensors* tensors, const float* m, float* scaling,
                     void* stream);
int lambcast_onebit_lamb_step(struct lambcast_tensors* tensors,
                              const struct lambcast_weights* weights, float* m, const float* v,
                              float* fresh_v, const uint8_t* signs, const float* scales,
                              size_t chunk, const float* mask, const float* scaling,
                              const float* running_average, const float* running_weight,
                              float* last_factor, const struct lambcast_options* options,
                              void* stream);

#ifdef __cplusplus
}
#endif
