module attributes {tfr.module = "ops", tfr.place = "ops.py:1"} {
  func.func @Test(%arg0: !tfr.tensor {tfr.name = "x"}) -> !tfr.tensor {
    %0 = "tfr.constant"() {value = 5.000000e-01 : f64} : () -> !tfr.attr
    %1 = "tfr.binary"(%arg0, %0) {operator = "mul"} : (!tfr.tensor, !tfr.attr) -> !tfr.tensor
    %2 = "tfr.constant"() {value = 0 : i64} : () -> !tfr.attr
    %3 = "tfr.list"(%2, %2) {kind = "tuple"} : (!tfr.attr, !tfr.attr) -> !tfr.sequence
    %4 = "tfr.constant"() {value = 1 : i64} : () -> !tfr.attr
    %5 = "tfr.list"(%4, %4) {kind = "tuple"} : (!tfr.attr, !tfr.attr) -> !tfr.sequence
    %6 = "tfr.list"(%3, %5) {kind = "tuple"} : (!tfr.sequence, !tfr.sequence) -> !tfr.sequence
    %7 = "tfr.call"(%1, %6) {keywords = ["input", "paddings"], op = "Pad", operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>, stateful = false} : (!tfr.tensor, !tfr.sequence) -> !tfr.tensor
    %8 = "tfr.constant"() {value = dense<[[1.000000e+00, 2.000000e+00]]> : tensor<1x2xf32>} : () -> !tfr.tensor
    %9 = "tfr.binary"(%7, %8) {operator = "add"} : (!tfr.tensor, !tfr.tensor) -> !tfr.tensor
    %10 = "tfr.constant"() {value = #tfr.type<"float64">} : () -> !tfr.attr
    %11 = "tfr.call"(%9, %10) {keywords = ["x", "DstT"], op = "Cast", operandSegmentSizes = array<i32: 1, 0, 0, 1, 0>, stateful = false} : (!tfr.tensor, !tfr.attr) -> !tfr.tensor
    %12 = "tfr.constant"() {value = 3.1415926535897931 : f64} : () -> !tfr.attr
    %13 = "tfr.binary"(%11, %12) {operator = "mul"} : (!tfr.tensor, !tfr.attr) -> !tfr.tensor
    return %13 : !tfr.tensor
  }
}
