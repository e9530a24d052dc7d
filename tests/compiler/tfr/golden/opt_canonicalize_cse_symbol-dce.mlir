module {
  func.func @Body(%arg0: !tfr.tensor) -> !tfr.tensor {
    %0 = "tfr.binary"(%arg0, %arg0) {operator = "mul"} : (!tfr.tensor, !tfr.tensor) -> !tfr.tensor
    %1 = "tfr.binary"(%0, %0) {operator = "add"} : (!tfr.tensor, !tfr.tensor) -> !tfr.tensor
    return %1 : !tfr.tensor
  }
}
