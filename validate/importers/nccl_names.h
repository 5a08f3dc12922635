// Names in nccl-tests: programs, data types, reductions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "validate/measurement.h"

namespace lambcast::validate {

// Returns the collective if a text contains the name of an nccl-tests program ("all_reduce_perf",
// also inside a path or a command line), or nothing. Throws Error for a program whose collective is
// not modelled.
std::optional<Operation> operation_of_program(std::string_view text, const Where& where);

// Returns the collective named in a file's name ("allreduce_h100.log", "alltoall.txt"), or nothing.
std::optional<Operation> operation_of_file(std::string_view file);

// Error messages for settings of nccl-tests whose times differ from those in a training step.
inline constexpr const char* blocking_collectives =
    "collectives that block (-z 1): each waits for the host, which training does not; measure "
    "without -z";
inline constexpr const char* captured_collectives =
    "collectives captured in a CUDA graph (-G): their latencies lack the launches of a training "
    "step; measure with -G 0";
inline constexpr const char* first_collectives =
    "times of the first calls (-w 0), in which connections are made; measure with -w 1 and more";
std::string operations_in_groups(std::int64_t each);                      // for -m
std::string communicators_at_once(std::size_t count, int ranks_of_each);  // for NCCL_TESTS_SPLIT

bool is_data_type(std::string_view word);
bool is_reduction(std::string_view word);

}  // namespace lambcast::validate
