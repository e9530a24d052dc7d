// Names and keys that are the same in every process, whatever the order of protobuf's maps.
#ifndef COMPOSITE_RUNTIME_BASE_FINGERPRINT_H_
#define COMPOSITE_RUNTIME_BASE_FINGERPRINT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace composite {

// The length of the message and its bytes, equal for equal messages.
void AppendDeterministic(const google::protobuf::Message& message, std::string* out);

uint64_t Fingerprint(absl::string_view bytes);
uint64_t FingerprintOf(const google::protobuf::Message& message);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_BASE_FINGERPRINT_H_
