module attributes {tfr.module = "ops", tfr.place = "ops.py:1"} {
  func.func @Test(%arg0: !tfr.tensor {tfr.name = "x"}, %arg1: !tfr.tensor {tfr.name = "y"}, %arg2: !tfr.attr {tfr.name = "k"}) -> !tfr.tensor {
    %0 = "tfr.constant"() {value = 0 : i64} : () -> !tfr.attr
    %1 = "tfr.compare"(%0, %arg2) {operator = "lt"} : (!tfr.attr, !tfr.attr) -> !tfr.attr
    %2 = "tfr.truth"(%1) : (!tfr.attr) -> i1
    %3 = scf.if %2 -> (!tfr.attr) {
      %25 = "tfr.constant"() {value = 10 : i64} : () -> !tfr.attr
      %26 = "tfr.compare"(%arg2, %25) {operator = "le"} : (!tfr.attr, !tfr.attr) -> !tfr.attr
      scf.yield %26 : !tfr.attr
    } else {
      scf.yield %1 : !tfr.attr
    }
    %4 = "tfr.truth"(%3) : (!tfr.attr) -> i1
    %5 = scf.if %4 -> (!tfr.attr) {
      %25 = "tfr.constant"() {value = 5 : i64} : () -> !tfr.attr
      %26 = "tfr.compare"(%arg2, %25) {operator = "ne"} : (!tfr.attr, !tfr.attr) -> !tfr.attr
      scf.yield %26 : !tfr.attr
    } else {
      scf.yield %3 : !tfr.attr
    }
    %6 = "tfr.truth"(%5) : (!tfr.attr) -> i1
    %7 = scf.if %6 -> (!tfr.attr) {
      scf.yield %5 : !tfr.attr
    } else {
      %25 = "tfr.unary"(%arg2) {operator = "not"} : (!tfr.attr) -> !tfr.attr
      scf.yield %25 : !tfr.attr
    }
    %8 = "tfr.shape"(%arg0) : (!tfr.tensor) -> !tfr.dims
    %9:2 = "tfr.unpack"(%8) : (!tfr.dims) -> (!tfr.attr, !tfr.attr)
    %10 = "tfr.rank"(%arg0) : (!tfr.tensor) -> !tfr.attr
    %11 = "tfr.length"(%8) : (!tfr.dims) -> !tfr.attr
    %12 = "tfr.binary"(%10, %11) {operator = "add"} : (!tfr.attr, !tfr.attr) -> !tfr.attr
    %13 = "tfr.constant"() {value = -1 : i64} : () -> !tfr.attr
    %14 = "tfr.item"(%8, %13) : (!tfr.dims, !tfr.attr) -> !tfr.attr
    %15 = "tfr.binary"(%12, %14) {operator = "add"} : (!tfr.attr, !tfr.attr) -> !tfr.attr
    %16 = "tfr.binary"(%15, %9#0) {operator = "add"} : (!tfr.attr, !tfr.attr) -> !tfr.attr
    %17 = "tfr.binary"(%16, %9#1) {operator = "add"} : (!tfr.attr, !tfr.attr) -> !tfr.attr
    %18 = "tfr.dtype"(%arg0) : (!tfr.tensor) -> !tfr.attr
    %19 = "tfr.constant"() {value = #tfr.type<"float32">} : () -> !tfr.attr
    %20 = "tfr.compare"(%18, %19) {operator = "eq"} : (!tfr.attr, !tfr.attr) -> !tfr.attr
    %21 = "tfr.truth"(%20) : (!tfr.attr) -> i1
    %22 = scf.if %21 -> (!tfr.attr) {
      scf.yield %7 : !tfr.attr
    } else {
      scf.yield %20 : !tfr.attr
    }
    %23 = "tfr.truth"(%22) : (!tfr.attr) -> i1
    %24 = scf.if %23 -> (!tfr.tensor) {
      %25 = "tfr.binary"(%arg0, %17) {operator = "add"} : (!tfr.tensor, !tfr.attr) -> !tfr.tensor
      scf.yield %25 : !tfr.tensor
    } else {
      scf.yield %arg0 : !tfr.tensor
    } {tfr.names = ["e"]}
    return %24 : !tfr.tensor
  }
}
