#include "models/deepspeed/parallelism.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace lambcast::deepspeed {
namespace {

using hjson::Kind;
using hjson::Value;

bool is_empty(const Value& value) {
  return value.kind == Kind::null || (value.kind == Kind::boolean && !value.boolean) ||
         (value.kind == Kind::object && value.members.empty());
}

bool is_on(const Value& value) {
  return (value.kind == Kind::boolean && value.boolean) ||
         (value.kind == Kind::number && value.number != 0);
}

[[noreturn]] void refuse(const Where& where, std::string_view what, std::string_view allowed) {
  fail_input(where, fmt::format("{} is not modelled yet", what), allowed);
}

// What the program models but does not read from the file: `flags` say the same.
[[noreturn]] void refuse_for_flags(const Where& where, std::string_view what,
                                   std::string_view flags, std::string_view allowed) {
  fail_input(where,
             fmt::format("{} is not read from the file yet: leave it out and give {}", what, flags),
             allowed);
}

// A size above 1; "auto" and what is no number leave it to the training script.
bool divides(const Value& value) { return value.kind == Kind::number && value.number > 1; }

void check_tensor_size(const Section& section, std::string_view key) {
  const Value* size = section.object.find(key);
  if (size != nullptr && divides(*size))
    refuse_for_flags(where_of(section, key, size->line), "tensor parallelism", "--tp",
                     "1, or no such key");
}

bool is_default_of_pipeline(const hjson::Member& member) {
  const Value& value = member.value;
  if (member.key == "stages") return value.text == "auto" || value.whole == 1;
  if (member.key == "partition") return true;  // of one stage there is one
  if (member.key == "pipe_partitioned" || member.key == "grad_partitioned") return true;
  return is_empty(value) || value.whole == 0;
}

void check_pipeline(const Section& root) {
  const Value* value = root.object.find("pipeline");
  if (value == nullptr || is_empty(*value)) return;
  const bool is_object = value->kind == Kind::object;
  if (is_object && std::ranges::all_of(value->members, is_default_of_pipeline)) return;
  Where where = where_of(root, "pipeline", value->line);
  if (is_object) {
    const auto first = std::ranges::find_if_not(value->members, is_default_of_pipeline);
    where = where_of({*value, where.key, root.file, root.findings}, first->key, first->line);
  }
  refuse_for_flags(where, "pipeline parallelism", "--pp", "one stage, or no such section");
}

void check_tensor_parallel(const Section& root) {
  check_tensor_size(root, "tensor_parallel");
  const Value* value = root.object.find("tensor_parallel");
  if (value == nullptr || value->kind != Kind::object) return;
  const Section section{*value, "tensor_parallel", root.file, root.findings};
  for (const char* key : {"autotp_size", "tp_size"}) check_tensor_size(section, key);
  if (const auto inner = value->find("tensor_parallel");
      inner != nullptr && inner->kind == Kind::object)
    check_tensor_size({*inner, "tensor_parallel.tensor_parallel", root.file, root.findings},
                      "tp_size");
}

void check_recomputation(const Section& root) {
  const Value* value = root.object.find("activation_checkpointing");
  if (value == nullptr || value->kind != Kind::object) return;
  const Section section{*value, "activation_checkpointing", root.file, root.findings};
  const auto refuse_if_on = [&](std::string_view key, std::string_view what) {
    const Value* setting = value->find(key);
    if (setting != nullptr && is_on(*setting))
      refuse(where_of(section, key, setting->line), what, "false, null, or no such key");
  };
  refuse_if_on("cpu_checkpointing", "copying activations to the host");
  if (const Value* count = value->find("number_checkpoints"); count != nullptr && is_on(*count))
    refuse_for_flags(where_of(section, "number_checkpoints", count->line),
                     "recomputing activations", "--recompute", "null, or no such key");
  const Value* partition = value->find("partition_activations");
  if (partition != nullptr && is_on(*partition))
    add(section, Severity::note, "not-modelled", "partition_activations", partition->line,
        "has no effect without tensor parallelism; if the training script recomputes activations, "
        "the forecast is of a run that does not");
}

}  // namespace

void check_parallelism(const Section& root) {
  check_pipeline(root);
  check_tensor_parallel(root);
  const Value* sequence = root.object.find("sequence_parallel_size");
  if (sequence != nullptr && divides(*sequence))
    refuse(where_of(root, "sequence_parallel_size", sequence->line), "sequence parallelism",
           "1, or no such key");
  check_recomputation(root);
}

}  // namespace lambcast::deepspeed
