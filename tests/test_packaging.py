"""The project's wheel and that of examples/out_of_tree, where nothing else of the project is.

The wheel under test is the one that `make wheel` makes: by the same backend, in the folder that
`make build` has compiled in, so that what a release would compile is compiled once, and with the
tag that auditwheel gives it.

Two environments hold it (see `environments`): one as of somebody who builds ops, with TVM and MLIR,
and one as of a user, who has TensorFlow alone.
"""

from __future__ import annotations

import importlib.metadata as importlib_metadata
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

import composite
from tests.environments import Environment, required

pytestmark = pytest.mark.slow

ROOT = Path(composite.__file__).parents[1]
BUILD = ROOT / "build" / "cmake"
EXAMPLE = ROOT / "examples" / "out_of_tree"
TENSORFLOW = "tensorflow-cpu"
# From there the tests take the package that is installed, and reach all that it is made of: C++,
# the compiler's data, the command line.
TESTED = (
    "tests/composite/ops/test_call.py",
    "tests/composite/aot/test_library.py",
    "tests/composite/cli/test_main.py",
    "tests/composite/cli/test_build.py",
)


# What a process that runs Python and TensorFlow has mapped, or every manylinux system has.
TENSORFLOW_LIBRARIES = {"libtensorflow_cc.so.2", "libtensorflow_framework.so.2"}
SYSTEM_LIBRARIES = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "libgcc_s.so.1",
                    "libstdc++.so.6", "ld-linux-x86-64.so.2"}  # fmt: skip


def manylinux(wheel, out, *excluded):
    """The wheel with the tag of the oldest glibc that it runs with; no library in it is changed."""
    command = [sys.executable, "-m", "auditwheel", "repair", "--patcher", "none", "-w", str(out)]
    for pattern in excluded:
        command += ["--exclude", pattern]
    subprocess.run([*command, str(wheel)], check=True)
    (made,) = out.glob("*-manylinux_*.whl")
    return made


@pytest.fixture(scope="module")
def plain_wheel(tmp_path_factory):
    assert (BUILD / "CMakeCache.txt").is_file(), "the runtime has to be compiled: make build"
    out = tmp_path_factory.mktemp("plain")
    scripts = sysconfig.get_path("scripts")
    command = [sys.executable, "-m", "pip", "--isolated", "wheel", "--no-index", "--no-deps"]
    command += ["--no-build-isolation", "--config-settings", f"build-dir={BUILD}"]
    subprocess.run(
        [*command, "-w", str(out), str(ROOT)],
        env=os.environ | {"PATH": os.pathsep.join([scripts, os.environ["PATH"]])},
        check=True,
    )
    (made,) = out.glob("tf_composite-*.whl")
    return made


@pytest.fixture(scope="module")
def wheel(plain_wheel, tmp_path_factory):
    return manylinux(plain_wheel, tmp_path_factory.mktemp("dist"), "libtensorflow_*")


@pytest.fixture(scope="module")
def author(wheel, tmp_path_factory):
    """The environment of somebody who writes ops and tests them."""
    tools = ["scikit-build-core", "cmake", "ninja", "pytest", "hypothesis"]
    requirements = [*required(wheel, "compiler", "cpu"), *tools]
    environment = Environment(tmp_path_factory.mktemp("author") / "venv", requirements)
    environment.pip("install", "--no-index", f"{wheel}[compiler,cpu]")
    environment.pip("check")
    return environment


@pytest.fixture(scope="module")
def user(wheel, tmp_path_factory):
    """The environment of somebody who installs a wheel of ops."""
    requirements = [*required(wheel), TENSORFLOW, "pytest"]
    environment = Environment(tmp_path_factory.mktemp("user") / "venv", requirements)
    environment.pip("install", "--no-index", wheel)
    environment.pip("check")
    return environment


def data_of(folder):
    """What of the sources under a folder belongs into a wheel."""
    kinds = {".py", ".typed", ".mlir", ".cmake", ".css", ".js", ".c"}
    files = (path for path in (ROOT / folder).rglob("*") if path.suffix in kinds)
    return {path.relative_to(ROOT).as_posix() for path in files}


