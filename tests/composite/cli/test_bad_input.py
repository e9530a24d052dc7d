"""Bad input to each command: one message, a code that is not 0, no traceback."""

import pytest
from click.testing import CliRunner

from composite.cli.main import main

COMMANDS = ("bench", "build", "check", "explain", "show")
GOOD = '''
from composite import Composite

@Composite("BadInputGood", inputs=["x: float"], outputs=["y: float"])
def good(x):
    """Adds."""
    return x + 1.0
'''
FILES = {
    "syntax.py": (b"x = (\n", "SyntaxError: '(' was never closed"),
    "bytes.py": (b"x = '\xff'\n", "can't decode byte 0xff"),
    "null.py": (b"x = 1\0\n", "null.py"),
    "empty.py": (b"", "empty.py defines no composite op"),
    "exits.py": (b"raise SystemExit(0)\n", "exits.py ends the process when it is imported"),
    "raises.py": (b"\n{}['key']\n", "raises.py:2: KeyError: key"),
    "broken.py": (
        GOOD.replace("x + 1.0", "nothing(x)").replace("Good", "Broken").encode(),
        "in `good`:\n",
    ),
}


def failed(*args):
    """The exit code and the message of a command that fails as it should."""
    done = CliRunner().invoke(main, [str(arg) for arg in args])
    assert done.exit_code not in (0, 3, 70)  # nor as a difference, nor as an error of ours
    assert isinstance(done.exception, SystemExit)
    assert "Traceback" not in done.output
    assert done.output.count("composite: ") + done.output.count("Error: ") >= 1
    return done.exit_code, done.output


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    path = tmp_path_factory.mktemp("bad_input") / "bad_input_good.py"
    path.write_text(GOOD)
    return path


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_source_of_ops(tmp_path, command, name):
    content, message = FILES[name]
    (tmp_path / name).write_bytes(content)
    out = ["-o", tmp_path / "out"] if command == "build" else []
    code, output = failed(command, tmp_path / name, *out)
    assert (code, message in output) == (1, True), output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--signatures", "{folder}/none.json"], 1, "none.json: No such file or directory"),
        (["--signatures", "{folder}"], 1, ": Is a directory"),
        (["--signatures", "{folder}/binary.json"], 1, "binary.json is no text"),
        (["--signatures", "{folder}/half.json"], 1, "half.json:1: neither a JSON object"),
        (["--target", "z80"], 1, "'z80' is no level that kernels are made for: x86-64-v2"),
        (["--kinds", "-1"], 2, "-1 is not in the range"),
        (["-o", "{folder}/half.json"], 1, "half.json is no library of composite.build"),
        (["-o", "{folder}/half.json/out"], 1, "half.json: Not a directory"),
    ],
)
def test_options_of_build(good, tmp_path, options, code, message):
    (tmp_path / "binary.json").write_bytes(b"\xff")
    (tmp_path / "half.json").write_text("{")
    before = sorted(tmp_path.iterdir())
    given = [option.format(folder=tmp_path) for option in options]
    found, output = failed("build", good, "-o", tmp_path / "out", *given)
    assert (found, message in output) == (code, True), output
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["show", "{good}:nothing"], 1, "there is no op 'nothing'; there are good"),
        (["show", "{good}", "--html", "{folder}/none/x.html"], 1, "x.html: No such file"),
        (["show", "{good}", "--stage", "asm", "-s", "x=4", "--target", "z80"], 1, "'z80' is no"),
        (["explain", "{good}"], 2, "state the shapes of good's inputs: --shape x=..."),
        (["explain", "{good}", "-s", "x=4", "-d", "word"], 2, "there is no dtype 'word'"),
        (["explain", "{folder}"], 1, "holds no built library: it has no manifest.json"),
        (["check", "{good}", "--way", "none"], 1, "'none' is no way to run an op"),
        (["check", "{good}", "--samples", "0"], 2, "0 is not in the range"),
        (["bench", "{good}", "-s", "x=4", "--seconds", "0"], 2, "0.0 is not in the range"),
    ],
)
def test_options_of_the_others(good, tmp_path, args, code, message):
    given = [arg.format(folder=tmp_path, good=good) for arg in args]
    found, output = failed(*given)
    assert (found, message in output) == (code, True), output
