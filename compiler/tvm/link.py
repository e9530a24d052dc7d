"""Link kernels into a shared library with the system's C compiler driver.

No C or C++ is compiled. The library names its host library as needed, for the one symbol that a
kernel takes from it; the host fills the kernel's pointer slots after dlopen.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from composite.compiler.tvm.build import Kernel
from composite.compiler.tvm.machine import AARCH64

CROSS_DRIVER = "aarch64-linux-gnu-gcc"

_OTHER_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")
_ROOM = 16 << 20  # bytes; a library and its object files are a few hundred kilobytes at most


class LinkError(RuntimeError):
    """The system's linker is missing or failed; the message says what to do."""


def link(kernels: Kernel | Iterable[Kernel], path: str | Path, runtime: str | Path | None) -> None:
    """Write a loadable library of one kernel or several, replacing ``path`` atomically.

    Args:
        kernels: What to link; names must differ.
        path: The library to write.
        runtime: libcomposite_runtime.so, which becomes a needed library; None leaves its symbol
            to whoever loads the kernels.

    Raises:
        LinkError: If no C compiler driver is on PATH, or it fails.
    """
    several = [kernels] if isinstance(kernels, Kernel) else list(kernels)
    path = Path(path)
    with tempfile.TemporaryDirectory(prefix=".link-", dir=path.parent) as folder:
        files = []
        for kernel in several:
            for name, data in sorted(kernel.objects.items()):
                file = Path(folder) / name
                if file.exists():
                    raise ValueError(f"two kernels are named {name.removesuffix('.o')}")
                file.write_bytes(data)
                files.append(str(file))
        made = Path(folder) / path.name
        command = [
            driver(several[0].target.isa),
            "-shared",
            "-Wl,-z,now",
            "-o",
            str(made),
            *files,
            *_needed(runtime),
        ]
        _run(command, folder)
        os.replace(made, path)


def linked(kernels: Kernel | Iterable[Kernel], runtime: str | Path | None) -> bytes:
    """Return the bytes of the library that `link` writes. LinkError too if no folder has room."""
    several = [kernels] if isinstance(kernels, Kernel) else list(kernels)
    with tempfile.TemporaryDirectory(prefix="composite-", dir=_roomy()) as folder:
        path = Path(folder) / "kernels.so"
        link(several, path, runtime)
        return path.read_bytes()


def _roomy() -> str:
    """Return a folder for files of the moment that has room for them."""
    folders = [os.environ.get("TMPDIR") or "/tmp", *_OTHER_FOLDERS]
    for folder in folders:
        if os.access(folder, os.W_OK | os.X_OK):
            found = os.statvfs(folder)
            if found.f_bavail * found.f_frsize >= _ROOM:
                return folder
    raise LinkError(f"no folder has room for the linker's files: {', '.join(folders)}")


def _needed(runtime: str | Path | None) -> list[str]:
    # libm before the host: pow, sin and cos of the few functions that have no vector form.
    needed = ["-Wl,--as-needed", "-lm", "-Wl,--no-as-needed"]
    return needed if runtime is None else [*needed, str(Path(runtime).resolve())]


def driver(isa: str) -> str:
    """Return the C compiler driver that links for a CPU level; LinkError where there is none."""
    names = (CROSS_DRIVER,) if isa == AARCH64 else ("cc", "gcc", "g++", "clang")
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    package = "gcc-aarch64-linux-gnu" if isa == AARCH64 else "gcc"
    raise LinkError(
        f"linking a kernel needs a C compiler driver ({' or '.join(names)}) on PATH; "
        f"on Debian or Ubuntu: apt-get install {package}"
    )


def _run(command: list[str], folder: str) -> None:
    variables = os.environ | {"TMPDIR": folder}  # of the driver's own files
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        reason = lines[0] if lines else "it printed nothing"
        raise LinkError(
            f"{command[0]} could not link the kernel (exit {done.returncode}): {reason}"
        )
