#include "memory.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static char* guarded;
static char* data;
static size_t taken[kDevices];

int MapMemory(void) {
  const size_t bytes = kDevices * DEVICE_BYTES;
  const int file = memfd_create("gpu", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, (off_t)bytes) != 0) return -1;
  guarded = mmap(NULL, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
  data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  close(file);
  return guarded == MAP_FAILED || data == MAP_FAILED ? -1 : 0;
}

void* TakeMemory(int device, size_t bytes) {
  const size_t rounded = (bytes + 255) / 256 * 256;
  const size_t before = __atomic_fetch_add(&taken[device], rounded, __ATOMIC_RELAXED);
  if (before + rounded <= DEVICE_BYTES) return guarded + (size_t)device * DEVICE_BYTES + before;
  __atomic_fetch_sub(&taken[device], rounded, __ATOMIC_RELAXED);
  return NULL;
}

size_t FreeMemory(int device) {
  return DEVICE_BYTES - __atomic_load_n(&taken[device], __ATOMIC_RELAXED);
}

void* DataOf(const void* address, size_t bytes) {
  if (bytes == 0) return NULL;
  const uintptr_t offset = (uintptr_t)address - (uintptr_t)guarded;
  if (offset >= kDevices * DEVICE_BYTES || bytes > kDevices * DEVICE_BYTES - offset) {
    fprintf(stderr, "the test device was given %p, which is no address of its memory\n", address);
    abort();
  }
  return data + offset;
}
