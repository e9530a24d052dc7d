"""What tests of modules build: the program that calls one with strings, and a library of ops."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import tensorflow as tf

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


def words_program(out: Path) -> Path:
    """words.c, linked as examples/hybrid is."""
    shutil.copy(HERE / "words.c", out / "classify.c")
    command = ["make", "-C", str(out), "-f", str(ROOT / "examples" / "hybrid" / "Makefile")]
    made = [f"PYTHON={sys.executable}", f"OUT={out}"]
    subprocess.run([*command, *made], check=True, capture_output=True)
    return out / "classify"


def ops_library(out: Path) -> Path:
    """tree_ops.cc."""
    flags = [*tf.sysconfig.get_compile_flags(), *tf.sysconfig.get_link_flags()]
    command = ["g++", "-O1", "-w", "-shared", "-fPIC", str(HERE / "tree_ops.cc"), *flags]
    subprocess.run([*command, "-o", str(out / "tree_ops.so")], check=True)
    return out / "tree_ops.so"


def called(program: Path, *arguments: object, calls: list[list[str]]) -> tuple[str, str]:
    """What the program prints for calls with these words, and its errors."""
    lines = "".join("\t".join(words) + "\n" for words in calls)
    command = [str(program), *map(str, arguments)]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
    return done.stdout, done.stderr
