#include "validate/measure/measure.h"
#include "validate/measure/survey.h"

namespace lambcast::validate {
namespace {

[[noreturn]] void fail_without_nccl() {
  throw Error(Exit::missing,
              "this lambcast was built without CUDA and NCCL: install both and build again to "
              "measure with --backend nccl");
}

}  // namespace

int measure_nccl(const MeasureOptions&, std::ostream&) { fail_without_nccl(); }

int survey_nccl(const SurveyOptions&, const MeasureOptions&) { fail_without_nccl(); }

}  // namespace lambcast::validate
