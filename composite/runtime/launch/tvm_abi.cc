#include "composite/runtime/launch/tvm_abi.h"

#include <algorithm>
#include <csetjmp>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "composite/runtime/base/stats.h"
#include "composite/runtime/launch/fixed_team.h"
#include "composite/runtime/launch/launch.h"
#include "composite/runtime/launch/launch_team.h"

namespace composite {
namespace tvm_abi {
namespace {

static_assert(sizeof(Any) == 16 && offsetof(Any, v_ptr) == 8, "TVMFFIAny");
static_assert(sizeof(Tensor) == 48 && offsetof(Tensor, shape) == 24, "DLTensor");

constexpr int kInlineArguments = 16;

// TVMParallelGroupEnv and FTVMParallelLambda of <tvm/runtime/c_backend_api.h>.
struct GroupEnv {
  void* sync_handle;
  int32_t num_task;
};
using Lambda = int (*)(int task_id, GroupEnv* env, void* data);

// The host of one call of a kernel. It tracks the buffers that the kernel holds, since generated
// code does not free them when it raises an error.
class CallScope {
 public:
  explicit CallScope(const Host& host) : host_(host) {}
  ~CallScope() {
    for (void* block : blocks_) Release(block);
  }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

  Pool* pool() const { return host_.pool; }
  bool barriers() const { return host_.barriers; }
  FixedTeam* team() const { return host_.team; }

  void* Allocate(size_t bytes) {
    void* block = host_.workspace != nullptr
                      ? host_.workspace->Allocate(std::max(bytes, kAlignment))
                      : AllocateAligned(bytes);
    if (block == nullptr) return nullptr;
    std::lock_guard<std::mutex> lock(mu_);
    blocks_.push_back(block);
    return block;
  }

  bool Free(void* block) {
    {
      std::lock_guard<std::mutex> lock(mu_);
      auto it = std::find(blocks_.rbegin(), blocks_.rend(), block);
      if (it == blocks_.rend()) return false;
      blocks_.erase(std::next(it).base());
    }
    Release(block);
    return true;
  }

 private:
  void Release(void* block) {
    if (host_.workspace != nullptr) {
      host_.workspace->Free(block);
    } else {
      std::free(block);
    }
  }

  const Host& host_;
  std::mutex mu_;
  std::vector<void*> blocks_;
};

// Calls from a kernel do not name the host, so it is a thread-local. Workers get the caller's host.
thread_local CallScope* current = nullptr;
thread_local Error raised;

class CurrentScope {
 public:
  explicit CurrentScope(CallScope* scope) : outer_(std::exchange(current, scope)) {}
  ~CurrentScope() { current = outer_; }
  CurrentScope(const CurrentScope&) = delete;
  CurrentScope& operator=(const CurrentScope&) = delete;

 private:
  CallScope* outer_;
};

void Raise(const char* kind, std::string message) {
  raised.kind = kind;
  raised.message = std::move(message);
}

// Runs code of a library and raises what it throws. Returns 0, or nonzero if an error was raised.
template <typename Code>
int Guarded(Code code) {
  try {
    return code();
  } catch (const std::exception& error) {
    Raise("RuntimeError", std::string("it threw: ") + error.what());
  } catch (...) {
    Raise("RuntimeError", "it threw what is no std::exception");
  }
  return -1;
}

// An error is recorded on the thread that raised it, and has to be passed to the thread that
// launched the loop. The first error is kept.
class Failure {
 public:
  void Keep() {
    std::lock_guard<std::mutex> lock(mu_);
    if (!failed_) error_ = std::move(raised);
    failed_ = true;
  }
  int Return() {
    if (!failed_) return 0;
    raised = std::move(error_);
    return -1;
  }

 private:
  std::mutex mu_;
  bool failed_ = false;
  Error error_;
};

class KernelLoop : public Loop {
 public:
  KernelLoop(Lambda lambda, void* data) : scope_(current), lambda_(lambda), data_(data) {}

  void Run(int task, int tasks) override {
    CurrentScope on_this_thread(scope_);
    GroupEnv env{nullptr, tasks};
    if (Guarded([&] { return lambda_(task, &env, data_); }) != 0) failure.Keep();
  }
  const void* code() const override { return reinterpret_cast<const void*>(lambda_); }

  Failure failure;

 private:
  CallScope* scope_;
  Lambda lambda_;
  void* data_;
};

// What the handle of a task of a team points to.
struct Member {
  Barrier* barrier;
  std::jmp_buf leave;
};

class KernelTeamLoop : public TeamLoop {
 public:
  KernelTeamLoop(Lambda lambda, void* data) : scope_(current), lambda_(lambda), data_(data) {}

  void Run(int task, int tasks, Barrier& barrier) override {
    CurrentScope on_this_thread(scope_);
    Member member{&barrier, {}};
    GroupEnv env{&member, tasks};
    // Generated code ignores the result of its barrier and then reads what the other tasks wrote,
    // so a task whose barrier failed is unwound. The frames in between are generated code, which
    // has nothing to destroy; the workspace belongs to the call.
    if (setjmp(member.leave) != 0) return;
    if (Guarded([&] { return lambda_(task, &env, data_); }) == 0) return;
    failure.Keep();
    barrier.Break();
  }
  const void* code() const override { return reinterpret_cast<const void*>(lambda_); }

