#include "models/training/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace lambcast {
namespace {

using Kind = Exchange::Kind;

enum class Takes { nothing, whole, share };

struct Form {
  const char* word;
  Kind kind;
  Takes takes;
  double state_bytes;
};

constexpr Form forms[] = {
    {"all_reduce", Kind::all_reduce, Takes::nothing, 0},
    {"onebit", Kind::onebit, Takes::nothing, 4},
    {"fp8", Kind::fp8, Takes::nothing, 0},
    {"int8", Kind::int8, Takes::nothing, 0},
    {"int4", Kind::int4, Takes::nothing, 0},
    {"qgz", Kind::qgz, Takes::nothing, 0},
    {"powersgd", Kind::powersgd, Takes::whole, 4},
    {"topk", Kind::topk, Takes::share, 4},
    {"randomk", Kind::randomk, Takes::share, 4},
    {"local", Kind::local, Takes::whole, 8},
    {"neighbours:ring", Kind::neighbour_ring, Takes::nothing, 0},
    {"neighbours:exponential", Kind::neighbour_exponential, Takes::nothing, 0},
};
constexpr const char* allowed =
    "all_reduce, onebit, fp8, int8, int4, qgz, powersgd:RANK, topk:SHARE%, randomk:SHARE%, "
    "local:STEPS, neighbours:ring, neighbours:exponential";

const Form& form_of(Kind kind) { return forms[static_cast<std::size_t>(kind)]; }

double parameter_of(const Form& form, std::string_view text, const Where& where) {
  double value = 0;
  const bool percent = form.takes == Takes::share && text.ends_with('%');
  const std::string_view digits = text.substr(0, text.size() - (percent ? 1 : 0));
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool number = status == std::errc{} && end == digits.data() + digits.size();
  if (percent) value /= 100;
  if (form.takes == Takes::share && number && value > 0 && value <= 1) return value;
  if (form.takes == Takes::whole && number && value >= 1 && value <= 65536 &&
      value == std::floor(value))
    return value;
  fail_input(where, fmt::format("'{}' says no parameter of {}", text, form.word), allowed);
}

}  // namespace

Exchange parse_exchange(const std::string& text, const Where& where) {
  const auto colon = text.find(':');
  const std::string word = text.substr(0, colon);
  for (const Form& form : forms) {
    if (form.takes == Takes::nothing && text == form.word) return {form.kind, 0};
    if (word != form.word) continue;
    if (form.takes == Takes::nothing || colon == std::string::npos)
      fail_input(where, fmt::format("'{}' is not how {} is written", text, word), allowed);
    return {form.kind, parameter_of(form, std::string_view(text).substr(colon + 1), where)};
  }
  fail_input(where, fmt::format("unknown exchange '{}'", text), allowed);
}

std::string name_of(const Exchange& exchange) {
  const Form& form = form_of(exchange.kind);
  if (form.takes == Takes::nothing) return form.word;
  if (form.takes == Takes::whole) return fmt::format("{}:{}", form.word, exchange.parameter);
  return fmt::format("{}:{:.6g}%", form.word, 100 * exchange.parameter);
}

std::int64_t steps_per_exchange(const Exchange& exchange) {
  return exchange.kind == Kind::local ? static_cast<std::int64_t>(exchange.parameter) : 1;
}

int neighbours(const Exchange& exchange, int ranks) {
  if (exchange.kind == Kind::neighbour_ring) return std::min(ranks - 1, 2);
  return exchange.kind == Kind::neighbour_exponential ? std::min(ranks - 1, 1) : 0;
}

double exchange_state_bytes(const Exchange& exchange, int ranks, bool shared) {
  const double of_server = exchange.kind == Kind::onebit && !shared ? 4.0 / ranks : 0;
  return form_of(exchange.kind).state_bytes + of_server + 4 * neighbours(exchange, ranks);
}

std::string refused_with_zero(const Exchange& exchange, std::int64_t stage) {
  if (exchange.kind == Kind::all_reduce) return {};
  const char* word = form_of(exchange.kind).word;
  if (exchange.kind == Kind::qgz)
    return stage == 0 ? "qgz leaves on every rank the sums of its share alone: it needs ZeRO" : "";
  if (stage == 0) return {};
  if (exchange.kind == Kind::local)
    return "weights of ranks part between the exchanges of local, so that none can share states";
  if (neighbours(exchange, 2) > 0)
    return "ranks that average with neighbours have weights of their own: none can share states";
  if (stage == 3) return fmt::format("{} is not of blocks, as ZeRO stage 3 reduces them", word);
  if (stage == 2 && form_of(exchange.kind).state_bytes > 0)
    return fmt::format("{} owes errors of whole gradients, which ZeRO stage 2 does not keep", word);
  return {};
}

std::vector<Exchange> usual_exchanges() {
  return {{Kind::all_reduce, 0},    {Kind::onebit, 0},     {Kind::fp8, 0},
          {Kind::int8, 0},          {Kind::int4, 0},       {Kind::powersgd, 4},
          {Kind::topk, 0.01},       {Kind::randomk, 0.01}, {Kind::local, 16},
          {Kind::neighbour_ring, 0}};
}

}  // namespace lambcast
