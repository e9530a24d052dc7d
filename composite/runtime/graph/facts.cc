#include "composite/runtime/graph/facts.h"

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_util.h"
#include "tensorflow/core/framework/types.h"

namespace composite {
namespace {

// Strings have no flat bytes; their proto does.
void AppendContent(const tensorflow::Tensor& tensor, std::string* key) {
  const int64_t rank = tensor.dims();
  key->append(reinterpret_cast<const char*>(&rank), sizeof(rank));
  for (int i = 0; i < tensor.dims(); ++i) {
    const int64_t size = tensor.dim_size(i);
    key->append(reinterpret_cast<const char*>(&size), sizeof(size));
  }
  if (tensorflow::DataTypeCanUseMemcpy(tensor.dtype())) {
    const absl::string_view bytes = tensor.tensor_data();
    key->append(bytes.data(), bytes.size());
    return;
  }
  tensorflow::TensorProto proto;
  tensor.AsProtoField(&proto);
  absl::StrAppend(key, proto.ByteSizeLong(), ":", proto.SerializeAsString());
}

}  // namespace

int64_t FactValue(absl::Span<const InputFact> facts, int input, int what) {
  if (input < 0 || input >= static_cast<int>(facts.size())) return -1;
  const InputFact& fact = facts[input];
  switch (what) {
    case ReadFact::kRank:
      return fact.shape.dims();
    case ReadFact::kConstant:
      return fact.constant == nullptr ? -1 : 0;
    default:
      return what < fact.shape.dims() ? fact.shape.dim_size(what) : -1;
  }
}

int64_t FactReader::Read(int input, int what) {
  auto [it, is_new] = reads_.try_emplace({input, what}, 0);
  if (is_new) it->second = FactValue(facts_, input, what);
  return it->second;
}

std::vector<ReadFact> FactReader::Reads() const {
  std::vector<ReadFact> reads;
  for (const auto& [key, value] : reads_) {
    ReadFact read{key.first, key.second, value, {}};
    if (read.what == ReadFact::kConstant && value >= 0) {
      // A copy: the caller's buffer may be written again once its step is over.
      read.tensor = tensorflow::tensor::DeepCopy(*facts_[read.input].constant);
    }
    reads.push_back(std::move(read));
  }
  return reads;
}

std::string ReadsKey(absl::Span<const ReadFact> reads, absl::Span<const InputFact> facts) {
  std::string key;
  for (const ReadFact& read : reads) {
    const int64_t value = FactValue(facts, read.input, read.what);
    key.append(reinterpret_cast<const char*>(&value), sizeof(value));
    if (read.what == ReadFact::kConstant && value >= 0) {
      AppendContent(*facts[read.input].constant, &key);
    }
  }
  return key;
}

bool Match(absl::Span<const ReadFact> reads, absl::Span<const InputFact> facts) {
  for (const ReadFact& read : reads) {
    const int64_t value = FactValue(facts, read.input, read.what);
    if (value != read.value) return false;
    if (read.what != ReadFact::kConstant || value < 0) continue;
    const tensorflow::Tensor& now = *facts[read.input].constant;
    std::string a, b;
    AppendContent(now, &a);
    AppendContent(read.tensor, &b);
    if (a != b) return false;
  }
  return true;
}

}  // namespace composite
