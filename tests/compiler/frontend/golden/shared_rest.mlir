module attributes {tfr.module = "ops", tfr.place = "ops.py:1"} {
  func.func @Test(%arg0: !tfr.tensor {tfr.name = "x"}, %arg1: !tfr.attr {tfr.name = "k"}) -> !tfr.tensor {
    %0 = "tfr.constant"() {value = 2 : i64} : () -> !tfr.attr
    %1 = "tfr.binary"(%arg0, %0) {operator = "mul"} : (!tfr.tensor, !tfr.attr) -> !tfr.tensor
    %2 = "tfr.constant"() {value = 0 : i64} : () -> !tfr.attr
    %3 = "tfr.compare"(%arg1, %2) {operator = "gt"} : (!tfr.attr, !tfr.attr) -> !tfr.attr
    %4 = "tfr.truth"(%3) : (!tfr.attr) -> i1
    %5 = scf.if %4 -> (!tfr.tensor) {
      %6 = "tfr.constant"() {value = 10 : i64} : () -> !tfr.attr
      %7 = "tfr.compare"(%arg1, %6) {operator = "gt"} : (!tfr.attr, !tfr.attr) -> !tfr.attr
      %8 = "tfr.truth"(%7) : (!tfr.attr) -> i1
      %9 = scf.if %8 -> (!tfr.tensor) {
        scf.yield %1 : !tfr.tensor
      } else {
        %10 = "tfr.constant"() {value = 1 : i64} : () -> !tfr.attr
        %11 = "tfr.binary"(%1, %10) {operator = "add"} : (!tfr.tensor, !tfr.attr) -> !tfr.tensor
        %12 = "tfr.cast"(%11) : (!tfr.tensor) -> !tfr.any
        %13 = func.call @rest_0(%12, %1) : (!tfr.any, !tfr.tensor) -> !tfr.tensor
        scf.yield %13 : !tfr.tensor
      } {tfr.names = ["y"]}
      scf.yield %9 : !tfr.tensor
    } else {
      %6 = "tfr.constant"() {value = 1 : i64} : () -> !tfr.attr
      %7 = "tfr.binary"(%1, %6) {operator = "sub"} : (!tfr.tensor, !tfr.attr) -> !tfr.tensor
      %8 = "tfr.cast"(%7) : (!tfr.tensor) -> !tfr.any
      %9 = func.call @rest_0(%8, %1) : (!tfr.any, !tfr.tensor) -> !tfr.tensor
      scf.yield %9 : !tfr.tensor
    } {tfr.names = ["y"]}
    return %5 : !tfr.tensor
  }
  func.func private @rest_0(%arg0: !tfr.any, %arg1: !tfr.tensor) -> !tfr.tensor {
    %0 = "tfr.call"(%arg0) {keywords = ["x"], op = "Tanh", operandSegmentSizes = array<i32: 0, 0, 0, 0, 1>, stateful = false} : (!tfr.any) -> !tfr.tensor
    %1 = "tfr.binary"(%0, %arg1) {operator = "mul"} : (!tfr.tensor, !tfr.tensor) -> !tfr.tensor
    return %1 : !tfr.tensor
  }
}
