"""JSON that somebody else may have written."""

from __future__ import annotations

import pytest

from composite.binding import json_text

_DEEP = 100_000
_NESTED = ["[" * _DEEP, '{"a":' * _DEEP, b"[" * _DEEP, "[" * _DEEP + "]" * _DEEP]


@pytest.mark.parametrize("text", _NESTED)
def test_what_is_nested_too_deeply_is_no_json(text: str | bytes) -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        json_text.parsed(text)


def test_what_is_json_is_parsed() -> None:
    assert json_text.parsed('{"a": [1, 2.5, null]}') == {"a": [1, 2.5, None]}
    with pytest.raises(ValueError, match="Expecting value"):
        json_text.parsed("")
