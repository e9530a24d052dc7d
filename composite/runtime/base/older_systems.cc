// TensorFlow's wheel runs with glibc 2.27 and the C++ library of GCC 7, and so does this library,
// on whatever system it is compiled. What the linker would take from newer ones is defined here,
// for this library alone: the symbols are hidden. tests/runtime/base/test_older_systems.py finds
// those that are missing.
#include <ext/atomicity.h>

#if defined(__GLIBC__) && defined(__x86_64__)
#include <pthread.h>
#include <sys/stat.h>

#include <condition_variable>
#include <mutex>
#include <new>
#include <sstream>

#define COMPOSITE_OURS(symbol) __asm__(symbol) __attribute__((visibility("hidden")))

// A function of glibc by the version of its symbol that every glibc for x86-64 has.
#define COMPOSITE_OLDER(result, name, parameters, arguments)         \
  result CompositeOlder_##name parameters;                           \
  __asm__(".symver CompositeOlder_" #name "," #name "@GLIBC_2.2.5"); \
  result CompositeOurs_##name parameters COMPOSITE_OURS(#name);      \
  result CompositeOurs_##name parameters { return CompositeOlder_##name arguments; }

extern "C" {

// Since glibc 2.34 in libc instead of libdl.
COMPOSITE_OLDER(void*, dlopen, (const char* file, int mode), (file, mode))
COMPOSITE_OLDER(void*, dlsym, (void* handle, const char* name), (handle, name))
COMPOSITE_OLDER(char*, dlerror, (), ())
COMPOSITE_OLDER(int, dlclose, (void* handle), (handle))
COMPOSITE_OLDER(int, dladdr, (const void* address, void* info), (address, info))
// Since glibc 2.29 without one of its ways to report errors.
COMPOSITE_OLDER(double, pow, (double base, double exponent), (base, exponent))

// Before glibc 2.33 an inline function that calls this one.
COMPOSITE_OLDER(int, __fxstat, (int version, int descriptor, struct stat* info),
                (version, descriptor, info))
int CompositeOursFstat(int descriptor, struct stat* info) COMPOSITE_OURS("fstat");
int CompositeOursFstat(int descriptor, struct stat* info) {
  constexpr int kVersionOfStat = 1;
  return CompositeOurs___fxstat(kVersionOfStat, descriptor, info);
}

// Since glibc 2.32: whether reference counts need no atomic operation. They do, with any thread.
char composite_single_threaded COMPOSITE_OURS("__libc_single_threaded") = 0;

// Since GCC 11.
[[noreturn]] void CompositeBadArrayLength() COMPOSITE_OURS("_ZSt28__throw_bad_array_new_lengthv");
void CompositeBadArrayLength() { throw std::bad_array_new_length(); }

// Since GCC 12 a new version of the symbol.
void CompositeConditionWait(std::condition_variable* condition, std::unique_lock<std::mutex>* lock)
    COMPOSITE_OURS("_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE");
void CompositeConditionWait(std::condition_variable* condition,
                            std::unique_lock<std::mutex>* lock) {
  pthread_cond_wait(condition->native_handle(), lock->mutex()->native_handle());
}

}  // extern "C"

// Since GCC 9; headers of XLA call it.
template std::stringstream::basic_stringstream();

#endif
