// The operations of an exchange of gradients in the order in which they are added, and the inputs
// of all codecs.
#pragma once

#include <string>
#include <vector>

#include "models/training/plan/averaged_gradients.h"
#include "models/training/plan/exchange_levels.h"

namespace lambcast {

struct ExchangeParts {
  void kernels(const char* name, Category part, const Passes& passes, double elements,
               double tensors);
  // Adds a collective, except if the group is one rank or `bytes` is 0.
  void send(const ProcessGroup& group, std::string name, Op op, double bytes);
  void send(std::string name, Op op, double bytes) { send(group_, std::move(name), op, bytes); }

  bool in_half() const { return gradient_ < 4; }
  void widen_gradients();
  void narrow_gradients();

  const Exchange& exchange_;
  const ExchangeLevels& levels_;  // levels of the ranks that hold all of the gradients
  AveragedGradients of_;
  double tensors_;   // tensors of the model, in proportion to the gradients
  bool fused_;       // whether kernels are fused
  double gradient_;  // bytes of a gradient when it is summed
  ProcessGroup group_ = of_.ranks;
  double elements_ = of_.elements;
  std::vector<StepPart> parts_ = {};
};

}  // namespace lambcast
