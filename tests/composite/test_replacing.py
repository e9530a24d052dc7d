"""A folder is replaced as a whole, or not at all, whoever is killed."""

import ctypes
import signal

import pytest

from composite import replacing

KILLED = """
import os, signal, sys
from pathlib import Path
from composite.replacing import replaced

with replaced(Path(sys.argv[1])) as folder:
    (folder / "half").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def content(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def target(tmp_path):
    target = tmp_path / "out"
    with replacing.replaced(target) as folder:
        (folder / "one").write_text("1")
    assert content(target) == ["one"]
    return target


def write_another(target):
    with replacing.replaced(target) as folder:
        (folder / "two").write_text("2")


def test_the_former_content_goes_with_its_folder(target):
    write_another(target)
    assert content(target) == ["two"]
    assert content(target.parent) == ["out"]


def test_where_two_folders_cannot_be_exchanged_one_is_moved_away(target, monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: object())
    write_another(target)
    assert content(target) == ["two"]
    assert content(target.parent) == ["out"]


def write_half(target):
    with replacing.replaced(target) as folder:
        (folder / "two").write_text("2")
        raise RuntimeError


def test_an_error_leaves_the_former_content(target):
    with pytest.raises(RuntimeError):
        write_half(target)
    assert content(target) == ["one"]
    assert content(target.parent) == ["out"]


def test_a_killed_process_leaves_it_too_and_the_next_one_tidies_up(target, run_python):
    assert run_python(KILLED, str(target), check=False).returncode == -signal.SIGKILL
    assert content(target) == ["one"]
    left = [path for path in target.parent.iterdir() if path.name.startswith(".out.")]
    assert [content(path / "made") for path in left] == [["half"]]
    write_another(target)
    assert content(target) == ["two"]
    assert not [path for path in left if path.exists()]


def test_a_process_at_work_is_left_alone(target):
    with replacing.replaced(target) as folder:
        write_another(target)
        (folder / "three").write_text("3")
    assert content(target) == ["three"]
