"""Which files are somebody's own."""

import os
import sysconfig

import click
import pytest

from composite.aot import sources
from composite.aot.installed import is_installed


def test_what_came_with_python_or_a_package_is_installed():
    assert is_installed(os.__file__)
    assert is_installed(click.__file__)
    assert not is_installed(__file__)


@pytest.mark.parametrize("kind", ["site-packages", "dist-packages"])
def test_packages_of_other_environments_are_installed(tmp_path, kind):
    """As in pip's environments for builds, of which sysconfig knows nothing; as file or as link."""
    real = tmp_path / "store" / "package"
    real.mkdir(parents=True)
    (real / "module.py").touch()
    folder = tmp_path / "overlay" / "lib" / kind
    folder.mkdir(parents=True)
    (folder / "package").symlink_to(real)
    assert is_installed(str(folder / "package" / "module.py"))
    assert not is_installed(str(real / "module.py"))
    (tmp_path / "elsewhere").symlink_to(sysconfig.get_path("purelib"))
    assert is_installed(str(tmp_path / "elsewhere" / "click" / "core.py"))


def test_a_library_is_made_of_no_installed_file_but_the_one_that_was_named(tmp_path, monkeypatch):
    folder = tmp_path / "overlay" / "site-packages"
    folder.mkdir(parents=True)
    (folder / "installed_ops.py").write_text("import installed_numbers\nimport click\n")
    (folder / "installed_numbers.py").write_text("FACTOR = 2.0\n")
    (tmp_path / "own.py").write_text("import installed_numbers\n")
    monkeypatch.syspath_prepend(str(folder))
    installed = sources.load(folder / "installed_ops.py")
    assert sources.files(installed) == [folder / "installed_ops.py"]
    assert sources.files(sources.load(tmp_path / "own.py")) == [tmp_path / "own.py"]
