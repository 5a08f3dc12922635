// Runs that train on unequal numbers of samples are no rivals by their time: twice the batch with
// as many steps is twice the work. Where they differ, the time for equal samples is compared, and
// for equal tokens where their sequences differ too.
#pragma once

#include <string>
#include <string_view>

namespace lambcast {

class EqualWork {
 public:
  // Of a run; NaN for tokens that it has none of.
  void add(double samples, double tokens);

  bool is_a_run() const { return unit() == Unit::run; }
  // The factor that makes of a run's time, or cost, that of the unit.
  double share(double samples, double tokens) const;
  std::string_view name() const;  // "run", "million samples", "billion tokens"
  // Why it is no run, in a sentence; empty where it is.
  std::string_view reason() const;

 private:
  enum class Unit { run, samples, tokens };
  Unit unit() const;

  struct Range {
    double least = 0, most = 0;
    bool known = true;  // of all runs
    void add(double value, bool first);
    bool differs() const { return most > least * 1.001; }
  };
  Range samples_, tokens_, length_;
  bool first_ = true;
};

}  // namespace lambcast
