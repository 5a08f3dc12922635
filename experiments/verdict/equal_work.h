// The amount of work by which runs are compared. Run times are not comparable between runs with
// different numbers of samples: twice the batch with as many steps is twice the work. Then the time
// for equal samples is compared, or for equal tokens if sequence lengths differ too.
#pragma once

#include <string>
#include <string_view>

namespace lambcast {

class EqualWork {
 public:
  enum class Unit { run, samples, tokens };
  static constexpr Unit units[] = {Unit::run, Unit::samples, Unit::tokens};

  // Adds a run; `tokens` is NaN for a run without tokens.
  void add(double samples, double tokens);

  Unit unit() const;
  bool is_a_run() const { return unit() == Unit::run; }
  // Returns the factor that scales a run's time or cost to one unit of work.
  static double share(Unit unit, double samples, double tokens);
  double share(double samples, double tokens) const { return share(unit(), samples, tokens); }
  std::string_view name() const;  // "run", "million samples", "billion tokens"
  // Returns why runs are not compared by their whole times, as a sentence; empty if they are.
  std::string_view reason() const;

 private:
  struct Range {
    double least = 0, most = 0;
    bool known = true;  // whether all runs have tokens
    void add(double value, bool first);
    bool differs() const { return most > least * 1.001; }
  };
  Range samples_, tokens_, length_;
  bool first_ = true;
};

}  // namespace lambcast
