#include "composite/runtime/xla/custom_call.h"

#include "xla/shape_util.h"

namespace composite {
namespace {

xla::Shape RowMajor(const xla::Shape& shape) {
  return xla::ShapeUtil::MakeShapeWithDescendingLayout(shape.element_type(), shape.dimensions());
}

}  // namespace

std::string QuotedForXla(absl::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c != '"' && c != '\\' && byte >= 0x20 && byte < 0x7f) {
      quoted.push_back(c);
    } else {
      quoted.append({'\\', kHex[byte >> 4], kHex[byte & 15]});
    }
  }
  return quoted + "\"";
}

std::vector<xla::XlaOp> AddCustomCall(xla::XlaBuilder* builder, const CustomCall& call) {
  std::vector<xla::Shape> operands, outputs;
  for (const xla::Shape& shape : call.operand_shapes) operands.push_back(RowMajor(shape));
  for (const xla::Shape& shape : call.output_shapes) outputs.push_back(RowMajor(shape));
  const xla::XlaOp made = xla::CustomCallWithLayout(
      builder, call.target, call.operands, xla::ShapeUtil::MakeTupleShape(outputs), operands,
      call.attrs, call.has_effects, {}, nullptr, xla::CustomCallSchedule::SCHEDULE_NONE,
      xla::CustomCallApiVersion::API_VERSION_TYPED_FFI);
  std::vector<xla::XlaOp> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    results.push_back(xla::GetTupleElement(made, static_cast<int64_t>(i)));
  }
  return results;
}

}  // namespace composite
