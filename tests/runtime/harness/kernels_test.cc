// Kernels that TVM made, among them layers of an LSTM whose steps meet at barriers, many calls at
// once. harness/kernels.py writes the folder that COMPOSITE_TEST_KERNELS names.
//
// Machine code from TVM is not instrumented, so ThreadSanitizer does not see its reads and writes.
// What it relies on is done beside it by a Watch: each task reads what the caller wrote, the caller
// what each task wrote, and, at a barrier, each task what all the others wrote before it.
#include <dlfcn.h>

#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "composite/runtime/base/stats.h"
#include "composite/runtime/launch/tvm_abi.h"
#include "tests/runtime/harness/crowd.h"

namespace {

using composite::Pool;
namespace abi = composite::tvm_abi;

struct GroupEnv {
  void* sync_handle;
  int32_t num_task;
};
using Lambda = int (*)(int, GroupEnv*, void*);

// What the host put into the slots.
int (*host_launch)(Lambda, void*, int);
int (*host_barrier)(int, GroupEnv*);

constexpr int kMostTasks = 64;
std::atomic<int> largest_team{0};

struct Watch {
  Lambda lambda;
  void* data;
  int ended[kMostTasks] = {};   // by task, how many tasks there were
  int met[2][kMostTasks] = {};  // by round, odd and even, and task: the rounds so far
};

struct WatchedEnv {
  GroupEnv env;  // first: a kernel hands on a pointer to it
  Watch* watch;
  int rounds = 0;
};

int RunWatched(int task, GroupEnv* env, void* data) {
  Watch* watch = static_cast<Watch*>(data);
  WatchedEnv watched{*env, watch};
  const int result = watch->lambda(task, &watched.env, watch->data);
  watch->ended[task] = env->num_task;
  return result;
}

int WatchedLaunch(Lambda lambda, void* data, int tasks) {
  Watch watch{lambda, data};
  const int result = host_launch(RunWatched, &watch, tasks);
  const int used = watch.ended[0];
  EXPECT(0 < used && used <= kMostTasks);
  for (int task = 0; task < kMostTasks; ++task) {
    EXPECT(watch.ended[task] == (task < used ? used : 0));
  }
  return result;
}

int WatchedBarrier(int task, GroupEnv* env) {
  WatchedEnv* watched = reinterpret_cast<WatchedEnv*>(env);
  int* met = watched->watch->met[watched->rounds++ % 2];
  met[task] = watched->rounds;
  host_barrier(task, env);
  for (int i = 0; i < env->num_task; ++i) EXPECT(met[i] == watched->rounds);
  int seen = largest_team.load(std::memory_order_relaxed);
  while (seen < env->num_task &&
         !largest_team.compare_exchange_weak(seen, env->num_task, std::memory_order_relaxed)) {
  }
  return 0;
}

struct Array {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

// A kernel, the inputs of one call of it, and what TensorFlow's ops make of them.
struct Kernel {
  std::string name;
  bool barriers;
  std::vector<Array> inputs, outputs;
  abi::Function function;
};

Array ReadArray(std::istream& file) {
  size_t rank = 0, size = 1;
  EXPECT(file >> rank);
  Array array{std::vector<int64_t>(rank), {}};
  for (int64_t& dim : array.shape) {
    EXPECT(file >> dim);
    size *= dim;
  }
  array.values.resize(size);
  for (float& value : array.values) EXPECT(file >> value);
  return array;
}

void* OpenLibrary(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) std::fprintf(stderr, "%s\n", dlerror());
  EXPECT(library != nullptr);
  abi::Slots slots;
  slots.parallel_launch = static_cast<void**>(dlsym(library, abi::kParallelLaunch));
  slots.parallel_barrier = static_cast<void**>(dlsym(library, abi::kParallelBarrier));
  slots.alloc_workspace = static_cast<void**>(dlsym(library, abi::kAllocWorkspace));
  slots.free_workspace = static_cast<void**>(dlsym(library, abi::kFreeWorkspace));
  EXPECT(slots.parallel_launch != nullptr && slots.parallel_barrier != nullptr);
  abi::FillSlots(slots);
  host_launch = reinterpret_cast<int (*)(Lambda, void*, int)>(*slots.parallel_launch);
  host_barrier = reinterpret_cast<int (*)(int, GroupEnv*)>(*slots.parallel_barrier);
  *slots.parallel_launch = reinterpret_cast<void*>(&WatchedLaunch);
  *slots.parallel_barrier = reinterpret_cast<void*>(&WatchedBarrier);
  return library;
}

std::vector<Kernel> ReadKernels(const std::string& folder) {
  void* library = OpenLibrary(folder + "/kernels.so");
  std::ifstream file(folder + "/calls.txt");
  std::vector<Kernel> kernels;
  std::string name;
  while (file >> name) {
    Kernel kernel{name, false, {}, {}, nullptr};
    size_t inputs = 0, outputs = 0;
    EXPECT(file >> kernel.barriers >> inputs >> outputs);
    for (size_t i = 0; i < inputs; ++i) kernel.inputs.push_back(ReadArray(file));
    for (size_t i = 0; i < outputs; ++i) kernel.outputs.push_back(ReadArray(file));
    void* symbol = dlsym(library, (abi::kSymbolPrefix + name).c_str());
    EXPECT(symbol != nullptr);
    kernel.function = reinterpret_cast<abi::Function>(symbol);
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

abi::Tensor Describe(Array& array) {
  return {array.values.data(),
          {abi::kCpu, 0},
          static_cast<int32_t>(array.shape.size()),
          {abi::kFloat, 32, 1},
          array.shape.data(),
          nullptr,
          0};
}

std::vector<Array> Call(const Kernel& kernel, Pool* pool) {
  std::vector<Array> inputs = kernel.inputs, outputs = kernel.outputs;
  std::vector<abi::Tensor> tensors;
  for (Array& array : inputs) tensors.push_back(Describe(array));
  for (Array& array : outputs) {
    array.values.assign(array.values.size(), NAN);
    tensors.push_back(Describe(array));
  }
  abi::Error error;
  const int count = static_cast<int>(tensors.size());
  const bool ok =
      abi::Call(kernel.function, {pool, nullptr, kernel.barriers}, tensors.data(), count, &error);
  if (!ok) std::fprintf(stderr, "%s\n", error.message.c_str());
  EXPECT(ok);
  return outputs;
}

void ExpectClose(const std::vector<Array>& found, const std::vector<Array>& expected) {
  for (size_t i = 0; i < found.size(); ++i) {
    for (size_t j = 0; j < found[i].values.size(); ++j) {
      const float wanted = expected[i].values[j];
      EXPECT(std::abs(found[i].values[j] - wanted) <= 1e-4f + 1e-4f * std::abs(wanted));
    }
  }
}

// However many tasks there are, each element is computed alike.
void ExpectSame(const std::vector<Array>& found, const std::vector<Array>& alone) {
  for (size_t i = 0; i < found.size(); ++i) EXPECT(found[i].values == alone[i].values);
}

void CrowdOf(int threads, const std::vector<Kernel>& kernels) {
  std::map<const Kernel*, std::vector<Array>> alone;
  std::vector<const Kernel*> recurrent, others;
  for (const Kernel& kernel : kernels) {
    alone[&kernel] = Call(kernel, nullptr);
    ExpectClose(alone[&kernel], kernel.outputs);
    (kernel.barriers ? recurrent : others).push_back(&kernel);
  }
  EXPECT(!recurrent.empty() && !others.empty());
  largest_team = 0;
  const composite::Stats& stats = composite::GlobalStats();
  const int64_t launches = stats.parallel_launches, teams = stats.team_launches;
  const auto call_all = [&alone](const std::vector<const Kernel*>& chosen) {
    return [&alone, chosen](Pool* pool) {
      for (const Kernel* kernel : chosen) ExpectSame(Call(*kernel, pool), alone.at(kernel));
    };
  };
  Crowd(threads, 10, call_all(recurrent), call_all(others));
  EXPECT(largest_team <= threads);
  EXPECT(stats.team_launches > teams &&
         stats.parallel_launches - launches > stats.team_launches - teams);
  std::printf("   largest team: %d of %d\n", largest_team.load(), threads);
}

}  // namespace

int main(int argc, char** argv) {
  const char* folder = std::getenv("COMPOSITE_TEST_KERNELS");
  EXPECT(folder != nullptr);
  const std::vector<Kernel> kernels = ReadKernels(folder);
  return RunTests({{"four_threads", [&] { CrowdOf(4, kernels); }},
                   {"two_threads", [&] { CrowdOf(2, kernels); }},
                   {"one_thread", [&] { CrowdOf(1, kernels); }}},
                  argc, argv);
}
