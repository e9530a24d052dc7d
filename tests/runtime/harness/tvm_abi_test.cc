// composite/runtime/launch/tvm_abi.h with kernels written by hand in the form that TVM generates.
#include "composite/runtime/launch/tvm_abi.h"

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "composite/runtime/base/stats.h"
#include "composite/runtime/launch/fixed_team.h"
#include "tests/runtime/harness/check.h"
#include "tests/runtime/harness/pools.h"

#if defined(HAVE_TVM_FFI)
#include <tvm/ffi/c_api.h>
#endif

extern "C" void TVMFFIErrorSetRaisedFromCStrParts(const char* kind, const char** parts,
                                                  int32_t count);

namespace {

using composite::tvm_abi::Any;
using composite::tvm_abi::Call;
using composite::tvm_abi::Error;
using composite::tvm_abi::FillSlots;
using composite::tvm_abi::Slots;
using composite::tvm_abi::Tensor;

struct GroupEnv {
  void* sync_handle;
  int32_t num_task;
};
using Lambda = int (*)(int, GroupEnv*, void*);

// The slots of a library whose loops have no barriers, and of one whose loops have.
int (*launch)(Lambda, void*, int);
int (*launch_team)(Lambda, void*, int);
int (*barrier)(int, GroupEnv*);
void* (*alloc)(int, int, uint64_t, int, int);
int (*free_workspace)(int, int, void*);

void Fill() {
  FillSlots({reinterpret_cast<void**>(&launch), nullptr, reinterpret_cast<void**>(&alloc),
             reinterpret_cast<void**>(&free_workspace)});
  FillSlots({reinterpret_cast<void**>(&launch_team), reinterpret_cast<void**>(&barrier), nullptr,
             nullptr});
}

int Raise(const char* kind, const char* message) {
  const char* parts[] = {"kernel: ", message};
  TVMFFIErrorSetRaisedFromCStrParts(kind, parts, 2);
  return -1;
}

Tensor* Argument(const Any* args, int i) { return static_cast<Tensor*>(args[i].v_ptr); }
float* Data(const Tensor* tensor) { return static_cast<float*>(tensor->data); }

struct Doubling {
  const Tensor* in;
  const Tensor* out;
};

int DoublePart(int task, GroupEnv* env, void* data) {
  const auto* work = static_cast<Doubling*>(data);
  const int64_t size = work->in->shape[0];
  for (int64_t i = task; i < size; i += env->num_task) {
    Data(work->out)[i] = 2 * Data(work->in)[i];
  }
  return 0;
}

int DoubleKernel(void*, const Any* args, int32_t count, Any*) {
  if (count != 2 || args[0].type_index != composite::tvm_abi::kTensorPtr) {
    return Raise("TypeError", "expected two tensors");
  }
  Doubling work{Argument(args, 0), Argument(args, 1)};
  return launch(DoublePart, &work, 0);
}

// In the library whose other loops have barriers.
int DoubleBesideTeamsKernel(void*, const Any* args, int32_t, Any*) {
  Doubling work{Argument(args, 0), Argument(args, 1)};
  return launch_team(DoublePart, &work, 0);
}

int FailInTask(int task, GroupEnv*, void*) { return task == 1 ? Raise("ValueError", "task 1") : 0; }

// Leaves with an error and two blocks that it does not free.
int FailingKernel(void*, const Any*, int32_t, Any*) {
  if (alloc(1, 0, 100, 2, 32) == nullptr || alloc(1, 0, 5000, 2, 32) == nullptr) return -1;
  return launch(FailInTask, nullptr, 3);
}

int SilentKernel(void*, const Any*, int32_t, Any*) { return -1; }

int WorkspaceKernel(void*, const Any* args, int32_t, Any*) {
  void* block = alloc(1, 0, 256, 2, 32);
  if (block == nullptr) return -1;
  Data(Argument(args, 0))[0] = reinterpret_cast<uintptr_t>(block) % 64 == 0 ? 1 : -1;
  if (free_workspace(1, 0, block) != 0) return -1;
  return free_workspace(1, 0, block) == 0 ? Raise("AssertionError", "freed twice") : -1;
}

int TeamPart(int task, GroupEnv* env, void* data) {
  float* values = static_cast<float*>(data);
  for (int step = 0; step < 20; ++step) {
    const float seen = values[(task + 1) % env->num_task];
    barrier(task, env);
    if (seen != static_cast<float>(step)) return Raise("AssertionError", "a task ran ahead");
    values[task] = static_cast<float>(step + 1);
    barrier(task, env);
  }
  return 0;
}

int TeamKernel(void*, const Any* args, int32_t, Any*) {
  return launch_team(TeamPart, Data(Argument(args, 0)), 0);
}

int TeamFailPart(int task, GroupEnv* env, void*) {
  if (task == 0) return Raise("ValueError", "left early");
  barrier(task, env);
  barrier(task, env);
  return 0;
}

int TeamFailKernel(void*, const Any*, int32_t, Any*) {
  return launch_team(TeamFailPart, nullptr, 0);
}

// Stages with barriers behind them, as the trips of a loop: what a stage reads, all tasks wrote in
// the one before.
struct Stages {
  static constexpr int kCount = 4, kFails = 1;
  int failing;                       // the task, modulo their number, that fails in stage kFails
  std::atomic<int> begun[kCount]{};  // by stage, the tasks that came to it
};

int StagesPart(int task, GroupEnv* env, void* data) {
  auto* stages = static_cast<Stages*>(data);
  if (alloc(1, 0, 100, 2, 32) == nullptr) return -1;  // not freed by a task that leaves
  for (int stage = 0; stage < Stages::kCount; ++stage) {
    ++stages->begun[stage];
    if (stage == Stages::kFails && task == stages->failing % env->num_task) {
      return Raise("IndexError", "out of range");
    }
    barrier(task, env);
  }
  return 0;
}

int StagesKernel(void*, const Any* args, int32_t, Any*) {
  return launch_team(StagesPart, Argument(args, 0)->data, 0);
}

Tensor FloatTensor(std::vector<float>& data, int64_t* size) {
  return {data.data(),
          {composite::tvm_abi::kCpu, 0},
          1,
          {composite::tvm_abi::kFloat, 32, 1},
          size,
          nullptr,
          0};
}

class CountingWorkspace : public composite::tvm_abi::Workspace {
 public:
  void* Allocate(size_t bytes) override {
    if (bytes > (size_t{1} << 40)) return nullptr;
    void* block = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    std::lock_guard<std::mutex> lock(mu_);
    held.insert(block);
    ++total;
    return block;
  }
  void Free(void* block) override {
    std::lock_guard<std::mutex> lock(mu_);
    EXPECT(held.erase(block) == 1);
    std::free(block);
  }
  std::set<void*> held;
  int total = 0;

