// The operations of an exchange of gradients in the order in which they are added, and the figures
// that all codecs take.
#pragma once

#include <string>
#include <vector>

#include "models/training/plan/averaged_gradients.h"
#include "models/training/plan/exchange_levels.h"

namespace lambcast {

struct ExchangeParts {
  void kernels(const char* name, Category part, const Passes& passes, double elements,
               double tensors);
  // Nothing where a group is one rank, or has nothing to send.
  void send(const ProcessGroup& group, std::string name, Op op, double bytes);
  void send(std::string name, Op op, double bytes) { send(group_, std::move(name), op, bytes); }

  bool in_half() const { return gradient_ < 4; }
  void widen_gradients();
  void narrow_gradients();

  const Exchange& exchange_;
  const ExchangeLevels& levels_;  // of the ranks that hold all of the gradients
  AveragedGradients of_;
  double tensors_;   // of the model, or so much of them as the gradients are of
  bool fused_;       // kernels
  double gradient_;  // bytes of one as it is added up
  ProcessGroup group_ = of_.ranks;
  double elements_ = of_.elements;
  std::vector<StepPart> parts_ = {};
};

}  // namespace lambcast
