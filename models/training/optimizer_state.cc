#include "models/training/optimizer_state.h"

#include <cmath>

#include "models/optimizer/galore.h"

namespace lambcast {

StateTensor state_tensor(const ModelShape& model, const Tensor& tensor) {
  StateTensor of{static_cast<double>(tensor.elements)};
  if (tensor.group == "no_decay" || tensor.elements <= model.hidden) return of;
  const bool has_side = model.hidden > 0 && tensor.elements % model.hidden == 0;
  of.columns = has_side ? static_cast<double>(model.hidden) : std::sqrt(of.elements);
  of.rows = of.elements / of.columns;
  return of;
}

double state_bytes_per_element(OptimizerType type, const ModelShape& model) {
  const OptimizerModel& optimizer = model_of(type);
  double bytes = 0, elements = 0;
  for (const Tensor& tensor : model.tensors) {
    if (!tensor.optimized) continue;
    bytes += optimizer.state_bytes(state_tensor(model, tensor));
    elements += static_cast<double>(tensor.elements);
  }
  return elements > 0 ? bytes / elements : 0;
}

UpdateExtras update_extras(OptimizerType type, StepKind step, const ModelShape& model, double share,
                           bool shared) {
  const OptimizerModel& optimizer = model_of(type);
  UpdateExtras extras;
  if (shared) {
    extras.calls = optimizer.calls_per_shared_tensor * share *
                   static_cast<double>(optimized_tensor_count(model));
    extras.bytes_per_call = Bytes(optimizer.bytes_per_call);
  }
  if (type != OptimizerType::galore_adamw8bit) return extras;
  double projecting = 0, decomposing = 0;
  for (const Tensor& tensor : model.tensors) {
    if (!tensor.optimized) continue;
    projecting += galore_flops(state_tensor(model, tensor));
    decomposing += galore_refresh_flops(state_tensor(model, tensor));
  }
  static const Sourced<double> thin{
      0.3, {Kind::assumed, "thin products of rank 256 at 30 % of the peak"}};
  static const Sourced<double> decomposition{
      svd_share_of_peak, {Kind::assumed, "singular value decompositions at 3 % of the peak"}};
  extras.products.push_back({projecting * share, thin});
  if (step == StepKind::refresh) extras.products.push_back({decomposing * share, decomposition});
  return extras;
}

}  // namespace lambcast
