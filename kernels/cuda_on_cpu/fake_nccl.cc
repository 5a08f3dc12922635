#include "kernels/cuda_on_cpu/fake_nccl.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "kernels/cuda_on_cpu/cuda_runtime.h"
#include "kernels/reference/half.h"

// The fake's definition of NCCL's opaque communicator.
struct ncclComm {
  int rank = 0;
  int ranks = 0;
  int id = 0;  // identifies its group of ranks
};

namespace lambcast::cuda_on_cpu {
namespace {

enum class Kind { send, receive, all_reduce, all_gather, reduce_scatter, broadcast, reduce };

struct Call {
  Kind kind;
  const ncclComm* comm;
  const char* from;
  char* to;
  std::size_t count;
  ncclDataType_t type;
  int peer;        // peer of send and receive, or root of broadcast and reduce
  ncclRedOp_t op;  // operation of reductions

  std::size_t bytes() const;
};

int depth = 0;
std::vector<Call> pending;
FakeFault current_fault = FakeFault::none;
FakeCounts counts;
int made_ids = 0;

std::size_t size_of(ncclDataType_t type) {
  if (type == ncclFloat16 || type == ncclBfloat16) return sizeof(std::uint16_t);
  return type == ncclUint8 ? 1 : type == ncclFloat64 ? sizeof(double) : sizeof(float);
}

std::size_t Call::bytes() const { return count * size_of(type); }

int source(int rank) {
  return current_fault == FakeFault::swapped_senders && rank < 2 ? 1 - rank : rank;
}

void deliver(const Call& to_call, char* to, const char* from, std::size_t bytes) {
  std::memmove(to, from, bytes);
  const int spoiled = to_call.kind == Kind::reduce ? to_call.peer : 0;  // the root has the result
  if (current_fault == FakeFault::flipped_bit && to_call.comm->rank == spoiled && bytes > 0)
    *to ^= 1;
}

// Computes the caller's elements, from `begin` on, of the sum or mean over `calls`.
template <typename T>
void reduce(const Call& to_call, const std::vector<Call>& calls, std::size_t begin) {
  std::vector<T> result(to_call.count);
  for (const Call& call : calls) {
    for (std::size_t i = 0; i < result.size(); ++i) {
      result[i] += reinterpret_cast<const T*>(call.from)[begin + i];
    }
  }
  if (to_call.op == ncclAvg) {
    for (T& x : result) x /= static_cast<T>(calls.size());
  }
  deliver(to_call, to_call.to, reinterpret_cast<const char*>(result.data()), to_call.bytes());
}

// Works as reduce(), in 16 bits: every partial sum and the mean are rounded.
void reduce_half(const Call& to_call, const std::vector<Call>& calls, std::size_t begin) {
  using reference::from_half, reference::to_half;
  const auto format =
      to_call.type == ncclBfloat16 ? reference::HalfFormat::bf16 : reference::HalfFormat::fp16;
  std::vector<std::uint16_t> result(to_call.count);
  const float share = to_call.op == ncclAvg ? 1.0f / static_cast<float>(calls.size()) : 1.0f;
  for (std::size_t i = 0; i < result.size(); ++i) {
    float sum = 0;
    for (const Call& call : calls) {
      const auto* const from = reinterpret_cast<const std::uint16_t*>(call.from);
      sum = from_half(to_half(sum + from_half(from[begin + i], format), format), format);
    }
    result[i] = to_half(sum * share, format);
  }
  deliver(to_call, to_call.to, reinterpret_cast<const char*>(result.data()), to_call.bytes());
}

void reduce_any(const Call& call, const std::vector<Call>& calls, std::size_t begin) {
  if (call.type == ncclFloat16 || call.type == ncclBfloat16)
    reduce_half(call, calls, begin);
  else if (call.type == ncclFloat64)
    reduce<double>(call, calls, begin);
  else if (call.type == ncclUint8)
    reduce<std::uint8_t>(call, calls, begin);
  else
    reduce<float>(call, calls, begin);
}

// Runs one collective: the calls of all ranks, in their order.
ncclResult_t collective(std::vector<Call> calls) {
  for (const Call& call : calls) {
    if (call.kind != calls[0].kind || call.count != calls[0].count || call.type != calls[0].type ||
        call.peer != calls[0].peer || call.op != calls[0].op) {
      return ncclInvalidUsage;
    }
  }
  const std::size_t bytes = calls[0].bytes();
  std::vector<std::vector<char>> inputs;  // copies of the inputs, for calls in place
  for (Call& call : calls) {
    const std::size_t blocks = call.kind == Kind::reduce_scatter ? calls.size() : 1;
    inputs.emplace_back(call.from, call.from + blocks * bytes);
    call.from = inputs.back().data();
  }
  for (const Call& call : calls) {
    const auto rank = static_cast<std::size_t>(call.comm->rank);
    const bool has_sum = call.kind == Kind::all_reduce || call.kind == Kind::reduce_scatter ||
                         (call.kind == Kind::reduce && call.peer == call.comm->rank);
    if (has_sum) {
      const std::size_t begin = call.kind == Kind::reduce_scatter ? rank * call.count : 0;
      reduce_any(call, calls, begin);
    }
    if (call.kind == Kind::all_reduce) counts.all_reduced_bytes += bytes;
    if (call.kind == Kind::broadcast) {
      const auto root = static_cast<std::size_t>(source(call.peer));
      deliver(call, call.to, calls.at(root).from, bytes);
    }
    for (std::size_t r = 0; call.kind == Kind::all_gather && r < calls.size(); ++r) {
      const auto from = static_cast<std::size_t>(source(static_cast<int>(r)));
      deliver(call, call.to + r * bytes, calls.at(from).from, bytes);
    }
  }
  return ncclSuccess;
}

ncclResult_t match_messages(const std::vector<Call>& calls) {
  std::vector<Call> sends;
  std::size_t receives = 0;
  for (const Call& call : calls) {
    if (call.kind == Kind::send) sends.push_back(call);
    receives += call.kind == Kind::receive ? 1 : 0;
  }
  if (sends.size() != receives) return ncclInvalidUsage;
  // Messages between two ranks arrive in the order in which they were sent.
  for (const Call& call : calls) {
    if (call.kind != Kind::receive) continue;
    const auto match = std::find_if(sends.begin(), sends.end(), [&](const Call& send) {
      return send.comm->rank == source(call.peer) && send.peer == call.comm->rank;
    });
    if (match == sends.end() || match->bytes() != call.bytes()) return ncclInvalidUsage;
    deliver(call, call.to, match->from, call.bytes());
    sends.erase(match);
  }
  return ncclSuccess;
}

bool peer_died() {
  return current_fault == FakeFault::silent_peer || current_fault == FakeFault::lost_peer;
}

// Runs the calls on communicators of one group of ranks.
ncclResult_t run(const std::vector<Call>& calls) {
  if (const auto e = match_messages(calls)) return e;
  std::map<int, std::vector<Call>> of_rank;  // collectives of each rank, in its order
  std::size_t ranks = 0;
  for (const Call& call : calls) {
    if (call.kind == Kind::send || call.kind == Kind::receive) continue;
    of_rank[call.comm->rank].push_back(call);
    ranks = static_cast<std::size_t>(call.comm->ranks);
  }
  if (of_rank.size() != ranks) return ncclInvalidUsage;
  for (std::size_t i = 0; ranks > 0 && i < of_rank[0].size(); ++i) {
    std::vector<Call> together;
    for (const auto& [rank, own] : of_rank) {
      if (own.size() != of_rank[0].size()) return ncclInvalidUsage;
      together.push_back(own[i]);
    }
    if (const auto e = collective(together)) return e;
  }
  return ncclSuccess;
}

ncclResult_t run_pending() {
  std::map<int, std::vector<Call>> of_group;
  for (const Call& call : std::exchange(pending, {})) of_group[call.comm->id].push_back(call);
  if (of_group.empty()) return ncclSuccess;
  if (peer_died()) {
    streams_stall = true;
    return ncclSuccess;
  }
  ++counts.groups;
  for (const auto& [id, calls] : of_group)
    if (const auto e = run(calls)) return e;
  return ncclSuccess;
}

ncclResult_t enqueue(Kind kind, const void* from, void* to, std::size_t count, ncclDataType_t type,
                     int peer, ncclRedOp_t op, ncclComm_t comm) {
  if (current_fault == FakeFault::failed_call && comm->rank == 1) return ncclInternalError;
  pending.push_back(
      {kind, comm, static_cast<const char*>(from), static_cast<char*>(to), count, type, peer, op});
  return depth > 0 ? ncclSuccess : run_pending();
}

}  // namespace

cuda::NcclApi fake_nccl(FakeFault fault) {
  current_fault = fault;
  counts = {};
  depth = 0;
  pending.clear();
  streams_stall = false;
  cuda::NcclApi api;
  api.ncclGetErrorString = [](ncclResult_t) { return "an error of the fake"; };
  api.ncclGetLastError = [](ncclComm_t) { return ""; };
  api.ncclGetUniqueId = [](ncclUniqueId* id) {
    std::memcpy(id, &++made_ids, sizeof made_ids);
    return ncclSuccess;
  };
  api.ncclCommInitRank = [](ncclComm_t* comm, int ranks, ncclUniqueId of, int rank) {
    if (current_fault == FakeFault::failed_init && rank == 1) return ncclSystemError;
    ++counts.made;
    int id = 0;
    std::memcpy(&id, &of, sizeof id);
    *comm = new ncclComm{rank, ranks, id};
    return ncclSuccess;
  };
  api.ncclCommDestroy = [](ncclComm_t comm) {
    counts.torn_in_group += depth > 0 ? 1 : 0;
    return delete comm, ncclSuccess;
  };
  api.ncclCommAbort = [](ncclComm_t comm) {
    ++counts.aborted;
    counts.torn_in_group += depth > 0 ? 1 : 0;
    streams_stall = false;
    return delete comm, ncclSuccess;
  };
  api.ncclCommGetAsyncError = [](ncclComm_t, ncclResult_t* error) {
    const bool seen = current_fault == FakeFault::lost_peer && streams_stall;
    return *error = seen ? ncclRemoteError : ncclSuccess, ncclSuccess;
  };
  api.ncclGroupStart = [] { return ++depth, ncclSuccess; };
  api.ncclGroupEnd = [] { return --depth > 0 ? ncclSuccess : run_pending(); };
  api.ncclAllReduce = [](const void* from, void* to, std::size_t count, ncclDataType_t type,
                         ncclRedOp_t op, ncclComm_t comm, cudaStream_t) {
    return enqueue(Kind::all_reduce, from, to, count, type, 0, op, comm);
  };
  api.ncclAllGather = [](const void* from, void* to, std::size_t count, ncclDataType_t type,
                         ncclComm_t comm, cudaStream_t) {
    return enqueue(Kind::all_gather, from, to, count, type, 0, ncclSum, comm);
  };
  api.ncclReduceScatter = [](const void* from, void* to, std::size_t count, ncclDataType_t type,
                             ncclRedOp_t op, ncclComm_t comm, cudaStream_t) {
    return enqueue(Kind::reduce_scatter, from, to, count, type, 0, op, comm);
  };
  api.ncclBroadcast = [](const void* from, void* to, std::size_t count, ncclDataType_t type,
                         int root, ncclComm_t comm, cudaStream_t) {
    return enqueue(Kind::broadcast, from, to, count, type, root, ncclSum, comm);
  };
  api.ncclReduce = [](const void* from, void* to, std::size_t count, ncclDataType_t type,
                      ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t) {
    return enqueue(Kind::reduce, from, to, count, type, root, op, comm);
  };
  api.ncclSend = [](const void* from, std::size_t count, ncclDataType_t type, int peer,
                    ncclComm_t comm, cudaStream_t) {
    return enqueue(Kind::send, from, nullptr, count, type, peer, ncclSum, comm);
  };
  api.ncclRecv = [](void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                    cudaStream_t) {
    return enqueue(Kind::receive, nullptr, to, count, type, peer, ncclSum, comm);
  };
  return api;
}

FakeCounts fake_counts() { return counts; }

}  // namespace lambcast::cuda_on_cpu

const lambcast::cuda::NcclApi& lambcast::cuda::load_nccl() {
  static const NcclApi api = cuda_on_cpu::fake_nccl();
  return api;
}
