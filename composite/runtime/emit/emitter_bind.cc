// Emitter::Bind: the rules by which TensorFlow's Python layer turns arguments into inputs and
// attributes, restated over OpDefs.
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/emit/emitter.h"
#include "composite/runtime/graph/not_yet.h"
#include "composite/runtime/value/constant.h"
#include "tensorflow/core/framework/op_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::AttrValue;
using tensorflow::DataType;
using tensorflow::OpDef;

// One call while it is bound. The steps run in the order of Run().
class Binder {
 public:
  Binder(const OpDef& op_def, Emitter* emitter) : op_def_(op_def), emitter_(*emitter) {
    binding_.def.set_op(op_def.name());
  }

  absl::StatusOr<Binding> Run(absl::Span<const std::string> keywords,
                              absl::Span<const Value> values) {
    TF_RETURN_IF_ERROR(Name(keywords, values));
    TF_RETURN_IF_ERROR(BindStatedAttrs());
    TF_RETURN_IF_ERROR(BindLengths());
    TF_RETURN_IF_ERROR(BindTypesOfTensors());
    TF_RETURN_IF_ERROR(BindTypesOfLiterals());
    TF_RETURN_IF_ERROR(BindDefaults());
    TF_RETURN_IF_ERROR(ConvertInputs());
    return std::move(binding_);
  }

