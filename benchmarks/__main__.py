"""`python -m benchmarks [SUBJECT...]`: run the subjects, each in its own process; print a table."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from benchmarks import compare
from benchmarks.roofline.ceilings import Ceilings, Placed, place
from benchmarks.rows import Row, collect
from benchmarks.sides.team import KERNEL, PEERS_PYTHON
from benchmarks.timing import KINDS_ENVIRONMENT, QUICK_ENVIRONMENT, SEED_ENVIRONMENT
from benchmarks.works.gallery import GALLERY
from benchmarks.works.layers import LAYERS
from benchmarks.works.models import MODELS

SUBJECTS = (
    "roofline", "peers", "drawn", "growth", "dense", "training", "transformer", "gallery", "eager",
    "decorate", "background_compile", "xla", "idle", "memory", "levels", "models", "regions",
    "saved", "quantized", "ready",
)  # fmt: skip
ON_REQUEST = (
    "scaling",  # on machines with several processors
    "schedules",  # hours: what a change of schedules is judged by
)


def run(subject: str, *, quick: bool, kinds: Sequence[str] = ()) -> tuple[list[Row], int]:
    """The rows of one subject and the exit status of its process."""
    command = [sys.executable, "-m", f"benchmarks.subjects.{subject}"]
    settings = {QUICK_ENVIRONMENT: "1" if quick else "", KINDS_ENVIRONMENT: ",".join(kinds)}
    environment = os.environ | settings
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        rows = list(collect(process.stdout))
    return rows, process.returncode


def placed_of(subjects: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Placed]:
    """The kernels on the roofline; none unless both were measured."""
    ceilings = Ceilings.of(subjects.get("roofline", []))
    return place(ceilings, subjects.get("peers", []), KERNEL) if ceilings else []


def measured(
    subjects: Sequence[str], console: Console, *, quick: bool, kinds: Sequence[str] = ()
) -> dict[str, Any]:
    """The results of the subjects, as they are kept; what did not finish is named."""
    from benchmarks.report.machine import machine

    results: dict[str, list[Row]] = {}
    seconds: dict[str, int] = {}
    failed = []
    for subject in subjects:
        start = time.perf_counter()
        with console.status(f"{subject} ..."):
            results[subject], status = run(subject, quick=quick, kinds=kinds)
        seconds[subject] = round(time.perf_counter() - start)
        if status != 0:
            failed.append(subject)
    return {
        "date": datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat(),
        "quick": quick,
        "kinds": list(kinds),
        "machine": machine(),
        "failed": failed,
        "seconds": seconds,
        "subjects": {name: [asdict(row) for row in rows] for name, rows in results.items()},
    }


def draw(results: Mapping[str, Any], path: Path) -> None:
    """Have the picture drawn by the peers' interpreter. ClickException when that fails."""
    if not PEERS_PYTHON.exists():
        raise click.ClickException(f"--plot needs {PEERS_PYTHON}, which `make bench` makes")
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(results, file)
        file.flush()
        command = [str(PEERS_PYTHON), "-m", "benchmarks.report.plot", file.name, str(path)]
        if subprocess.run(command, check=False).returncode != 0:
            raise click.ClickException(f"{path} could not be drawn")


def page_files(results: Mapping[str, Any], folder: Path) -> tuple[Path, Path, Path]:
    """Where results, page and picture of a run belong. ClickException if it was not a whole one."""
    from benchmarks.report.machine import kind_of

    if results["quick"] or results.get("kinds") or "peers" not in results["subjects"]:
        raise click.ClickException("--page wants a run of all works: no --quick, no --kind, peers")
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / kind_of(results["machine"])
    return stem.with_suffix(".json"), stem.with_suffix(".md"), stem.with_suffix(".svg")


