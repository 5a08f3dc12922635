#include "kernels/profile.h"
#include "sim/base/error.h"

namespace lambcast {

std::string profile_device(const ProfileOptions& options) {
  profile_sizes(options);
  throw Error(Exit::missing, "this lambcast was built without CUDA and cannot profile a GPU");
}

}  // namespace lambcast
