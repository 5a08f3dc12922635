// The `elasticity` section: one train batch size for many GPU counts, so that a run can shrink and
// grow with the same batch. If enabled, it determines all three batch numbers.
//
// With micro batches m_1..m_k [samples per GPU], the limit M = max_train_batch_size [samples] and
// the range [g_min, g_max] of GPU counts:
//
//   bases      m_1, .., m_k and L = lcm(m_1, .., m_k)
//   candidates B = h * base, h the largest of 38 highly composite numbers with h <= M / base;
//              a base of M or more is itself a candidate, so L may exceed M
//   valid(B) = { g in [g_min, g_max] : g * m_i divides B for some i }
//   train      the candidate with the most valid counts; of equals the largest, or the smallest
//              without prefer_larger_batch
//   micro      the largest m_i that divides train / world
//   gas      = train / (micro * world)
//
// Version 0.1 counts GPUs and refuses a world size that is not valid. Version 0.2 counts nodes of
// num_gpus_per_node = n GPUs: M, g_min and g_max above are divided by n, and the results are
// multiplied by n. A world size that is not valid then gets a separate batch: the largest multiple
// of m_i * world within M for each i, and of those the largest (or smallest).
//
// DeepSpeed passes the candidates through a set; their order does not matter, since any two
// different candidates are ordered by (number of valid counts, size).
//
// Source: DeepSpeed 0.16.5, elasticity/{elasticity,config,constants}.py and runtime/config.py;
// 0.19.6 leaves out an L above M. Left out: model parallelism (version 0.2), and the scheduler's
// copy of the section in the environment variable DEEPSPEED_ELASTICITY_CONFIG.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/deepspeed/batch.h"
#include "models/deepspeed/section.h"
#include "models/finding.h"

namespace lambcast::deepspeed {

enum class ElasticityVersion { v0_1, v0_2 };

// An enabled section. All its numbers are from 1 to max_batch.
struct Elasticity {
  Where where;
  ElasticityVersion version = ElasticityVersion::v0_2;
  std::int64_t max_train_batch = 0;
  std::vector<std::int64_t> micro_batches;  // ascending, without duplicates, at most M, or M / n
  std::int64_t lcm = 1;                     // least common multiple of micro_batches
  std::int64_t min_gpus = 1;
  std::int64_t max_gpus = 10000;
  std::int64_t gpus_per_node =
      1;  // GPUs per node in version 0.2; 1 in version 0.1, which has no nodes
  bool prefer_larger = true;
  bool ignore_other_batch = false;   // ignore_non_elastic_batch_info
  std::optional<Where> other_batch;  // the first batch key outside the section
};

// Limit of different micro batches; it also bounds the number of candidates.
inline constexpr std::size_t max_micro_batches = 64;

// Reads the `elasticity` section of `root`. Returns nothing if it is absent or not enabled.
//
// Throws Error with DeepSpeed's text for values that it refuses at any world size, and for wrong
// types, numbers that are too large, and a model_parallel_size above 1.
std::optional<Elasticity> read_elasticity(const Section& root);

struct ElasticBatch {
  Batch batch;
  // Possible codes: batch-from-elasticity (or elastic-batch-of-its-own if the world size is not
  // valid) and elastic-batch-above-max.
  std::vector<Finding> findings;
};

// Returns the batch of `world` data-parallel ranks. Throws Error at the section with DeepSpeed's
// text if DeepSpeed would not start.
ElasticBatch elastic_batch(const Elasticity& elasticity, std::int64_t world);

}  // namespace lambcast::deepspeed
