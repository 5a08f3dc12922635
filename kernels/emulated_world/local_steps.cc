#include "kernels/emulated_world/local_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/reference/adam.h"
#include "sim/base/error.h"

namespace lambcast::emulated {
namespace {

void inner_step(LocalSteps& o, LocalSteps::Rank& rank, const std::vector<float>& g) {
  const TensorLayout& tensors = o.world.tensors;
  for (std::size_t t = 0; t < tensors.tensors(); ++t) {
    const AdamOptions options = in_group(o.options, o.world.group_of, t);
    const auto p = tensors.view(std::span(rank.p), t);
    const auto gradient = tensors.view(std::span(g), t);
    if (o.inner == Inner::adam) {
      reference::adam_step(p, tensors.view(std::span(rank.m), t),
                           tensors.view(std::span(rank.v), t), gradient, options, o.step);
      continue;
    }
    const float lr = static_cast<float>(options.lr), wd = static_cast<float>(options.weight_decay);
    const float beta = static_cast<float>(options.beta1);
    const auto m = tensors.view(std::span(rank.m), t);
    for (std::size_t e = 0; e < p.size(); ++e) {
      const float direction = gradient[e] + wd * p[e];
      if (o.inner == Inner::momentum) m[e] = beta * m[e] + direction;
      p[e] -= lr * (o.inner == Inner::momentum ? m[e] : direction);
    }
  }
}

// Makes a DecentLaM step; `before` is the rank's weights before its step of SGD and the average
// with its neighbours.
void decentlam_step(LocalSteps& o, LocalSteps::Rank& rank, const std::vector<float>& before) {
  const TensorLayout& tensors = o.world.tensors;
  for (std::size_t t = 0; t < tensors.tensors(); ++t) {
    const AdamOptions options = in_group(o.options, o.world.group_of, t);
    const float lr = static_cast<float>(options.lr), beta = static_cast<float>(options.beta1);
    if (lr == 0) continue;  // the step was only the average
    for (std::size_t e = tensors.offsets[t]; e < tensors.offsets[t + 1]; ++e) {
      rank.m[e] = beta * rank.m[e] + (before[e] - rank.p[e]) / lr;
      rank.p[e] = before[e] - lr * rank.m[e];
    }
  }
}

// Returns the gradients of the ranks after averaging within each site.
std::vector<std::vector<float>> sum_in_sites(LocalSteps& o, Gradients gradients) {
  std::vector<std::vector<float>> sums(gradients.begin(), gradients.end());
  const auto site = static_cast<std::size_t>(o.site);
  o.site_wire = {};
  for (std::size_t first = 0; first < sums.size(); first += site) {
    std::vector<std::span<float>> buffers;
    for (std::size_t r = first; r < first + site; ++r) buffers.emplace_back(sums[r]);
    const Wire wire = plain_allreduce(buffers, WireFormat::fp32);
    o.site_wire.sent.insert(o.site_wire.sent.end(), wire.sent.begin(), wire.sent.end());
  }
  return sums;
}

// Averages weights between sites, share by share: each share among its ranks, one in every site.
void meet_between_sites(LocalSteps& o) {
  const std::size_t n = o.ranks.size(), site = static_cast<std::size_t>(o.site);
  const std::size_t elements = o.anchor.size(), share = (elements + site - 1) / site;
  o.wire = {std::vector<std::size_t>(n)};
  for (std::size_t k = 0; k < site; ++k) {
    const std::size_t from = std::min(k * share, elements);
    const std::size_t size = std::min(share, elements - from);
    const auto part = [&](std::vector<float>& whole) {
      return whole.empty() ? std::span<float>() : std::span(whole).subspan(from, size);
    };
    std::vector<std::vector<float>> padded;  // the last share is sent with the size of the others
    for (std::size_t r = k; r < n; r += site) {
      const auto own = part(o.ranks[r].p);
      padded.emplace_back(own.begin(), own.end()).resize(share);
    }
    const std::vector<std::span<float>> buffers(padded.begin(), padded.end());
    const Wire wire = plain_allreduce(buffers, WireFormat::fp32);
    for (std::size_t i = 0; i < wire.sent.size(); ++i)
      o.wire.sent[k + i * site] += wire.sent[i] + 4 * share * (site - 1);
    reference::outer_step(part(o.anchor), std::span(padded[0]).first(size), part(o.velocity),
                          o.outer);
  }
  for (auto& rank : o.ranks) rank.p = o.anchor;
}

// Returns whether a fragment's average begins in a step.
bool begins(const LocalSteps& o, int fragment, int step) {
  const int since = step - fragment * o.interval / o.fragments;
  return step > 0 && since >= 0 && since % o.interval == 0;
}

// Begins the averages of the fragments whose turn it is, and continues from those that have
// arrived. Returns whether an average began.
bool stream(LocalSteps& o) {
  const float kept = o.overlap > 0 ? 0.5f : 0;
  const std::size_t elements = o.anchor.size(), parts = static_cast<std::size_t>(o.fragments);
  o.wire = {std::vector<std::size_t>(o.ranks.size())};
  bool any = false;
  for (std::size_t f = 0; f < parts; ++f) {
    const std::size_t from = f * elements / parts, size = (f + 1) * elements / parts - from;
    const auto part = [&](std::vector<float>& whole) {
      return whole.empty() ? std::span<float>() : std::span(whole).subspan(from, size);
    };
    if (begins(o, static_cast<int>(f), o.step)) {
      std::vector<std::vector<float>> copies;
      for (auto& rank : o.ranks) copies.emplace_back(part(rank.p).begin(), part(rank.p).end());
      o.wire += plain_allreduce(std::vector<std::span<float>>(copies.begin(), copies.end()),
                                WireFormat::fp32);
      reference::outer_step(part(o.anchor), copies[0], part(o.velocity), o.outer);
      any = true;
    }
    if (!begins(o, static_cast<int>(f), o.step - o.overlap)) continue;
    for (auto& rank : o.ranks)
      for (std::size_t e = from; e < from + size; ++e)
        rank.p[e] = kept * rank.p[e] + (1 - kept) * o.anchor[e];
  }
  return any;
}

void meet(LocalSteps& o) {
  if (o.site > 1) return meet_between_sites(o);
  std::vector<std::span<float>> replicas;
  for (auto& rank : o.ranks) replicas.emplace_back(rank.p);
  if (o.graph) {
    const int call = o.step / o.interval - 1;
    o.wire = average_with_neighbours(*o.graph, static_cast<std::size_t>(call), replicas,
                                     WireFormat::fp32);
    return;
  }
  o.wire = plain_allreduce(replicas, WireFormat::fp32);
  reference::outer_step(o.anchor, o.ranks[0].p, o.velocity, o.outer);
  for (auto& rank : o.ranks) rank.p = o.anchor;
}

}  // namespace

LocalSteps local_steps(const World& world, Inner inner, const AdamOptions& options, int interval,
                       const reference::OuterOptions& outer, int site) {
  check(world);
  if (inner == Inner::decentlam)
    fail_input(Where{"", 0, "inner"}, "decentlam needs neighbours, of neighbour_steps()");
  if (site < 1 || world.ranks % site != 0)
    fail_input(Where{"", 0, "site"}, fmt::format("{} does not divide {} ranks", site, world.ranks));
  if (interval < 1) fail_input(Where{"", 0, "interval"}, "must be at least 1");
  const std::vector<float> zero(world.initial.size());
  return {.world = world,
          .inner = inner,
          .options = options,
          .outer = outer,
          .interval = interval,
          .ranks = std::vector(world.size(), LocalSteps::Rank{world.initial, zero, zero}),
          .anchor = world.initial,
          .velocity = outer.momentum != 0 ? zero : std::vector<float>(),
          .step = 0,
          .site = site,
          .fragments = 1,
          .overlap = 0,
          .wire = {},
          .site_wire = {},
          .graph = {}};
}

LocalSteps streamed_steps(const World& world, Inner inner, const AdamOptions& options, int interval,
                          const reference::OuterOptions& outer, int fragments, int overlap) {
  LocalSteps o = local_steps(world, inner, options, interval, outer);
  const auto within = [&](const char* key, int value, int least, int most) {
    if (value < least || value > most)
      fail_input(Where{"", 0, key}, fmt::format("{} (allowed: {} to {})", value, least, most));
  };
  within("fragments", fragments, 1, interval);
  within("overlap", overlap, 0, interval - 1);
  o.fragments = fragments;
  o.overlap = overlap;
  return o;
}

LocalSteps neighbour_steps(const World& world, Inner inner, const AdamOptions& options,
                           Graph graph) {
  LocalSteps o = local_steps(world, Inner::sgd, options, 1, {});
  o.inner = inner;
  o.graph = graph;
  return o;
}

Step step(LocalSteps& o, Gradients gradients) {
  const auto in_sites = o.site > 1 ? sum_in_sites(o, gradients) : std::vector<std::vector<float>>();
  const auto seen = reduce(o.world, o.site > 1 ? Gradients(in_sites) : gradients, false);
  if (!seen) return Step::skipped;
  ++o.step;
  std::vector<std::vector<float>> before;
  for (std::size_t r = 0; r < o.ranks.size(); ++r) {
    if (o.inner == Inner::decentlam) before.push_back(o.ranks[r].p);
    inner_step(o, o.ranks[r], (*seen)[r]);
  }
  if (o.fragments > 1 || o.overlap > 0) return stream(o) ? Step::full : Step::silent;
  if (o.step % o.interval != 0) return Step::silent;
  meet(o);
  for (std::size_t r = 0; r < before.size(); ++r) decentlam_step(o, o.ranks[r], before[r]);
  return Step::full;
}

}  // namespace lambcast::emulated
