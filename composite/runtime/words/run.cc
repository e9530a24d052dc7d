#include "composite/runtime/words/run.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "composite/runtime/launch/launch_team.h"
#include "composite/runtime/words/arithmetic.h"
#include "composite/runtime/words/memory.h"
#include "composite/runtime/words/running.h"

namespace composite {
namespace words {
namespace {

constexpr int64_t kZeros = 64;                    // bytes, with which a frame begins
constexpr int64_t kMostBytes = int64_t{1} << 40;  // of a buffer
constexpr int64_t kCounted = 1 << 16;             // instructions that a task counts at once

// Kinds of errors, and the message of one.
constexpr char kOwn[] = "InternalError";
constexpr char kOfArguments[] = "TypeError";
constexpr char kNoFrame[] = "there is no memory for a frame";

// One thread in a program: a frame of its own, and the buffers that it sees.
class Task {
 public:
  explicit Task(Running& running) : running_(running), frame_(NewMemory(running.program().frame)) {
    buffers_.resize(running.program().buffers);
    bytes_.resize(running.program().buffers);
    if (frame_ == nullptr) return;
    std::memset(frame_.get(), kNothing, running.program().frame);
    std::memset(frame_.get(), 0, kZeros);
    SetFrame();
  }

  // A task of a loop of another one: it sees what that one sees, in a copy of its frame.
  Task(const Task& other, int number, int count, Barrier* barrier)
      : running_(other.running_),
        frame_(NewMemory(other.running_.program().frame)),
        buffers_(other.buffers_),
        bytes_(other.bytes_),
        number_(number),
        count_(count),
        barrier_(barrier) {
    if (frame_ == nullptr) return;
    std::memcpy(frame_.get(), other.frame_.get(), running_.program().frame);
    SetFrame();
  }

  bool has_memory() const { return frame_ != nullptr; }

  // Begins with the constants, and the arguments if they are what the program takes.
  bool Take(absl::Span<const Array> arguments);

  // Runs instructions up to an `end`. False after a failure.
  bool Execute(int64_t from);

 private:
  class Loop;

  void SetFrame() {
    buffers_[0] = frame_.get();
    bytes_[0] = running_.program().frame;
  }
  template <typename T>
  T& Word(Place place) {
    return *reinterpret_cast<T*>(At(buffers_.data(), place));
  }
  int64_t& Number(Place place) { return Word<int64_t>(place); }

  bool Fail(std::string kind, std::string message) {
    running_.Fail({std::move(kind), std::move(message)});
    return false;
  }
  // Counts what a trip of a loop has run.
  bool Spend(int64_t steps) {
    spent_ += steps;
    if (spent_ < kCounted) return true;
    const int64_t spent = std::exchange(spent_, 0);
    return running_.Spend(spent) || Fail(kLimitError, "it runs more instructions than it may");
  }
  bool Outside() { return Fail(kOwn, "it reads or writes outside of a buffer"); }

  bool Control(const Instruction& i, int64_t& next);
  bool Allocate(const Instruction& i);
  bool Refuse(const Instruction& i);
  bool Share(const Instruction& i, int64_t body);
  bool RunPart(const Instruction& i, int64_t body, int number, int count);
  bool Launch(int64_t body, const Instruction* loop);

  // The memory of elements of a buffer, each of 2^shift bytes; null if not all of them are in it.
  char* Elements(Place buffer, int64_t first, int64_t count, int64_t shift) {
    const int64_t begin = static_cast<uint32_t>(buffer);
    const int64_t room = (bytes_[buffer >> 32] - begin) >> shift;
    if (first < 0 || first > room - count) return nullptr;
    return buffers_[buffer >> 32] + begin + (first << shift);
  }
  // The memory of the elements of a load or a store of one piece, or of a single one.
  char* Piece(const Instruction& i, int64_t elements) {
    return Elements(i.b, (Number(i.a) + Number(i.c)) * i.extra, elements, i.kind / 2);
  }
  // Copies between words and elements that are a distance apart, or anywhere.
  bool Move(const Instruction& i, bool store, Place words, Place index, Place buffer);

  Running& running_;
  const Memory frame_;
  std::vector<char*> buffers_;
  std::vector<int64_t> bytes_;
  std::vector<std::pair<int64_t, Memory>> own_;  // by their buffers
  std::vector<int64_t> calls_;                   // where functions return to
  const int number_ = 0;
  const int count_ = 1;
  Barrier* const barrier_ = nullptr;  // null outside of loops of several tasks
  bool in_team_ = false;
  int64_t spent_ = 0;  // instructions that were not counted yet
};

// A loop that is divided among tasks, or what each thread of a team runs.
class Task::Loop final : public TeamLoop {
 public:
  Loop(Task& outer, int64_t body, const Instruction* loop)
      : outer_(outer), body_(body), loop_(loop) {}

