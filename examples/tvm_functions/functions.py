"""What TVM compiles: two kernels, and a Relax program of two dense layers."""

# TVM's scripts are written so: R.Tensor(...) is no type to mypy, nor `main` a method.
# mypy: disable-error-code="valid-type,no-untyped-def"
# ruff: noqa: ANN201, D102, N805, N812

import tvm
from tvm import te
from tvm.script import ir as I
from tvm.script import relax as R


def kernels() -> tvm.IRModule:
    """addone(x) and vector_add(x, y), for vectors of any size."""
    n = te.var("n")
    x, y = (te.placeholder((n,), "float32", name=name) for name in "xy")
    plus = te.compute((n,), lambda i: x[i] + 1, name="plus")
    total = te.compute((n,), lambda i: x[i] + y[i], name="total")
    return tvm.IRModule(
        {
            "addone": te.create_prim_func([x, plus]).with_attr("global_symbol", "addone"),
            "vector_add": te.create_prim_func([x, y, total]).with_attr(
                "global_symbol", "vector_add"
            ),
        }
    )


@I.ir_module
class TwoLayers:
    """Two dense layers, for any batch."""

    @R.function
    def main(
        x: R.Tensor(("batch", 8), "float32"),
        w1: R.Tensor((8, 16), "float32"),
        b1: R.Tensor((16,), "float32"),
        w2: R.Tensor((16, 4), "float32"),
        b2: R.Tensor((4,), "float32"),
    ):
        with R.dataflow():
            hidden = R.nn.relu(R.add(R.matmul(x, w1), b1))
            y = R.add(R.matmul(hidden, w2), b2)
            R.output(y)
        return y


def compiled(module: tvm.IRModule) -> tvm.runtime.Executable:
    """For any CPU of this architecture."""
    return tvm.compile(module, target=tvm.target.Target({"kind": "llvm"}))
