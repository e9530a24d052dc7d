#include "composite/runtime/request/call_record.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/base/text.h"
#include "composite/runtime/program/node_attrs.h"
#include "composite/runtime/program/signature.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/logging.h"

namespace composite {
namespace {

using tensorflow::AttrValue;
using tensorflow::DataType;
using tensorflow::NodeDef;
using tensorflow::OpDef;

constexpr char kEnvironment[] = "COMPOSITE_RECORD";

// A part of a line; empty where JSON has no form for it.
using Json = absl::optional<std::string>;

Json Text(const std::string& text) {
  if (!IsUtf8(text)) return absl::nullopt;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      absl::StrAppend(&quoted, "\\", std::string(1, c));
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&quoted, "\\u%04x", c);
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// As Python's json has them: it reads NaN and Infinity, and tells 1.0 from 1.
Json Number(float value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  std::string text = absl::StrFormat("%.9g", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// By the name that Python has for it.
Json Dtype(int dtype) {
  switch (dtype) {
    case tensorflow::DT_FLOAT:
      return "\"float32\"";
    case tensorflow::DT_DOUBLE:
      return "\"float64\"";
    case tensorflow::DT_HALF:
      return "\"float16\"";
    default:
      return absl::StrCat("\"", tensorflow::DataTypeString(static_cast<DataType>(dtype)), "\"");
  }
}

Json Shape(const tensorflow::TensorShapeProto& shape) {
  if (shape.unknown_rank()) return "null";
  return absl::StrCat("[",
                      absl::StrJoin(shape.dim(), ", ",
                                    [](std::string* out, const auto& dim) {
                                      absl::StrAppend(
                                          out, dim.size() < 0 ? "null" : absl::StrCat(dim.size()));
                                    }),
                      "]");
}

template <typename Values, typename ToJson>
Json List(const Values& values, ToJson to_json) {
  std::vector<std::string> parts;
  for (const auto& value : values) {
    Json part = to_json(value);
    if (!part.has_value()) return absl::nullopt;
    parts.push_back(*std::move(part));
  }
  return absl::StrCat("[", absl::StrJoin(parts, ", "), "]");
}

Json Integer(int64_t value) { return absl::StrCat(value); }
Json Truth(bool value) { return value ? "true" : "false"; }

Json OfAttr(const AttrValue& value) {
  switch (value.value_case()) {
    case AttrValue::kS:
      return Text(value.s());
    case AttrValue::kI:
      return Integer(value.i());
    case AttrValue::kF:
      return Number(value.f());
    case AttrValue::kB:
      return Truth(value.b());
    case AttrValue::kType:
      return Dtype(value.type());
    case AttrValue::kShape:
      return value.shape().unknown_rank() ? absl::nullopt : Shape(value.shape());
    case AttrValue::kList:
      break;
    default:
      return absl::nullopt;
  }
  const AttrValue::ListValue& list = value.list();
  if (list.tensor_size() > 0 || list.func_size() > 0) return absl::nullopt;
  if (list.s_size() > 0) return List(list.s(), Text);
  if (list.f_size() > 0) return List(list.f(), Number);
  if (list.b_size() > 0) return List(list.b(), Truth);
  if (list.type_size() > 0) return List(list.type(), Dtype);
  if (list.shape_size() > 0) return List(list.shape(), Shape);
  return List(list.i(), Integer);
}

// "s0" is a symbol.
std::string Dim(int64_t dim) {
  return dim < 0 ? absl::StrCat("\"s", -dim - 1, "\"") : absl::StrCat(dim);
}

// The specs of all tensors, by arg: what the call says of its inputs.
absl::optional<std::map<std::string, std::string>> Inputs(const OpDef& op_def,
                                                          const NodeDef& request,
                                                          const Signature& shapes) {
  auto args = Flatten(op_def.input_arg(), tensorflow::AttrSlice(request));
  if (!args.ok() || FlatTypes(*args).size() != shapes.ranks.size()) return absl::nullopt;
  std::set<int64_t> constants;
  if (auto known = request.attr().find(kConstantsAttr); known != request.attr().end()) {
    constants.insert(known->second.list().i().begin(), known->second.list().i().end());
  }
  std::map<std::string, std::string> inputs;
  size_t tensor = 0;
  auto dim = shapes.dims.begin();
  for (const FlatArg& arg : *args) {
    std::vector<std::string> specs;
    for (const DataType type : arg.types) {
      const int rank = shapes.ranks[tensor];
      const std::string dims =
          absl::StrJoin(dim, dim + std::max(rank, 0), ", ",
                        [](std::string* out, int64_t one) { out->append(Dim(one)); });
      dim += Signature::DimsOf(rank);
      const char* mark = constants.count(tensor++) != 0 ? ", \"constant\"" : "";
      specs.push_back(absl::StrCat("[", *Dtype(type), ", [", dims, "]", mark, "]"));
    }
    inputs[arg.name] = arg.is_list ? absl::StrCat("[", absl::StrJoin(specs, ", "), "]") : specs[0];
  }
  return inputs;
}

// The lines of one file, those that it had before included.
class RecordFile {
 public:
  explicit RecordFile(std::string path) : path_(std::move(path)) {
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) {
      ends_ = !file.eof();  // with a newline
      lines_.insert(std::move(line));
    }
  }

  const std::string& path() const { return path_; }

  void Add(const std::string& line) {
    if (lines_.count(line) != 0) return;
    const std::string text = absl::StrCat(ends_ ? "" : "\n", line, "\n");
    const int file = open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    const ssize_t count = file < 0 ? -1 : write(file, text.data(), text.size());
    const int error = errno;
    if (file >= 0) close(file);
    if (count != static_cast<ssize_t>(text.size())) {
      if (!std::exchange(told_, true)) {
        LOG(WARNING) << kEnvironment << "=" << path_ << " cannot be written: "
                     << (count < 0 ? std::strerror(error) : "the disk is full");
      }
      return;
    }
    ends_ = true;
    lines_.insert(line);
  }

 private:
  const std::string path_;
  std::set<std::string> lines_;
  bool ends_ = true;
  bool told_ = false;
};

}  // namespace

absl::optional<std::string> RecordedLine(const NodeDef& request, const Signature& shapes) {
  const OpDef* op_def = nullptr;
  if (!tensorflow::OpRegistry::Global()->LookUpOpDef(request.op(), &op_def).ok()) {
    return absl::nullopt;
  }
  auto call = Inputs(*op_def, request, shapes);
  if (!call.has_value()) return absl::nullopt;
  std::set<std::string> derived;  // attributes that follow from the inputs
  for (const auto& arg : op_def->input_arg()) {
    derived.insert({arg.type_attr(), arg.number_attr(), arg.type_list_attr()});
  }
  for (const auto& declared : op_def->attr()) {
    if (derived.count(declared.name()) != 0) continue;
    Json value = OfAttr(request.attr().at(declared.name()));
    if (!value.has_value()) return absl::nullopt;
    (*call)[declared.name()] = *std::move(value);
  }
  return absl::StrCat("{\"call\": {",
                      absl::StrJoin(*call, ", ",
                                    [](std::string* out, const auto& part) {
                                      absl::StrAppend(out, "\"", part.first, "\": ", part.second);
                                    }),
                      "}, \"op\": \"", request.op(), "\"}");
}

void RecordCall(const NodeDef& request, const Signature& shapes) {
  static auto* const mu = new ForkMutex;
  static auto* const files = new std::vector<std::unique_ptr<RecordFile>>;
  const char* path = std::getenv(kEnvironment);
  if (path == nullptr || path[0] == '\0' || request.op() == kFunctionOp) return;
  const absl::optional<std::string> line = RecordedLine(request, shapes);
  if (!line.has_value()) {
    VLOG(1) << request.op() << " is not recorded: an attribute has no form in JSON";
    return;
  }
  absl::MutexLock lock(*mu);
  auto file = std::find_if(files->begin(), files->end(),
                           [&](const auto& known) { return known->path() == path; });
  if (file == files->end()) {
    file = files->insert(files->end(), std::make_unique<RecordFile>(path));
  }
  (*file)->Add(*line);
}

}  // namespace composite
