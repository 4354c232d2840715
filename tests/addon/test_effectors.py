"""Force fields of a scene, against Blender's own rigid bodies in them."""

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import effector
from armature_dynamics.addon.progress import finished
from armature_dynamics.core.field import Drag, Fields, implicit
from mathutils import Euler, Matrix

START, MASS = (1.0, 0.5, 0.3), 2.0
TILTED = Matrix.LocRotScale((-0.5, 0.2, -0.3), Euler((0.7, 0.2, 0.0)), (1.0, 1.0, 2.5))
LAST = 25


def emitter(kind: str, matrix: Matrix = TILTED, **settings):
    bpy.ops.object.effector_add(type=kind)
    thing = bpy.context.object
    thing.matrix_world = matrix
    thing.field.noise = 0.0
    for name, value in settings.items():
        setattr(thing.field, name, value)
    bpy.context.view_layer.update()
    return thing


def read(start: int = 1, end: int = LAST, actors=()):
    return finished(effector.read_fields(start, end, actors))


def ball():
    """A rigid body that nothing but fields and gravity acts on."""
    bpy.ops.mesh.primitive_ico_sphere_add(radius=0.1, location=START)
    thing = bpy.context.object
    bpy.ops.rigidbody.world_add()
    bpy.ops.rigidbody.object_add(type="ACTIVE")
    thing.rigid_body.mass = MASS
    thing.rigid_body.linear_damping = 0.0
    world = bpy.context.scene.rigidbody_world
    world.substeps_per_frame = 40
    world.point_cache.frame_end = LAST
    return thing


def blender(thing) -> np.ndarray:
    """Where Blender moves a rigid body (F, 3)."""
    places = []
    for frame in range(1, LAST + 1):
        bpy.context.scene.frame_set(frame)
        places.append(thing.evaluated_get(bpy.context.evaluated_depsgraph_get()).matrix_world.translation[:])
    return np.array(places)


def ours(fields: tuple, substeps: int = 10) -> np.ndarray:
    """Where fields and the scene's gravity move a body (F, 3), by the midpoint rule."""
    scene = bpy.context.scene
    frame_time = scene.render.fps_base / scene.render.fps
    acting, h, mass = Fields(fields, frame_time), frame_time / substeps, np.array([MASS])
    weight = MASS * np.array(scene.gravity) * scene.use_gravity
    x, v, change = np.array([START]), np.zeros((1, 3)), np.zeros((1, 3))
    places = [x[0]]
    for i in range((LAST - 1) * substeps):
        middle = x + 0.5 * h * v
        push, resistance = acting.act((i + 0.5) * h, middle, v + 0.5 * change)
        total = push - resistance[:, None] * v + weight
        change = h * total / (mass + implicit(resistance, mass, h))[:, None]
        v = v + change
        x = middle + 0.5 * h * v
        if (i + 1) % substeps == 0:
            places.append(x[0])
    return np.array(places)


