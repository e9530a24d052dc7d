/* A C program that depends on the libraries has their ops, without any Python. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

/* tensorflow/c/c_api.h */
typedef struct {
  const void* data;
  size_t length;
  void (*data_deallocator)(void* data, size_t length);
} TF_Buffer;
extern TF_Buffer* TF_GetAllOpList(void);

/* "", or why an op could not be registered; docs/bazel.md. */
extern const char* composite_library_gate_status(void);
extern const char* composite_library_parity_status(void);

int main(void) {
  const char* ops[] = {"GatedShift", "ScaleShift", "Parity", "CountBits"};
  const TF_Buffer* all = TF_GetAllOpList();
  for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); ++i) {
    if (!memmem(all->data, all->length, ops[i], strlen(ops[i]))) {
      fprintf(stderr, "%s is not registered\n", ops[i]);
      return 1;
    }
  }
  fprintf(stderr, "%s%s", composite_library_gate_status(), composite_library_parity_status());
  return composite_library_gate_status()[0] || composite_library_parity_status()[0];
}
