/* Calls a model that composite.hybrid compiled: TensorFlow and TVM's runtime, no Python.
 *
 *     classify MODULE
 *
 * MODULE is a file that HybridModule.save wrote, of a model that takes and returns one float32
 * matrix. Each line of standard input is a batch of rows, numbers between blanks; each is answered
 * by a line, or on standard error by what is wrong with it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "composite/runtime/hybrid_c_api.h"
#include "tensorflow/c/c_api.h"

enum { COLUMNS = 16 };

/* The numbers of a line, as rows. */
static TF_Tensor* parse(const char* line) {
  const size_t most = strlen(line) / 2 + COLUMNS;
  float* numbers = calloc(most, sizeof(float));
  size_t count = 0;
  char* next;
  for (const char* text = line;; text = next) {
    numbers[count] = strtof(text, &next);
    if (next == text) break;
    ++count;
  }
  const int64_t dims[] = {(int64_t)(count + COLUMNS - 1) / COLUMNS, COLUMNS};
  const size_t bytes = dims[0] * COLUMNS * sizeof(float);
  TF_Tensor* rows = TF_AllocateTensor(TF_FLOAT, dims, 2, bytes);
  memcpy(TF_TensorData(rows), numbers, bytes);
  free(numbers);
  return rows;
}

static void print(const TF_Tensor* tensor) {
  const float* numbers = TF_TensorData(tensor);
  const size_t count = TF_TensorByteSize(tensor) / sizeof(float);
  for (size_t i = 0; i < count; ++i) printf(i == 0 ? "%.9g" : " %.9g", numbers[i]);
  printf("\n");
}

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: classify MODULE\n"), 2;
  char error[1024];
  composite_hybrid* model;
  const int code = composite_open_hybrid(argv[1], &model, error, sizeof(error));
  if (code != 0) return fprintf(stderr, "classify: %s (%d)\n", error, code), 1;

  char* line = NULL;
  size_t room = 0;
  while (getline(&line, &room, stdin) > 0) {
    TF_Tensor *rows = parse(line), *answer;
    if (composite_call_hybrid(model, &rows, 1, &answer, 1, error, sizeof(error)) == 0) {
      print(answer);
      TF_DeleteTensor(answer);
    } else {
      fprintf(stderr, "classify: %s\n", error);
    }
    TF_DeleteTensor(rows);
  }
  free(line);
  composite_close_hybrid(model);
  return 0;
}
