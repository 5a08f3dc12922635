#include "validate/measure/nccl_ranks.h"

namespace lambcast::validate {

using cuda::require;

std::function<void()> captured_work(const Gpus& gpus, const std::function<void()>& enqueue) {
  // As in nccl-tests. In the global mode, it is an error if NCCL allocates memory in another thread
  // during the capture, which it may do to connect peers.
  for (const auto& gpu : gpus)
    require(cudaStreamBeginCapture(gpu->stream, cudaStreamCaptureModeThreadLocal),
            "cudaStreamBeginCapture");
  enqueue();
  std::vector<std::shared_ptr<CUgraphExec_st>> graphs;  // one per GPU
  for (const auto& gpu : gpus) {
    cudaGraph_t graph = nullptr;
    require(cudaStreamEndCapture(gpu->stream, &graph), "cudaStreamEndCapture");
    cudaGraphExec_t ready = nullptr;
    const cudaError_t status = cudaGraphInstantiate(&ready, graph, 0);
    cudaGraphDestroy(graph);
    require(status, "cudaGraphInstantiate");
    graphs.emplace_back(ready, cudaGraphExecDestroy);
  }
  return [&gpus, graphs] {
    for (std::size_t i = 0; i < graphs.size(); ++i)
      require(cudaGraphLaunch(graphs[i].get(), gpus[i]->stream), "cudaGraphLaunch");
  };
}

}  // namespace lambcast::validate
