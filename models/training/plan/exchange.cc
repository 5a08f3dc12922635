#include "models/training/plan/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "kernels/exchange_bytes.h"

namespace lambcast {
namespace {

enum class Takes { nothing, whole, rank, share, of_chunk };

// A codec and its parameter. `hooked` is the pattern in which libraries run it in hooks of the
// backward pass; absent if none does. Bagua codes between the leaders of nodes: ByteGrad, QAdam,
// decentralised averages (arXiv:2107.01499, section 3.4; bagua-core-internal comm_ops, hierarchical
// by default). PyTorch's powerSGD_hook and fp16_compress_hook, and top-k over Horovod (GRACE), run
// among all ranks.
struct Form {
  const char* word;
  ExchangeKind kind;
  Takes takes;
  double kept_bytes;
  std::optional<ExchangePattern> hooked = {};
};

constexpr Form forms[] = {
    {"all_reduce", ExchangeKind::all_reduce, Takes::nothing, 0},
    {"fp16", ExchangeKind::fp16, Takes::nothing, 0, ExchangePattern::flat},
    {"bf16", ExchangeKind::bf16, Takes::nothing, 0, ExchangePattern::flat},
    {"onebit", ExchangeKind::onebit, Takes::nothing, 4, ExchangePattern::two_level},
    {"fp8", ExchangeKind::fp8, Takes::nothing, 0, ExchangePattern::two_level},
    {"fp8:e5m2", ExchangeKind::fp8_e5m2, Takes::nothing, 0, ExchangePattern::two_level},
    {"fp8:owed", ExchangeKind::fp8_owed, Takes::nothing, 4, ExchangePattern::two_level},
    {"int8", ExchangeKind::int8, Takes::nothing, 0, ExchangePattern::two_level},
    {"int8:owed", ExchangeKind::int8_owed, Takes::nothing, 4, ExchangePattern::two_level},
    {"int4", ExchangeKind::int4, Takes::nothing, 0, ExchangePattern::two_level},
    {"int4:owed", ExchangeKind::int4_owed, Takes::nothing, 4, ExchangePattern::two_level},
    {"qgz", ExchangeKind::qgz, Takes::nothing, 0},
    {"qgz:int8", ExchangeKind::qgz_int8, Takes::nothing, 0},
    {"loco", ExchangeKind::loco, Takes::nothing, 4},
    {"loco:int8", ExchangeKind::loco_int8, Takes::nothing, 4},
    {"sdp4bit", ExchangeKind::sdp4bit, Takes::nothing, 0},
    {"powersgd", ExchangeKind::powersgd, Takes::rank, 4, ExchangePattern::flat},
    {"topk", ExchangeKind::topk, Takes::share, 4, ExchangePattern::flat},
    {"randomk", ExchangeKind::randomk, Takes::share, 4, ExchangePattern::flat},
    {"chunktopk", ExchangeKind::chunk_topk, Takes::of_chunk, 4},
    {"dctsign", ExchangeKind::dct_sign, Takes::of_chunk, 4},
    {"lossless", ExchangeKind::lossless, Takes::share, 0},
    {"local", ExchangeKind::local, Takes::whole, 8},
    {"localsgd", ExchangeKind::local_sgd, Takes::whole, 0},
    {"neighbours:ring", ExchangeKind::neighbour_ring, Takes::nothing, 0,
     ExchangePattern::two_level},
    {"neighbours:exponential", ExchangeKind::neighbour_exponential, Takes::nothing, 0,
     ExchangePattern::two_level},
};
constexpr const char* allowed =
    "all_reduce, fp16, bf16, onebit, fp8, fp8:e5m2, int8, int4, qgz, qgz:int8, loco, loco:int8, "
    "sdp4bit, powersgd:RANK, powersgd:RANK:ITERATIONS, topk:SHARE%, randomk:SHARE%, "
    "chunktopk:KEPT and dctsign:KEPT of each 4096, lossless:SHARE%, local:STEPS, "
    "local:STEPS:SITE, localsgd:STEPS, localsgd:STEPS:SITE, neighbours:ring, "
    "neighbours:exponential; whole numbers from 1 to 65536; behind any of them / flat, two-level, "
    "sharded, relay or store, / after or overlapped, or / every STEPS with / ranks, nodes or "
    "sites:RANKS and / fragments P, / overlap STEPS; / start STEPS; +ef behind fp8, int8 and int4 "
    "for error "
    "feedback";

bool is_local(const Exchange& exchange) {
  return exchange.kind == ExchangeKind::local || exchange.kind == ExchangeKind::local_sgd ||
         exchange.every > 1;
}

constexpr std::string_view pattern_words[] = {"flat", "two-level", "sharded", "relay", "store"};
constexpr std::string_view timing_words[] = {"after", "overlapped"};

std::string_view word_of(ExchangePattern pattern) {
  return pattern_words[static_cast<std::size_t>(pattern)];
}
std::string_view word_of(ExchangeTiming timing) {
  return timing_words[static_cast<std::size_t>(timing)];
}

const Form& form_of(ExchangeKind kind) { return forms[static_cast<std::size_t>(kind)]; }

double parameter_of(const Form& form, std::string_view text, const Where& where) {
  double value = 0;
  const bool percent = form.takes == Takes::share && text.ends_with('%');
  const std::string_view digits = text.substr(0, text.size() - (percent ? 1 : 0));
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool number = status == std::errc{} && end == digits.data() + digits.size();
  if (percent) value /= 100;
  if (form.takes == Takes::share && number && value == 1 && !percent)
    fail_input(where, fmt::format("{}:{} is all elements", form.word, text),
               fmt::format("{0}:{1}%, {0}:{2:g}, or 100% where all are meant", form.word, text,
                           value / 100));
  if (form.takes == Takes::share && number && value > 0 && value <= 1) return value;
  const double most = form.takes == Takes::of_chunk ? elements_of_chunk : 65536;
  if (form.takes != Takes::share && number && value >= 1 && value <= most &&
      value == std::floor(value))
    return value;
  fail_input(where, fmt::format("'{}' does not give the parameter of {}", text, form.word),
             allowed);
}

Exchange parse_codec(const std::string& text, const Where& where) {
  for (const Form& form : forms)
    if (form.takes == Takes::nothing && text == form.word) return {form.kind};
  const auto colon = text.find(':');
  const std::string word = text.substr(0, colon);
  for (const Form& form : forms) {
    if (word != form.word) continue;
    if (form.takes == Takes::nothing || colon == std::string::npos)
      fail_input(where, fmt::format("'{}' is not a form of {}", text, word), allowed);
    const std::string_view behind = std::string_view(text).substr(colon + 1);
    const bool takes_second = form.takes == Takes::rank || form.takes == Takes::whole;
    const auto second = takes_second ? behind.find(':') : std::string_view::npos;
    Exchange exchange{form.kind, parameter_of(form, behind.substr(0, second), where)};
    if (second != std::string_view::npos)
      (form.takes == Takes::rank ? exchange.iterations : exchange.site) =
          static_cast<int>(parameter_of(form, behind.substr(second + 1), where));
    return exchange;
  }
  fail_input(where, fmt::format("unknown exchange '{}'", text), allowed);
}

// Returns the whole number that follows `before` in `word`; 0 if there is none from 1 to 65536.
int number_behind(std::string_view before, std::string_view word) {
  int value = 0;
  if (!word.starts_with(before)) return 0;
  const char* const end = word.data() + word.size();
  const auto [read, status] = std::from_chars(word.data() + before.size(), end, value);
  return status == std::errc{} && read == end && value >= 1 && value <= 65536 ? value : 0;
}

// Reads one word after a codec; returns false for an unknown word or a second one of its kind.
bool read_form(const std::string& word, Exchange& exchange) {
  if (const int every = number_behind("every ", word); every > 0 && exchange.every == 1) {
    exchange.every = every;
    return true;
  }
  if (const int parts = number_behind("fragments ", word); parts > 0 && exchange.fragments == 1) {
    exchange.fragments = parts;
    return true;
  }
  if (const int steps = number_behind("overlap ", word); steps > 0 && exchange.overlap == 0) {
    exchange.overlap = steps;
    return true;
  }
  if (const int steps = number_behind("start ", word); steps > 0 && exchange.start == 0) {
    exchange.start = steps;
    return true;
  }
  const bool node = word == "nodes" || word == "sites";
  if (const int ranks = number_behind("sites:", word);
      exchange.site == 0 && (node || word == "ranks" || ranks > 0)) {
    exchange.site = node ? Exchange::of_a_node : ranks;
    return true;
  }
  const auto read = [&](auto& part, const auto& words) {
    const auto found = std::ranges::find(words, word);
    if (part || found == std::end(words)) return false;
    part.emplace(static_cast<std::decay_t<decltype(*part)>>(found - std::begin(words)));
    return true;
  };
  return read(exchange.pattern, pattern_words) || read(exchange.timing, timing_words);
}

// Replaces the suffix "+ef" with the one used in the table. Codecs that always have error feedback
// have no suffix there.
std::string with_feedback(const std::string& codec) {
  constexpr std::string_view suffix = "+ef";
  if (!codec.ends_with(suffix)) return codec;
  const std::string bare = codec.substr(0, codec.size() - suffix.size());
  const auto is_word = [&](const Form& form) { return form.word == bare + ":owed"; };
  if (std::ranges::any_of(forms, is_word)) return bare + ":owed";
  const std::string word = bare.substr(0, bare.find(':'));
  const auto has_feedback = [&](const Form& form) {
    return form.word == word && form.kept_bytes == 4;
  };
  return std::ranges::any_of(forms, has_feedback) ? bare : codec;
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(' ');
  return first == std::string::npos ? ""
                                    : text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

}  // namespace

Exchange parse_exchange(const std::string& text, const Where& where) {
  std::size_t slash = text.find('/');
  const std::string codec = trimmed(text.substr(0, slash));
  Exchange exchange = codec == "fp32" ? Exchange{} : parse_codec(with_feedback(codec), where);
  while (slash != std::string::npos) {
    const std::size_t next = text.find('/', slash + 1);
    const std::string word = trimmed(text.substr(slash + 1, next - slash - 1));
    if (!read_form(word, exchange))
      fail_input(where, fmt::format("'{}' is not a form of {}", word, codec_name(exchange)),
                 allowed);
    slash = next;
  }
  if (codec == "fp32" && exchange.every == 1)
    fail_input(where, "fp32 applies only to weights exchanged every H steps",
               "fp32 / every STEPS; of gradients all_reduce, in the run's own format");
  // Uncompressed weights are written local:H, not "fp32 / every H".
  if (exchange.kind == ExchangeKind::all_reduce && exchange.every > 1) {
    exchange.kind = ExchangeKind::local;
    exchange.parameter = std::exchange(exchange.every, 1);
  }
  return exchange;
}

std::string name_of(const Exchange& exchange) {
  std::string name = codec_name(exchange);
  if (exchange.pattern) name += fmt::format(" / {}", word_of(*exchange.pattern));
  if (exchange.timing) name += fmt::format(" / {}", word_of(*exchange.timing));
  if (exchange.every > 1) name += fmt::format(" / every {}", exchange.every);
  if (exchange.site == Exchange::of_a_node) name += " / nodes";
  if (exchange.every > 1 && exchange.site > 0) name += fmt::format(" / sites:{}", exchange.site);
  if (exchange.fragments > 1) name += fmt::format(" / fragments {}", exchange.fragments);
  if (exchange.overlap > 0) name += fmt::format(" / overlap {}", exchange.overlap);
  if (exchange.start > 0) name += fmt::format(" / start {}", exchange.start);
  return name;
}

Exchange in_hooks(Exchange exchange) {
  const std::optional<ExchangePattern> hooked = form_of(exchange.kind).hooked;
  if (!hooked || exchange.every > 1) return exchange;
  if (!exchange.pattern) exchange.pattern = hooked;
  if (!exchange.timing) exchange.timing = ExchangeTiming::overlapped;
  return exchange;
}

std::string refused_form(const Exchange& exchange) {
  const int parts = parts_of_weights(exchange);
  if ((parts > 1 || exchange.overlap > 0) && !is_local(exchange))
    return "fragments and overlap apply only to weights exchanged every H steps";
  if (steps_between(exchange) % parts != 0)
    return fmt::format("fragments times steps of overlap, {}, do not divide {} steps", parts,
                       steps_between(exchange));
  if (exchange.start > 0 && exchange.kind == ExchangeKind::all_reduce)
    return "/ start delays another exchange than all_reduce, which runs before it";
  const bool is_store = exchange.pattern == ExchangePattern::store;
  if (is_store && (exchange.kind < ExchangeKind::topk || exchange.kind > ExchangeKind::dct_sign ||
                   exchange.kind == ExchangeKind::randomk))
    return "a store does not add messages, so it applies only to topk, chunktopk and dctsign; "
           "others have a relay";
  if (exchange.is_star() && averages_weights(exchange)) return "neighbours have no hub";
  if (exchange.every > 1) {
    if (!codes_weights(exchange))
      return "every H steps go weights coded by fp16, bf16, onebit, fp8, int8, int4, topk, "
             "randomk, chunktopk or dctsign";
    if (exchange.is_overlapped())
      return "it sends weights between sites, not gradients of a pass: / overlap STEPS";
    if (exchange.pattern == ExchangePattern::flat && exchange.site != 0)
      return "the ranks of a site have one copy of the weights, which goes once";
    return {};
  }
  if (exchange.site != 0 && !is_local(exchange))
    return "a scope applies only to weights exchanged every H steps; in every step / two-level or "
           "sharded is "
           "between nodes";
  if (!exchange.pattern && !exchange.timing) return {};
  if (exchange.kind == ExchangeKind::all_reduce)
    return "NCCL chooses how an all_reduce goes, and --overlap when";
  if (is_hierarchical(exchange)) return "it has two levels already, and runs with ZeRO only";
  if (is_local(exchange)) return "it sends weights between sites, after a step";
  if (exchange.is_sharded() && exchange.kind == ExchangeKind::powersgd)
    return "it factors whole matrices, which the shares of a node's ranks cut";
  return {};
}

std::string codec_name(const Exchange& exchange) {
  const Form& form = form_of(exchange.kind);
  if (form.takes == Takes::nothing) return form.word;
  const int second = form.takes == Takes::rank    ? exchange.iterations
                     : form.takes == Takes::whole ? exchange.site
                                                  : 0;
  if (second > 0) return fmt::format("{}:{}:{}", form.word, exchange.parameter, second);
  if (form.takes != Takes::share) return fmt::format("{}:{}", form.word, exchange.parameter);
  return fmt::format("{}:{:.6g}%", form.word, 100 * exchange.parameter);
}

std::int64_t steps_between(const Exchange& exchange) {
  if (exchange.every > 1) return exchange.every;
  return is_local(exchange) ? static_cast<std::int64_t>(exchange.parameter) : 1;
}

std::int64_t steps_per_exchange(const Exchange& exchange) {
  return steps_between(exchange) / parts_of_weights(exchange);
}

int parts_of_weights(const Exchange& exchange) {
  return exchange.fragments * std::max(1, exchange.overlap);
}

std::string seldom_meets(const Exchange& exchange, std::int64_t steps) {
  constexpr std::int64_t least_meetings = 10, most_steps = 4 * diloco_steps;
  const std::int64_t every = steps_between(exchange);
  if (every <= 1) return "";
  steps -= exchange.start;
  const std::int64_t meetings = std::max<std::int64_t>(0, steps) / every;
  if (steps < steps_per_exchange(exchange)) return "its ranks never meet";
  if (meetings == 0) return "its ranks exchange only a part of the weights";
  if (meetings < least_meetings)
    return fmt::format("its ranks meet only {} time{}", meetings, meetings == 1 ? "" : "s");
  if (every <= most_steps) return "";
  return fmt::format("its ranks meet every {} steps, and those of DiLoCo every {}", every,
                     diloco_steps);
}

int site_ranks(const Exchange& exchange) { return std::max(1, exchange.site); }

int neighbours(const Exchange& exchange, int ranks) {
  if (exchange.kind == ExchangeKind::neighbour_ring) return std::min(ranks - 1, 2);
  return exchange.kind == ExchangeKind::neighbour_exponential ? std::min(ranks - 1, 1) : 0;
}

bool averages_weights(const Exchange& exchange) { return neighbours(exchange, 2) > 0; }

bool travels_beside(const Exchange& exchange) {
  return exchange.overlap > 0 || (averages_weights(exchange) && exchange.is_overlapped());
}

bool goes_in_half(const Exchange& exchange) {
  return exchange.kind == ExchangeKind::fp16 || exchange.kind == ExchangeKind::bf16;
}

bool hands_out_codes(const Exchange& exchange) {
  return exchange.kind >= ExchangeKind::onebit && exchange.kind <= ExchangeKind::int4_owed;
}

bool codes_weights(const Exchange& exchange) {
  return goes_in_half(exchange) || hands_out_codes(exchange) ||
         (exchange.kind >= ExchangeKind::topk && exchange.kind <= ExchangeKind::dct_sign);
}

bool is_hierarchical(const Exchange& exchange) {
  return exchange.kind == ExchangeKind::qgz || exchange.kind == ExchangeKind::qgz_int8 ||
         exchange.kind == ExchangeKind::sdp4bit || is_loco(exchange);
}

bool is_loco(const Exchange& exchange) {
  return exchange.kind == ExchangeKind::loco || exchange.kind == ExchangeKind::loco_int8;
}

bool owes_on_one_level(const Exchange& exchange) {
  return exchange.kind == ExchangeKind::fp8_owed || exchange.kind == ExchangeKind::int8_owed ||
         exchange.kind == ExchangeKind::int4_owed;
}

Coding coding_of(const Exchange& exchange) {
  switch (exchange.kind) {
    case ExchangeKind::qgz_int8:
    case ExchangeKind::loco_int8:
      return {1, 1};
    case ExchangeKind::sdp4bit:
      return {1, 0.5, 128};
    default:
      return {};
  }
}

double gathered_weight_bytes(const Exchange& exchange, double plain) {
  return exchange.kind == ExchangeKind::sdp4bit ? 0.5 + 4.0 / 2048 : plain;
}

double kept_bytes(const Exchange& exchange) { return form_of(exchange.kind).kept_bytes; }

std::string refused_with_zero(const Exchange& exchange, std::int64_t stage) {
  if (exchange.kind == ExchangeKind::all_reduce) return {};
  if (exchange.kind == ExchangeKind::sdp4bit && stage != 1)
    return "it codes the weights that ZeRO stage 1 gathers after each update";
  if (is_hierarchical(exchange))
    return stage > 0 ? "" : "it needs ZeRO: each rank keeps only the sums of its own share";
  if (stage == 0) return {};
  if (is_local(exchange) && site_ranks(exchange) > 1 && !exchange.is_two_level()) return {};
  if (goes_in_half(exchange))
    return "ZeRO sums in what communication_data_type, or --fp32-gradients, says";
  if (exchange.is_in_other_form())
    return "node leaders and buckets leave every rank all sums, of which ZeRO keeps a share";
  if (is_local(exchange))
    return "without sites it lets the weights of ranks differ between exchanges, so that none can "
           "share states";
  if (averages_weights(exchange))
    return "it averages with neighbours, so that weights differ and none can share states";
  if (stage == 3) return "ZeRO stage 3 reduces gradients in blocks, for which it has no form";
  if (stage == 2 && kept_bytes(exchange) > 0)
    return "it keeps the error of whole gradients, which ZeRO stage 2 does not have";
  return {};
}

std::vector<Exchange> usual_exchanges(bool zero, int site) {
  std::vector<Exchange> all{
      {ExchangeKind::all_reduce},    {ExchangeKind::onebit},        {ExchangeKind::fp8},
      {ExchangeKind::fp8_owed},      {ExchangeKind::int8},          {ExchangeKind::int8_owed},
      {ExchangeKind::int4},          {ExchangeKind::int4_owed},     {ExchangeKind::powersgd, 4},
      {ExchangeKind::topk, 0.01},    {ExchangeKind::randomk, 0.01}, {ExchangeKind::local, 16},
      {ExchangeKind::local_sgd, 16}, {ExchangeKind::neighbour_ring}};
  if (site > 1) {
    all.push_back({ExchangeKind::local, 16, 0, site});
    all.push_back({.kind = ExchangeKind::int4_owed, .site = site, .every = 16});
  }
  if (zero) all.insert(all.end(), {{ExchangeKind::qgz}, {ExchangeKind::loco}});
  if (zero) return all;
  for (const ExchangeKind kind : {ExchangeKind::onebit, ExchangeKind::int8})
    all.push_back(in_hooks({kind}));
  all.push_back({.kind = ExchangeKind::onebit, .pattern = ExchangePattern::sharded});
  return all;
}

}  // namespace lambcast
