"""What must agree between the project's own files."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import composite
from tests import conftest

ROOT = Path(__file__).resolve().parent.parent


def pins(text: str) -> dict[str, str]:
    """Exactly pinned distributions in requirement lines, by name."""
    found = re.findall(r'^\s*"?([A-Za-z0-9_.-]+)==([^;,"#\s]+)', text, flags=re.MULTILINE)
    return {name.lower().replace("_", "-"): version for name, version in found}


def test_the_compiler_is_importable_from_a_bare_checkout() -> None:
    link = ROOT / "composite" / "compiler"
    assert link.is_symlink()
    assert os.readlink(link) == "../compiler"


def test_the_documents_name_files_that_exist() -> None:
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    named = {
        path
        for document in documents
        for path in re.findall(
            r"`((?:bazel|compiler|composite|tests|examples|benchmarks|docs)/[\w./]*)`",
            document.read_text(encoding="utf-8"),
        )
    }
    assert "composite/runtime/" in named
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_the_head_of_a_test_run_names_the_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COMPOSITE_ISA", raising=False)
    own = conftest.pytest_report_header()
    assert re.fullmatch(r"kernels: for x86-64-v\d(-bf16)?, \d+ cores", own)
    monkeypatch.setenv("COMPOSITE_ISA", "x86-64-v2")
    limited = conftest.pytest_report_header()
    assert limited.startswith("kernels: for x86-64-v2, at most x86-64-v2, ")


def test_files_that_begin_first_are_there() -> None:
    assert [name for name in conftest.LONG if not (ROOT / "tests" / name).is_file()] == []


def test_versions_agree() -> None:
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{composite.__version__}"' in pyproject
    for file in ("MODULE.bazel", "bazel/python.bzl"):
        assert re.search(
            rf'^ *version = "{re.escape(composite.__version__)}"',
            (ROOT / file).read_text(encoding="utf-8"),
            flags=re.MULTILINE | re.IGNORECASE,
        ), file
    assert f"## {composite.__version__}, " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_lock_installs_what_pyproject_pins() -> None:
    declared = pins((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    locked = pins((ROOT / "requirements.lock").read_text(encoding="utf-8"))
    assert {"apache-tvm", "apache-tvm-ffi", "torch-mlir"} <= declared.keys()
    assert {name: locked.get(name) for name in declared} == declared


def test_the_peers_of_the_benchmarks_are_pinned() -> None:
    lock = (ROOT / "benchmarks" / "peers.lock").read_text(encoding="utf-8")
    lines = [line for line in lock.splitlines() if line and not line.startswith("#")]
    locked = pins(lock)
    assert len(locked) == len(lines)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (peers,) = re.findall(r"for peer in (.*); do", makefile)
    assert set(peers.replace('"', " ").split()) <= locked.keys()


def test_keras_hub_is_pinned_for_the_benchmarks_alone() -> None:
    locked = pins((ROOT / "benchmarks" / "hub.lock").read_text(encoding="utf-8"))
    assert set(locked) == {"keras-hub", "regex", "tokenizers"}
    assert not locked.keys() & pins((ROOT / "requirements.lock").read_text(encoding="utf-8")).keys()
