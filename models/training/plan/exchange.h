// The exchange of gradients that a training runs; gradient_exchange.h describes each one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.h"

namespace lambcast {

// The senders: all ranks to one another; the leaders of nodes after a sum in each node; every rank,
// for its share of its node's sum (exchange_levels.h); or leaders through a hub, which is a relay
// that adds up, or an object store.
enum class ExchangePattern { flat, two_level, sharded, relay, store };
// The time of an exchange: all gradients after the last backward pass, or each bucket as soon as
// that pass has filled it.
enum class ExchangeTiming { after, overlapped };

struct Exchange {
  enum class Kind {
    all_reduce,
    fp16,
    bf16,
    onebit,
    fp8,
    fp8_e5m2,
    fp8_owed,
    int8,
    int8_owed,
    int4,
    int4_owed,
    qgz,
    qgz_int8,
    loco,
    loco_int8,
    sdp4bit,
    powersgd,
    topk,
    randomk,
    chunk_topk,
    dct_sign,
    lossless,
    local,
    local_sgd,
    neighbour_ring,
    neighbour_exponential
  };
  Kind kind = Kind::all_reduce;
  double parameter = 0;  // R, SHARE, K or H
  int iterations = 0;    // over the factors of PowerSGD, without a warm start
  int site = 0;          // ranks of a site of local steps; 0: each rank is a site
  // If unset, as in DeepSpeed: flat, and after the backward pass.
  std::optional<ExchangePattern> pattern = {};
  std::optional<ExchangeTiming> timing = {};
  // Steps between exchanges. Above 1, the codec applies to weights: their change since the last
  // exchange is coded, and an outer optimizer applies the average (DiLoCo). In between, sites train
  // separately.
  int every = 1;
  // Weights exchanged every H steps can be sent in fragments, each at a step of its own, during the
  // passes of `overlap` steps (Streaming DiLoCo, arXiv:2501.18512); 0: after a step.
  int fragments = 1, overlap = 0;
  // Steps before the first exchange, which all_reduce gradients instead (PyTorch's
  // start_powerSGD_iter and start_localSGD_iter).
  int start = 0;

  static constexpr int of_a_node =
      -1;  // value of `site` for the ranks of a node, until their number is set

  bool is_star() const {
    return pattern == ExchangePattern::relay || pattern == ExchangePattern::store;
  }
  bool is_two_level() const { return pattern == ExchangePattern::two_level || is_star(); }
  bool is_sharded() const { return pattern == ExchangePattern::sharded; }
  bool is_overlapped() const { return timing == ExchangeTiming::overlapped; }
  // Whether the form differs from DeepSpeed's: each message then contains its scales.
  bool is_in_other_form() const { return is_two_level() || is_sharded() || is_overlapped(); }
  friend bool operator==(const Exchange&, const Exchange&) = default;
};

using ExchangeKind = Exchange::Kind;

// Parses "onebit", "fp16", "fp8", "qgz:int8", "powersgd:4", "powersgd:4:2", "topk:1%",
// "chunktopk:64", "local:16", "local:16:8", "neighbours:ring". A share is below 1 or in percent,
// since "topk:1" would be all elements. A pattern, a schedule and a scope may follow in any order:
// "int8 / two-level / overlapped", "int4+ef / every 30 / sites:8", "powersgd:1 / start 1000". "+ef"
// is error feedback; "fp32 / every 30" is "local:30"; the scope "nodes", or "sites" without a
// number, makes each node a site. Throws Error (usage).
Exchange parse_exchange(const std::string& text, const Where& where);
// Returns the text form of an exchange.
std::string name_of(const Exchange& exchange);
// Returns the text form without pattern, schedule and scope.
std::string codec_name(const Exchange& exchange);

// Returns the exchange with the form in which libraries run it in hooks of the backward pass. A
// pattern or timing that `exchange` sets is kept.
Exchange in_hooks(Exchange exchange);

// Returns why an exchange cannot have its pattern, schedule or scope; empty if it can.
std::string refused_form(const Exchange& exchange);

// Returns the mean number of steps per exchange: H of local:H, localsgd:H and "every H", else 1.
// With P fragments that each overlap T steps, one of H / (P T) steps sends 1 / (P T) of the
// weights.
std::int64_t steps_per_exchange(const Exchange& exchange);

// Returns H, the steps from one exchange of a weight to the next, of all fragments alike; 1 if
// gradients are exchanged.
std::int64_t steps_between(const Exchange& exchange);

// H of DiLoCo (arXiv:2311.08105).
inline constexpr std::int64_t diloco_steps = 500;
// Returns how seldom ranks exchange a weight in a run of `steps` steps, as the end of a sentence:
// fewer than ten times, or more than four times as seldom as in DiLoCo (both limits are assumed).
// The run is then hardly comparable with its baseline. Empty if they exchange often enough.
std::string seldom_meets(const Exchange& exchange, std::int64_t steps);

// Returns the number of ranks that all_reduce their gradients in every step, also in steps without
// an exchange: the data-parallel ranks of one site of local:H:R; 1 if there are no such ranks.
int site_ranks(const Exchange& exchange);

// Returns the number of ranks to which a rank sends its weights: two in a ring, one in an
// exponential graph, 0 for exchanges among all ranks.
int neighbours(const Exchange& exchange, int ranks);
int parts_of_weights(const Exchange& exchange);

// Whether neighbours average weights, instead of all ranks averaging gradients.
bool averages_weights(const Exchange& exchange);
// Whether weights are sent during the passes, which do not change them.
bool travels_beside(const Exchange& exchange);

// Whether gradients are rounded to 16 bits for an all-reduce.
bool goes_in_half(const Exchange& exchange);

// Whether the result is sent to all ranks in 1, 4 or 8 bits, which each rank decodes.
bool hands_out_codes(const Exchange& exchange);

// Whether the codec may be used for weights exchanged every H steps.
bool codes_weights(const Exchange& exchange);

// Whether the exchange is qgZ, LoCo or SDP4Bit, which run on two levels; or only LoCo, which has
// error feedback.
bool is_hierarchical(const Exchange& exchange);
bool is_loco(const Exchange& exchange);
// Whether it is an exchange of 4 or 8 bits on one level with error feedback.
bool owes_on_one_level(const Exchange& exchange);

// Coding of an element in an exchange on two levels: its bytes in the node and between nodes, and
// the number of elements that share a 4-byte scale.
struct Coding {
  double inside = 0.5, between = 0.5;
  int block = 2048;
};
Coding coding_of(const Exchange& exchange);

// Returns the bytes per weight that ranks with shared states gather after an update: `plain`, or
// with SDP4Bit the weight's change in 4 bits and a scale for each 2,048 weights.
double gathered_weight_bytes(const Exchange& exchange, double plain);

// Returns the fp32 bytes that are kept for each exchanged element (PowerSGD: of the matrices that
// it factors): error feedback, and the outer optimizer's weights and momentum. State that depends
// on the number of ranks is in exchange_state.h.
double kept_bytes(const Exchange& exchange);

// Returns why an exchange cannot replace the reduction of ZeRO's `stage`; empty if it can.
std::string refused_with_zero(const Exchange& exchange, std::int64_t stage);

// Returns one exchange of each kind, with the default parameters of papers and tutorials. `zero`
// adds the exchanges that need shared states; `site` > 1 adds local steps between sites of that
// many ranks.
std::vector<Exchange> usual_exchanges(bool zero = false, int site = 1);

}  // namespace lambcast
