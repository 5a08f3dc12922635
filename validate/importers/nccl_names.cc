#include "validate/importers/nccl_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "validate/importers/lines.h"

namespace lambcast::validate {
namespace {

using Named = std::pair<std::string_view, Operation>;

constexpr std::array<Named, 7> kPrograms{
    {{"all_reduce_perf", Operation::all_reduce},
     {"all_gather_perf", Operation::all_gather},
     {"reduce_scatter_perf", Operation::reduce_scatter},
     {"alltoall_perf", Operation::all_to_all},
     {"broadcast_perf", Operation::broadcast},
     {"sendrecv_perf", Operation::send_recv},
     {"reduce_perf", Operation::reduce}}};  // must follow longer names

constexpr std::array<std::string_view, 4> kNotModelled{"alltoallv_perf", "hypercube_perf",
                                                       "scatter_perf", "gather_perf"};

constexpr std::array<Named, 6> kFileNames{{{"allreduce", Operation::all_reduce},
                                           {"allgather", Operation::all_gather},
                                           {"reducescatter", Operation::reduce_scatter},
                                           {"alltoall", Operation::all_to_all},
                                           {"broadcast", Operation::broadcast},
                                           {"sendrecv", Operation::send_recv}}};

constexpr std::array<std::string_view, 15> kTypes{
    "int8",   "uint8",    "int32",  "uint32", "int64",    "uint64",   "half", "float",
    "double", "bfloat16", "f8e4m3", "f8e5m2", "fp8_e4m3", "fp8_e5m2", "char"};

constexpr std::array<std::string_view, 7> kReductions{"sum", "prod",   "max", "min",
                                                      "avg", "mulsum", "none"};

template <typename List>
bool holds(const List& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

}  // namespace

std::optional<Operation> operation_of_program(std::string_view text, const Where& where) {
  for (const auto& [program, operation] : kPrograms) {
    if (contains(text, program)) return operation;
  }
  for (const std::string_view program : kNotModelled) {
    if (contains(text, program)) {
      fail_input(where, fmt::format("{} measures a collective that is not modelled", program),
                 "all_reduce, all_gather, reduce_scatter, alltoall, broadcast, sendrecv, reduce");
    }
  }
  return {};
}

std::optional<Operation> operation_of_file(std::string_view file) {
  const std::size_t slash = file.rfind('/');
  if (slash != std::string_view::npos) file.remove_prefix(slash + 1);
  std::string bare;
  for (const char c : file) {
    if (c != '_' && c != '-') bare += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  std::optional<Operation> found;
  for (const auto& [word, operation] : kFileNames) {
    if (!contains(bare, word)) continue;
    if (found) return {};  // two names, so the collective is ambiguous
    found = operation;
  }
  return found;
}

std::string operations_in_groups(std::int64_t each) {
  return fmt::format(
      "operations in groups of {} (-m): one hides the latency of another; measure with -m 1", each);
}

std::string communicators_at_once(std::size_t count, int ranks_of_each) {
  return fmt::format(
      "{} communicators of {} ranks at once (NCCL_TESTS_SPLIT): they share the NICs; measure "
      "without the split",
      count, ranks_of_each);
}

bool is_data_type(std::string_view word) { return holds(kTypes, word); }
bool is_reduction(std::string_view word) { return holds(kReductions, word); }

}  // namespace lambcast::validate
