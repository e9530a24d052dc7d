"""`python -m benchmarks.gpu`: check kernels on this machine's GPU and time them.

`bundle` makes the kernels; `check` times nothing and leaves out the sizes for that, which is what
compute-sanitizer runs.
Exit status: 0 if all is well or there is no GPU; 1 if a result is wrong; 2 if a GPU is there, and
neither the kernels nor TensorFlow to make them.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.gpu import bundle, integration, page, probes
from benchmarks.gpu.driver import Driver, DriverError
from benchmarks.gpu.run import Outcome, outcomes
from benchmarks.gpu.torch_peer import available
from benchmarks.gpu.works import works

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "gpu"
PAGE = ROOT / "docs" / "gpu-performance.md"
_TOOLS = ("memcheck", "racecheck", "synccheck")


def make_bundle() -> None:
    """Write the kernels into the folder of the bundle."""
    from benchmarks.gpu import make

    make.make(works(), FOLDER)
    probes.make(FOLDER, make.LEVELS)


def say(one: Outcome) -> None:
    """A line for a work."""
    taken = f"  {one.seconds * 1e6:9.1f} us" if one.seconds else ""
    taken += f", PyTorch {one.peer * 1e6:9.1f} us" if one.peer else ""
    print(f"{one.work:45s} {one.strategy or '-':25s}{taken}  {one.wrong or 'right'}", flush=True)


def sanitized() -> dict[str, str]:
    """What compute-sanitizer's tools find in the checks; nothing where it is not installed."""
    tool = shutil.which("compute-sanitizer")
    check = [sys.executable, "-m", "benchmarks.gpu", "check"]
    started = {
        name: subprocess.Popen(
            [str(tool), "--tool", name, "--error-exitcode", "3", *check],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for name in (_TOOLS if tool else ())
    }  # fmt: skip
    verdicts = {}
    for name, process in started.items():
        said, _ = process.communicate()
        last = (said.strip().splitlines() or ["it said nothing"])[-1]
        verdicts[name] = "nothing found" if process.returncode == 0 else f"**{last}**"
    return verdicts


def main(arguments: list[str]) -> int:
    """Run a command; return the exit status."""
    if arguments == ["bundle"]:
        make_bundle()
        return 0
    try:
        driver = Driver()
    except DriverError as error:
        print(f"make gpu: nothing to do, for {error}")
        return 0
    checks = arguments == ["check"]
    if importlib.util.find_spec("tensorflow") is not None and not checks:
        make_bundle()  # of the compiler as it is
    elif not bundle.is_there(FOLDER):
        print(f"make gpu: no kernels in {FOLDER}, and no TensorFlow to make them: "
              "run `make gpu-bundle` where it is, and copy the folder")  # fmt: skip
        return 2
    peer = None if checks else available()
    found = []
    for one in outcomes(works(), FOLDER, driver, timed=not checks, peer=peer):
        say(one)
        found.append(one)
    wrong = any(one.wrong and one.strategy for one in found)
    if not checks:
        _, made_with = bundle.load(FOLDER, driver.level)
        machine = {
            "GPU": f"{driver.name}, {driver.level}, {driver.multiprocessors} multiprocessors",
            "driver": f"CUDA {driver.version}",
            "peer": peer.version if peer else "none",
            **made_with,
        }
        tools = {f"compute-sanitizer, {tool}": said for tool, said in sanitized().items()}
        if integration.available():
            nodes = integration.verdicts()
            tools |= {f"nodes of TensorFlow's, {name}": said for name, said in nodes.items()}
        wrong = wrong or any(verdict.startswith("**") for verdict in tools.values())
        text = page.page(machine, probes.measure(driver, FOLDER), found, tools)
        PAGE.write_text(text, encoding="utf-8")
        print(f"make gpu: wrote {PAGE}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
