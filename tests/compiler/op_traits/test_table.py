"""Each row of the table against the OpDef that the installed TensorFlow has of the op."""

from __future__ import annotations

from importlib import import_module
from typing import Any, get_args

import pytest
from tensorflow.python.framework import op_def_registry

from composite.compiler import op_traits
from composite.compiler.op_traits import Family, InnerDim, OpTraits, Runs, Terms

ROWS = list(op_traits.TABLE.values())
pytestmark = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


def op_def(name: str) -> Any:
    found = op_def_registry.get(name)
    assert found is not None, f"TensorFlow has no op {name}"
    return found


def test_operands_and_results_are_the_op_s(row: OpTraits) -> None:
    definition = op_def(row.name)
    if row.reads is not None:
        assert list(row.reads) == [arg.name for arg in definition.input_arg]
    results = [arg.name for arg in definition.output_arg]
    assert list(row.outputs) == (results if len(results) > 1 else [])


def test_state_is_the_op_s(row: OpTraits) -> None:
    """Only random ops, what runs functions with state and graph structure (_Arg) keep any."""
    is_stateful = op_def(row.name).is_stateful
    assert not is_stateful or row.stateless_twin or row.runs is not None or row.structural
    if row.stateless_twin:
        twin = op_def(row.stateless_twin)
        assert is_stateful
        assert not twin.is_stateful
        # Every generation that takes a seed is preferred to one that takes what is made of it.
        assert "seed" in {arg.name for arg in twin.input_arg} or row.name == "RandomShuffle"


def test_functions_are_among_the_attributes(row: OpTraits) -> None:
    kinds = [attr.type for attr in op_def(row.name).attr]
    named = [kind for kind in kinds if kind in ("func", "list(func)")]
    assert (
        named
        == {
            None: [],
            Runs.CALL: ["func"],
            Runs.BRANCH: ["list(func)"] if row.name.endswith("Case") else ["func", "func"],
            Runs.LOOP: ["func", "func"],
        }[row.runs]
    )


def test_elementwise_ops_have_one_result_and_read_at_the_place(row: OpTraits) -> None:
    if row.elementwise:
        assert len(op_def(row.name).output_arg) == 1
        assert not any(arg.number_attr for arg in op_def(row.name).input_arg)
        assert row.terms is None


def test_sums_have_what_they_are_counted_by(row: OpTraits) -> None:
    definition = op_def(row.name)
    if isinstance(row.terms, InnerDim):
        kinds = {attr.name: attr.type for attr in definition.attr}
        assert kinds[row.terms.transposed] == "bool"
    elif row.terms is Terms.WINDOW:
        assert definition.input_arg[1].name == "filter"
    if row.terms is not None:
        assert not row.moves_data


def test_an_op_with_a_family_has_a_lowering_and_no_other_has(row: OpTraits) -> None:
    families = [
        family
        for family in get_args(Family)
        if row.name in import_module(f"composite.compiler.tvm.lower.{family}").LOWERINGS
    ]
    assert families == ([] if row.family is None else [row.family])
    assert row.family is not None or not row.limits
