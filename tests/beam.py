"""The environment with Apache Beam, which `make test` installs beside the project's own."""

from tests.conftest import ROOT

PYTHON = ROOT / ".venv-beam" / "bin" / "python"
is_there = (ROOT / ".venv-beam" / "installed.stamp").exists() and bool(
    list(PYTHON.parents[1].glob("lib/python*/site-packages/apache_beam"))
)
MISSING = "Beam is not there: make .venv-beam/installed.stamp"
