"""The command line itself: help, exit codes, messages."""

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import composite
from composite.cli import failures
from composite.cli.main import main
from composite.compiler.tvm.link import LinkError

COMMANDS = (
    *(
        "accelerate",
        "bench",
        "bisect",
        "build",
        "cache",
        "check",
        "config",
        "explain",
        "export",
        "lint",
        "merge",
        "recognize",
        "replay",
        "run",
    ),
    *("show", "tune"),
)


def run(*args):
    return CliRunner().invoke(main, [str(arg) for arg in args])


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help_with_an_example(command):
    done = run(command, "--help")
    assert done.exit_code == 0
    assert f"composite {command} " in done.output
    assert f"  {command}  " in run("--help").output


def test_help_imports_nothing_heavy(run_python):
    done = run_python(
        "import sys\n"
        "from composite.cli.main import main\n"
        "main(['--help'], standalone_mode=False)\n"
        "print(*sorted({m.split('.')[0] for m in sys.modules}))",
        bare=True,
    )
    *_, modules = done.stdout.splitlines()
    assert not {"tensorflow", "tvm", "torch_mlir", "numpy", "rich"} & set(modules.split())


@pytest.mark.parametrize(
    "args",
    [
        ["--no-such-option"],
        ["build"],
        ["build", "ops.py"],
        ["show", "ops.py", "--stage", "nonsense"],
        ["build", __file__, "-o", "x", "--name", "no name"],
    ],
)
def test_a_wrong_command_line_is_2(args):
    done = run(*args)
    assert done.exit_code == 2
    assert "Error: " in done.output


@pytest.mark.parametrize("command", ["check", "lint", "show", "explain", "bench", "tune"])
def test_a_missing_file_is_1(command, tmp_path):
    done = run(command, tmp_path / "ops.py:dense")
    assert done.exit_code == 1
    assert done.output == f"composite: there is no file {tmp_path / 'ops.py'}\n"


def test_debug_lets_the_error_through(tmp_path):
    done = run("--debug", "build", tmp_path / "ops.py", "-o", tmp_path / "out")
    assert isinstance(done.exception, FileNotFoundError)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EFBIG])
def test_what_the_machine_refuses_is_4(number):
    error = OSError(number, os.strerror(number), "/out/x")
    assert failures.told(error) == (4, f"/out/x: {os.strerror(number)}")


def test_an_error_of_ours_says_so():
    code, message = failures.told(RuntimeError("odd"))
    assert code == 70
    assert "an error in composite itself, RuntimeError: odd" in message
    assert failures.told(LinkError("cc could not link lib.so (exit 1): no room")) == (
        4,
        "cc could not link lib.so (exit 1): no room",
    )


def test_an_interrupted_command_is_130(monkeypatch):
    def interrupted(self, ctx):
        raise KeyboardInterrupt

    monkeypatch.setattr(click.Command, "invoke", interrupted)
    assert run("show", "ops.py").exit_code == 130


def test_the_shell_completes_commands(monkeypatch):
    monkeypatch.setenv("COMP_WORDS", "composite b")
    monkeypatch.setenv("COMP_CWORD", "1")
    runner = CliRunner(env={"_COMPOSITE_COMPLETE": "bash_complete"})
    done = runner.invoke(main, [], prog_name="composite")
    assert done.output.split() == ["plain,bench", "plain,bisect", "plain,build"]


def test_cmake_finds_its_files():
    folder = Path(run("--cmake-dir").output.strip())
    assert {path.name for path in folder.iterdir()} == {
        "CompositeConfig.cmake",
        "CompositeConfigVersion.cmake",
    }


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ("composite show ops.py --st", ["plain,--stage"]),
        ("composite show ops.py --stage t", ["plain,te", "plain,tir"]),
        ("composite check op", ["file,op"]),
    ],
)
def test_the_shell_completes_options_their_values_and_files(monkeypatch, words, completions):
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    runner = CliRunner(env={"_COMPOSITE_COMPLETE": "bash_complete"})
    assert runner.invoke(main, [], prog_name="composite").output.split() == completions


def test_bash_completes_as_docs_cli_says(tmp_path):
    page = (Path(__file__).parents[3] / "docs" / "cli.md").read_text(encoding="utf-8")
    (documented,) = re.findall(r"```bash\n(eval .*)\n```", page)
    shim = tmp_path / "composite"
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m composite "$@"\n')
    shim.chmod(0o755)
    # What bash itself does at a tab: it calls the function that `complete` names.
    script = (
        f"{documented}\n"
        "function=$(complete -p composite | sed 's/.*-F \\([^ ]*\\).*/\\1/')\n"
        "COMP_WORDS=(composite exp) COMP_CWORD=1\n"
        '"$function" composite\n'
        'echo "${COMPREPLY[@]}"\n'
    )
    env = os.environ | {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(Path(composite.__file__).parents[1]), *sys.path]),
    }
    done = subprocess.run(
        ["bash", "-c", script], env=env, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("explain export\n", 0), done.stderr
