// The three batch numbers of a DeepSpeed configuration and their equation:
//
//   train_batch_size [samples per optimizer step]
//     = train_micro_batch_size_per_gpu * gradient_accumulation_steps * world_size
//
// where world_size is the number of data-parallel ranks, which a configuration does not state.
// Source: DeepSpeed 0.16.5, runtime/config.py, _set_batch_related_parameters and _batch_assertion.
#pragma once

#include <cstdint>
#include <optional>

#include "models/recipe/batch.h"
#include "sim/base/error.h"

namespace lambcast::deepspeed {

struct BatchNumbers {
  std::optional<std::int64_t> train;  // train_batch_size
  std::optional<std::int64_t> micro;  // train_micro_batch_size_per_gpu
  std::optional<std::int64_t> gas;    // gradient_accumulation_steps
};

// Limit of each number and of their product; larger ones are considered errors.
inline constexpr std::int64_t max_batch = 1'000'000'000'000;

// Infers missing numbers as DeepSpeed does, with whole-number divisions rounding down:
//
//   train, micro  ->  gas   = train / micro / world
//   train, gas    ->  micro = train / world / gas
//   micro, gas    ->  train = micro * gas * world
//   train         ->  gas   = 1, micro = train / world
//   micro         ->  gas   = 1, train = micro * world
//
// Throws Error at `where` with the text of DeepSpeed's own assertion if a number is not above zero,
// if the equation does not hold, or if neither train nor micro is given. Given numbers are checked
// before others are inferred; DeepSpeed may first divide by zero.
Batch resolve_batch(const BatchNumbers& given, std::int64_t world, const Where& where = {});

}  // namespace lambcast::deepspeed