def files_of(wheel):
    """The files of a wheel but for its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = {one.filename for one in archive.infolist() if not one.is_dir()}
    return {name for name in names if ".dist-info/" not in name}


def test_what_the_wheel_holds(wheel):
    ours = files_of(wheel)
    compiler = {f"composite/{name}" for name in data_of("compiler")}
    built = {
        f"composite/runtime/{n}"
        for n in ("libcomposite_runtime.so", "libcomposite_standalone.so", "build_info.json")
    }
    apis = ("c_api.h", "hybrid_c_api.h", "library_c_api.h", "standalone_c_api.h")
    headers = {f"composite/include/composite/runtime/{name}" for name in apis}
    assert ours == data_of("composite") | compiler | built | headers
    expected = {"composite/py.typed", "composite/cmake/CompositeConfig.cmake"}
    assert expected | {"composite/compiler/tfr/tfr.irdl.mlir"} <= ours


def libraries_of(wheel):
    """The shared libraries in a wheel, by name."""
    with zipfile.ZipFile(wheel) as archive:
        return {n: archive.read(n) for n in archive.namelist() if n.endswith(".so")}


def glibc_of(wheel):
    """The minor version of glibc 2 in a wheel's tag."""
    (found,) = re.findall(r"-py3-none-manylinux_2_(\d+)_x86_64\.whl$", wheel.name)
    return int(found)


def needed_by(library):
    """The libraries that an ELF file needs, and the versions of symbols that it takes from them."""
    file = ELFFile(io.BytesIO(library))
    names, versions = set(), {}
    for section in file.iter_sections():
        if isinstance(section, DynamicSection):
            names |= {tag.needed for tag in section.iter_tags("DT_NEEDED")}
        elif isinstance(section, GNUVerNeedSection):
            for of, symbols in section.iter_versions():
                versions[of.name] = {symbol.name for symbol in symbols}
    return names, versions


def test_the_tag_names_a_glibc_that_has_what_the_libraries_need(plain_wheel, wheel):
    libraries = libraries_of(wheel)
    assert libraries == libraries_of(plain_wheel)
    needed: dict[str, str] = {}
    for name, library in libraries.items():
        names, versions = needed_by(library)
        own = SYSTEM_LIBRARIES if "standalone" in name else SYSTEM_LIBRARIES | TENSORFLOW_LIBRARIES
        assert names <= own, name
        needed |= {version: name for symbols in versions.values() for version in symbols}
    minors = {int(v.split(".")[1]): v for v in needed if re.fullmatch(r"GLIBC_2\.[\d.]+", v)}
    assert max(minors) <= glibc_of(wheel) <= int(platform.libc_ver()[1].split(".")[1]), needed


def test_it_can_be_installed_wherever_tensorflow_can(wheel):
    stamp = json.loads((ROOT / "composite" / "runtime" / "build_info.json").read_text("utf-8"))
    if int(stamp["compiler"].split()[1].split(".")[0]) > 12:
        pytest.skip(f"{stamp['compiler']} uses symbols of newer systems, see docs/packaging.md")
    command = [sys.executable, "-m", "auditwheel", "show", str(wheel)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (tag,) = re.findall(r'constrains the platform tag to\s+"(manylinux_2_\d+)_x86_64"', said)
    tensorflow = importlib_metadata.distribution(TENSORFLOW).read_text("WHEEL") or ""
    (theirs,) = re.findall(r"manylinux_2_(\d+)_x86_64", tensorflow)
    assert int(tag.rpartition("_")[2]) <= int(theirs), said


def test_no_path_of_this_machine_travels(wheel):
    with zipfile.ZipFile(wheel) as archive:
        library = archive.read("composite/runtime/libcomposite_runtime.so")
    for folder in (ROOT, sysconfig.get_path("purelib")):
        assert str(folder).encode() not in library


def test_its_metadata(wheel):
    dist_info = f"tf_composite-{composite.__version__}.dist-info/"
    distribution = importlib_metadata.PathDistribution(zipfile.Path(wheel, dist_info))
    facts = distribution.metadata
    assert facts["Name"] == "tf-composite"
    assert facts["Version"] == composite.__version__
    assert facts["License-Expression"] == "Apache-2.0"
    assert facts["Requires-Python"] == "<3.14,>=3.10"
    assert {"compiler", "cpu", "test", "dev"} <= set(facts.get_all("Provides-Extra", []))
    assert not [one for one in required(wheel) if "tensorflow" in one]  # it is the user's choice
    (script,) = distribution.entry_points
    assert (script.group, script.name) == ("console_scripts", "composite")
    # The C++ is loaded by ctypes and belongs to a TensorFlow, not to a Python.
    tags = distribution.read_text("WHEEL") or ""
    assert f"Tag: py3-none-manylinux_2_{glibc_of(wheel)}_x86_64" in tags.splitlines()


def test_twine_has_nothing_to_say(wheel, example_wheel):
    command = [sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(example_wheel)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == 2


def test_the_source_distribution_has_all_that_a_wheel_is_built_from(tmp_path):
    from scikit_build_core.build import build_sdist

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        name = build_sdist(str(tmp_path))
    with tarfile.open(tmp_path / name) as archive:
        names = {member.partition("/")[2] for member in archive.getnames()}
    native = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "composite" / "runtime").rglob("*")
        if path.suffix in (".cc", ".h")
    }
    wanted = native | data_of("compiler") | data_of("composite")
    wanted |= {"pyproject.toml", "README.md", "LICENSE", "CMakeLists.txt"}
    assert wanted <= names
    assert not [
        name for name in names if name.endswith(".so") or name.startswith(("build/", ".venv"))
    ]


