// A module of the test devices: kernels as functions of the host, with what a launch needs to know.
#pragma once
#include <type_traits>

#include "threads.h"

namespace composite_module {

template <class... Types>
struct Kinds {
  static constexpr char text[] = {(std::is_pointer<Types>::value ? 'p' : 's')..., '\0'};
};

template <class... Types>
const char* KindsOf(void (*)(Types...)) {
  return Kinds<Types...>::text;
}

}  // namespace composite_module

#define COMPOSITE_MODULE_FUNCTION(kernel)                                           \
  extern "C" const char* launch_##kernel(void** arguments, const unsigned* blocks,  \
                                         const unsigned* threads, unsigned dynamic, \
                                         bool resident) {                           \
    return composite_threads::Launch(kernel, arguments,                             \
                                     {{blocks[0], blocks[1], blocks[2]},            \
                                      {threads[0], threads[1], threads[2]},         \
                                      dynamic,                                      \
                                      resident},                                    \
                                     true, false);                                  \
  }                                                                                 \
  extern "C" const char* kinds_##kernel() { return composite_module::KindsOf(kernel); }
