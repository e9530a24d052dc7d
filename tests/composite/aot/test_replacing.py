"""A folder is replaced as a whole, or not at all, whoever is killed."""

import contextlib
import ctypes
import errno
import os
import signal
from pathlib import Path

import pytest

from composite.aot import replacing

KILLED = """
import os, signal, sys
from pathlib import Path
from composite.aot.replacing import replaced

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


_KILLED_BETWEEN = """
import ctypes, os, signal, sys
from pathlib import Path
from composite.aot.replacing import replaced

ctypes.CDLL = lambda *_, **__: object()  # a system that cannot exchange two folders
target = Path(sys.argv[1])

def hook(event, args):
    if event == "os.rename" and os.fspath(args[1]) == str(target):
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(hook)
with replaced(target) as folder:
    (folder / "two").write_text("2")
"""


def test_what_was_moved_away_comes_back(target, run_python):
    assert run_python(_KILLED_BETWEEN, str(target), check=False).returncode == -signal.SIGKILL
    assert not target.exists()
    with pytest.raises(RuntimeError):
        write_half(target)
    assert content(target) == ["one"]
    assert not [name for name in content(target.parent) if name.startswith(".")]


@pytest.mark.parametrize("theirs", ["owner", "mode"])
def test_what_somebody_else_has_put_beside_is_not_taken(target, theirs, monkeypatch):
    planted = target.with_name(".out.abcdefgh")
    (planted / "former").mkdir(parents=True)
    planted.chmod(0o777 if theirs == "mode" else 0o700)
    if theirs == "owner":
        monkeypatch.setattr(os, "geteuid", lambda: planted.stat().st_uid + 1)
    target.rename(target.with_name("gone"))
    with pytest.raises(RuntimeError):
        write_half(target)
    assert not target.exists()
    assert content(planted) == ["former"]


def test_a_move_that_fails_is_taken_back(target, monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: object())
    rename = Path.rename

    def failing(self, to):
        if self.name == "made":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(OSError, match="No space left"):
        write_another(target)
    assert content(target) == ["one"]
    assert content(target.parent) == ["out"]


def test_only_what_is_its_own_is_removed(target):
    others = [
        target.with_name(name) for name in (".out.dir.abcdefgh", ".out.short", ".outer.abcdefgh")
    ]
    empty, started = (target.with_name(f".out.{name}") for name in ("leftover", "starting"))
    for folder in (*others, empty, started):
        folder.mkdir()
    for folder in others:
        (folder / "made").mkdir()
    os.utime(empty, (0, 0))
    write_another(target)
    assert all(folder.exists() for folder in (*others, started))
    assert not empty.exists()


def test_errors_of_writing_name_the_folder(target):
    with open("/dev/full", "wb", buffering=0) as full, contextlib.ExitStack() as stack:
        stack.enter_context(pytest.raises(OSError, match=f"No space left on device: '{target}'"))
        stack.enter_context(replacing.replaced(target))
        full.write(b"x")
    assert content(target) == ["one"]
