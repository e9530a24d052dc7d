#include "composite/runtime/base/fingerprint.h"

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace composite {

void AppendDeterministic(const google::protobuf::Message& message, std::string* out) {
  google::protobuf::io::StringOutputStream stream(out);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  coded.WriteVarint32(static_cast<uint32_t>(message.ByteSizeLong()));
  message.SerializeToCodedStream(&coded);
}

// FNV-1a with a final mix: the same in every process, unlike absl::Hash.
uint64_t Fingerprint(absl::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char c : bytes) hash = (hash ^ c) * 0x100000001b3u;
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdu;
  hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53u;
  return hash ^ (hash >> 33);
}

uint64_t FingerprintOf(const google::protobuf::Message& message) {
  std::string bytes;
  AppendDeterministic(message, &bytes);
  return Fingerprint(bytes);
}

}  // namespace composite
