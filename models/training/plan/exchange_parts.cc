#include "models/training/plan/exchange_parts.h"

#include "models/training/plan/exchange_kernels.h"

namespace lambcast {

void ExchangeParts::kernels(const char* name, Category part, const Passes& passes, double elements,
                            double tensors) {
  parts_.push_back({name, part, KernelWork{passes, elements, tensors}});
}

void ExchangeParts::send(const ProcessGroup& group, std::string name, Op op, double bytes) {
  if (bytes > 0 && group.ranks > 1)
    parts_.push_back({std::move(name), Category::gradient_comm, call(group, op, bytes)});
}

void ExchangeParts::widen_gradients() {
  if (in_half())
    kernels("gradients to fp32", Category::compress, fused_ ? fused::widen : unfused::widen,
            elements_, 1);
}

void ExchangeParts::narrow_gradients() {
  if (in_half())
    kernels("gradients to half", Category::decompress, fused_ ? fused::narrow : unfused::widen,
            levels_.shards * elements_, 1);
}

}  // namespace lambcast
