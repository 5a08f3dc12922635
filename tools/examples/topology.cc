// A ring all-reduce on a machine defined by hand: two nodes of four GPUs with a NIC each behind one
// switch, in both network models.
#include <fmt/format.h>

#include "sim/collectives/collective.h"

int main() {
  using namespace lambcast;
  NodeSpec node;
  node.gpus = 4;
  node.nics = 1;
  node.gpu_link = Bandwidth(50e9);
  node.gpu_nic = Bandwidth(16e9);
  node.nic = Bandwidth(12.5e9);
  node.host_link = Bandwidth(10e9);
  Machines machines(node, 2, single_switch, 1);

  Protocol simple;
  simple.name = "Simple";
  simple.ring = simple.tree = {Duration::microseconds(7), Duration::microseconds(5),
                               Duration::microseconds(20)};
  Transport transport;
  transport.protocols = {simple};

  CollectiveRequest request;
  request.op = Op::all_reduce;
  request.size = Bytes(256e6);
  request.group = {8, 4};
  request.algorithm = "ring";
  const Collective ring = plan_collective(request, machines, transport);
  const double busbw = 2 * 7.0 / 8 * request.size.value() / ring.time.s() / 1e9;
  fmt::print("analytic {:.3f} ms, flow by flow {:.3f} ms, busbw {:.2f} GB/s\n", ring.time.ms(),
             simulate(ring, NetworkModel::flow).ms(), busbw);
}
