// Ranks that step separately and average every H steps: local SGD, and DiLoCo with an outer
// optimizer. For clusters far apart, this divides wire traffic by H, and no rank waits in between.
//
//   inner   every rank has its own optimizer, gradient and moments
//   outer   the replicas are averaged, the anchor takes an outer step, all continue from it
//
// One step of the outer optimizer with lr 1 and no momentum is local SGD; with H = 1 and an inner
// SGD without momentum that is SGD on the mean gradient. With a graph, ranks average only with
// their neighbours, without an outer step: replicas never agree, and their mean moves by the mean
// of the steps.
// With sites of several ranks that are far apart, the ranks of a site sum their gradients in every
// step and stay equal. Every H steps each rank takes the outer step on its share of the weights
// with the same ranks of the other sites, and the site gathers the shares. This equals local steps
// of as many ranks as there are sites, on the mean gradient of each site.
//
// Streaming DiLoCo averages P fragments of the weights at steps of their own, fragment f at the
// steps f H / P + k H. With an overlap of T steps the ranks go on while a fragment is on its way,
// and T steps later each continues from half of its own weights and half of the anchor's.
//
// Sources: local SGD arXiv:1805.09767; DiLoCo arXiv:2311.08105; Streaming DiLoCo arXiv:2501.18512
// (mixing factor 0.5); neighbours arXiv:1705.09056, with momentum (DmSGD, DecentLaM)
// arXiv:2104.11981; 0/1 Adam's own policy is in zero_one_adam.h.
#pragma once

#include <optional>

#include "kernels/emulated_world/exchange/neighbour_average.h"
#include "kernels/emulated_world/exchange/plain_allreduce.h"
#include "kernels/emulated_world/world.h"
#include "kernels/reference/local_steps.h"

namespace lambcast::emulated {

// sgd and momentum use only the options lr, weight_decay and beta1:
//   sgd       p -= lr (g + weight_decay p)
//   momentum  m = beta1 m + g + weight_decay p;   p -= lr m
// With neighbours the second is DmSGD. If ranks have different data, its replicas converge away
// from the optimum, the farther the closer beta1 is to 1. DecentLaM avoids this: its momentum sums
// the change by SGD with neighbours, (p - average of p - lr (g + weight_decay p)) / lr.
enum class Inner { sgd, momentum, decentlam, adam };

struct LocalSteps {
  struct Rank {
    std::vector<float> p, m, v;
  };

  World world;
  Inner inner = Inner::adam;
  AdamOptions options;
  reference::OuterOptions outer;
  int interval = 1;  // H
  std::vector<Rank> ranks;
  std::vector<float> anchor, velocity;  // the same on all ranks
  int step = 0;
  int site = 1;                // ranks that stay equal
  int fragments = 1;           // P
  int overlap = 0;             // T
  Wire wire;                   // bytes of the last step's average over sites or ranks
  Wire site_wire;              // bytes of the last step's sums within sites
  std::optional<Graph> graph;  // graph of the neighbours; absent: all ranks average
};

// Throws Error for interval < 1, for sites that do not divide the ranks, and for decentlam, which
// needs neighbours.
LocalSteps local_steps(const World& world, Inner inner, const AdamOptions& options, int interval,
                       const reference::OuterOptions& outer, int site = 1);
// Averages `fragments` fragments, each at steps of its own, which arrive `overlap` steps later.
// Throws Error unless fragments is 1 to `interval`, and overlap 0 to `interval` - 1.
LocalSteps streamed_steps(const World& world, Inner inner, const AdamOptions& options, int interval,
                          const reference::OuterOptions& outer, int fragments, int overlap);
// Averages with neighbours after every step.
LocalSteps neighbour_steps(const World& world, Inner inner, const AdamOptions& options,
                           Graph graph);
// Returns Step::full if the replicas or fragments of them were averaged, else Step::silent.
Step step(LocalSteps& optimizer, Gradients gradients);

inline std::span<const float> weights(const LocalSteps& optimizer, int rank) {
  return optimizer.ranks[static_cast<std::size_t>(rank)].p;
}

}  // namespace lambcast::emulated