def _known(
    _context: click.Context, _parameter: click.Parameter, kinds: tuple[str, ...]
) -> tuple[str, ...]:
    """The kinds as subjects write them, found in either case. Raises for one that none has."""
    known = {kind.lower(): kind for kind in (*LAYERS, *GALLERY, *MODELS)}
    wanted = [kind.lower() for kind in kinds]
    if not known.keys() >= set(wanted):
        from benchmarks.subjects.quantized import STACKS  # which import TensorFlow and make ops
        from benchmarks.subjects.ready import CASES
        from benchmarks.works.saved import SAVED

        known |= {kind.lower(): kind for kind in (*SAVED, *STACKS, *CASES)}
    if unknown := [kind for kind in wanted if kind not in known]:
        raise click.BadParameter(f"{unknown[0]!r} is not one of {', '.join(known.values())}")
    return tuple(known[kind] for kind in wanted)


@click.command()
@click.argument("subjects", nargs=-1, type=click.Choice([*SUBJECTS, *ON_REQUEST]))
@click.option("--quick", is_flag=True, help="few works and rounds: shows that all runs")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    callback=_known,
    help="peers, drawn and growth: layers of this kind only, of all shapes; gallery: this op only; "
    "models and saved: this model only; ready: this case only; may be repeated",
)
@click.option(
    "--seed", type=int, help="drawn, schedules: of the shapes; another in each run without it"
)
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="keep the results here")
@click.option("--markdown", type=click.Path(path_type=Path), help="write them as a page")
@click.option("--plot", type=click.Path(path_type=Path), help="draw ratios and roofline (SVG)")
@click.option(
    "--page",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="write page, picture and results into this folder, named by the kind of the machine",
)
@click.option("--ratios", type=click.Path(path_type=Path), help="draw the README's picture (SVG)")
@click.option(
    "--read",
    type=click.Path(path_type=Path, exists=True),
    help="measure nothing: take the results that --json kept",
)
def main(
    subjects: tuple[str, ...],
    quick: bool,
    kinds: tuple[str, ...],
    seed: int | None,
    json_path: Path | None,
    markdown: Path | None,
    plot: Path | None,
    folder: Path | None,
    ratios: Path | None,
    read: Path | None,
) -> None:
    """Measure ours beside the peers, in one run; bounds that fail are shown, not fatal.

    \b
    Examples:
      python -m benchmarks peers growth --kind LSTM --json rows.json
      python -m benchmarks compare old.json new.json  (its --help has the rule)
    """  # noqa: D301 - click's mark for lines that are not rewrapped
    from benchmarks.report import terminal
    from benchmarks.report.markdown import render
    from benchmarks.report.ratios import draw as draw_ratios

    console = Console()
    if seed is not None:
        os.environ[SEED_ENVIRONMENT] = str(seed)
    if read is None:
        results = measured(subjects or SUBJECTS, console, quick=quick, kinds=kinds)
    else:
        results = json.loads(read.read_text(encoding="utf-8"))
    rows = {name: [Row(**row) for row in rows] for name, rows in results["subjects"].items()}
    for line in terminal.lines(rows):
        click.echo(line)
    if placed := placed_of(results["subjects"]):
        click.echo("\n".join([*terminal.kernels(placed), ""]))
    parts = (f"{subject} {taken} s" for subject, taken in results["seconds"].items())
    console.print(f"measured in {sum(results['seconds'].values())} s: {', '.join(parts)}")
    if folder is not None:
        json_path, markdown, plot = page_files(results, folder)
    if json_path is not None:
        json_path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    if plot is not None:
        draw(results, plot)
    if markdown is not None:
        picture = None if plot is None else os.path.relpath(plot, markdown.parent)
        markdown.write_text(render(results, picture), encoding="utf-8")
    if ratios is not None:
        ratios.write_text(draw_ratios(render(results)), encoding="utf-8")
    if results["failed"]:
        raise click.ClickException(f"did not finish: {', '.join(results['failed'])}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["compare"]:
        compare.main(sys.argv[2:], prog_name="python -m benchmarks compare")
    main()