 private:
  absl::Status Error(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(op_def_.name(), ": ", what));
  }

  const AttrValue* Bound(const std::string& attr) const {
    auto it = binding_.def.attr().find(attr);
    return it == binding_.def.attr().end() ? nullptr : &it->second;
  }

  // Sets an attribute that an input decides. Another input may have decided it before.
  absl::Status Decide(const std::string& attr, const OpDef::ArgDef& arg, const AttrValue& value) {
    if (const AttrValue* before = Bound(attr); before != nullptr) {
      if (before->type() == value.type() && before->i() == value.i()) return absl::OkStatus();
      auto show = [](const AttrValue& v) {
        return v.value_case() == AttrValue::kI ? absl::StrCat(v.i())
                                               : tensorflow::DataTypeString(v.type());
      };
      return Error(absl::StrCat("input '", arg.name(), "' has ", attr, " = ", show(value), ", but ",
                                decided_by_[attr], " has ", attr, " = ", show(*before)));
    }
    const OpDef::AttrDef* def = tensorflow::FindAttr(attr, op_def_);
    if (def == nullptr) return Error(absl::StrCat("has no attribute '", attr, "'"));
    if (absl::Status status = tensorflow::ValidateAttrValue(value, *def); !status.ok()) {
      return Error(absl::StrCat("input '", arg.name(), "': ", status.message()));
    }
    (*binding_.def.mutable_attr())[attr] = value;
    decided_by_[attr] = absl::StrCat("input '", arg.name(), "'");
    return absl::OkStatus();
  }

  absl::Status DecideType(const OpDef::ArgDef& arg, DataType type) {
    AttrValue value;
    value.set_type(type);
    return Decide(arg.type_attr(), arg, value);
  }

  absl::Status Name(absl::Span<const std::string> keywords, absl::Span<const Value> values) {
    for (size_t i = 0; i < keywords.size(); ++i) {
      if (!named_.emplace(keywords[i], values[i]).second) {
        return Error(absl::StrCat("argument '", keywords[i], "' is given twice"));
      }
    }
    size_t known = 0;
    for (const auto& arg : op_def_.input_arg()) {
      if (named_.count(arg.name()) == 0) return Error(absl::StrCat("needs '", arg.name(), "'"));
      ++known;
    }
    for (const auto& attr : op_def_.attr()) known += named_.count(attr.name());
    if (known == named_.size()) return absl::OkStatus();
    for (const std::string& name : keywords) {
      if (tensorflow::FindAttr(name, op_def_) != nullptr) continue;
      bool is_input = false;
      for (const auto& arg : op_def_.input_arg()) is_input |= arg.name() == name;
      if (!is_input) return Error(absl::StrCat("has no argument '", name, "'"));
    }
    return absl::OkStatus();
  }

  // None leaves an attribute to its default, as in tf.raw_ops.
  absl::Status BindStatedAttrs() {
    for (const OpDef::AttrDef& attr : op_def_.attr()) {
      auto it = named_.find(attr.name());
      if (it == named_.end() || it->second.is_none()) continue;
      absl::StatusOr<Value> known = emitter_.Known(it->second);
      if (!known.ok()) {
        return WithPrefix(known.status(),
                          absl::StrCat(op_def_.name(), ": attribute '", attr.name(), "': "));
      }
      absl::StatusOr<AttrValue> value = ToAttr(*known, attr);
      if (!value.ok()) return Error(value.status().message());
      (*binding_.def.mutable_attr())[attr.name()] = *std::move(value);
      decided_by_[attr.name()] = "the call";
    }
    return absl::OkStatus();
  }

  const Value& ValueOf(const OpDef::ArgDef& arg) const { return named_.at(arg.name()); }

  static bool IsList(const OpDef::ArgDef& arg) {
    return !arg.number_attr().empty() || !arg.type_list_attr().empty();
  }

  absl::Status BindLengths() {
    for (const OpDef::ArgDef& arg : op_def_.input_arg()) {
      if (!IsList(arg)) continue;
      if (ValueOf(arg).as_list() == nullptr) {
        return Error(absl::StrCat("input '", arg.name(), "' takes a list of tensors, got ",
                                  Describe(ValueOf(arg))));
      }
      if (arg.number_attr().empty()) continue;
      AttrValue length;
      length.set_i(ValueOf(arg).as_list()->size());
      TF_RETURN_IF_ERROR(Decide(arg.number_attr(), arg, length));
    }
    return absl::OkStatus();
  }

  absl::Status BindTypesOfTensors() {
    for (const OpDef::ArgDef& arg : op_def_.input_arg()) {
      if (arg.type_attr().empty()) continue;
      const DataType type = StrongType(ValueOf(arg));
      if (type != tensorflow::DT_INVALID) TF_RETURN_IF_ERROR(DecideType(arg, type));
    }
    return absl::OkStatus();
  }

  // A number beside no tensor: the attribute's default if the number can be that, else its own.
  absl::Status BindTypesOfLiterals() {
    for (const OpDef::ArgDef& arg : op_def_.input_arg()) {
      const Value& value = ValueOf(arg);
      if (!arg.type_list_attr().empty()) TF_RETURN_IF_ERROR(BindTypeList(arg));
      if (arg.type_attr().empty() || Bound(arg.type_attr()) != nullptr) continue;
      DataType type = NaturalType(value);
      if (type == tensorflow::DT_INVALID) {
        return Error(
            absl::StrCat("input '", arg.name(), "' takes a tensor, got ", Describe(value)));
      }
      const OpDef::AttrDef* attr = tensorflow::FindAttr(arg.type_attr(), op_def_);
      if (attr != nullptr && attr->has_default_value() &&
          Adopts(value, attr->default_value().type())) {
        type = attr->default_value().type();
      }
      TF_RETURN_IF_ERROR(DecideType(arg, type));
    }
    return absl::OkStatus();
  }

  absl::Status BindTypeList(const OpDef::ArgDef& arg) {
    if (Bound(arg.type_list_attr()) != nullptr) return absl::OkStatus();
    AttrValue types;
    types.mutable_list();
    for (const Value& item : *ValueOf(arg).as_list()) {
      const DataType type = NaturalType(item);
      if (type == tensorflow::DT_INVALID) {
        return Error(absl::StrCat("input '", arg.name(), "' takes tensors, got ", Describe(item)));
      }
      types.mutable_list()->add_type(type);
    }
    return Decide(arg.type_list_attr(), arg, types);
  }

  absl::Status BindDefaults() {
    for (const OpDef::AttrDef& attr : op_def_.attr()) {
      if (Bound(attr.name()) != nullptr) continue;
      if (!attr.has_default_value()) {
        return Error(absl::StrCat("attribute '", attr.name(), "' has no default and is not given"));
      }
      (*binding_.def.mutable_attr())[attr.name()] = attr.default_value();
    }
    return absl::OkStatus();
  }

  absl::Status ConvertInputs() {
    for (const OpDef::ArgDef& arg : op_def_.input_arg()) {
      const Value& value = ValueOf(arg);
      std::vector<TensorValue>& tensors = binding_.inputs.emplace_back();
      if (!IsList(arg)) {
        TF_RETURN_IF_ERROR(Convert(value, TypeOf(arg, 0), arg, &tensors));
        continue;
      }
      const Value::List& list = *value.as_list();
      if (!arg.type_list_attr().empty() &&
          Bound(arg.type_list_attr())->list().type_size() != static_cast<int>(list.size())) {
        return Error(absl::StrCat("input '", arg.name(), "' has ", list.size(), " tensors and ",
                                  Bound(arg.type_list_attr())->list().type_size(), " types"));
      }
      for (size_t i = 0; i < list.size(); ++i) {
        TF_RETURN_IF_ERROR(Convert(list[i], TypeOf(arg, i), arg, &tensors));
      }
    }
    return absl::OkStatus();
  }

  DataType TypeOf(const OpDef::ArgDef& arg, int index) const {
    if (!arg.type_attr().empty()) return Bound(arg.type_attr())->type();
    if (!arg.type_list_attr().empty()) return Bound(arg.type_list_attr())->list().type(index);
    return arg.type();
  }

  absl::Status Convert(const Value& value, DataType type, const OpDef::ArgDef& arg,
                       std::vector<TensorValue>* tensors) {
    absl::StatusOr<TensorValue> tensor = emitter_.ToTensor(value, type);
    if (!tensor.ok()) {
      return WithPrefix(tensor.status(),
                        absl::StrCat(op_def_.name(), ": input '", arg.name(), "': "));
    }
    tensors->push_back(*std::move(tensor));
    return absl::OkStatus();
  }

  const OpDef& op_def_;
  Emitter& emitter_;
  Binding binding_;
  absl::flat_hash_map<std::string, Value> named_;
  absl::flat_hash_map<std::string, std::string> decided_by_;  // for messages
};

}  // namespace

absl::StatusOr<Binding> Emitter::Bind(const OpDef& op_def, absl::Span<const std::string> keywords,
                                      absl::Span<const Value> values) {
  return Binder(op_def, this).Run(keywords, values);
}

}  // namespace composite