  void Run(int task, int tasks, Barrier& barrier) override {
    Task own(outer_, task, tasks, &barrier);
    bool done = own.has_memory();
    if (!done) {
      outer_.Fail(kOwn, kNoFrame);
    } else if (loop_ == nullptr) {
      own.in_team_ = true;
      done = own.Execute(body_);
    } else {
      done = own.RunPart(*loop_, body_, task, tasks);
    }
    if (!done) barrier.Break();
  }
  const void* code() const override { return nullptr; }

 private:
  Task& outer_;
  const int64_t body_;
  const Instruction* const loop_;
};

bool Task::Take(absl::Span<const Array> arguments) {
  const Program& program = running_.program();
  for (const Constant& constant : program.constants) {
    std::memcpy(At(buffers_.data(), constant.place), constant.bytes.data(), constant.bytes.size());
  }
  if (arguments.size() != program.parameters.size()) {
    return Fail(kOfArguments, absl::StrCat("it takes ", program.parameters.size(),
                                           " arguments, not ", arguments.size()));
  }
  std::vector<Place> symbols;
  for (size_t n = 0; n < arguments.size(); ++n) {
    const Parameter& parameter = program.parameters[n];
    const Array& array = arguments[n];
    bool fits = array.element == parameter.element && array.shape.size() == parameter.shape.size();
    int64_t bytes = array.element;
    for (size_t axis = 0; fits && axis < array.shape.size(); ++axis) {
      const Size& size = parameter.shape[axis];
      const int64_t dim = array.shape[axis];
      bytes *= dim;
      if (size.kind == Size::kKnown) fits = dim == size.value;
      if (size.kind != Size::kSymbol) continue;
      const bool is_first = std::find(symbols.begin(), symbols.end(), size.value) == symbols.end();
      if (is_first) {
        symbols.push_back(size.value);
        Number(size.value) = dim;
      }
      fits = fits && Number(size.value) == dim;
    }
    if (!fits) return Fail(kOfArguments, absl::StrCat("argument ", n, " is none that it takes"));
    buffers_[parameter.buffer] = static_cast<char*>(array.data);
    bytes_[parameter.buffer] = bytes;
  }
  return true;
}

bool Task::Execute(int64_t from) {
  const Instruction* const code = running_.program().code.data();
  const Compute* const computes = running_.computes();
  char* const* const buffers = buffers_.data();
  for (int64_t at = from;;) {
    const Instruction& i = code[at];
    if (const Compute compute = computes[at]; compute != nullptr) {
      compute(i, buffers);
      ++at;
      continue;
    }
    switch (i.op) {
      case kEnd:
        return true;
      case kMove:
        Copy(At(buffers, i.to), At(buffers, i.a), i.lanes);
        ++at;
        break;
      case kLoad: {
        const char* const there = Piece(i, i.lanes);
        if (there == nullptr) return Outside();
        Copy(At(buffers, i.to), there, i.lanes << (i.kind / 2));
        ++at;
        break;
      }
      case kLoadSpread: {
        const char* const there = Piece(i, 1);
        if (there == nullptr) return Outside();
        Repeat(At(buffers, i.to), there, i.lanes, i.kind / 2);
        ++at;
        break;
      }
      case kStore: {
        char* const there = Piece(i, i.lanes);
        if (there == nullptr) return Outside();
        Copy(there, At(buffers, i.to), i.lanes << (i.kind / 2));
        ++at;
        break;
      }
      case kLoadApart:
      case kGather:
        if (!Move(i, /*store=*/false, i.to, i.a, i.b)) return Outside();
        ++at;
        break;
      case kStoreApart:
      case kScatter:
        if (!Move(i, /*store=*/true, i.to, i.a, i.b)) return Outside();
        ++at;
        break;
      case kLoop: {
        const int64_t low = Number(i.a);
        const int64_t end = low + Number(i.b);
        Number(i.to) = low;
        Number(i.c) = end;
        at += low < end ? 1 : i.extra;
        break;
      }
      case kNext:
        if (!Spend(-i.extra)) return false;
        at += ++Number(i.to) < Number(i.a) ? i.extra : 1;
        break;
      case kJump:
        at += i.extra;
        break;
      case kJumpUnless:
        at += Word<uint8_t>(i.to) ? 1 : i.extra;
        break;
      case kCall:
        calls_.push_back(at + 1);
        at = running_.program().functions[i.extra];
        break;
      case kReturn:
        at = calls_.back();
        calls_.pop_back();
        break;
      default:
        if (!Control(i, at)) return false;
    }
  }
}

bool Task::Control(const Instruction& i, int64_t& at) {
  const int64_t body = at + 1;
  at += i.op == kParallel || i.op == kTeam ? i.extra : 1;
  switch (i.op) {
    case kAllocate:
      return Allocate(i);
    case kFill:
      std::memset(At(buffers_.data(), i.to), kNothing, i.extra);
      return true;
    case kAssert:
      return Word<uint8_t>(i.to) || Refuse(i);
    case kParallel:
      return Share(i, body);
    case kTeam:
      return barrier_ == nullptr ? Launch(body, nullptr) : Execute(body);
    case kMeet:
      return barrier_ == nullptr || barrier_->Wait();
    default:
      return Fail(kOwn, absl::StrCat("there is no instruction ", i.op));
  }
}

bool Task::Allocate(const Instruction& i) {
  const int64_t buffer = i.to;
  const int64_t count = Number(i.a);
  if (count < 0 || count > kMostBytes / i.extra) {
    return Fail(kOwn, absl::StrCat("a buffer of ", count, " elements"));
  }
  const int64_t bytes = count * i.extra;
  auto found =
      std::find_if(own_.begin(), own_.end(), [&](const auto& one) { return one.first == buffer; });
  if (found == own_.end()) found = own_.insert(own_.end(), {buffer, nullptr});
  if (found->second == nullptr || bytes_[buffer] != bytes) found->second = NewMemory(bytes);
  if (found->second == nullptr) {
    return Fail(kOwn, absl::StrCat("there is no memory for ", bytes, " bytes"));
  }
  std::memset(found->second.get(), kNothing, bytes);
  buffers_[buffer] = found->second.get();
  bytes_[buffer] = bytes;
  return true;
}

bool Task::Refuse(const Instruction& i) {
  const auto& messages = running_.program().messages;
  return Fail(std::string(messages[i.extra]), std::string(messages[i.extra + 1]));
}

// A parallel loop: a part of it in each thread of a team that is there, or of one that begins here.
bool Task::Share(const Instruction& i, int64_t body) {
  if (in_team_) return RunPart(i, body, number_, count_);
  if (barrier_ != nullptr) return RunPart(i, body, 0, 1);
  return Launch(body, &i);
}

// The part of a parallel loop that LLVM's code of it has a task run.
bool Task::RunPart(const Instruction& i, int64_t body, int number, int count) {
  const int64_t low = Number(i.a);
  const int64_t extent = Number(i.b);
  const int64_t step = (extent + count - 1) / count;
  const int64_t begin = low + std::min(extent, number * step);
  const int64_t end = low + std::min(extent, (number + 1) * step);
  for (int64_t n = begin; n < end; ++n) {
    Number(i.to) = n;
    if (!Execute(body) || !Spend(i.extra)) return false;
  }
  return true;
}

bool Task::Launch(int64_t body, const Instruction* loop) {
  Loop own(*this, body, loop);
  if (!running_.team().Run(own)) {
    return Fail(kOwn, "the tasks of a loop do not meet at the same barriers");
  }
  return !running_.failed();
}

bool Task::Move(const Instruction& i, bool store, Place words, Place index, Place buffer) {
  const int64_t shift = i.kind / 2;
  const int64_t bytes = int64_t{1} << shift;
  const bool anywhere = i.op == kGather || i.op == kScatter;
  const int64_t step = anywhere ? 0 : Number(i.c);
  char* here = At(buffers_.data(), words);
  for (int64_t n = 0; n < i.lanes; ++n, here += bytes) {
    const int64_t element = anywhere ? Word<int64_t>(index + 8 * n) : Number(index) + n * step;
    char* const there = Elements(buffer, element * i.extra, 1, shift);
    if (there == nullptr) return false;
    std::memcpy(store ? there : here, store ? here : there, bytes);
  }
  return true;
}

}  // namespace

bool Run(const Program& program, absl::Span<const Array> arguments, int64_t steps, FixedTeam& team,
         tvm_abi::Error* error) {
  Running running(program, steps, team);
  Task task(running);
  if (!task.has_memory()) {
    *error = {kOwn, kNoFrame};
    return false;
  }
  if (task.Take(arguments) && task.Execute(0)) return true;
  *error = running.error();
  return false;
}

}  // namespace words
}  // namespace composite