 private:
  std::mutex mu_;
};

void StructsAreTvmFfis() {
#if defined(HAVE_TVM_FFI)
  static_assert(sizeof(Any) == sizeof(TVMFFIAny) &&
                offsetof(Any, v_ptr) == offsetof(TVMFFIAny, v_ptr));
  static_assert(sizeof(Tensor) == sizeof(DLTensor));
  static_assert(offsetof(Tensor, device) == offsetof(DLTensor, device));
  static_assert(offsetof(Tensor, ndim) == offsetof(DLTensor, ndim));
  static_assert(offsetof(Tensor, dtype) == offsetof(DLTensor, dtype));
  static_assert(offsetof(Tensor, shape) == offsetof(DLTensor, shape));
  static_assert(offsetof(Tensor, strides) == offsetof(DLTensor, strides));
  static_assert(offsetof(Tensor, byte_offset) == offsetof(DLTensor, byte_offset));
  static_assert(sizeof(composite::tvm_abi::DataType) == sizeof(DLDataType));
  namespace ours = composite::tvm_abi;
  // int{...}: the two sides are different enums.
  static_assert(int{ours::kTensorPtr} == int{kTVMFFIDLTensorPtr} &&
                int{ours::kNone} == int{kTVMFFINone});
  static_assert(int{ours::kCpu} == int{kDLCPU} && int{ours::kCuda} == int{kDLCUDA});
  static_assert(int{ours::kInt} == int{kDLInt} && int{ours::kUInt} == int{kDLUInt});
  static_assert(int{ours::kFloat} == int{kDLFloat} && int{ours::kBfloat} == int{kDLBfloat});
  static_assert(int{ours::kBool} == int{kDLBool});
#else
  std::printf("   tvm-ffi is not installed: its headers were not compared\n");
#endif
}

void KernelRunsOnThePool() {
  ThreadPool pool(3);
  std::vector<float> in(1000), out(1000);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  int64_t size = 1000;
  Error error;
  for (composite::Pool* p : std::vector<composite::Pool*>{&pool, nullptr}) {
    out.assign(1000, -1);
    Tensor tensors[] = {FloatTensor(in, &size), FloatTensor(out, &size)};
    EXPECT(Call(DoubleKernel, {p, nullptr}, tensors, 2, &error));
    for (size_t i = 0; i < in.size(); ++i) EXPECT(out[i] == 2 * in[i]);
  }
}

void ErrorsAreCarriedToTheCaller() {
  ThreadPool pool(3);
  CountingWorkspace workspace;
  for (int i = 0; i < 50; ++i) {
    Error error;
    EXPECT(!Call(FailingKernel, {&pool, &workspace}, nullptr, 0, &error));
    EXPECT(error.kind == "ValueError" && error.message == "kernel: task 1");
  }
  EXPECT(workspace.total == 100 && workspace.held.empty());
  Error error;
  EXPECT(!Call(SilentKernel, {}, nullptr, 0, &error));
  EXPECT(!error.message.empty() && error.kind.empty());
}

void WorkspaceIsCheckedAndAligned() {
  std::vector<float> out(1);
  int64_t size = 1;
  CountingWorkspace counting;
  for (composite::tvm_abi::Workspace* workspace :
       std::vector<composite::tvm_abi::Workspace*>{&counting, nullptr}) {
    Tensor tensors[] = {FloatTensor(out, &size)};
    Error error;
    EXPECT(!Call(WorkspaceKernel, {nullptr, workspace}, tensors, 1, &error));
    EXPECT(error.message == "a kernel freed workspace that it does not hold");
    EXPECT(out[0] == 1);
  }
  EXPECT(counting.held.empty());
}

void BarriersMeet() {
  ThreadPool pool(3, /*spin=*/true);
  for (int i = 0; i < 100; ++i) {
    std::vector<float> values(8);
    int64_t size = 8;
    Tensor tensors[] = {FloatTensor(values, &size)};
    Error error;
    EXPECT(Call(TeamKernel, {&pool, nullptr}, tensors, 1, &error));
    EXPECT(!Call(TeamFailKernel, {&pool, nullptr}, tensors, 1, &error));
    EXPECT(error.message == "kernel: left early");
  }
}

void NobodyGoesOnWithoutATaskThatFailed() {
  for (int threads = 1; threads <= 4; ++threads) {
    ThreadPool pool(threads, /*spin=*/true);
    composite::FixedTeam team(threads);
    for (int round = 0; round < 100; ++round) {
      Stages stages{round};
      CountingWorkspace workspace;
      Tensor tensor{};
      tensor.data = &stages;
      Error error;
      composite::tvm_abi::Host host{&pool, &workspace};
      if (round % 2 == 0) host.team = &team;
      EXPECT(!Call(StagesKernel, host, &tensor, 1, &error));
      EXPECT(error.kind == "IndexError" && error.message == "kernel: out of range");
      EXPECT(stages.begun[Stages::kFails] > 0 && workspace.total > 0 && workspace.held.empty());
      for (int later = Stages::kFails + 1; later < Stages::kCount; ++later) {
        EXPECT(stages.begun[later] == 0);
      }
    }
  }
}

void OnlyBarriersNeedATeam() {
  ThreadPool pool(3);
  std::vector<float> in(1000, 1), out(1000);
  int64_t size = 1000;
  Error error;
  for (bool barriers : {true, false}) {
    const composite::Stats& stats = composite::GlobalStats();
    const int64_t launches = stats.parallel_launches, teams = stats.team_launches;
    out.assign(1000, -1);
    Tensor tensors[] = {FloatTensor(in, &size), FloatTensor(out, &size)};
    EXPECT(Call(DoubleBesideTeamsKernel, {&pool, nullptr, barriers}, tensors, 2, &error));
    EXPECT(out == std::vector<float>(1000, 2));
    EXPECT(stats.parallel_launches - launches == 1);
    EXPECT(stats.team_launches - teams == (barriers ? 1 : 0));
  }
}

void ManyArguments() {
  const auto kernel = [](void*, const Any* args, int32_t count, Any*) {
    float sum = 0;
    for (int i = 0; i + 1 < count; ++i) sum += Data(Argument(args, i))[0];
    Data(Argument(args, count - 1))[0] = sum;
    return 0;
  };
  std::vector<std::vector<float>> data(41, std::vector<float>{1});
  int64_t size = 1;
  std::vector<Tensor> tensors;
  for (auto& one : data) tensors.push_back(FloatTensor(one, &size));
  Error error;
  EXPECT(Call(kernel, {}, tensors.data(), 41, &error));
  EXPECT(data[40][0] == 40);
}

}  // namespace

int main(int argc, char** argv) {
  Fill();
  return RunTests(
      {{"structs_are_tvm_ffis", StructsAreTvmFfis},
       {"kernel_runs_on_the_pool", KernelRunsOnThePool},
       {"errors_are_carried_to_the_caller", ErrorsAreCarriedToTheCaller},
       {"workspace_is_checked_and_aligned", WorkspaceIsCheckedAndAligned},
       {"barriers_meet", BarriersMeet},
       {"nobody_goes_on_without_a_task_that_failed", NobodyGoesOnWithoutATaskThatFailed},
       {"only_barriers_need_a_team", OnlyBarriersNeedATeam},
       {"many_arguments", ManyArguments}},
      argc, argv);
}
