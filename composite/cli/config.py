"""`composite config`: what compilers are told of headers and libraries, as pkg-config tells it."""

from __future__ import annotations

import shlex
from importlib import util
from pathlib import Path

import click

_TENSORFLOW = ("libtensorflow_cc.so.2", "libtensorflow_framework.so.2")


@click.command(short_help="Print the compiler's flags for a C or C++ program.")
@click.option("--cflags", is_flag=True, help="Where the headers are.")
@click.option("--libs", is_flag=True, help="The libraries, for the linker and the loader.")
@click.option("--hybrid", is_flag=True, help="TVM's runtime, too, for composite.hybrid's modules.")
@click.option(
    "rpaths",
    "--rpath",
    multiple=True,
    metavar="FOLDER",
    help="Where the libraries are on the machine that runs the program, such as $ORIGIN, if not "
    "where they are here; may be given several times.",
)
def config(rpaths: tuple[str, ...], *, cflags: bool, libs: bool, hybrid: bool) -> None:
    """Print the flags that build a C or C++ program against the packages of this Python.

    \b
    Examples:
      cc serve.c $(composite config --cflags --libs) -o serve
      c++ classify.cc $(composite config --hybrid --cflags --libs) -o classify

    The program finds the libraries by itself, without LD_LIBRARY_PATH.
    """  # noqa: D301 - click's mark for lines that are not rewrapped
    if not cflags and not libs:
        raise click.UsageError("say --cflags, --libs or both")
    flags = [*(headers() if cflags else []), *(libraries(hybrid, rpaths) if libs else [])]
    click.echo(shlex.join(flags))


def headers() -> list[str]:
    """The compiler's flags: our headers, of a wheel or of a checkout, and TensorFlow's."""
    ours = _folder("composite")
    include = ours / "include"
    return [
        f"-I{include if include.is_dir() else ours.parent}",
        "-isystem",
        str(_folder("tensorflow") / "include"),
    ]


def libraries(hybrid: bool, rpaths: tuple[str, ...] = ()) -> list[str]:
    """The linker's flags. `rpaths`: folders at run time, in the place of those of the packages."""
    found: dict[Path, tuple[str, ...]] = {_folder("tensorflow"): _TENSORFLOW}
    if hybrid:
        found[_folder("tvm") / "lib"] = ("libtvm_runtime.so",)
        found[_folder("tvm_ffi") / "lib"] = ("libtvm_ffi.so",)
    found[_folder("composite") / "runtime"] = ("libcomposite_runtime.so",)
    flags = ["-Wl,--no-as-needed"]
    for folder, names in found.items():
        flags += [f"-L{folder}", *(f"-l:{name}" for name in names)]
    flags += [f"-Wl,-rpath,{folder}" for folder in rpaths or found]
    return [*flags, "-Wl,--allow-shlib-undefined"]


def _folder(package: str) -> Path:
    """The folder of an installed package, which is not imported."""
    spec = util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"{package} is not installed in this Python")
    return Path(next(iter(spec.submodule_search_locations)))
