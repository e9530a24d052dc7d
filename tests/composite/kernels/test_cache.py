"""The kernel cache: what it gives back, what it refuses, what it survives."""

import hashlib
import logging
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from composite.kernels import cache


@pytest.fixture
def kernels(tmp_path):
    return cache.Cache(tmp_path / "cache")


def test_an_entry_comes_back(kernels):
    path = kernels.store("k1", b"record\nbytes", b"library")
    assert path.read_bytes() == b"library"
    assert path.name == hashlib.sha256(b"library").hexdigest() + ".so"
    assert kernels.load("k1") == (b"record\nbytes", path)
    assert kernels.load("k2") is None


def test_files_are_for_the_user_alone(kernels):
    path = kernels.store("k1", b"r", b"l")
    assert path.stat().st_mode & 0o777 == 0o600
    assert kernels.root.stat().st_mode & 0o777 == 0o700
    assert kernels.root.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("damage", ["cut", "flip", "missing", "link", "record", "empty"])
def test_a_damaged_entry_is_removed_and_logged(kernels, damage, caplog, tmp_path):
    path = kernels.store("k1", b"record", b"library" * 100)
    record = kernels.root / "records" / "k1"
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:50])
    elif damage == "flip":
        path.write_bytes(b"L" + path.read_bytes()[1:])
    elif damage == "missing":
        path.unlink()
    elif damage == "link":
        (tmp_path / "elsewhere").write_bytes(path.read_bytes())
        path.unlink()
        path.symlink_to(tmp_path / "elsewhere")
    elif damage == "record":
        record.write_bytes(record.read_bytes() + b"x")
    else:
        record.write_bytes(b"")
    with caplog.at_level(logging.INFO, "composite"):
        assert kernels.load("k1") is None
    assert ("k1 is gone" if damage == "missing" else "k1 is damaged") in caplog.text
    assert not record.exists()
    again = kernels.store("k1", b"record", b"library" * 100)
    assert kernels.load("k1") == (b"record", again)
    assert not again.is_symlink()


def test_a_folder_that_others_may_write_is_refused(tmp_path):
    root = tmp_path / "cache"
    root.mkdir()
    root.chmod(0o777)
    with pytest.raises(cache.Untrusted, match="others may write"):
        cache.Cache(root)


def test_a_linked_folder_is_refused(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "cache").symlink_to(tmp_path / "real")
    with pytest.raises(cache.Untrusted, match="links are not followed"):
        cache.Cache(tmp_path / "cache")


