"""`composite build`: what it writes, when it does not, and what it leaves alone."""

import filecmp
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import composite
from composite.aot import build_options, inputs
from composite.cli.main import main
from composite.compiler.tvm.target import Target
from composite.kernels import verify

HELPERS = "FACTOR = 2.0\n"
OPS = '''
import tensorflow as tf
from composite import Composite
from cli_helpers import FACTOR

@Composite("CliScaled", inputs=["x: T"], attrs=['act: {{"", "RELU"}} = ""'],
           derived_attrs=["T: {{float, double}}"], outputs=["y: T"])
def scaled(x, act):
    """Scales."""
    y = x * FACTOR + {offset}
    return tf.nn.relu(y) if act == "RELU" else y

scaled.add_signature(x=("float32", ("n", 8)), act="RELU")
'''
BROKEN = """
from composite import Composite

@Composite("CliBroken", inputs=["x: float"], outputs=["y: float"])
def broken(x):
    return nothing(x)
"""


def run(*args):
    return CliRunner().invoke(main, [str(arg) for arg in args])


def in_a_process(*args, **env):
    """As a user runs it: what a process has imported once it does not read again."""
    command = [sys.executable, "-m", "composite", *map(str, args)]
    root = Path(composite.__file__).parents[1]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    assert done.returncode == 0, done.stderr
    return done.stdout


def sources(folder, offset=0):
    folder.mkdir(exist_ok=True)
    (folder / "cli_helpers.py").write_text(HELPERS)
    (folder / "cli_ops.py").write_text(OPS.format(offset=offset))
    for path in folder.iterdir():  # this process is older than what it has imported, else
        os.utime(path, (0, 0))
    return folder / "cli_ops.py"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A source and its library, built in this process."""
    source = sources(tmp_path_factory.mktemp("cli"))
    out = source.parent / "out"
    done = run("build", source, "-o", out, "--target", "x86-64-v2", "--json")
    assert done.exit_code == 0, done.output
    return source, out, json.loads(done.stdout)


def options(source):
    return build_options.Options(targets=("x86-64-v2",), kinds=16).plain(source)


def test_what_was_built_is_told(built):
    _, out, answer = built
    assert (answer["library"], answer["name"], answer["built"]) == (str(out), "cli_ops", True)
    assert answer["ops"] == [{"name": "scaled", "op": "CliScaled"}]
    (kernel,) = answer["kernels"]  # the stated one: then no others are thought of
    assert kernel["isa"] == "x86-64-v2"
    assert kernel["verdict"] in ("kernel", "expansion")
    content = json.loads((out / "manifest.json").read_text())
    assert set(content["inputs"]["files"]) == {"cli_helpers.py", "cli_ops.py"}


def test_nothing_is_built_again_while_nothing_has_changed(built, monkeypatch):
    source, out, _ = built
    monkeypatch.setattr("composite.aot.building.run", None)  # would be a TypeError
    done = run("build", source, "-o", out, "--target", "x86-64-v2")
    assert done.exit_code == 0
    assert "nothing has changed" in done.stdout
    assert "1 ops, 1 kernels" in done.stdout


def test_what_changes_a_library(built):
    source, out, _ = built
    assert inputs.is_current(out, source, options(source))
    assert not inputs.is_current(out, source, options(source) | {"name": "other"})
    assert not inputs.is_current(out, source, options(source) | {"targets": ["x86-64-v2-64"]})
    assert not inputs.is_current(source.parent, source, options(source))
    for path in (source.parent / "cli_helpers.py", source, out / "cli_ops.md"):
        content = path.read_bytes()
        path.write_bytes(content + b"\n")
        assert not inputs.is_current(out, source, options(source)), path
        path.write_bytes(content)
        os.utime(path, (0, 0))
    assert inputs.is_current(out, source, options(source))


def test_a_broken_op_is_named_and_the_former_library_stays(built, tmp_path):
    source, out, _ = built
    before = (out / "manifest.json").read_bytes()
    broken = tmp_path / "broken_ops.py"
    broken.write_text(OPS.replace("CliScaled", "CliFine").format(offset=0) + BROKEN)
    (tmp_path / "cli_helpers.py").write_text(HELPERS)
    done = run("build", broken, "-o", out)
    assert done.exit_code == 1
    assert "in `broken`:" in done.output
    assert "`nothing` is not defined" in done.output
    assert "Traceback" not in done.output
    assert (out / "manifest.json").read_bytes() == before
    assert {p.name for p in out.parent.iterdir()} - {"__pycache__"} == {
        "out", source.name, "cli_helpers.py",
    }  # fmt: skip


def test_a_kernel_that_fails_its_check_is_left_out_unless_it_was_asked_for(
    built, tmp_path, monkeypatch
):
    def wrong(*_, **__):
        raise verify.Mismatch("output 0 is off")

    monkeypatch.setattr("composite.kernels.produce.check", wrong)
    done = run("build", built[0], "-o", tmp_path / "out", "--force", "--target", "x86-64-v2")
    assert done.exit_code == 1
    assert "no kernel for scaled(" in done.output
    assert "it failed its check: output 0 is off" in done.output

    text = OPS.replace("CliScaled", "CliUnstated").format(offset=0)
    source = tmp_path / "unstated_ops.py"
    source.write_text(text.partition("scaled.add_signature")[0])
    (tmp_path / "cli_helpers.py").write_text(HELPERS)
    done = run("build", source, "-o", tmp_path / "out", "--kinds", 1, "--json")
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert (answer["kernels"], "it failed its check" in str(answer["notes"])) == ([], True)


def test_no_room_leaves_the_former_library(built, monkeypatch):
    source, out, _ = built
    before = (out / "manifest.json").read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device", "x")

    monkeypatch.setattr(Path, "write_bytes", full)
    done = run("build", source, "-o", out, "--force", "--target", "x86-64-v2")
    assert (done.exit_code, "No space left" in done.output) == (4, True)
    assert (out / "manifest.json").read_bytes() == before


CALLER = """
import tensorflow as tf
from composite import Composite
from cli_ops import scaled

