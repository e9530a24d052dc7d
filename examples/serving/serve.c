/* Serves a SavedModel whose ops are in a library of composite.build: no Python, no TVM, no MLIR.
 *
 *     serve LIBRARY MODEL INPUT OUTPUT
 *
 * LIBRARY and MODEL are folders; INPUT and OUTPUT are ops of the model's graph, float32, the input
 * [rows, columns] (`saved_model_cli show --all` names them: serving_default_x, then
 * StatefulPartitionedCall). Each line of standard input is a batch of rows, numbers between blanks;
 * each is answered by a line. At the end it says on standard error what ran.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "composite/runtime/library_c_api.h"
#include "tensorflow/c/c_api.h"

static void fail(const char* what, const char* why) {
  fprintf(stderr, "serve: %s: %s\n", what, why);
  exit(1);
}

static void check(const TF_Status* status, const char* what) {
  if (TF_GetCode(status) != TF_OK) fail(what, TF_Message(status));
}

static void load_ops(const char* folder) {
  char error[1024];
  if (composite_load_library(folder, error, sizeof(error)) != 0) fail("cannot load the ops", error);
}

static TF_Session* load_model(const char* folder, TF_Graph* graph, TF_Status* status) {
  const char* tags[] = {"serve"};
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session =
      TF_LoadSessionFromSavedModel(options, NULL, folder, tags, 1, graph, NULL, status);
  check(status, "cannot load the model");
  TF_DeleteSessionOptions(options);
  return session;
}

static TF_Output find(TF_Graph* graph, const char* op) {
  TF_Output output = {TF_GraphOperationByName(graph, op), 0};
  if (output.oper == NULL) fail(op, "the model has no op of that name");
  if (TF_OperationOutputType(output) != TF_FLOAT) fail(op, "it is not float32");
  return output;
}

static int64_t columns_of(TF_Graph* graph, TF_Output input, const char* op, TF_Status* status) {
  int64_t dims[2] = {-1, -1};
  if (TF_GraphGetTensorNumDims(graph, input, status) != 2) fail(op, "it has not two dims");
  TF_GraphGetTensorShape(graph, input, dims, 2, status);
  check(status, op);
  if (dims[1] < 1) fail(op, "its columns vary");
  return dims[1];
}

/* The numbers of a line; NULL where it is not whole rows of them. */
static TF_Tensor* parse(const char* line, int64_t columns) {
  size_t count = 0;
  float* numbers = malloc((strlen(line) / 2 + 1) * sizeof(float));
  char* next = NULL;
  for (const char* text = line;; text = next) {
    const float number = strtof(text, &next);
    if (next == text) break;
    numbers[count++] = number;
  }
  TF_Tensor* tensor = NULL;
  if (next[strspn(next, " \t\r\n")] == 0 && count > 0 && count % columns == 0) {
    const int64_t dims[2] = {(int64_t)count / columns, columns};
    tensor = TF_AllocateTensor(TF_FLOAT, dims, 2, count * sizeof(float));
    memcpy(TF_TensorData(tensor), numbers, count * sizeof(float));
  }
  free(numbers);
  return tensor;
}

static void print(const TF_Tensor* tensor) {
  const float* numbers = TF_TensorData(tensor);
  const size_t count = TF_TensorByteSize(tensor) / sizeof(float);
  for (size_t i = 0; i < count; ++i) printf(i == 0 ? "%.9g" : " %.9g", numbers[i]);
  printf("\n");
  fflush(stdout); /* who asked waits for it */
}

int main(int count, char** args) {
  if (count != 5) fail("usage", "serve LIBRARY MODEL INPUT OUTPUT");
  TF_Status* status = TF_NewStatus();
  TF_Graph* graph = TF_NewGraph();
  load_ops(args[1]); /* before the model, whose nodes are of these ops */
  TF_Session* session = load_model(args[2], graph, status);
  const TF_Output input = find(graph, args[3]), output = find(graph, args[4]);
  const int64_t columns = columns_of(graph, input, args[3], status);

  char* line = NULL;
  size_t room = 0;
  while (getline(&line, &room, stdin) > 0) {
    TF_Tensor *rows = parse(line, columns), *answer = NULL;
    if (rows == NULL) fail("a line", "it is not whole rows of numbers");
    TF_SessionRun(session, NULL, &input, &rows, 1, &output, &answer, 1, NULL, 0, NULL, status);
    check(status, "the model");
    print(answer);
    TF_DeleteTensor(answer);
    TF_DeleteTensor(rows);
  }
  fprintf(stderr, "kernel_launches %lld, expansion_runs %lld\n",
          (long long)composite_counter("kernel_launches"),
          (long long)composite_counter("expansion_runs"));

  free(line);
  TF_CloseSession(session, status);
  TF_DeleteSession(session, status);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(status);
  return 0;
}
