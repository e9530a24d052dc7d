// What the parts of the C API share: statuses and protos into buffers, bytes into protos.
#ifndef COMPOSITE_RUNTIME_API_C_API_REPLY_H_
#define COMPOSITE_RUNTIME_API_C_API_REPLY_H_

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "composite/runtime/c_api.h"
#include "composite/runtime/graph/not_yet.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace composite {

inline int ReplyBytes(int code, absl::string_view bytes, composite_buffer* reply) {
  if (reply == nullptr) return code;
  reply->size = bytes.size();
  // One more byte, zero, so that a message is a C string as well.
  reply->data = static_cast<char*>(std::calloc(bytes.size() + 1, 1));
  if (reply->data == nullptr) {
    reply->size = 0;
    return static_cast<int>(absl::StatusCode::kResourceExhausted);
  }
  if (!bytes.empty()) std::memcpy(reply->data, bytes.data(), bytes.size());
  return code;
}

// Damaged names end up in messages; what is no UTF-8 there is shown as '?'.
inline std::string SafeText(absl::string_view text) {
  std::string safe;
  for (size_t i = 0; i < text.size();) {
    const unsigned char lead = text[i];
    const size_t length = lead < 0x80                   ? 1
                          : lead >= 0xc2 && lead < 0xe0 ? 2
                          : lead >= 0xe0 && lead < 0xf0 ? 3
                          : lead >= 0xf0 && lead < 0xf5 ? 4
                                                        : 0;
    size_t tail = 1;
    while (tail < length && i + tail < text.size() && (text[i + tail] & 0xc0) == 0x80) ++tail;
    const bool valid = length == tail;
    safe.append(valid ? text.substr(i, length) : absl::string_view("?"));
    i += valid ? length : 1;
  }
  return safe;
}

inline int ReplyStatus(const absl::Status& status, composite_buffer* reply) {
  const int code = static_cast<int>(status.code()) + (IsNotYet(status) ? COMPOSITE_NOT_YET : 0);
  return ReplyBytes(code, SafeText(status.message()), reply);
}

template <typename Message>
int ReplyProto(const absl::StatusOr<Message>& answer, composite_buffer* reply) {
  if (!answer.ok()) return ReplyStatus(answer.status(), reply);
  std::string bytes;
  bool complete = false;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    complete = answer->SerializeToCodedStream(&coded);
  }
  if (!complete) {
    return ReplyStatus(absl::InternalError("The answer is too large to serialize"), reply);
  }
  return ReplyBytes(0, bytes, reply);
}

// Runs `answer`, a callable that returns a Status or a StatusOr<proto>. What it throws
// (std::bad_alloc for a size that a damaged message gave, say) must not cross the C boundary.
template <typename Answer>
int Reply(composite_buffer* reply, Answer answer) {
  try {
    if constexpr (std::is_same_v<decltype(answer()), absl::Status>) {
      return ReplyStatus(answer(), reply);
    } else {
      return ReplyProto(answer(), reply);
    }
  } catch (const std::exception& error) {
    return ReplyStatus(absl::InternalError(error.what()), reply);
  }
}

// The same for functions that take room for a message in the place of a reply.
template <typename Work>
int Answer(char* error, size_t error_size, Work work) {
  composite_buffer message = {nullptr, 0};
  const int code = Reply(&message, work);
  if (error != nullptr && error_size > 0) {
    std::snprintf(error, error_size, "%s", message.data != nullptr ? message.data : "");
  }
  composite_free(&message);
  return code;
}

template <typename Message>
absl::StatusOr<Message> ParseRequest(const char* request, size_t size) {
  Message message;
  if (size > static_cast<size_t>(std::numeric_limits<int>::max()) ||
      (request == nullptr && size != 0) ||
      !message.ParseFromArray(request, static_cast<int>(size))) {
    return absl::InvalidArgumentError(absl::StrCat("The ", size, " bytes of the request are not a ",
                                                   absl::string_view(message.GetTypeName()),
                                                   " message; the library is cut short or "
                                                   "damaged"));
  }
  return message;
}

// An absent attribute is the type's zero.
inline const tensorflow::AttrValue& Attr(const tensorflow::NodeDef& node, const std::string& name) {
  auto it = node.attr().find(name);
  return it == node.attr().end() ? tensorflow::AttrValue::default_instance() : it->second;
}

// Runs `work`, which takes the parsed request.
template <typename Message = tensorflow::NodeDef, typename Work>
int Serve(const char* request, size_t size, composite_buffer* reply, Work work) {
  return Reply(reply, [&]() -> decltype(work(Message())) {
    absl::StatusOr<Message> message = ParseRequest<Message>(request, size);
    if (!message.ok()) return message.status();
    return work(*message);
  });
}

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_API_C_API_REPLY_H_
