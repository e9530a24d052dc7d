"""Variables of the environment that choose among values."""

from __future__ import annotations

import re

import pytest

from composite.binding import environment


@pytest.fixture
def nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for variable in environment.ENVIRONMENT:
        monkeypatch.delenv(variable, raising=False)
    return monkeypatch


def test_each_value_that_there_is(nothing_chosen: pytest.MonkeyPatch) -> None:
    environment.check()
    for variable, allowed in environment.ENVIRONMENT.items():
        for value in (*allowed, ""):
            nothing_chosen.setenv(variable, value)
            environment.check()


@pytest.mark.parametrize("variable", environment.ENVIRONMENT)
def test_another_value_is_an_error(nothing_chosen: pytest.MonkeyPatch, variable: str) -> None:
    nothing_chosen.setenv(variable, "other")
    first = environment.ENVIRONMENT[variable][0]
    told = f"{variable}='other' in the environment is not one of '{first}', "
    with pytest.raises(ValueError, match=re.escape(told)):
        environment.check()
