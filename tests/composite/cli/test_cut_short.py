"""A build that is cut short, by kill -9 or for want of room: the former library is there, whole."""

import contextlib
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner

import composite
from composite.cli.main import main

OPS = '''
from composite import Composite

@Composite("CutShort{number}", inputs=["x: float"], outputs=["y: float"])
def cut_short(x):
    """Adds."""
    return x + {number}.0
'''
# What changes a file system, as Python tells its audit hooks before it happens.
CHANGES = (
    "open",
    "os.mkdir",
    "os.rename",
    "os.remove",
    "os.rmdir",
    "shutil.rmtree",
    "ctypes.dlopen",
)


def build(source, out, *options):
    return CliRunner().invoke(
        main, ["build", str(source), "-o", str(out), "--name", "lib", "--kinds", "0", *options]
    )


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Two versions of a source."""
    folder = tmp_path_factory.mktemp("sources")
    paths = [folder / f"cut_short_{number}.py" for number in (1, 2)]
    for number, path in enumerate(paths, 1):
        path.write_text(OPS.format(number=number))
    return paths


@pytest.fixture(scope="module")
def former(sources, tmp_path_factory):
    out = tmp_path_factory.mktemp("former") / "out"
    assert build(sources[0], out).exit_code == 0
    return out


def op_of(library):
    """The op of a library that is whole: each file is what the manifest says."""
    manifest = json.loads((library / "manifest.json").read_text())
    found = {path.name for path in library.iterdir()}
    assert found == {"manifest.json", "timings.json", *manifest["files"]}
    for name, digest in manifest["files"].items():
        assert hashlib.sha256((library / name).read_bytes()).hexdigest() == digest, name
    json.loads((library / "timings.json").read_text())
    return manifest["ops"][0]["op"]


class Snapshots:
    """Copies of a folder as each change to it finds it: what kill -9 at that moment would leave."""

    def __init__(self, folder, store):
        self.folder, self.store, self.count, self.busy = folder, store, 0, True
        sys.addaudithook(self.hook)  # for the rest of the process: it can only be told to rest
        self.busy = False

    def hook(self, event, args):
        if self.busy or event not in CHANGES:
            return
        self.busy = True
        shutil.copytree(self.folder, self.store / f"{self.count:03}")
        self.count += 1
        self.busy = False


def test_whenever_a_build_is_killed_a_whole_library_is_there(sources, former, tmp_path):
    folder = tmp_path / "folder"
    shutil.copytree(former, folder / "out")
    snapshots = Snapshots(folder, tmp_path / "moments")
    done = build(sources[1], folder / "out")
    snapshots.busy = True
    assert done.exit_code == 0, done.output
    moments = sorted((tmp_path / "moments").iterdir())
    ops = [op_of(moment / "out") for moment in moments]
    assert ops == sorted(ops)  # the former library, and from some moment on the new one
    assert set(ops) == {"CutShort1", "CutShort2"}
    halves = [moment for moment in moments if len(list(moment.iterdir())) > 1]
    assert len(halves) > 8  # a temporary folder, file by file
    for moment in (halves[0], halves[len(halves) // 2], halves[-1]):
        assert build(sources[1], moment / "out", "--force").exit_code == 0
        assert op_of(moment / "out") == "CutShort2"
        left = [path for path in moment.iterdir() if path.name != "out"]
        assert not [path for path in left if (path / "made").exists()]


_KILLED = """
import os, signal, sys
from composite.aot import building  # with TensorFlow, once for all children
from composite.cli.main import main

source, *cases = sys.argv[1:]
for case in cases:
    event, text, out = case.split("|")
    child = os.fork()
    if child == 0:
        def hook(name, args):
            if name == event and text in repr(args):
                os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(hook)
        main(["build", source, "-o", out, "--name", "lib", "--kinds", "0"])
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_killed_processes(sources, former, tmp_path, run_python):
    """Really, in the middle: at the linker, between two files, and when all is in its place."""
    moments = {
        "subprocess.Popen|exports.map": "CutShort1",
        "open|/made/liblib.so": "CutShort1",
        "open|/made/manifest.json": "CutShort1",
        "shutil.rmtree|.out.": "CutShort2",
    }
    outs = [tmp_path / str(i) / "out" for i in range(len(moments))]
    for out in outs:
        shutil.copytree(former, out)
    cases = [f"{moment}|{out}" for moment, out in zip(moments, outs, strict=True)]
    printed = run_python(_KILLED, str(sources[1]), *cases).stdout.split()
    assert printed == [str(-signal.SIGKILL)] * len(cases)
    assert [op_of(out) for out in outs] == list(moments.values())


@contextlib.contextmanager
def room(folder, kilobytes):
    """A folder with so much room: a file system of its own, or for want of rights short files."""
    folder.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)]
    if (
        os.geteuid() == 0
        and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    ):
        try:
            yield lambda: None
        finally:
            subprocess.run(["umount", "-l", str(folder)], check=True)
        return
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, unlimited[1]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)


@pytest.mark.parametrize("kilobytes", [72, 96])
def test_no_room_for_the_library(sources, former, tmp_path, kilobytes):
    with room(tmp_path / "disk", kilobytes) as fill:
        out = tmp_path / "disk" / "out"
        shutil.copytree(former, out)
        (out.parent / "filler").write_bytes(bytes(1 << 10) * (kilobytes - 56))
        fill()
        done = build(sources[1], out, "--force")
        assert done.exit_code == 4, done.output
        assert done.output.startswith(f"composite: {out}: ")
        assert len(done.output.splitlines()) == 1
        assert op_of(out) == "CutShort1"
        assert {path.name for path in out.parent.iterdir()} == {"out", "filler"}


def test_no_room_for_the_linker(sources, former, tmp_path, monkeypatch):
    out = tmp_path / "out"
    shutil.copytree(former, out)
    with room(tmp_path / "tmp", 8) as fill:
        monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
        monkeypatch.setattr(tempfile, "tempdir", None)  # which it was asked for already
        fill()
        done = build(sources[1], out, "--force")
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert done.exit_code == 4, done.output
    assert "Traceback" not in done.output
    assert op_of(out) == "CutShort1"


def _without_override():
    """Root writes where permissions say no; without this capability it is like anybody."""
    import ctypes

    ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_is_found_before_anything_is_compiled(sources, tmp_path):
    folder = tmp_path / "read only"
    folder.mkdir(mode=0o555)
    root = str(Path(composite.__file__).parents[1])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-m", "composite", "build", str(sources[1]), "-o", str(folder / "out")],
        env=os.environ | {"PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=_without_override if os.geteuid() == 0 else None,
    )
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == f"composite: {folder}: Permission denied\n"
    assert list(folder.iterdir()) == []
