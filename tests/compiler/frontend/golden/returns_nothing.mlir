module attributes {tfr.module = "ops", tfr.place = "ops.py:1"} {
  func.func @Test(%arg0: !tfr.tensor {tfr.name = "x"}, %arg1: !tfr.attr {tfr.name = "k"}) -> !tfr.tensor {
    %0 = "tfr.constant"() {value = 1 : i64} : () -> !tfr.attr
    %1 = "tfr.compare"(%arg1, %0) {operator = "eq"} : (!tfr.attr, !tfr.attr) -> !tfr.attr
    %2 = "tfr.truth"(%1) : (!tfr.attr) -> i1
    %3 = scf.if %2 -> (!tfr.tensor) {
      scf.yield %arg0 : !tfr.tensor
    } else {
      %4 = "tfr.constant"() {value = 2 : i64} : () -> !tfr.attr
      %5 = "tfr.compare"(%arg1, %4) {operator = "eq"} : (!tfr.attr, !tfr.attr) -> !tfr.attr
      %6 = "tfr.truth"(%5) : (!tfr.attr) -> i1
      %7 = scf.if %6 -> (!tfr.tensor) {
        %8 = "tfr.unary"(%arg0) {operator = "neg"} : (!tfr.tensor) -> !tfr.tensor
        scf.yield %8 : !tfr.tensor
      } else {
        %8 = "tfr.constant"() {value = "Test: `body` returns nothing on this path"} : () -> !tfr.attr
        %9 = "tfr.cast"(%8) : (!tfr.attr) -> !tfr.any
        %10 = "tfr.raise"(%9) {error = "ValueError"} : (!tfr.any) -> !tfr.any
        %11 = "tfr.cast"(%10) : (!tfr.any) -> !tfr.tensor
        scf.yield %11 : !tfr.tensor
      } {tfr.names = ["y"]}
      scf.yield %7 : !tfr.tensor
    } {tfr.names = ["y"]}
    return %3 : !tfr.tensor
  }
}