def test_the_command_line(author, user):
    for environment in (author, user):
        assert environment.run("composite", "--version") == (
            f"composite, version {composite.__version__}\n"
        )
        folder = environment.run("composite", "--cmake-dir").strip()
        assert Path(folder) == environment.site / "composite" / "cmake"


def test_the_tests_pass_from_there(author, tmp_path):
    """Without the checkout: all that is copied are the tests, and what they read beside them."""
    ignored = shutil.ignore_patterns("__pyc*")
    for folder in ("tests", "examples", "docs"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    options = ["-q", "-m", "not slow and not timed", "-p", "no:cacheprovider"]
    printed = author.run("python", "-m", "pytest", *options, *TESTED, cwd=tmp_path)
    assert " passed" in printed
    where = author.run("python", "-c", "import composite; print(composite.__file__)")
    assert Path(where.strip()).is_relative_to(author.site)


def test_a_user_who_compiles_is_told_what_to_install(user, tmp_path):
    (tmp_path / "ops.py").write_text(
        'from composite import Composite\n\n\n@Composite("Same", inputs=["x: float"], '
        'outputs=["y: float"])\ndef same(x):\n    return x\n'
    )
    code = (
        "import sys\n"
        "from composite.cli.main import main\n"
        f"main(['build', {str(tmp_path / 'ops.py')!r}, '-o', {str(tmp_path / 'out')!r}])\n"
    )
    with pytest.raises(AssertionError) as error:
        user.run("python", "-c", code)
    assert "pip install 'tf-composite[compiler]'" in str(error.value)
    assert "Traceback" not in str(error.value).partition("\n")[2]


# ---- examples/out_of_tree -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """A copy of the example, which is no part of the checkout any more."""
    folder = tmp_path_factory.mktemp("outside") / "gated-ops"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("build", "dist", "__pyc*"))
    return folder


@pytest.fixture(scope="module")
def example_wheel(example, author):
    options = ["--no-index", "--no-deps", "--no-build-isolation", "--check-build-dependencies"]
    author.pip("wheel", *options, "-w", example / "dist", example)
    (made,) = (example / "dist").glob("gated_ops-*.whl")
    repaired = manylinux(made, example / "dist", "libcomposite_runtime.so")
    assert libraries_of(repaired) == libraries_of(made)  # whose hashes the manifest has
    return repaired


def test_the_example_holds_its_library(example_wheel):
    library = {"gated.py", "gated.pyi", "gated.mlir", "gated.md", "libgated.so", "manifest.json"}
    library.add("libgated_kernels.so")
    assert files_of(example_wheel) == {"gated_ops/__init__.py", "gated_ops/py.typed"} | {
        f"gated_ops/library/{name}" for name in library | {"timings.json"}
    }
    assert glibc_of(example_wheel) >= 5


def test_the_example_runs_where_nothing_compiles(example, example_wheel, user):
    user.pip("install", "--no-index", example_wheel)
    user.pip("check")
    printed = user.run("python", "-m", "pytest", "-q", "tests", cwd=example)
    assert "4 passed" in printed
    for module in ("tvm", "torch_mlir"):
        code = f"import importlib.util; print(importlib.util.find_spec({module!r}))"
        assert user.run("python", "-c", code) == "None\n"


def test_the_example_can_be_installed_to_be_worked_on(example, example_wheel, author):
    """As `pip install -e`: the library is where it was built, and its modules are found there."""
    author.pip("install", "--no-index", "--no-deps", "--no-build-isolation", "-e", example)
    code = "from gated_ops import gated_tanh; print(gated_tanh([0.0], [1.0]).numpy())"
    assert author.run("python", "-c", code).endswith("[0.]\n")


def test_its_scikit_build_part_is_short():
    text = (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")
    assert len(text.partition("[tool.scikit-build]")[2].splitlines()) <= 10
