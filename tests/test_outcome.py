"""What scripts/test.py runs, and what it makes of a process of tests."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"
REPORT = '<testsuites><testsuite tests="9" failures="{}" errors="0" skipped="2" /></testsuites>'


@pytest.fixture(scope="module")
def runner():
    """scripts/test.py as a module."""
    sys.path.insert(0, str(SCRIPTS))
    spec = spec_from_file_location("test_runner", SCRIPTS / "test.py")
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(SCRIPTS))


@pytest.mark.parametrize(
    ("failures", "code", "counts", "trouble"),
    [
        (0, 0, (7, 0, 2), ""),
        (3, 1, (4, 3, 2), ""),
        (0, -11, (7, 1, 2), "exit code -11"),
        (3, -11, (4, 4, 2), "exit code -11"),
        (3, 0, (4, 4, 2), "exit code 0"),
        (0, 1, (7, 1, 2), "exit code 1"),
        (0, 5, (7, 1, 2), "no test was run"),
        (0, None, (7, 1, 2), "did not end within 60 minutes"),
        (None, -11, (0, 1, 0), "ended before its report, exit code -11"),
        (None, 0, (0, 1, 0), "ended before its report, exit code 0"),
    ],
)
def test_no_end_but_pytests_own_passes(failures, code, counts, trouble, runner, tmp_path):
    """Blender can crash after its tests, hang, or end the process with 0 in the middle of them."""
    report = tmp_path / "report.xml"
    if failures is not None:
        report.write_text(REPORT.format(failures))
    outcome = runner.read(report, code)
    assert (outcome.passed, outcome.failed, outcome.skipped, outcome.trouble) == (*counts, trouble)


@pytest.mark.parametrize(
    ("asked", "folders"),
    [
        ((), {".venv-oracles", ".venv"}),
        (("tests/core/test_friction.py", "-x"), {".venv-oracles"}),
        (("tests/addon", "-k", "fall"), {".venv"}),
        (("tests/core/test_friction.py::test_x", "tests/test_package.py"), {".venv-oracles", ".venv"}),
    ],
)
def test_tests_of_the_core_run_where_its_oracles_are(asked, folders, runner):
    """And not a second time on the default Blender, of which they know nothing."""
    runs = {run.where.folder: run.arguments for run in runner.plan(False, False, False, asked)}
    assert set(runs) == folders
    assert all(("not core" in marks) == (folder == ".venv") for folder, (_, marks, *_) in runs.items())
