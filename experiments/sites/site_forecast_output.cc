#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "experiments/output/cell.h"
#include "experiments/output/forecast_output.h"
#include "experiments/output/rate_text.h"
#include "experiments/sites/site_forecast.h"
#include "sim/base/counted.h"
#include "sim/base/csv.h"
#include "sim/base/json.h"

namespace lambcast {
namespace {

double low_utilisation(const SiteForecast& forecast) {
  return std::min(forecast.low.utilisation, forecast.high.utilisation);
}
double high_utilisation(const SiteForecast& forecast) {
  return std::max(forecast.low.utilisation, forecast.high.utilisation);
}

// Returns a sentence on the work of sites that are left out, or on the share of throughput that the
// pace of the slowest site costs; empty if neither applies.
std::string waiting_text(const SiteForecast& forecast) {
  const OuterRound& round = forecast.round;
  const double present = round.training.mean / static_cast<double>(round.members.size());
  const double lost = round.compute / round.time() * round.up_share * present - round.utilisation;
  if (forecast.exchange.decoupled) return "";
  const std::size_t left_out = forecast.sites.size() - round.members.size();
  if (left_out > 0)
    return fmt::format(" The work of {} of {} sites is lost.", left_out, forecast.sites.size());
  if (lost < 0.005) return "";
  return fmt::format(" The pace of {} costs {:.1f} %.",
                     forecast.sites[round.members.back()].site.name, 100 * lost);
}

std::string failures_text(const SiteForecast& forecast) {
  const OuterRound& round = forecast.round;
  const Expected& failures = forecast.failures;
  std::string out;
  if (round.up_share < 1 && failures.mean > 0)
    out = fmt::format(" Failures cost {:.1f} %: {:.3g} in the run ({:.3g} to {:.3g}).",
                      100 * (1 - round.up_share), failures.mean, failures.low, failures.high);
  const std::size_t all = forecast.sites.size();
  const bool leave = std::ranges::any_of(forecast.group.sites,
                                         [](const Site& site) { return site.stays.has_value(); });
  const bool replaces = forecast.exchange.decoupled || round.members.size() < all;
  if (leave || (replaces && round.up_share < 1))
    out +=
        fmt::format(" At a moment {:.1f} of {} sites {} ({:.0f} to {:.0f}).", round.training.mean,
                    all, forecast.exchange.decoupled ? "train" : "can train", round.training.low,
                    round.training.high);
  return out;
}

// A run that does not fit in memory still has a forecast, as in `simulate`.
std::string memory_text(const SiteForecast& forecast) {
  const auto short_of_memory =
      std::ranges::count_if(forecast.sites, [](const SiteStep& site) { return !site.fits; });
  return short_of_memory == 0 ? ""
                              : fmt::format("Does not fit in memory at {} of {} sites. ",
                                            short_of_memory, forecast.sites.size());
}

// Whether the run ends before the sites have exchanged all weights once.
bool ends_before_exchange(const SiteForecast& forecast) {
  return forecast.sites.size() > 1 && forecast.run_steps < forecast.exchange.every;
}

std::string answer_of(const SiteForecast& forecast) {
  const OuterRound& round = forecast.round;
  const std::string training =
      ends_before_exchange(forecast)
          ? fmt::format("The run of {} ends before its first exchange; longer runs train",
                        counted(forecast.run_steps, "step"))
          : "Training runs";
  return memory_text(forecast) + training +
         fmt::format(
             " at {:.1f} % of the sites' own throughput ({:.1f} to {:.1f} %): "
             "rounds of {} take {}, of which {} wait for the exchange.{}{}",
             100 * round.utilisation, 100 * low_utilisation(forecast),
             100 * high_utilisation(forecast), counted(forecast.exchange.every, "step"),
             to_text(round.time()), to_text(round.exposed), waiting_text(forecast),
             failures_text(forecast));
}

std::string advice_of(const SiteForecast& forecast) {
  if (forecast.sites.size() < 2) return "One site exchanges nothing.";
  const std::string codec(forecast.exchange.codec.name);
  std::string out =
      forecast.fewest_steps
          ? fmt::format("{} keeps communication below 5 % from {} between exchanges.", codec,
                        counted(*forecast.fewest_steps, "step"))
          : fmt::format("{} keeps communication below 5 % at none of the numbers of steps below.",
                        codec);
  const double stated = forecast.group.sites.front().link.up.value.value();
  if (!forecast.for_95_percent)
    return out +
           fmt::format(" At {} steps latency alone takes more than 5 %.", forecast.exchange.every);
  const std::vector<SitePair>& pairs = forecast.group.pairs;
  const auto slowest =
      std::ranges::min_element(pairs, {}, [](const SitePair& pair) { return pair.rate.value; });
  const std::string between =
      pairs.empty() || forecast.group.via == Via::store
          ? ""
          : fmt::format(", the slowest pair of sites has {}", to_text_bits(slowest->rate.value));
  return out + fmt::format(" With {} steps each site needs {} each way for that; up is {}{}.",
                           forecast.exchange.every, to_text_bits(*forecast.for_95_percent),
                           to_text_bits(Bandwidth(stated)), between);
}

// Returns whether one line can describe both sites.
bool are_alike(const SiteStep& a, const SiteStep& b) {
  return a.step == b.step && a.site.cluster == b.site.cluster && a.site.gpus == b.site.gpus &&
         a.site.link == b.site.link;
}

std::string sites_text(const SiteForecast& forecast) {
  std::string out = fmt::format("{:<17} {:<15} {:>4} {:>9} {:>11} {:>11} {:>7}\n", "site",
                                "cluster", "GPUs", "step", "reached up", "down", "rtt");
  const std::vector<SiteStep>& sites = forecast.sites;
  for (std::size_t i = 0; i < sites.size();) {
    std::size_t end = i + 1;
    while (end < sites.size() && are_alike(sites[i], sites[end])) ++end;
    const Site& site = sites[i].site;
    const std::string& last = sites[end - 1].site.name;
    const char* const between = end == i + 2 ? ", " : " to ";
    const std::string name = end == i + 1 ? site.name : site.name + between + last;
    out += fmt::format(
        "{:<17} {:<15} {:>4} {:>9} {:>11} {:>11} {:>7}{}\n", name, site.cluster, site.gpus,
        time_cell(sites[i].step.s()), to_text_bits(reached_rate(site.link, site.link.up.value)),
        to_text_bits(reached_rate(site.link, site.link.down.value)), to_text(site.link.rtt.value),
        sites[i].fits ? "" : "  does not fit in memory");
    i = end;
  }
  const std::vector<SitePair>& pairs = forecast.group.pairs;
  constexpr std::size_t most_pairs = 8;
  if (pairs.size() > most_pairs) {
    const auto [slow, fast] =
        std::ranges::minmax(pairs, {}, [](const SitePair& pair) { return pair.rate.value; });
    return out + fmt::format("{} pairs of sites: {} ({} and {}) to {}\n", pairs.size(),
                             to_text_bits(slow.rate.value), sites[slow.a].site.name,
                             sites[slow.b].site.name, to_text_bits(fast.rate.value));
  }
  for (const SitePair& pair : pairs)
    out += fmt::format("{:<43} {:>11} {:>11} {:>7}\n",
                       fmt::format("{} and {}", sites[pair.a].site.name, sites[pair.b].site.name),
                       to_text_bits(pair.rate.value), to_text_bits(pair.rate.value),
                       to_text(pair.rtt.value));
  return out;
}

std::string exchange_text(const SiteForecast& forecast) {
  const OuterRound& round = forecast.round;
  std::string out = fmt::format(
      "a round: compute {}, transfer {}, exposed {}; a site sends {} and receives {}\n",
      to_text(round.compute),
      forecast.exchange.fragments == 1
          ? to_text(round.transfer)
          : fmt::format("{} x {}", forecast.exchange.fragments, to_text(round.transfer)),
      to_text(round.exposed), to_text(round.sent), to_text(round.received));
  const Expected& run = forecast.run_s;
  out += fmt::format("throughput: {} samples/s; {} take {} ({} to {})\n",
                     rate_text(forecast.samples_per_s), counted(forecast.run_steps, "step"),
                     to_text(Duration::seconds(run.mean)), to_text(Duration::seconds(run.low)),
                     to_text(Duration::seconds(run.high)));
  out += fmt::format("egress: {} a round", to_text(forecast.egress));
  if (ends_before_exchange(forecast)) return out + ", none in this run\n";
  if (!forecast.egress_usd) out += "; the description states no price (usd_per_gb)";
  if (forecast.egress_usd) out += fmt::format(", {} USD a run", usd_cell(*forecast.egress_usd));
  if (const auto day = forecast.egress_usd_per_day())
    out += fmt::format(", {} USD a day ({})", usd_cell(*day),
                       name_of(forecast.group.usd_per_gb->provenance.kind));
  return out + "\n";
}

std::string options_text(const SiteForecast& forecast) {
  std::string out = "utilisation (%) by codec and steps between exchanges\n";
  out += fmt::format("{:<12}", "codec");
  for (const int every : option_steps) out += fmt::format(" {:>7}", every);
  std::string_view codec;
  for (const OuterOption& option : forecast.options) {
    if (option.exchange.codec.name != codec) {
      codec = option.exchange.codec.name;
      out += fmt::format("\n{:<12}", codec);
    }
    out += fmt::format(" {:>7.1f}", 100 * option.round.utilisation);
  }
  return out + "\n";
}

std::string kinds_of_links(const SiteForecast& forecast) {
  const SiteLink& link = forecast.group.sites.front().link;
  return fmt::format(
      "Links as stated (up {}, rtt {}, window {}): no interval is claimed for them. Time only: "
      "what "
      "fewer exchanges and fewer bits cost in loss is not forecast.\n",
      name_of(link.up.provenance.kind), name_of(link.rtt.provenance.kind),
      name_of(link.window.provenance.kind));
}

Json seconds(Duration time) { return Json(time.s()); }

Json expected_json(const Expected& value) {
  return {{"mean", value.mean}, {"low", value.low}, {"high", value.high}};
}

Json exchange_json(const OuterExchange& exchange) {
  return {{"codec", std::string(exchange.codec.name)},
          {"bits_per_weight", exchange.codec.bits},
          {"every", exchange.every},
          {"fragments", exchange.fragments},
          {"delay", exchange.delay},
          {"by_layer", exchange.layers.has_value()},
          {"decoupled", exchange.decoupled}};
}

}  // namespace

std::string site_forecast_table(const SiteForecast& forecast) {
  std::string findings;
  for (const Finding& finding : forecast.findings)
    findings +=
        fmt::format("{}: {} [{}]\n", name_of(finding.severity), finding.message, finding.code);
  return fmt::format("{}\n{}\n\n{} over {} of {}, codec {}{}\n{}\n{}\n{}\n{}{}",
                     answer_of(forecast), advice_of(forecast), forecast.model,
                     counted(static_cast<std::int64_t>(forecast.sites.size()), "site"),
                     forecast.group.name, forecast.exchange.codec.name,
                     forecast.group.via == Via::store ? " through an object store" : "",
                     sites_text(forecast), exchange_text(forecast), options_text(forecast),
                     kinds_of_links(forecast), findings);
}

std::string site_forecast_json(const SiteForecast& forecast) {
  const OuterRound& round = forecast.round;
  Json json{{"schema_version", 1},
            {"tool", "lambcast"},
            {"version", tool_version},
            {"answer", answer_of(forecast)},
            {"model", forecast.model},
            {"name", forecast.group.name},
            {"exchange", exchange_json(forecast.exchange)},
            {"weights", forecast.exchange.weights},
            {"utilisation", round.utilisation},
            {"utilisation_low", low_utilisation(forecast)},
            {"utilisation_high", high_utilisation(forecast)},
            {"up_share", round.up_share},
            {"round_s", seconds(round.time())},
            {"compute_s", seconds(round.compute)},
            {"transfer_s", seconds(round.transfer)},
            {"exposed_s", seconds(round.exposed)},
            {"sent_bytes", round.sent.value()},
            {"received_bytes", round.received.value()},
            {"samples_per_s", forecast.samples_per_s},
            {"egress_bytes", forecast.egress.value()},
            {"run_steps", forecast.run_steps},
            {"run_s", expected_json(forecast.run_s)},
            {"failures", expected_json(forecast.failures)},
            {"training_sites", expected_json(round.training)},
            {"egress_usd", number_or_null(forecast.egress_usd)},
            {"egress_usd_per_day", number_or_null(forecast.egress_usd_per_day())},
            {"fewest_steps", forecast.fewest_steps ? Json(*forecast.fewest_steps) : Json(nullptr)},
            {"bandwidth_for_95_percent_bit_s",
             forecast.for_95_percent ? Json(forecast.for_95_percent->value() * 8) : Json(nullptr)}};
  json["sites"] = Json::array();
  for (const SiteStep& step : forecast.sites) {
    const SiteLink& link = step.site.link;
    json["sites"].push_back({{"name", step.site.name},
                             {"cluster", step.site.cluster},
                             {"gpus", step.site.gpus},
                             {"step_s", seconds(step.step)},
                             {"step_low_s", seconds(step.low)},
                             {"step_high_s", seconds(step.high)},
                             {"batch", step.batch},
                             {"memory_bytes", step.memory.value()},
                             {"fits", step.fits},
                             {"up_bit_s", reached_rate(link, link.up.value).value() * 8},
                             {"down_bit_s", reached_rate(link, link.down.value).value() * 8},
                             {"rtt_s", seconds(link.rtt.value)}});
  }
  json["options"] = Json::array();
  for (const OuterOption& option : forecast.options) {
    Json row = exchange_json(option.exchange);
    row["utilisation"] = option.round.utilisation;
    row["exposed_s"] = seconds(option.round.exposed);
    json["options"].push_back(std::move(row));
  }
  json["findings"] = Json::array();
  for (const Finding& finding : forecast.findings)
    json["findings"].push_back({{"severity", std::string(name_of(finding.severity))},
                                {"code", finding.code},
                                {"message", finding.message}});
  return json_lines(json);
}

std::string site_forecast_csv(const SiteForecast& forecast) {
  std::string out = csv::row({"codec", "every", "fragments", "delay", "utilisation", "round_s",
                              "exposed_s", "sent_bytes"}) +
                    "\n";
  for (const OuterOption& option : forecast.options) {
    csv::Row row;
    row.text(option.exchange.codec.name)
        .whole(option.exchange.every)
        .whole(option.exchange.fragments)
        .whole(option.exchange.delay)
        .number(option.round.utilisation)
        .number(option.round.time().s())
        .number(option.round.exposed.s())
        .number(option.round.sent.value());
    out += std::move(row).line() + "\n";
  }
  return out;
}

}  // namespace lambcast
