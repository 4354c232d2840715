"""Draws in the 3D view what selected armatures are as physics, what they are connected to, and where they touched."""

import bpy
import numpy as np

from . import activity, balance, casting, compat, ghost, memory, stage, standing, touches, wires
from .convert import rest_shapes
from .problem import ConversionError
from .reach import Reach
from .rig import posed, read_rig, refuse_hidden

DASHES = 9
"""Dashes of a line, whatever its length."""

CROSS = 0.12
"""Half the size of the cross where a line would have no length, as a part of the bone's length."""

HOLDS, OPEN = (1.0, 0.55, 0.1, 1.0), (0.6, 0.6, 0.6, 0.7)
"""Colours of connections that are enabled, or not, at the current frame."""

SHAPE, POINT, FORCE = (0.1, 0.8, 0.75, 0.8), (1.0, 0.9, 0.2, 1.0), (1.0, 0.25, 0.2, 1.0)
"""Colours of shapes, contacts and forces."""

ACTIVE, RIGID = (0.3, 1.0, 0.15, 0.75), (0.6, 0.3, 1.0, 0.75)
"""Colours of bones that move in an adaptive simulation, and of those that do not."""

AXES = (1.0, 0.2, 0.32, 1.0), (0.54, 0.86, 0.0, 1.0), (0.16, 0.55, 1.0, 1.0)
"""Colours of a joint's axes, as Blender has them."""

RANGE, STOPPED, NEEDLE = (0.5, 1.0, 0.65), (1.0, 0.2, 0.15), (1.0, 1.0, 1.0, 1.0)
"""Colours of how far joints may turn, and of those that are so far; of where their bones are."""

FACE, EDGE = 0.12, 0.8
"""How much these cover."""

MASS, TRACE, GHOST = (1.0, 0.35, 0.9, 1.0), (1.0, 0.35, 0.9, 0.5), (0.95, 0.95, 0.95, 0.65)
"""Colours of the center of mass, of its way, and of the source animation."""

POINT_SIZE = 6.0
"""[pixels]"""

_handlers: list = []


def register() -> None:
    # without a window nothing is drawn, and a handler that is left at exit crashes or hangs some Blenders
    if not bpy.app.background:
        _handlers.append(bpy.types.SpaceView3D.draw_handler_add(_draw, (), "WINDOW", "POST_VIEW"))


def unregister() -> None:
    while _handlers:
        bpy.types.SpaceView3D.draw_handler_remove(_handlers.pop(), "WINDOW")
    memory.forget_all()


def _draw() -> None:
    context = bpy.context
    if not context.space_data.overlay.show_overlays:
        return
    shown = [context.object, *(thing for thing in context.selected_objects if thing != context.object)]
    drawn = []
    for armature in shown:
        if armature and armature.type == "ARMATURE" and armature.armature_dynamics.enabled:
            drawn += figures(armature, context.scene.frame_current)
    paint(drawn, POINT_SIZE)


def paint(drawn: list[tuple], size: float) -> None:
    """Draws figures in a 3D view: their kind, color and places in the world; POINTS of a size [pixels]."""
    import gpu
    from gpu_extras.batch import batch_for_shader

    shader = gpu.shader.from_builtin("UNIFORM_COLOR")
    shader.bind()
    gpu.state.depth_test_set("NONE")
    gpu.state.blend_set("ALPHA")
    gpu.state.point_size_set(size)
    for kind, color, points in drawn:
        if len(points):
            shader.uniform_float("color", color)
            batch_for_shader(shader, kind, {"pos": points}).draw(shader)
    gpu.state.point_size_set(1.0)
    gpu.state.blend_set("NONE")


def figures(armature, frame: int) -> list[tuple]:
    """All that is drawn of an armature: LINES (ends in pairs), TRIS (corners in threes) or POINTS, their color, and
    places in the world."""
    settings = armature.armature_dynamics
    drawn = []
    for connection in settings.connections:
        drawn.append(("LINES", HOLDS if connection.enabled else OPEN, segments(armature, connection)))
    if settings.show_shapes:
        drawn.append(("LINES", SHAPE, shape_lines(armature)))
    taken = settings.state != stage.SOURCE
    moved = activity.kept(armature) if settings.show_activity and taken else None
    if moved and armature.mode != "EDIT":
        drawn += _bones_by_activity(armature, moved.names, moved.at(frame))
    if settings.show_ghost and taken and (seen := ghost.ghosts.kept(armature)):
        drawn.append(("LINES", GHOST, seen.at(frame, np.array(armature.matrix_world))))
    if settings.show_joints or settings.show_mass:
        drawn += _physique(armature, settings, taken)
    met = touches.kept(armature) if settings.show_contacts and taken else None
    if met:
        points, arrows = met.at(frame)
        drawn += [("LINES", FORCE, arrows), ("POINTS", POINT, points)]
    return drawn