  Failure failure;

 private:
  CallScope* scope_;
  Lambda lambda_;
  void* data_;
};

Pool* CurrentPool() { return current != nullptr ? current->pool() : nullptr; }

FixedTeam* CurrentTeam() { return current != nullptr ? current->team() : nullptr; }

int LaunchOn(FixedTeam* team, Lambda lambda, void* data) {
  KernelTeamLoop loop(lambda, data);
  if (team->Run(loop)) return loop.failure.Return();
  Raise("RuntimeError", "a task ended while others waited for it at a barrier");
  return -1;
}

// TVMBackendParallelLaunch. With `tasks` = 0 the host chooses their number.
int ParallelLaunch(Lambda lambda, void* data, int tasks) {
  if (FixedTeam* team = CurrentTeam()) return LaunchOn(team, lambda, data);
  Count(GlobalStats().parallel_launches);
  KernelLoop loop(lambda, data);
  Launch(CurrentPool(), tasks, loop);
  return loop.failure.Return();
}

// The same in a library with barriers. A loop with a barrier is right for any number of tasks.
int ParallelLaunchTeam(Lambda lambda, void* data, int tasks) {
  if (FixedTeam* team = CurrentTeam()) return LaunchOn(team, lambda, data);
  if (current != nullptr && !current->barriers()) return ParallelLaunch(lambda, data, tasks);
  Count(GlobalStats().parallel_launches);
  Count(GlobalStats().team_launches);
  KernelTeamLoop loop(lambda, data);
  Pool* const pool = CurrentPool();
  if (LaunchTeam(pool, loop) < (pool == nullptr ? 1 : pool->size())) {
    Count(GlobalStats().short_teams);
  }
  return loop.failure.Return();
}

// TVMBackendParallelBarrier.
int ParallelBarrier(int, GroupEnv* env) {
  auto* member = static_cast<Member*>(env->sync_handle);
  if (!member->barrier->Wait()) std::longjmp(member->leave, 1);
  return 0;
}

void* AllocWorkspace(int device_type, int, uint64_t bytes, int, int) {
  if (current == nullptr || device_type != kCpu) {
    Raise("RuntimeError", "a kernel asked for workspace outside of a call, or not on the CPU");
    return nullptr;
  }
  void* block = current->Allocate(bytes);
  if (block == nullptr)
    Raise("MemoryError", "no memory for " + std::to_string(bytes) + " bytes of workspace");
  return block;
}

int FreeWorkspace(int, int, void* block) {
  if (current != nullptr && current->Free(block)) return 0;
  Raise("RuntimeError", "a kernel freed workspace that it does not hold");
  return -1;
}

}  // namespace

void* AllocateAligned(size_t bytes) {
  // The size must be a multiple of the alignment, and not 0, for which null could be returned.
  return std::aligned_alloc(kAlignment,
                            std::max(kAlignment, (bytes + kAlignment - 1) & ~(kAlignment - 1)));
}

bool Call(Function function, const Host& host, Tensor* tensors, int count, Error* error) {
  Any inline_arguments[kInlineArguments];
  std::vector<Any> many;
  Any* arguments = inline_arguments;
  if (count > kInlineArguments) {
    many.resize(count);
    arguments = many.data();
  }
  for (int i = 0; i < count; ++i) {
    arguments[i].type_index = kTensorPtr;
    arguments[i].zero_padding = 0;
    arguments[i].v_ptr = &tensors[i];
  }
  Any result{kNone, 0, {0}};
  CallScope scope(host);
  CurrentScope on_this_thread(&scope);
  if (Guarded([&] { return function(nullptr, arguments, count, &result); }) == 0) return true;
  *error = std::exchange(raised, Error());
  if (error->message.empty()) error->message = "the kernel failed and gave no reason";
  return false;
}

void FillSlots(const Slots& slots) {
  if (slots.parallel_launch != nullptr) {
    *slots.parallel_launch = slots.parallel_barrier != nullptr
                                 ? reinterpret_cast<void*>(&ParallelLaunchTeam)
                                 : reinterpret_cast<void*>(&ParallelLaunch);
  }
  if (slots.parallel_barrier != nullptr) {
    *slots.parallel_barrier = reinterpret_cast<void*>(&ParallelBarrier);
  }
  if (slots.alloc_workspace != nullptr) {
    *slots.alloc_workspace = reinterpret_cast<void*>(&AllocWorkspace);
  }
  if (slots.free_workspace != nullptr) {
    *slots.free_workspace = reinterpret_cast<void*>(&FreeWorkspace);
  }
}

void RaiseParts(const char* kind, const char** parts, int32_t count) {
  std::string message;
  for (int32_t i = 0; i < count; ++i) {
    if (parts[i] != nullptr) message += parts[i];
  }
  Raise(kind != nullptr ? kind : "RuntimeError", std::move(message));
}

}  // namespace tvm_abi
}  // namespace composite

extern "C" void TVMFFIErrorSetRaisedFromCStrParts(const char* kind, const char** parts,
                                                  int32_t count) {
  composite::tvm_abi::RaiseParts(kind, parts, count);
}
