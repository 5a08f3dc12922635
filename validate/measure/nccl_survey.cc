#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "sim/base/error.h"
#include "validate/measure/nccl_ranks.h"

namespace lambcast::validate {
namespace {

constexpr int kTableMeetsWithin_s = 120;
// Longest wait of processes without a rank in the table that is being measured.
constexpr int kLongestTable_s = 86'400;

std::string random_token() {
  std::random_device random;
  std::string token;
  for (int i = 0; i < 8; ++i) token += fmt::format("{:08x}", random());
  return token;
}

class NcclSurvey final : public SurveyedRanks {
 public:
  NcclSurvey(const MeasuredTable& head, const LocalRanks& local, const Launch& launch)
      : head_(head),
        local_(local),
        launch_(launch),
        others_(meet_over_tcp(launch, kTableMeetsWithin_s, kLongestTable_s)),
        places_(gather_places(*others_, local)) {
    launch_.token = others_->exchange(first() ? random_token() : "").front();
    launch_.token_file.clear();
  }

  const std::vector<RankPlace>& places() const override { return places_; }
  bool first() const override { return launch_.rank == 0; }
  bool value_of_first(bool mine) override {
    return others_->exchange(mine ? "yes" : "no").front() == "yes";
  }

  std::uint64_t block_bytes(Operation operation, DataType type, int ranks) const override {
    if (operation == Operation::compressed_allreduce && type != DataType::float32) return 0;
    return validate::block_bytes(operation, ranks, type);
  }

  int measure(const MeasureOptions& options, const std::vector<bool>& takes_part,
              std::ostream& out) override {
    const auto mine = takes_part.begin() + local_.first_rank;
    if (!*mine) return 0;
    const int held = static_cast<int>(local_.devices.size());
    LocalRanks local = local_;
    local.first_rank = static_cast<int>(std::count(takes_part.begin(), mine, true));
    local.ranks = static_cast<int>(std::ranges::count(takes_part, true));
    Launch launch = launch_of_table();
    launch.rank = local.first_rank / held;
    launch.processes = local.ranks / held;
    MeasuredTable head = head_;
    head.options = options;
    check_type(options, local.ranks);
    return measure_ranks(head, local, *meet_over_tcp(launch, kTableMeetsWithin_s), out);
  }

  void measure_steps(const MeasureOptions& options, std::uint64_t weights,
                     std::ostream& out) override {
    const std::string of_first = others_->exchange(fmt::format("{}", weights)).front();
    validate::measure_steps(options, std::stoull(of_first), local_,
                            *meet_over_tcp(launch_of_table(), kTableMeetsWithin_s), out);
  }

 private:
  Launch launch_of_table() const {
    Launch launch = launch_;
    launch.port += launch.processes > 1 ? 1 : 0;
    return launch;
  }

  MeasuredTable head_;
  LocalRanks local_;
  Launch launch_;
  std::unique_ptr<Rendezvous> others_;
  std::vector<RankPlace> places_;
};

}  // namespace

std::unique_ptr<SurveyedRanks> surveyed_nccl_ranks(const MeasuredTable& head,
                                                   const LocalRanks& local, const Launch& launch) {
  return std::make_unique<NcclSurvey>(head, local, launch);
}

}  // namespace lambcast::validate