CASES = {
    "wind": ("WIND", {"strength": 48.0, "flow": 0.0}),
    "wind that flows": ("WIND", {"strength": 192.0, "flow": 1.0, "falloff_power": 1.0}),
    "gusts": ("WIND", {"strength": 20.0, "flow": 0.5, "noise": 10.0, "seed": 3}),
    "cone": ("WIND", {"strength": 192.0, "flow": 0.0, "falloff_type": "CONE", "falloff_power": 1.0,
                      "radial_falloff": 0.3, "use_radial_min": True, "radial_min": 10.0}),
    "tube": ("WIND", {"strength": 192.0, "flow": 0.0, "falloff_type": "TUBE", "falloff_power": 2.0,
                      "use_min_distance": True, "distance_min": 0.3, "radial_falloff": 1.5}),
    "from a point": ("FORCE", {"strength": 100.0, "falloff_power": 1.0}),
    "from a line": ("FORCE", {"strength": 100.0, "shape": "LINE", "flow": 1.0}),
    "from a plane": ("FORCE", {"strength": -50.0, "shape": "PLANE", "z_direction": "POSITIVE"}),
    "gravitation": ("FORCE", {"strength": -100.0, "use_gravity_falloff": True}),
    "vortex": ("VORTEX", {"strength": 20.0, "falloff_power": 1.0}),
    "vortex around a point": ("VORTEX", {"strength": 50.0, "shape": "POINT"}),
    "turbulence": ("TURBULENCE", {"strength": 200.0, "size": 0.5}),
    "still turbulence": ("TURBULENCE", {"strength": 200.0, "size": 0.0, "flow": 1.0, "use_global_coords": True}),
    "quadratic drag": ("DRAG", {"linear_drag": 0.5, "quadratic_drag": 0.0}),
    "drag": ("DRAG", {"linear_drag": 0.1, "quadratic_drag": 5.0, "falloff_power": 0.5}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_bodies_move_as_in_blender(case):
    """What animators tuned on rigid bodies acts on characters just so; another frame rate changes the strengths."""
    kind, settings = CASES[case]
    scene = bpy.context.scene
    scene.render.fps = 30
    scene.gravity = (2.0, 0.0, 1.0) if kind == "DRAG" else (0.0, 0.0, 0.0)
    body = ball()
    emitter(kind, **settings)
    fields, warnings = read()
    theirs, mine = blender(body), ours(fields)
    moved = np.linalg.norm(theirs[-1] - theirs[0])
    assert not warnings and moved > 0.1
    assert np.linalg.norm(theirs - mine, axis=1).max() < 0.01 * moved
    speeds = np.array([theirs[-1] - theirs[-2], mine[-1] - mine[-2]])
    assert np.linalg.norm(speeds[0] - speeds[1]) < 0.01 * np.linalg.norm(speeds[0])


def test_weights_of_the_rigid_body_world_scale_fields():
    """All fields together and each type, as in the scene's own weights; no world, no weights."""
    emitter("WIND", strength=48.0)
    (wind,), _ = read()
    assert wind.falloff.weight == 1.0
    body = ball()
    weights = bpy.context.scene.rigidbody_world.effector_weights
    weights.all, weights.wind, weights.force = 0.5, 0.5, 0.0
    emitter("FORCE", strength=100.0)
    bpy.context.scene.use_gravity = False
    fields, _ = read()
    assert [field.falloff.weight for field in fields] == [0.25]
    theirs, mine = blender(body), ours(fields)
    assert np.abs(theirs - mine).max() < 0.01 * np.linalg.norm(theirs[-1] - theirs[0])


def test_only_the_effectors_of_the_world_s_collection_act():
    """A stage may have fields for its smoke that bodies are not to feel."""
    ball()
    emitter("WIND")
    chosen = emitter("FORCE")
    collection = bpy.data.collections.new("Forces")
    collection.objects.link(chosen)
    bpy.context.scene.rigidbody_world.effector_weights.collection = collection
    fields, warnings = read()
    assert [type(field).__name__ for field in fields] == ["Force"]
    assert [warning.code for warning in warnings] == ["field_ignored"] and "'Forces'" in warnings[0].message


@pytest.mark.parametrize("way", ["object", "collection", "exclude", "eye"])
def test_hidden_fields_rest_as_in_blender(way):
    """Disabled in viewports or excluded they do not act and are told; closed eyes only hide them."""
    bpy.context.scene.use_gravity = False
    body = ball()
    thing = emitter("WIND", strength=100.0)
    collection = bpy.data.collections.new("Fields")
    bpy.context.scene.collection.children.link(collection)
    for own in list(thing.users_collection):
        own.objects.unlink(thing)
    collection.objects.link(thing)
    layer = bpy.context.view_layer.layer_collection.children["Fields"]
    if way == "object":
        thing.hide_viewport = True
    elif way == "collection":
        collection.hide_viewport = True
    elif way == "exclude":
        layer.exclude = True
    else:
        layer.hide_viewport = True
    fields, warnings = read()
    moves = bool(np.ptp(blender(body), axis=0).max() > 1e-3)
    assert moves == (way == "eye")
    assert len(fields) == moves and [warning.code for warning in warnings] == ([] if moves else ["field_ignored"])


def test_what_is_not_supported_is_told_by_name():
    """Nobody should have to find out by watching."""
    kinds = ["BOID", "CHARGE", "GUIDE", "FLUID_FLOW", "HARMONIC", "LENNARDJ", "MAGNET", "TEXTURE"]
    for kind in kinds:
        bpy.ops.object.empty_add()
        bpy.context.object.name = kind.lower()
        bpy.ops.object.forcefield_toggle()
        bpy.context.object.field.type = kind
    fields, warnings = read()
    assert not fields and sorted(warning.code for warning in warnings) == ["field_ignored"] * len(kinds)
    assert all(any(repr(kind.lower()) in warning.message for warning in warnings) for kind in kinds)


def test_shapes_absorption_and_the_noise_of_drag_are_told():
    """A field that acts in another way than in Blender says so."""
    bpy.ops.mesh.primitive_cube_add()
    bpy.ops.object.forcefield_toggle()
    bpy.context.object.field.shape = "POINTS"
    emitter("WIND", use_absorption=True)
    emitter("DRAG", noise=1.0)
    fields, warnings = read()
    assert sorted(type(field).__name__ for field in fields) == ["Drag", "Wind"]
    codes = sorted((warning.code, warning.message.split("'")[1]) for warning in warnings)
    assert codes == [("field_differs", "Drag"), ("field_differs", "Wind"), ("field_ignored", "Cube")]


def test_fields_that_act_on_nothing_are_left_out():
    """Location switched off, and an armature's own field."""
    bpy.ops.object.armature_add()
    armature = bpy.context.object
    bpy.ops.object.forcefield_toggle()
    emitter("WIND", apply_to_location=False)
    assert [type(field).__name__ for field in read()[0]] == ["Force"]
    fields, warnings = read(actors=(armature,))
    assert not fields and [warning.code for warning in warnings] == ["field_ignored"]


def test_animated_fields_are_sampled_and_the_frame_is_restored():
    """Strength and pose from frame to frame; a still field has one sample and costs no frame changes."""
    thing = emitter("WIND", matrix=Matrix(), strength=0.0)
    (still,), _ = read()
    assert len(still.origin) == 1
    for frame, value in ((1, 0.0), (11, 240.0)):
        thing.field.strength, thing.location.x = value, value
        thing.field.keyframe_insert("strength", frame=frame)
        thing.keyframe_insert("location", frame=frame)
    bpy.context.scene.frame_set(7)
    (wind,), _ = read(1, 11)
    assert bpy.context.scene.frame_current == 7
    assert wind.origin.shape == (11, 3) and wind.strength[[0, -1]] == pytest.approx([0, 10])
    assert wind.origin[[0, -1], 0] == pytest.approx([0, 240]) and (np.diff(wind.strength) > 0).all()


def test_drag_is_as_strong_as_blender_lets_it():
    """Its two properties mean the other power of speed, and count up to 2."""
    emitter("DRAG", linear_drag=0.5, quadratic_drag=9.0)
    (drag,), _ = read()
    assert isinstance(drag, Drag) and drag.strength == pytest.approx([2.0]) and drag.quadratic == pytest.approx([12.0])


def test_the_extension_s_noise_is_blender_s():
    """A default of the core that drifts from it would not be noticed in the cases above, which use Blender's."""
    from armature_dynamics.core.noise import turbulence

    points = np.random.default_rng(0).uniform(-30, 30, (10000, 3))
    assert turbulence(points).std() == pytest.approx(effector.swirl(points).std(), rel=0.05)
