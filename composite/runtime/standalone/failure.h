// What went wrong in a room that has no absl::Status: its code and one sentence.
#ifndef COMPOSITE_RUNTIME_STANDALONE_FAILURE_H_
#define COMPOSITE_RUNTIME_STANDALONE_FAILURE_H_

#include <string>

namespace composite {
namespace standalone {

// The numbers of absl::StatusCode.
enum Code {
  kOk = 0,
  kInvalidArgument = 3,
  kNotFound = 5,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kOutOfRange = 11,
  kInternal = 13,
  kDataLoss = 15,
};

struct Failure {
  Code code = kOk;
  std::string message;

  // Returns false.
  bool Set(Code why, std::string what) {
    code = why;
    message = std::move(what);
    return false;
  }
};

}  // namespace standalone
}  // namespace composite

#endif  // COMPOSITE_RUNTIME_STANDALONE_FAILURE_H_
