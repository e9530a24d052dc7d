// Calls a module from several threads at once, which is built as docs/hybrid.md says.
//
//     many_calls MODULE THREADS CALLS
//
// The module takes a float32 matrix of 16 columns. Thread t calls it with t % 3 + 1 rows of its own
// numbers, CALLS times. Prints how many results differ from the thread's first one, and by how many
// KiB the process has grown since each thread had called it some times; or what is wrong.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "composite/runtime/hybrid_c_api.h"
#include "tensorflow/c/c_api.h"

namespace {

constexpr int kColumns = 16, kFirst = 200;

long Resident() {
  long total = 0, resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == nullptr || fscanf(file, "%ld %ld", &total, &resident) != 2) exit(3);
  fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

std::vector<float> Call(composite_hybrid* model, int thread) {
  const int64_t dims[] = {thread % 3 + 1, kColumns};
  const size_t count = dims[0] * kColumns;
  TF_Tensor* given = TF_AllocateTensor(TF_FLOAT, dims, 2, count * sizeof(float));
  auto* numbers = static_cast<float*>(TF_TensorData(given));
  for (size_t i = 0; i < count; ++i) numbers[i] = (i * 7 + thread) % 11 / 5.0f - 1;
  TF_Tensor* answer = nullptr;
  char error[1024];
  if (composite_call_hybrid(model, &given, 1, &answer, 1, error, sizeof(error)) != 0) {
    fprintf(stderr, "%s\n", error);
    exit(1);
  }
  std::vector<float> result(TF_TensorByteSize(answer) / sizeof(float));
  memcpy(result.data(), TF_TensorData(answer), TF_TensorByteSize(answer));
  TF_DeleteTensor(given);
  TF_DeleteTensor(answer);
  return result;
}

// How many results differ.
int CallAll(composite_hybrid* model, int threads, int calls) {
  std::vector<int> differ(threads);
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      const std::vector<float> first = Call(model, t);
      for (int i = 0; i < calls; ++i) differ[t] += Call(model, t) != first;
    });
  }
  int sum = 0;
  for (int t = 0; t < threads; ++t) {
    running[t].join();
    sum += differ[t];
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  composite_hybrid* model = nullptr;
  char error[1024];
  if (composite_open_hybrid(argv[1], &model, error, sizeof(error)) != 0) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  const int threads = atoi(argv[2]);
  int differ = CallAll(model, threads, kFirst);
  const long before = Resident();
  differ += CallAll(model, threads, atoi(argv[3]));
  printf("%d %ld\n", differ, Resident() - before);
  composite_close_hybrid(model);
  return 0;
}
