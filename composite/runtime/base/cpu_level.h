// The level that this CPU has, as kernels are compiled for levels. There are those of x86-64, and
// one of 64-bit ARM, "aarch64", which is 0 there.
#ifndef COMPOSITE_RUNTIME_BASE_CPU_LEVEL_H_
#define COMPOSITE_RUNTIME_BASE_CPU_LEVEL_H_

#include <string>

namespace composite {

// 0 is x86-64, 4 is x86-64-v4-bf16; -1: another architecture, or for a name, none of a level.
int LevelOfCpu();
int LevelOf(const std::string& isa);

// Why code that was built for `isa` may not run on a CPU of `level`: the CPU lacks it, or the
// environment says to do without (COMPOSITE_ISA names the highest level that may run). Empty: it
// may.
std::string ExcludedLevel(const std::string& isa, int level);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_BASE_CPU_LEVEL_H_
