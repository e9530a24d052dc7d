"""Writes the runtime's record_tables.h: the fields that fields.py declares, for C++.

    generate_record_tables.py FIELDS OUT

The build of the runtime runs this script. FIELDS, which is fields.py, is run and not imported:
a build has neither the package installed nor TensorFlow at hand.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

_HEADER = """\
// The fields of records: generated from composite/binding/fields.py by generate_record_tables.py.
#ifndef COMPOSITE_RUNTIME_BASE_RECORD_TABLES_H_
#define COMPOSITE_RUNTIME_BASE_RECORD_TABLES_H_

#include <cstdint>

namespace composite {

struct RecordField {
  const char* name;
  const char* type;
  bool required;
};

inline constexpr int64_t kRecordVersion = %(version)d;

// clang-format off
%(names)s

%(tables)s
// clang-format on

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_BASE_RECORD_TABLES_H_
"""


def header(declared: Mapping[str, Any]) -> str:
    """The text of the header; `declared` are the names of the module that declares the fields."""
    records: Mapping[str, Iterable[Any]] = declared["RECORDS"]
    names = sorted({field.wire for fields in records.values() for field in fields})
    return _HEADER % {
        "version": declared["VERSION"],
        "names": "\n".join(
            f'inline constexpr char k{_camel(name)}Field[] = "{name}";' for name in names
        ),
        "tables": "\n\n".join(_table(kind, fields) for kind, fields in records.items()),
    }


def _table(kind: str, fields: Iterable[Any]) -> str:
    rows = [
        f'    {{"{one.wire}", "{one.kind.wire}", {str(one.presence.name == "REQUIRED").lower()}}},'
        for one in fields
    ]
    start = f"inline constexpr RecordField k{_camel(kind)}Fields[] = {{"
    return "\n".join([start, *rows, "};"])


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.replace(" ", "_").split("_"))


if __name__ == "__main__":
    source, target = sys.argv[1:]
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    Path(target).write_text(header(runpy.run_path(source)), encoding="utf-8")
