#include "models/deepspeed/batch.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace lambcast::deepspeed {
namespace {

constexpr std::string_view micro_name = "Micro batch size per gpu";
constexpr std::string_view gas_name = "Gradient accumulation steps";

std::string too_small(std::int64_t number, std::string_view name) {
  return fmt::format("{}: {} has to be greater than 0", name, number);
}

// Returns `sentence`, DeepSpeed's message. For values from flags, the rule in words precedes it.
std::string in_words(std::string_view rule, const std::string& sentence, const Where& where) {
  if (!where.key.starts_with("--")) return sentence;
  return fmt::format("{} (DeepSpeed: \"{}\")", rule, sentence);
}

std::string largest_batch() { return fmt::format("up to {}", max_batch); }

void refuse_too_large(std::int64_t number, std::string_view name, const Where& where) {
  if (number > max_batch)
    fail_input(where, fmt::format("{}: {} is too large", name, number), largest_batch());
}

// Returns the product of two numbers of at most max_batch each. Throws Error if it exceeds
// max_batch.
std::int64_t multiply(std::int64_t a, std::int64_t b, const Where& where) {
  if (a > max_batch / b)
    fail_input(where, fmt::format("Train batch size: {} * {} is too large", a, b), largest_batch());
  return a * b;
}

void check(std::optional<std::int64_t> number, std::string_view name, const Where& where) {
  if (!number) return;
  if (*number <= 0) fail_input(where, too_small(*number, name));
  refuse_too_large(*number, name, where);
}

void check(const BatchNumbers& numbers, const Where& where) {
  check(numbers.train, "Train batch size", where);
  check(numbers.micro, micro_name, where);
  check(numbers.gas, gas_name, where);
}

// Returns a batch that would fit, with whole micro batches on every GPU.
std::string fitting(const BatchNumbers& given, std::int64_t world, const Where& where) {
  std::string of;
  std::int64_t multiple = world;
  if (given.micro) {
    multiple = multiply(multiple, *given.micro, where);
    of += fmt::format("micro batch {} * ", *given.micro);
  }
  if (given.gas) {
    multiple = multiply(multiple, *given.gas, where);
    of += fmt::format("accumulation {} * ", *given.gas);
  }
  return fmt::format("a train batch size that is a multiple of {} = {}{} GPUs", multiple, of,
                     world);
}

}  // namespace

Batch resolve_batch(const BatchNumbers& given, std::int64_t world, const Where& where) {
  check(given, where);
  check(world, "World size", where);
  BatchNumbers full = given;
  if (given.train && given.micro) {
    if (!given.gas) full.gas = *given.train / *given.micro / world;
  } else if (given.train) {
    full.gas = given.gas.value_or(1);
    full.micro = *given.train / world / *full.gas;
  } else if (given.micro) {
    full.gas = given.gas.value_or(1);
    full.train = multiply(multiply(*given.micro, *full.gas, where), world, where);
  } else {
    fail_input(where,
               "Either train_batch_size or train_micro_batch_size_per_gpu needs to be provided");
  }
  for (const auto& [number, name] : {std::pair(full.micro, micro_name), {full.gas, gas_name}})
    if (*number == 0)
      fail_input(
          where,
          in_words(fmt::format("{} samples a step are too few for {} GPUs", *full.train, world),
                   too_small(0, name), where),
          fitting(given, world, where));
  check(full, where);
  const Batch batch{*full.train, *full.micro, *full.gas};
  if (batch.train != multiply(multiply(batch.micro, batch.gas, where), world, where)) {
    fail_input(
        where,
        in_words(
            fmt::format("{} samples a step do not divide evenly among {} GPUs", batch.train, world),
            fmt::format("Check batch related parameters. train_batch_size is not equal to "
                        "micro_batch_per_gpu * gradient_acc_step * world_size {} != {} * {} * {}",
                        batch.train, batch.micro, batch.gas, world),
            where),
        fitting(given, world, where));
  }
  return batch;
}

}  // namespace lambcast::deepspeed