def _physique(armature, settings, taken: bool) -> list[tuple]:
    """The joints with their ranges, and the center of mass."""
    known, drawn = standing.known(armature), []
    if known is None:
        return drawn
    poses = known.poses(armature)
    if settings.show_joints:
        drawn += _joints(armature, known.reach, poses)
    if settings.show_mass:
        drawn.append(
            ("LINES", MASS, balance.lines(known, poses, settings.ground_height if settings.use_ground else None))
        )
        trace = balance.traces.kept(armature) if taken else None
        if trace:
            drawn.append(("LINES", TRACE, trace.lines()))
    return drawn


def _joints(armature, reach: Reach, poses: np.ndarray) -> list[tuple]:
    """In Pose Mode those of the selected bones, or of those that selected controls carry, where there are any."""
    selected = compat.selected_bones(armature) if armature.mode == "POSE" else ()
    own, bones = None, armature.pose.bones
    if selected:
        own = [not selected.isdisjoint((name, bones[name].armature_dynamics.control)) for name in reach.names]
        own = np.array(own, dtype=bool)
    seen, drawn = reach.at(poses, own), []
    for stopped, color in ((False, RANGE), (True, STOPPED)):
        drawn += [("TRIS", (*color, FACE), seen.faces(stopped)), ("LINES", (*color, EDGE), seen.lines(stopped))]
    drawn += [("LINES", color, seen.axes[:, axis].reshape(-1, 3)) for axis, color in enumerate(AXES)]
    return [*drawn, ("LINES", NEEDLE, seen.needles.reshape(-1, 3))]


def _bones_by_activity(armature, names: list[str], active: np.ndarray) -> list[tuple]:
    """The bones of these names (k,) that still are there, where they are now, in the color of their activity (k,)."""
    bones = armature.pose.bones
    found = np.array([bones.find(name) for name in names[: len(active)]], dtype=int)
    there = found >= 0
    ends = np.empty((2, len(bones), 3), dtype=np.float32)
    for name, buffer in zip(("head", "tail"), ends):
        bones.foreach_get(name, buffer.reshape(-1))
    world = np.array(armature.matrix_world, dtype=np.float32)
    heads, tails = ends[:, found[there]] @ world[:3, :3].T + world[:3, 3]
    moves = active[there]
    return [
        ("TRIS", color, activity.spindles(heads[own], tails[own])) for color, own in ((RIGID, ~moves), (ACTIVE, moves))
    ]


def shape_lines(armature) -> np.ndarray:
    """Ends in pairs (2k, 3) of the lines that show what collides, in the pose of now. The shapes are prepared again
    when their settings or the armature's scale were changed."""
    none = np.empty((0, 3), dtype=np.float32)
    if armature.mode == "EDIT":
        return none
    world = np.array(armature.matrix_world)
    looks = _looks(armature, world)
    known = wires.known(armature, looks) or _prepared(armature, looks)
    if not known.names:
        return none
    return known.at(posed(armature, known.bodies))


def _looks(armature, world: np.ndarray) -> tuple:
    """All that shapes depend on and animators change: cheap to read, for every drawing."""
    bones = [
        (bone.name, own.role, own.shape, own.shape_length, own.shape_thickness)
        for bone in armature.pose.bones
        for own in (bone.armature_dynamics,)
    ]
    return round(float(np.linalg.norm(world[:3, 0])), 6), tuple(bones)


def _prepared(armature, looks: tuple) -> wires.Wires:
    try:
        refuse_hidden(armature)
        rig = read_rig(armature)
        shapes = rest_shapes(armature, rig, casting.roles(armature, rig), casting.options(armature))
    except ConversionError:  # said when it is simulated
        return wires.remember(armature, looks, {}, {})
    return wires.remember(armature, looks, shapes, {name: rig.rest[rig.index[name]] for name in shapes})


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
