module {
  func.func @Body(%arg0: !tfr.tensor) -> !tfr.tensor {
    %0 = "tfr.binary"(%arg0, %arg0) {operator = "mul"} : (!tfr.tensor, !tfr.tensor) -> !tfr.tensor
    %1 = "tfr.binary"(%arg0, %arg0) {operator = "mul"} : (!tfr.tensor, !tfr.tensor) -> !tfr.tensor
    %2 = "tfr.binary"(%0, %1) {operator = "add"} : (!tfr.tensor, !tfr.tensor) -> !tfr.tensor
    return %2 : !tfr.tensor
  }
  func.func private @unused(%arg0: !tfr.tensor) -> !tfr.tensor {
    return %arg0 : !tfr.tensor
  }
}
