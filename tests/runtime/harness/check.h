// The least of a test framework: the harness runs where neither TensorFlow nor gtest is.
#ifndef TESTS_RUNTIME_HARNESS_CHECK_H_
#define TESTS_RUNTIME_HARNESS_CHECK_H_

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#define EXPECT(condition)                                                            \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                  \
    }                                                                                \
  } while (false)

using Tests = std::vector<std::pair<std::string, std::function<void()>>>;

// Runs all tests, or those named on the command line.
inline int RunTests(const Tests& tests, int argc, char** argv) {
  int run = 0;
  for (const auto& [name, test] : tests) {
    bool wanted = argc < 2;
    for (int i = 1; i < argc; ++i) wanted |= name == argv[i];
    if (!wanted) continue;
    test();
    std::printf("ok %s\n", name.c_str());
    ++run;
  }
  return run > 0 ? 0 : 1;
}

#endif  // TESTS_RUNTIME_HARNESS_CHECK_H_
