#include "models/optimizer/optimizer_model.h"

#include "sim/base/check.h"

namespace lambcast {
namespace {

constexpr const OptimizerModel* table[] = {
#define LAMBCAST_ROW(name) &name##_model,
    LAMBCAST_OPTIMIZERS(LAMBCAST_ROW)
#undef LAMBCAST_ROW
};

}  // namespace

std::span<const OptimizerModel* const> optimizer_models() { return table; }

const OptimizerModel& model_of(OptimizerType type) {
  const OptimizerModel& model = *table[static_cast<std::size_t>(type)];
  LAMBCAST_CHECK(model.type == type, "{} stands in the row of another", model.name);
  return model;
}

OptimizerType onebit_of(OptimizerType type) {
  const OptimizerModel& model = model_of(type);
  if (model.onebit) return type;
  return model.in_onebit.value_or(model.is_lamb ? OptimizerType::onebit_lamb
                                                : OptimizerType::onebit_adam);
}

const std::vector<std::string>& optimizer_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const OptimizerModel* model : table) all.emplace_back(model->name);
    return all;
  }();
  return names;
}

double two_moments(const StateTensor& tensor, const Projection&) { return 8 * tensor.elements; }
double one_moment(const StateTensor& tensor, const Projection&) { return 4 * tensor.elements; }

}  // namespace lambcast
