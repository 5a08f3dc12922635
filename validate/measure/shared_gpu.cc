#include "validate/measure/shared_gpu.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace lambcast::validate {

SharingWords words_of(GpuSharing sharing) {
  const std::string hosts = "; each rank is a host of its own to NCCL and talks over sockets";
  const std::string fit =
      "kernel launch, cost of proxy and socket per step, TCP inside this machine, choice of "
      "algorithm";
  const std::string unfit =
      "links between GPUs, RDMA, switches, kernels that have a GPU for themselves";
  switch (sharing) {
    case GpuSharing::none:
      return {};
    case GpuSharing::copies:
      return {"ranks share a GPU: one process with a thread and a private copy of NCCL per rank" +
                  hosts,
              fit, unfit};
    case GpuSharing::mps:
      return {"ranks share a GPU: a process per rank under MPS" + hosts, fit, unfit};
    case GpuSharing::slices:
      return {"ranks share a GPU: a process per rank without MPS, in turns of about 2 ms" + hosts,
              "choice of algorithm, growth of the time with the size above 16 MB",
              "latency, sizes below 16 MB, " + unfit};
  }
  return {};
}

bool mps_runs(const Environment& environment) {
  const std::string folder = environment("CUDA_MPS_PIPE_DIRECTORY").value_or("/tmp/nvidia-mps");
  const std::string path = folder + "/control";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return false;
  // EPROTOTYPE means that the socket has a listener of another type. Without a listener, the
  // connection is refused.
  const int status = connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address);
  const bool listens = status == 0 || errno == EPROTOTYPE;
  close(socket);
  return listens;
}

}  // namespace lambcast::validate
