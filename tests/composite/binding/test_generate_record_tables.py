"""The header that the runtime's build makes of the fields."""

import subprocess
import sys
from pathlib import Path

from composite.binding import fields
from composite.binding.fields import RECORDS
from composite.binding.generate_record_tables import header

FOLDER = Path(fields.__file__).parent


def test_the_header_has_every_field() -> None:
    text = header({"RECORDS": RECORDS, "VERSION": 7})
    assert "kRecordVersion = 7;" in text
    assert '{"_in_shapes", "list(shape)", true},' in text  # of symbols: the same on the wire
    for declared in RECORDS.values():
        for one in declared:
            assert text.count(f'Field[] = "{one.wire}";') == 1


def test_a_build_runs_it_without_the_package(tmp_path: Path) -> None:
    """In an isolated Python, which sees neither composite nor what is installed."""
    out = tmp_path / "deep" / "record_tables.h"
    script, declared = FOLDER / "generate_record_tables.py", FOLDER / "fields.py"
    subprocess.run([sys.executable, "-I", "-S", script, declared, out], check=True)
    assert out.read_text() == header(vars(fields))