def _default(monkeypatch, **variables):
    for name in (cache.ENVIRONMENT, "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, str(value))
    return cache.default_root()


def test_where_the_folder_is(tmp_path, monkeypatch):
    assert _default(monkeypatch, HOME="/h") == Path("/h/.cache/composite")
    assert _default(monkeypatch, HOME="/h", XDG_CACHE_HOME="/x") == Path("/x/composite")
    assert _default(monkeypatch, HOME="/h", XDG_CACHE_HOME="x") == Path("/h/.cache/composite")
    named = {"HOME": "/h", "XDG_CACHE_HOME": "/x", cache.ENVIRONMENT: "/c"}
    assert _default(monkeypatch, **named) == Path("/c")


def test_a_relative_folder_stays_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = f"relative-{tmp_path.name}"
    assert _default(monkeypatch, **{cache.ENVIRONMENT: name}) == tmp_path / name
    path = cache.open_default().store("k1", b"r", b"l")
    monkeypatch.chdir("/")
    assert path.is_absolute()
    assert cache.open_default().load("k1") == (b"r", path)


def test_without_a_home(tmp_path, monkeypatch, caplog):
    def home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", home)
    with pytest.raises(NotADirectoryError, match="COMPOSITE_CACHE_DIR can name a folder"):
        _default(monkeypatch)
    with caplog.at_level(logging.WARNING, "composite"):
        kernels = cache.open_default()
        assert cache.open_default() is kernels
    assert len(caplog.records) == 1
    assert kernels.root is None
    _keeps(kernels)


def _keeps(kernels, key="new"):
    """It gives back what it is given."""
    path = kernels.store(key, b"record", b"library of " + key.encode())
    assert path.read_bytes() == b"library of " + key.encode()
    assert kernels.load(key) == (b"record", path)
    kernels.store_timings(key, "m", b"times")
    assert kernels.load_timings(key, "m") == b"times"
    assert kernels.load_timings(key, "other") is None
    kernels.trim()
    kernels.remove(key)
    assert kernels.load(key) is None


def test_an_untrusted_default_is_not_used(tmp_path, monkeypatch, caplog):
    root = tmp_path / "cache"
    root.mkdir()
    root.chmod(0o777)
    monkeypatch.setenv(cache.ENVIRONMENT, str(root))
    with caplog.at_level(logging.WARNING, "composite"):
        kernels = cache.open_default()
        assert cache.open_default() is kernels
    (line,) = caplog.messages
    assert "others may write" in line
    _keeps(kernels)
    assert list(root.iterdir()) == []


def test_a_read_only_folder_is_read(tmp_path, mounted, caplog):
    root = mounted(tmp_path / "cache", "mode=700")
    path = cache.Cache(root).store("old", b"record", b"library")
    cache.Cache(root).store_timings("old", "m", b"times")
    mounted.again(root, "ro")
    kernels = cache.Cache(root)
    with caplog.at_level(logging.WARNING, "composite"):
        assert kernels.load("old") == (b"record", path)
        assert kernels.load_timings("old", "m") == b"times"
        assert caplog.messages == []
        _keeps(kernels)
        _keeps(kernels, "newer")
    (line,) = caplog.messages
    assert "Read-only file system" in line


def test_an_empty_read_only_folder(tmp_path, mounted):
    root = mounted(tmp_path / "cache", "mode=700,ro")
    with pytest.raises(OSError, match="Read-only"):
        cache.Cache(root)


def test_what_a_full_folder_does_not_take_is_in_memory(tmp_path, mounted, caplog):
    root = mounted(tmp_path / "cache", "mode=700,size=256k")
    kernels = cache.Cache(root)
    _keeps(kernels)
    path = kernels.store("old", b"record", b"library")
    (root / "ballast").write_bytes(b"")
    with pytest.raises(OSError, match="No space"):
        (root / "ballast").write_bytes(b"x" * (1 << 20))
    with caplog.at_level(logging.WARNING, "composite"):
        big = kernels.store("big", b"record", b"x" * 50_000)
        kernels.store("bigger", b"record", b"y" * 50_000)
        assert kernels.load("big") == (b"record", big)
        assert kernels.load("old") == (b"record", path)
    (line,) = caplog.messages
    assert "No space left" in line
    (root / "ballast").unlink()
    assert kernels.store("later", b"record", b"z" * 50_000).is_relative_to(root)


def test_a_folder_that_was_removed_is_made_again(kernels, caplog):
    kernels.store("k1", b"r", b"l")
    shutil.rmtree(kernels.root.parent)
    with caplog.at_level(logging.WARNING, "composite"):
        assert kernels.load("k1") is None
        assert kernels.load_timings("k1", "m") is None
        _keeps(kernels)
        assert kernels.store("k1", b"r", b"l").is_relative_to(kernels.root)
    assert caplog.messages == []


def test_timings_lie_beside_the_entry(kernels):
    assert kernels.load_timings("k1", "m") is None
    kernels.store_timings("k1", "m", b"{}")
    assert kernels.load_timings("k1", "m") == b"{}"
    assert kernels.load_timings("k1", "other") is None
    (kernels.root / "timings" / "k1-m").write_bytes(b"nonsense")
    assert kernels.load_timings("k1", "m") is None


def test_the_size_is_bounded_and_the_least_recent_goes_first(tmp_path):
    kernels = cache.Cache(tmp_path / "cache", limit=10_000)
    assert kernels.root is not None
    for i in range(8):
        kernels.store(f"k{i}", b"r", bytes([i]) * 1000)
        old = time.time() - 1000 + i
        for file in ("records", "objects"):
            for path in (kernels.root / file).iterdir():
                if path.stat().st_mtime > time.time() - 500:
                    os.utime(path, (old, old))
    assert kernels.load("k0") is not None  # used now, so it is not the oldest any more
    for i in range(8, 12):
        kernels.store(f"k{i}", b"r", bytes([i]) * 1000)
    total = sum(p.stat().st_size for p in kernels.root.rglob("*") if p.is_file())
    assert total <= 10_000
    assert kernels.load("k0") is not None
    assert kernels.load("k1") is None
    assert kernels.load("k11") is not None


def test_abandoned_temporary_files_go(kernels):
    left = kernels.root / "objects" / ".abc"
    left.write_bytes(b"half")
    fresh = kernels.root / "objects" / ".def"
    fresh.write_bytes(b"half")
    os.utime(left, (1, 1))
    kernels.trim()
    assert not left.exists()
    assert fresh.exists()


_WRITER = """
import sys
from pathlib import Path
from composite.kernels.cache import Cache
kernels = Cache(Path(sys.argv[1]), limit=40_000)
for i in range(60):
    key = f"k{i % 7}"
    kernels.store(key, key.encode(), key.encode() * 2000)
    entry = kernels.load(key)
    if entry is not None:  # another process may have trimmed it
        assert entry[0] == key.encode()
"""


def test_several_processes_share_a_folder(tmp_path):
    root = Path(__file__).resolve().parents[3]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(tmp_path / "cache")],
            cwd=root,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        assert "damaged" not in errors


_KILLED = """
import os, signal, sys
from pathlib import Path
from composite.kernels.cache import Cache

kernels = Cache(Path(sys.argv[1]))

def hook(event, args):
    if event in ("open", "os.rename"):
        hook.left -= 1
        if hook.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

for moment in range(1, 100):
    if os.fork() == 0:
        hook.left = moment
        sys.addaudithook(hook)
        kernels.store("new", b"record", b"library" * 1000)
        kernels.store_timings("new", "machine", b"times")
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.wait()[1])
    for key in ("old", "new"):
        entry = kernels.load(key)
        found = entry and (entry[0], entry[1].read_bytes())
        print(status, key, found == (b"record", b"library" * 1000))
    if status == 0:
        break
    kernels.remove("new")
"""


def test_a_process_that_is_killed_while_it_writes_tears_nothing(kernels, run_python, caplog):
    kernels.store("old", b"record", b"library" * 1000)
    done = run_python(_KILLED, str(kernels.root.parent))
    assert "damaged" not in done.stderr
    *killed, old, new = done.stdout.splitlines()
    assert (old, new) == ("0 old True", "0 new True")
    assert set(killed) == {"-9 old True", "-9 new False", "-9 new True"}
    assert len(killed) >= 2 * 6  # before each file, and before it gets its name
    for path in kernels.root.rglob("*"):
        if not path.name.startswith(".") and path.parent.name == "objects":
            assert path.read_bytes() == b"library" * 1000
