/* Calls a module with strings, and prints what it returns: no Python.
 *
 *     words MODULE COLUMNS [LIBRARY]
 *
 * LIBRARY defines ops that the module runs in TensorFlow.
 * Each line of standard input is a call: words between tabs, in rows of COLUMNS, or in one dim if
 * that is 0. It is answered by a line of the numbers of the first output, float32. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "composite/runtime/hybrid_c_api.h"
#include "tensorflow/c/c_api.h"
#include "tensorflow/c/tf_tstring.h"

enum { MOST = 4096 };

static TF_Tensor* parse(char* line, int columns) {
  char* words[MOST];
  int count = 0;
  line[strcspn(line, "\n")] = 0;
  for (char* next = line; next != NULL && count < MOST;) words[count++] = strsep(&next, "\t");
  const int64_t dims[] = {columns == 0 ? count : count / columns, columns};
  const size_t bytes = count * sizeof(TF_TString);
  TF_Tensor* tensor = TF_AllocateTensor(TF_STRING, dims, columns == 0 ? 1 : 2, bytes);
  TF_TString* strings = TF_TensorData(tensor);
  for (int i = 0; i < count; ++i) {
    TF_StringInit(&strings[i]);
    TF_StringCopy(&strings[i], words[i], strlen(words[i]));
  }
  return tensor;
}

static void print(const TF_Tensor* tensor) {
  const float* numbers = TF_TensorData(tensor);
  const size_t count = TF_TensorByteSize(tensor) / sizeof(float);
  for (size_t i = 0; i < count; ++i) printf(i == 0 ? "%.9g" : " %.9g", numbers[i]);
  printf("\n");
}

int main(int argc, char** argv) {
  if (argc < 3) return fprintf(stderr, "usage: words MODULE COLUMNS [LIBRARY]\n"), 2;
  if (argc > 3) {
    TF_Status* status = TF_NewStatus();
    TF_LoadLibrary(argv[3], status);
    if (TF_GetCode(status) != TF_OK) return fprintf(stderr, "%s\n", TF_Message(status)), 1;
    TF_DeleteStatus(status);
  }
  char error[1024];
  composite_hybrid* model;
  if (composite_open_hybrid(argv[1], &model, error, sizeof(error)) != 0) {
    return fprintf(stderr, "words: %s\n", error), 1;
  }
  char* line = NULL;
  size_t room = 0;
  int failures = 0;
  while (getline(&line, &room, stdin) > 0) {
    TF_Tensor *words = parse(line, atoi(argv[2])), *answer;
    if (composite_call_hybrid(model, &words, 1, &answer, 1, error, sizeof(error)) == 0) {
      print(answer);
      TF_DeleteTensor(answer);
    } else {
      fprintf(stderr, "words: %s\n", error);
      ++failures;
    }
    TF_DeleteTensor(words);
  }
  free(line);
  composite_close_hybrid(model);
  return failures == 0 ? 0 : 1;
}