@Composite("CliCaller", inputs=["x: float"], outputs=["y: float"])
def caller(x):
    return scaled(x, act="") + 1.0
"""


@pytest.mark.slow
def test_kernels_of_another_library_are_not_compiled_again(built, tmp_path):
    source, out, _ = built
    caller = source.parent / "cli_caller.py"
    caller.write_text(CALLER)
    args = ("build", caller, "-o", tmp_path / "out", "--kinds", "0", "--json")
    with_dep = (*args, "--dep", out, "--registration")
    done = run(*with_dep)
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert [op["op"] for op in answer["ops"]] == ["CliScaled", "CliCaller"]
    assert answer["kernels"] == []  # the op's stated call has one, in its own library
    registration = (tmp_path / "out" / "cli_caller.c").read_text()
    assert "composite_library_cli_caller_status" in registration
    content = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert "cli_caller.c" in content["files"]

    assert not json.loads(run(*with_dep).stdout)["built"]
    done = run(*args)
    assert [kernel["op"] for kernel in json.loads(done.stdout)["kernels"]] == ["CliScaled"]
    assert not (tmp_path / "out" / "cli_caller.c").exists()
    caller.unlink()


@pytest.mark.parametrize("content", [None, "{", '{"ops": [1]}'])
def test_a_dep_that_is_no_library_is_1(built, tmp_path, content):
    if content is not None:
        (tmp_path / "manifest.json").write_text(content)
    done = run("build", built[0], "-o", tmp_path / "out", "--dep", tmp_path)
    assert done.exit_code == 1
    assert str(tmp_path) in done.output


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x = (", "SyntaxError: '(' was never closed"),
        ("import no_such_module", ":1: ModuleNotFoundError: No module named 'no_such_module'"),
        ("def f():\n    return 1 / 0\nf()", ":2: ZeroDivisionError: division by zero"),
        ("x = 1", "defines no composite op"),
    ],
)
def test_a_wrong_source_is_1_and_says_where(tmp_path, content, message):
    (tmp_path / "wrong.py").write_text(content)
    done = run("build", tmp_path / "wrong.py", "-o", tmp_path / "out")
    assert done.exit_code == 1
    assert message in done.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("level", "message"),
    [("z80", "'z80' is no level"), ("x86-64-v4", "cannot be checked on this machine")],
)
def test_a_wrong_target_is_1(built, tmp_path, level, message, monkeypatch):
    host = Target.of("x86-64-v3", 2)
    monkeypatch.setattr(Target, "host", lambda: host)
    done = run("build", built[0], "-o", tmp_path / "out", "--target", level)
    assert (done.exit_code, message in done.output) == (1, True)


@pytest.mark.slow
def test_signatures_come_from_a_file(built, tmp_path):
    source = built[0]
    record = tmp_path / "record.jsonl"
    calls = [{"x": ["float64", [4, 8]], "act": ""}, {"x": ["float32", ["n", 8]], "act": "RELU"}]
    lines = [json.dumps({"op": "CliScaled", "call": call}) for call in calls]
    record.write_text("\n".join([*lines, '{"op": "Another", "call": {}}']))
    done = run("build", source, "-o", tmp_path / "out", "--signatures", record, "--json")
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    shapes = [kernel["shapes"] for kernel in answer["kernels"]]
    assert shapes == ["s0x8", "4x8"]  # the stated one is not there twice
    assert answer["notes"] == ["calls of other ops are left out: Another"]
    done = run("build", source, "-o", tmp_path / "out", "--signatures", record)
    assert "nothing has changed" in done.stdout

    record.write_text('{"op": 1}')
    done = run("build", source, "-o", tmp_path / "x", "--signatures", record)
    assert (done.exit_code, str(record) in done.output) == (1, True)


@pytest.mark.slow
def test_two_folders_two_processes_and_two_definitions(built, tmp_path):
    source, out, _ = built
    printed = in_a_process("build", source, "-o", tmp_path / "same", "--target", "x86-64-v2")
    assert re.search(r"built .*: 1 ops, 1 kernels", printed)
    names = [path.name for path in out.iterdir() if path.name != "timings.json"]
    _, different, missing = filecmp.cmpfiles(out, tmp_path / "same", names, shallow=False)
    assert (different, missing) == ([], [])

    other = sources(tmp_path / "other", offset=1)
    in_a_process("build", other, "-o", tmp_path / "differs", "--kinds", 0)
    library = composite.load(out)
    assert composite.load(tmp_path / "same") is library  # the same bytes
    with pytest.raises(ValueError, match="CliScaled of .*differs has another body"):
        composite.load(tmp_path / "differs")


def test_a_depfile_names_what_the_library_is_made_of(built):
    source, out, _ = built
    depfile = source.parent / "the $stamp.d"
    done = run("build", source, "-o", out, "--target", "x86-64-v2", "--depfile", depfile)
    assert "nothing has changed" in done.stdout
    files = [str(source.parent / name) for name in ("cli_helpers.py", "cli_ops.py")]
    target = str(source.parent / "the\\ $$stamp")
    assert depfile.read_text().splitlines() == [
        f"{target}: {' '.join(files)}",
        *(f"{file}:" for file in files),
    ]
    depfile.unlink()
