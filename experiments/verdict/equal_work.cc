#include "experiments/verdict/equal_work.h"

#include <algorithm>
#include <cmath>

namespace lambcast {

void EqualWork::Range::add(double value, bool first) {
  known = known && std::isfinite(value);
  least = first ? value : std::min(least, value);
  most = first ? value : std::max(most, value);
}

void EqualWork::add(double samples, double tokens) {
  samples_.add(samples, first_);
  tokens_.add(tokens, first_);
  length_.add(tokens / samples, first_);
  first_ = false;
}

EqualWork::Unit EqualWork::unit() const {
  if (tokens_.known && length_.differs()) return Unit::tokens;
  return samples_.differs() ? Unit::samples : Unit::run;
}

double EqualWork::share(Unit unit, double samples, double tokens) {
  if (unit == Unit::run) return 1;
  return unit == Unit::samples ? 1e6 / samples : 1e9 / tokens;
}

std::string_view EqualWork::name() const {
  constexpr std::string_view names[] = {"run", "million samples", "billion tokens"};
  return names[static_cast<std::size_t>(unit())];
}

std::string_view EqualWork::reason() const {
  constexpr std::string_view reasons[] = {
      "",
      "The runs train on unequal numbers of samples: time and cost are compared for equal ones.",
      "The runs' samples are of unequal lengths: time and cost are compared for equal tokens."};
  return reasons[static_cast<std::size_t>(unit())];
}

}  // namespace lambcast
