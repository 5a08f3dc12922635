#include "models/training/plan/exchange_kernels.h"

#include <cmath>

namespace lambcast::fused {
namespace {

struct Profiled {
  WireFormat format;
  std::string_view quantise, quantise_owed, dequantise, sum_of_8;
};
constexpr Profiled profiled[] = {{WireFormat::fp8_e4m3, "quantise_fp8", "quantise_fp8_owed",
                                  "dequantise_fp8", "dequantise_sum_fp8_n8"},
                                 {WireFormat::int8, "quantise_int8", "quantise_int8_owed",
                                  "dequantise_int8", "dequantise_sum_int8_n8"},
                                 {WireFormat::int4, "quantise_int4", "quantise_int4_owed",
                                  "dequantise_int4", "dequantise_sum_int4_n8"}};

Profiled names_of(WireFormat format) {
  for (const Profiled& names : profiled)
    if (names.format == format) return names;
  return {};
}

double coded_bytes(const Quantiser& quantiser) {
  return static_cast<double>(payload_bytes(quantiser.format, 8)) / 8;
}

constexpr double profiled_share = 0.01;

}  // namespace

Passes quantise(const Quantiser& quantiser, bool owes) {
  const Profiled names = names_of(quantiser.format);
  const bool blocks = quantiser.block > 0;
  const double read = blocks ? 4 : 8, owed = owes ? 8 : 0;
  return {read + coded_bytes(quantiser) + owed,       blocks ? 1. : 3., 0, 0, 0,
          owes ? names.quantise_owed : names.quantise};
}

Passes dequantise_sum(const Quantiser& quantiser, int messages) {
  const Profiled names = names_of(quantiser.format);
  const std::string_view kernel = messages == 1   ? names.dequantise
                                  : messages == 8 ? names.sum_of_8
                                                  : std::string_view();
  return {coded_bytes(quantiser) + 4.0 / messages, 1, 0, 0, 0, kernel};
}

Passes top_k(double share) {
  const std::string_view kernel = share == profiled_share ? "top_k_1_percent" : "";
  return {12 + 0.25 + 3 * 8.0 / 512 + 44 * share, 16, 0, 0, 0, kernel};
}

Passes random_k(double share) {
  const std::string_view kernel = share == profiled_share ? "random_k_1_percent" : "";
  return {16 * share, 1, 0, 0, 0, kernel};
}

Passes add_at(double share, int messages) {
  const std::string_view kernel = share == profiled_share ? "add_at_1_percent" : "";
  return {16 * share, static_cast<double>(messages), 0, 0, 0, kernel};
}

Passes average(double neighbours) {
  const std::string_view kernel = neighbours == 2 ? "weighted_sum_of_3" : "";
  return {4 * neighbours + 8, 1, 0, 0, 0, kernel};
}

Passes factors(double rank, double turns, bool in_half) {
  const double readings = std::ceil(rank / 4);
  return {28 + 12 * (readings - 1) + 8 * readings * (turns - 1) + (in_half ? 12 : 0), 0,
          5 * turns + (in_half ? 2 : 0), 0, 0};
}

}  // namespace lambcast::fused
