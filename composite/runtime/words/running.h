// A program that runs, and what its tasks have in common.
#ifndef COMPOSITE_RUNTIME_WORDS_RUNNING_H_
#define COMPOSITE_RUNTIME_WORDS_RUNNING_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "composite/runtime/launch/fixed_team.h"
#include "composite/runtime/launch/tvm_abi.h"
#include "composite/runtime/words/arithmetic.h"
#include "composite/runtime/words/program.h"

namespace composite {
namespace words {

// A program whose instructions know what computes them, and what its tasks have in common.
class Running {
 public:
  Running(const Program& program, int64_t steps, FixedTeam& team)
      : program_(program), team_(team), left_(steps) {
    computes_.reserve(program.code.size());
    const Arithmetic& arithmetic = ArithmeticOfCpu();
    for (const Instruction& i : program.code) computes_.push_back(arithmetic.compute_of(i));
  }

  const Program& program() const { return program_; }
  const Compute* computes() const { return computes_.data(); }
  FixedTeam& team() { return team_; }

  // Counts instructions. False when the program has run more than it may.
  bool Spend(int64_t steps) { return left_.fetch_sub(steps) > steps; }

  // Of a task. The first failure counts.
  void Fail(tvm_abi::Error error) {
    std::lock_guard<std::mutex> lock(mu_);
    if (!failed_) error_ = std::move(error);
    failed_ = true;
  }

  bool failed() {
    std::lock_guard<std::mutex> lock(mu_);
    return failed_;
  }

  // When all tasks have ended.
  const tvm_abi::Error& error() const { return error_; }

 private:
  const Program& program_;
  FixedTeam& team_;
  std::atomic<int64_t> left_;
  std::vector<Compute> computes_;
  std::mutex mu_;
  bool failed_ = false;
  tvm_abi::Error error_;
};

}  // namespace words
}  // namespace composite

#endif  // COMPOSITE_RUNTIME_WORDS_RUNNING_H_
