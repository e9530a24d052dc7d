// The reasons of decisions as sentences, for explain and for errors.
#ifndef COMPOSITE_RUNTIME_KERNELS_DECISION_TEXT_H_
#define COMPOSITE_RUNTIME_KERNELS_DECISION_TEXT_H_

#include <string>

#include "composite/runtime/kernels/decide.h"
#include "composite/runtime/program/op_version.h"

namespace composite {

// Why the decision about a call of this version is as it is: one sentence without its full stop.
std::string Sentence(const Decision& decision, const OpVersion& version, const Caller& caller);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_KERNELS_DECISION_TEXT_H_
