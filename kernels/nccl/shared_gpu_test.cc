#include "kernels/nccl/shared_gpu.h"

#include <catch2/catch.hpp>
#include <cstdlib>

using namespace lambcast::cuda;

TEST_CASE("a shared GPU keeps the user's choices and sets the required variables") {
  setenv("NCCL_MAX_NCHANNELS", "2", 1);
  setenv("NCCL_NET", "IB", 1);
  prepare_shared_gpu();
  CHECK(std::string(std::getenv("NCCL_MAX_NCHANNELS")) == "2");
  CHECK(std::string(std::getenv("NCCL_NET")) == "Socket");
  CHECK(std::string(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS")) == "32");
  claim_host(3);
  CHECK(std::string(std::getenv("NCCL_HOSTID")) == "rank3");
}
