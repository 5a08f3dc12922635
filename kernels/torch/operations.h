// C interface to the work of one rank between the collectives of a 1-bit optimizer. A Python
// package calls it by ctypes. No PyTorch header is compiled against, so that one library serves
// each release of PyTorch. Two libraries have this interface:
//
//   liblambcast_torch_cpu.so    operations_cpu.cc, on the references
//   liblambcast_torch_cuda.so   operations_cuda.cc, on the kernels: pointers are device memory
//                               aligned to 16 bytes, work is enqueued on `stream`, nothing waits
//
// operations.cc is in both. They return 0, or another number after which lambcast_error() has the
// reason in one line. The state lies in the caller's flat fp32 buffers. Gradients may come in 16
// bits, and a copy of the weights in 16 bits may be kept. n is the number of elements, C the chunk
// that a rank serves. lambcast_owed() computes the error feedback after a phase, which the kernels
// keep unresolved (cuda/compression.h). Workspaces are LAMBCAST_WORKSPACE doubles.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LAMBCAST_WORKSPACE 4096

// DeepSpeed's names and defaults are the package's affair.
struct lambcast_options {
  double lr, beta1, beta2, eps, weight_decay;
  double max_coeff, min_coeff, coeff_beta, factor_max, factor_min, factor_threshold;  // LAMB's
  int moves_unseen;  // 1: Unseen::move of kernels/options.h, 0: stay
};

// Formats.
#define LAMBCAST_FP32 0
#define LAMBCAST_FP16 1
#define LAMBCAST_BF16 2

// A gradient as it arrives, and the factor that unscales and clips it, one float next to the values
// (null: 1). A step multiplies by it in fp32 as it reads.
struct lambcast_gradient {
  const void* values;
  int format;
  const float* factor;
};

// The fp32 weights and their copy in 16 bits, which a step writes too; null: no copy.
struct lambcast_weights {
  float* p;
  void* copy;
  int copy_format;
};

const char* lambcast_error(void);
// Np of kernels/layout.h; 0 for fewer than one rank.
size_t lambcast_padded(size_t n, int ranks);

// *squared = sum g^2 without the factor, infinite or NaN exactly when an element is; then
// *factor = 1 / (loss_scale * max(1, (sqrt(*squared) / loss_scale + 1e-6) / limit)), limit 0: none.
int lambcast_measure(const struct lambcast_gradient* g, size_t n, double* squared,
                     double* workspace, void* stream);
int lambcast_gradient_factor(const double* squared, double loss_scale, double limit, float* factor,
                             void* stream);
// to = g * factor, in fp32; an fp32 gradient may be unscaled in place.
int lambcast_unscale(const struct lambcast_gradient* g, float* to, size_t n, void* stream);

// The tensors of a buffer and what LAMB keeps about them.
struct lambcast_tensors;
int lambcast_tensors_create(const size_t* sizes, size_t count, struct lambcast_tensors** made);
void lambcast_tensors_destroy(struct lambcast_tensors* tensors);
// Learning rate and weight decay of every tensor; both arrays lie in host memory.
int lambcast_tensors_set(struct lambcast_tensors* tensors, const double* lr,
                         const double* weight_decay, void* stream);

// compressed_allreduce (reference/compression.h). `x` alone is the buffer, and so is `gradient`
// alone. With both, `x` is the momentum before this step, whose tensors are scaled if `tensors` and
// `scaling` are given. `error` and `scale`, zero at first, are kept from call to call; *scale is
// sent with the signs.
int lambcast_worker_phase(const float* x, const struct lambcast_gradient* gradient, size_t n,
                          double beta1, const struct lambcast_tensors* tensors,
                          const float* scaling, size_t padded, float* error, float* scale,
                          uint8_t* signs, double* workspace, void* stream);
int lambcast_server_phase(const uint8_t* received, const float* scales, int ranks, size_t chunk,
                          size_t real, float* error, float* scale, uint8_t* signs,
                          double* workspace, void* stream);
// Returns the first n elements that `error` and `scale` stand for. Error feedback is loaded by a
// copy to `error` and a scale of 0.
int lambcast_owed(const float* error, const float* scale, size_t n, float* owed, void* stream);

// reference/adam.h. What all ranks have agreed on is given packed: the signs and scales of chunks,
// of which steps decode as they go. Where `signs` is null one rank trains alone, and it lies where
// it was: `averaged`, which is read only then, or u. `mask` may be null. lambcast_adam_apply is
// that of 1-bit Adam.
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
// A local step, after which u is what is to be averaged. No copy is written before the end.
int lambcast_zero_one_sync_begin(const struct lambcast_weights* weights, float* m, const float* v,
                                 float* u, const struct lambcast_gradient* g, size_t n,
                                 const struct lambcast_options* options, void* stream);
int lambcast_zero_one_sync_end(const struct lambcast_weights* weights, float* m, const float* v,
                               float* u, const uint8_t* signs, const float* scales, size_t chunk,
                               const float* mask, size_t n, double lrs,
                               const struct lambcast_options* options, void* stream);

// zero_one_policy.h: what step `step` does, and the policy after it. Zero counters, intervals of 1
// and no freeze at first; `frozen` is 0 or 1.
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

// reference/lamb.h; learning rate and weight decay are those of the tensors, those of `options` are
// not read. Arrays of one float per tensor: the running average of the trust ratio and its weight
// (zero at first), scaling, last_factor (one at first).
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
