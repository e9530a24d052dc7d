"""Virtual environments that hold chosen distributions and what these require, and nothing else.

Installing TensorFlow again would unpack a gigabyte and need a network, so the files are links into
the running environment. What is not linked is not there: a missing entry in a wheel's metadata, or
an import that only a developer's environment satisfies, fails as it would for a user. pip reads the
linked metadata, and resolves the requirements of what it installs against them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


class Environment:
    """A virtual environment in a folder."""

    def __init__(self, folder: Path, requirements: Iterable[str] = ()) -> None:
        venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
        self.folder = folder
        self.python = folder / "bin" / "python"
        scheme = sysconfig.get_preferred_scheme("prefix")
        names = {"base": str(folder), "platbase": str(folder)}
        self.site = Path(sysconfig.get_path("purelib", scheme, names))
        for distribution in closure(requirements):
            self._link(distribution)

    def _link(self, distribution: metadata.Distribution) -> None:
        assert distribution.files, distribution
        for top in {file.parts[0] for file in distribution.files} - {"..", "__pycache__"}:
            link = self.site / top
            if not link.exists():  # two distributions may share a namespace
                link.symlink_to(Path(str(distribution.locate_file(top))))

    def pip(self, *arguments: str | Path, cwd: Path | None = None) -> str:
        """Runs pip on this environment, without any index: what is not linked cannot be had."""
        outer = [sys.executable, "-m", "pip", "--isolated", "--python", str(self.python)]
        return _checked([*outer, *map(str, arguments)], cwd or self.folder, self.variables())

    def run(self, *arguments: str | Path, cwd: Path | None = None) -> str:
        """Runs a command of this environment, as `python`, and returns what it printed."""
        command = [str(self.folder / "bin" / arguments[0]), *map(str, arguments[1:])]
        return _checked(command, cwd or self.folder, self.variables())

    def variables(self) -> Mapping[str, str]:
        """The process environment, without what points Python at a checkout."""
        kept = {n: v for n, v in os.environ.items() if not n.startswith(("PYTHON", "PYTEST"))}
        path = [str(self.folder / "bin"), kept.get("PATH", "")]
        return kept | {"PATH": os.pathsep.join(path), "VIRTUAL_ENV": str(self.folder)}


def required(wheel: Path, *extras: str) -> list[str]:
    """The requirements that a wheel's metadata states, those of the extras included."""
    folder = "-".join(wheel.name.split("-")[:2]) + ".dist-info/"
    requires = metadata.PathDistribution(zipfile.Path(wheel, folder)).requires or ()
    found = []
    for one in map(Requirement, requires):
        if not one.marker or any(one.marker.evaluate({"extra": e}) for e in ("", *extras)):
            one.marker = None
            found.append(str(one))
    return found


def closure(requirements: Iterable[str]) -> list[metadata.Distribution]:
    """The installed distributions that requirements lead to, their extras included."""
    found: dict[tuple[str, str], metadata.Distribution] = {}
    pending = [(Requirement(text), "") for text in requirements]
    while pending:
        requirement, for_extra = pending.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": for_extra}):
            continue
        for extra in ("", *requirement.extras):
            key = (canonicalize_name(requirement.name), extra)
            if key not in found:
                found[key] = metadata.distribution(requirement.name)
                required = found[key].requires or ()
                pending += [(Requirement(text), extra) for text in required]
    return list({name: one for (name, _), one in sorted(found.items())}.values())


def _checked(command: list[str], cwd: Path, variables: Mapping[str, str]) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}"
    return done.stdout
