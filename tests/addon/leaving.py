"""How a process of tests ends: with pytest's own exit code, and without Blender's own end.

The wheel of 4.2 ends Blender when Python frees the module `bpy`. What keeps that module for longer leaves it to the
destructors of static variables, when there is no Python any more: ~SpaceType, bpy_class_free, PyGILState_Ensure, and
signal 11. `import bpy; bpy.ops.export_scene.gltf(filepath="x.glb")` is enough for that, as Rigify is, and a class that
is left registered. What the extension leaves behind is looked for where it is used alone: tests/test_package.py.
"""

import atexit
import os
import sys

# what was registered for the exit before this, Blender's end in some versions, is not run
import bpy  # noqa: F401

_sessions: list = []


def pytest_sessionfinish(session):
    _sessions.append(session)


@atexit.register
def leave() -> None:
    """Ends the process here, where pytest has run, reported and cleaned up."""
    if _sessions:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(_sessions[0].exitstatus)
