module {
  func.func @Body(%arg0: !tfr.tensor) -> !tfr.tensor {
    %0 = "tfr.constant"() {value = true} : () -> !tfr.attr
    %1 = "tfr.unary"(%0) {operator = "not"} : (!tfr.attr) -> !tfr.attr
    %2 = "tfr.truth"(%1) : (!tfr.attr) -> i1
    %3 = scf.if %2 -> (!tfr.tensor) {
      %4 = func.call @unused(%arg0) : (!tfr.tensor) -> !tfr.tensor
      scf.yield %4 : !tfr.tensor
    } else {
      %4 = "tfr.binary"(%arg0, %arg0) {operator = "mul"} : (!tfr.tensor, !tfr.tensor) -> !tfr.tensor
      %5 = "tfr.binary"(%arg0, %arg0) {operator = "mul"} : (!tfr.tensor, !tfr.tensor) -> !tfr.tensor
      %6 = "tfr.binary"(%4, %5) {operator = "add"} : (!tfr.tensor, !tfr.tensor) -> !tfr.tensor
      scf.yield %6 : !tfr.tensor
    }
    return %3 : !tfr.tensor
  }
  func.func private @unused(%arg0: !tfr.tensor) -> !tfr.tensor {
    return %arg0 : !tfr.tensor
  }
}
