"""Every test here is one of the core, which knows no Blender. Properties are tried with the same cases each time."""

from pathlib import Path

import pytest
from hypothesis import settings

HERE = Path(__file__).parent

settings.register_profile("same", deadline=None, derandomize=True, database=None)
settings.load_profile("same")


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.core)
