"""Draws the connections of selected armatures in the 3D view, as dashed lines."""

import bpy
import numpy as np

DASHES = 9
"""Dashes of a line, whatever its length."""

CROSS = 0.12
"""Half the size of the cross where a line would have no length, as a part of the bone's length."""

HOLDS, OPEN = (1.0, 0.55, 0.1, 1.0), (0.6, 0.6, 0.6, 0.7)
"""Colours of connections that are enabled, or not, at the current frame."""

_handlers: list = []


def register() -> None:
    # without a window nothing is drawn, and a handler that is left at exit crashes or hangs some Blenders
    if not bpy.app.background:
        _handlers.append(bpy.types.SpaceView3D.draw_handler_add(_draw, (), "WINDOW", "POST_VIEW"))


def unregister() -> None:
    while _handlers:
        bpy.types.SpaceView3D.draw_handler_remove(_handlers.pop(), "WINDOW")


def _draw() -> None:
    import gpu
    from gpu_extras.batch import batch_for_shader

    context = bpy.context
    if not context.space_data.overlay.show_overlays:
        return
    shown = [context.object, *(thing for thing in context.selected_objects if thing != context.object)]
    shader = gpu.shader.from_builtin("UNIFORM_COLOR")
    shader.bind()
    gpu.state.depth_test_set("NONE")
    for armature in shown:
        if armature and armature.type == "ARMATURE" and armature.armature_dynamics.enabled:
            for connection in armature.armature_dynamics.connections:
                points = segments(armature, connection)
                shader.uniform_float("color", HOLDS if connection.enabled else OPEN)
                batch_for_shader(shader, "LINES", {"pos": points}).draw(shader)


def segments(armature, connection) -> list[tuple]:
    """The ends, in pairs, of the lines that show a connection in the world; none where it is incomplete."""
    bone = armature.pose.bones.get(connection.bone)
    if bone is None:
        return []
    start = np.array(armature.matrix_world @ (bone.tail if connection.at == "TAIL" else bone.head))
    end = _target(connection)
    size = CROSS * bone.bone.length * np.mean(armature.matrix_world.to_scale())
    if end is None or np.linalg.norm(end - start) < size:
        steps = size * np.eye(3)
        points = [point for step in steps for point in (start - step, start + step)]
    else:
        points = [start + (end - start) * part for part in np.linspace(0, 1, 2 * DASHES)]
    return [tuple(map(float, point)) for point in points]


def _target(connection) -> np.ndarray | None:
    """Where a connection leads, in the world."""
    target = connection.target
    if connection.target_kind == "WORLD" or target is None:
        return None
    if connection.target_kind == "OBJECT":
        return np.array(target.matrix_world.translation)
    bone = target.pose.bones.get(connection.target_bone) if target.pose else None
    if bone is None:
        return None
    return np.array(target.matrix_world @ (bone.tail if connection.target_at == "TAIL" else bone.head))
