#include "stream.h"

#include <pthread.h>
#include <stdlib.h>

#include "memory.h"

// One mutex for all streams and events, and one condition for all that anybody waits for: this is
// no place to save time.
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool kernels_held = false;
static struct SP_Stream_st* streams = NULL;

struct Task {
  struct Task* next;
  Work work;
  void* argument;
  bool is_kernel;
};

struct SP_Stream_st {
  struct SP_Stream_st* next;
  int device;
  pthread_t thread;
  struct Task* first;
  struct Task** last;
  long given, done;
  bool stopped;
};

struct SP_Event_st {
  int owners;  // who made it, and the tasks that name it
  long recorded, completed;
};

static void* RunStream(void* argument) {
  SP_Stream stream = argument;
  pthread_mutex_lock(&mu);
  for (;;) {
    struct Task* task = stream->first;
    if (task == NULL && stream->stopped) break;
    if (task == NULL || (task->is_kernel && kernels_held)) {
      pthread_cond_wait(&changed, &mu);
      continue;
    }
    stream->first = task->next;
    if (stream->first == NULL) stream->last = &stream->first;
    pthread_mutex_unlock(&mu);
    task->work(task->argument);
    free(task);
    pthread_mutex_lock(&mu);
    ++stream->done;
    pthread_cond_broadcast(&changed);
  }
  pthread_mutex_unlock(&mu);
  return NULL;
}

SP_Stream NewStream(int device) {
  SP_Stream stream = calloc(1, sizeof(*stream));
  stream->device = device;
  stream->last = &stream->first;
  pthread_mutex_lock(&mu);
  stream->next = streams;
  streams = stream;
  pthread_mutex_unlock(&mu);
  pthread_create(&stream->thread, NULL, RunStream, stream);
  return stream;
}

void DeleteStream(SP_Stream stream) {
  pthread_mutex_lock(&mu);
  stream->stopped = true;
  SP_Stream* place = &streams;
  while (*place != stream) place = &(*place)->next;
  *place = stream->next;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mu);
  pthread_join(stream->thread, NULL);
  free(stream);
}

int DeviceOf(SP_Stream stream) { return stream->device; }

static void Give(SP_Stream stream, Work work, void* argument, bool is_kernel) {
  struct Task* task = malloc(sizeof(*task));
  *task = (struct Task){NULL, work, argument, is_kernel};
  pthread_mutex_lock(&mu);
  *stream->last = task;
  stream->last = &task->next;
  ++stream->given;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mu);
}

void Enqueue(SP_Stream stream, Work work, void* argument) { Give(stream, work, argument, false); }

void EnqueueKernel(SP_Stream stream, Work work, void* argument) {
  Give(stream, work, argument, true);
}

void WaitForStream(SP_Stream stream) {
  pthread_mutex_lock(&mu);
  const long given = stream->given;
  while (stream->done < given) pthread_cond_wait(&changed, &mu);
  pthread_mutex_unlock(&mu);
}

static bool IsBusy(int device) {
  for (SP_Stream stream = streams; stream != NULL; stream = stream->next) {
    if (stream->device == device && stream->done < stream->given) return true;
  }
  return false;
}

void WaitForAllStreams(int device) {
  pthread_mutex_lock(&mu);
  while (IsBusy(device)) pthread_cond_wait(&changed, &mu);
  pthread_mutex_unlock(&mu);
}

void HoldKernels(bool held) {
  pthread_mutex_lock(&mu);
  kernels_held = held;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mu);
}

// ---- events -------------------------------------------------------------------------------------

SP_Event NewEvent(void) {
  SP_Event event = calloc(1, sizeof(*event));
  event->owners = 1;
  return event;
}

static void Leave(SP_Event event) {
  if (--event->owners == 0) free(event);
}

void DeleteEvent(SP_Event event) {
  pthread_mutex_lock(&mu);
  Leave(event);
  pthread_mutex_unlock(&mu);
}

// A task of an event: what it is about, and the record that it completes or waits for.
struct Mark {
  SP_Event event;
  long record;
};

static struct Mark* NewMark(SP_Event event, bool records) {
  struct Mark* mark = malloc(sizeof(*mark));
  pthread_mutex_lock(&mu);
  ++event->owners;
  if (records) ++event->recorded;
  *mark = (struct Mark){event, event->recorded};
  pthread_mutex_unlock(&mu);
  return mark;
}

static void Complete(void* argument) {
  struct Mark* mark = argument;
  pthread_mutex_lock(&mu);
  if (mark->event->completed < mark->record) mark->event->completed = mark->record;
  Leave(mark->event);
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mu);
  free(mark);
}

static void Await(void* argument) {
  struct Mark* mark = argument;
  pthread_mutex_lock(&mu);
  while (mark->event->completed < mark->record) pthread_cond_wait(&changed, &mu);
  Leave(mark->event);
  pthread_mutex_unlock(&mu);
  free(mark);
}

void RecordEvent(SP_Stream stream, SP_Event event) {
  Enqueue(stream, Complete, NewMark(event, true));
}

void MakeWait(SP_Stream stream, SP_Event event) { Enqueue(stream, Await, NewMark(event, false)); }

void WaitForEvent(SP_Event event) { Await(NewMark(event, false)); }

void MakeDependent(SP_Stream dependent, SP_Stream other) {
  SP_Event event = NewEvent();
  RecordEvent(other, event);
  MakeWait(dependent, event);
  DeleteEvent(event);
}

bool IsComplete(SP_Event event) {
  pthread_mutex_lock(&mu);
  const bool complete = event->completed == event->recorded;
  pthread_mutex_unlock(&mu);
  return complete;
}
