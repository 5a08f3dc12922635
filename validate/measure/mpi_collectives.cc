#include "validate/measure/mpi_collectives.h"
#include "validate/measure/mpi_world.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "sim/base/check.h"
#include "validate/measure/expected_result.h"

namespace lambcast::validate {
namespace {

// MPI has no 16-bit floating-point type. Operations that move elements without adding them treat
// them as integers.
MPI_Datatype mpi_type_of(DataType type) {
  if (type == DataType::float32) return MPI_FLOAT;
  return type == DataType::uint8 ? MPI_UINT8_T : MPI_UINT16_T;
}

class MpiCollective final : public TimedCollective {
 public:
  MpiCollective(const MeasureOptions& options, std::uint64_t size, Placement placement)
      : operation_(options.operation),
        type_(options.type),
        mpi_type_(mpi_type_of(options.type)),
        placement_(placement),
        root_(options.root) {
    MPI_Comm_rank(measured_world(), &rank_);
    MPI_Comm_size(measured_world(), &ranks_);
    const std::uint64_t elements = size / bytes_of(type_);
    const std::uint64_t block = elements / static_cast<std::uint64_t>(ranks_);
    const bool gathers = operation_ == Operation::all_gather;
    const bool scatters = operation_ == Operation::reduce_scatter;
    const bool blocks = gathers || scatters || operation_ == Operation::all_to_all;
    count_ = static_cast<int>(blocks ? block : elements);
    sent_ = gathers ? block : elements;
    received_ = scatters ? block : elements;
    const bool separate = placement == Placement::out_of_place;
    send_.resize((separate ? sent_ : 0) * bytes_of(type_));
    receive_.resize((separate ? received_ : elements) * bytes_of(type_));
  }

  void fill() override {
    for (std::uint64_t i = 0; i < receive_.size() / bytes_of(type_); ++i)
      store(type_, receive_.data(), i, unset_value(type_));
    char* const input = placement_ == Placement::out_of_place ? send_.data() : own_input();
    for (std::uint64_t i = 0; i < sent_; ++i)
      store(type_, input, i, pattern_element(type_, operation_, rank_, i));
    if (operation_ == Operation::broadcast && rank_ == root_) receive_ = send_;
  }

  void run() override {
    const MPI_Comm world = measured_world();
    char* const to = receive_.data();
    const void* const from = placement_ == Placement::out_of_place ? send_.data() : MPI_IN_PLACE;
    switch (operation_) {
      case Operation::all_reduce:
        MPI_Allreduce(from, to, count_, mpi_type_, MPI_SUM, world);
        return;
      case Operation::all_gather:
        MPI_Allgather(from, count_, mpi_type_, to, count_, mpi_type_, world);
        return;
      case Operation::reduce_scatter:
        MPI_Reduce_scatter_block(from, to, count_, mpi_type_, MPI_SUM, world);
        return;
      case Operation::all_to_all:
        MPI_Alltoall(from, count_, mpi_type_, to, count_, mpi_type_, world);
        return;
      case Operation::broadcast:
        MPI_Bcast(to, count_, mpi_type_, root_, world);
        return;
      case Operation::send_recv:
        MPI_Sendrecv(from, count_, mpi_type_, (rank_ + 1) % ranks_, 0, to, count_, mpi_type_,
                     (rank_ + ranks_ - 1) % ranks_, 0, world, MPI_STATUS_IGNORE);
        return;
      case Operation::reduce:
        MPI_Reduce(from, to, count_, mpi_type_, MPI_SUM, root_, world);
        return;
      case Operation::ping_pong:
        return ping_pong();
      case Operation::compressed_allreduce:
      case Operation::stream:
        LAMBCAST_CHECK(false, "{} is not a collective of MPI", name_of(operation_));
    }
  }

  std::uint64_t count_wrong() const override {
    const ExpectedResult expected{operation_, ranks_, root_, static_cast<std::uint64_t>(count_),
                                  type_};
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < received_; ++i) {
      wrong += load(type_, receive_.data(), i) == expected.at(rank_, i) ? 0 : 1;
    }
    return wrong;
  }

 private:
  // Returns the input of MPI_IN_PLACE: for all_gather, this rank's block of the result.
  char* own_input() {
    const bool block = operation_ == Operation::all_gather;
    return receive_.data() +
           (block ? static_cast<std::uint64_t>(rank_) * sent_ * bytes_of(type_) : 0);
  }

  void ping_pong() {
    const int last = ranks_ - 1;
    if (rank_ == 0) {
      MPI_Send(send_.data(), count_, mpi_type_, last, 0, measured_world());
      MPI_Recv(receive_.data(), count_, mpi_type_, last, 0, measured_world(), MPI_STATUS_IGNORE);
    } else if (rank_ == last) {
      MPI_Recv(receive_.data(), count_, mpi_type_, 0, 0, measured_world(), MPI_STATUS_IGNORE);
      MPI_Send(receive_.data(), count_, mpi_type_, 0, 0, measured_world());
    }
  }

  Operation operation_;
  DataType type_;
  MPI_Datatype mpi_type_;
  Placement placement_;
  int root_;
  int rank_ = 0;
  int ranks_ = 0;
  int count_ = 0;
  std::uint64_t sent_ = 0;      // elements of the input
  std::uint64_t received_ = 0;  // elements of the result
  std::vector<char> send_;
  std::vector<char> receive_;
};

}  // namespace

std::unique_ptr<TimedCollective> mpi_collective(const MeasureOptions& options, std::uint64_t size,
                                                Placement placement) {
  return std::make_unique<MpiCollective>(options, size, placement);
}

}  // namespace lambcast::validate
