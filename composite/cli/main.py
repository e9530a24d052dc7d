"""The command `composite` and what its commands share: errors, exit codes, --debug.

Not for: what a command does (a module each).
"""

from __future__ import annotations

import os
from importlib import resources
from typing import Any

import click

import composite
from composite.binding import tensorflow_version
from composite.cli import failures
from composite.cli.accelerate import accelerate
from composite.cli.bench import bench
from composite.cli.bisect import bisect
from composite.cli.build import build
from composite.cli.cache import cache
from composite.cli.check import check
from composite.cli.config import config
from composite.cli.diverge import diverge
from composite.cli.explain import explain
from composite.cli.export import export
from composite.cli.info import info
from composite.cli.lint import lint
from composite.cli.machine import machine
from composite.cli.opt import opt
from composite.cli.recognize import recognize
from composite.cli.replay import replay
from composite.cli.run import run
from composite.cli.show import show
from composite.cli.tune import merge, tune

_EPILOG = """\b
Exit codes:
  0    done
  1    the input is wrong: a file, an op, a call; an op without a kernel (lint)
  2    the command line is wrong
  3    an op differs from its Python function (check), or run in another way (diverge)
  4    the machine stands in the way: no permission, no room, no C compiler
  70   an error in composite itself
  130  interrupted
\b
Completion: eval "$(_COMPOSITE_COMPLETE=bash_source composite)"  (or zsh_source, fish_source)
"""


class _Commands(click.Group):
    """A group whose errors are one message and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs a command; an error ends in its message unless --debug asks for the traceback."""
        try:
            tensorflow_version.check()
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise  # click ends with them; nobody reads any more after the last
        except KeyboardInterrupt:
            ctx.exit(failures.INTERRUPTED)
        except Exception as error:  # the last handler there is
            if ctx.params["debug"]:
                raise
            failure = failures.told(error)
            click.echo(f"composite: {failure.message}", err=True)
            ctx.exit(failure.code)


def _print_cmake_dir(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(resources.files("composite").joinpath("cmake"))
        ctx.exit()


@click.group(
    cls=_Commands, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(composite.__version__, prog_name="composite")
@click.option(
    "--cmake-dir",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_cmake_dir,
    help="Print the folder of CompositeConfig.cmake: -DComposite_DIR=...",
)
def main(*, debug: bool) -> None:  # noqa: ARG001 - read by _Commands
    """TensorFlow ops written in Python: build libraries of them, check them, look into them.

    \b
    Example:
      composite build ops.py -o out --name test_ops
    """  # noqa: D301 - click's mark for lines that are not rewrapped
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


for _command in (
    build,
    cache,
    check,
    config,
    diverge,
    lint,
    show,
    explain,
    bench,
    tune,
    merge,
    export,
    info,
    machine,
    accelerate,
    bisect,
    recognize,
    opt,
    replay,
    run,
):
    main.add_command(_command)
