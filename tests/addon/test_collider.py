"""What collides for a bone: its shape, its size, its surface and its groups."""

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import (
    casting,
    intake,
    operators,
    overlay,
    preflight,
    skin,
    stage,
    surface,
    take,
    touches,
    wires,
)
from armature_dynamics.addon.rig import read_rig
from armature_dynamics.addon.skin import read_skin
from armature_dynamics.core import Box, Capsule, Hull, Sphere, TaperedCapsule
from rigs import chain, character, make_rig, simulate
from staging import cube

SHAPES = {
    "AUTO": Capsule, "CAPSULE": Capsule, "TAPERED": TaperedCapsule, "SPHERE": Sphere, "BOX": Box, "HULL": Hull,
}  # fmt: skip


def clothed(half=(0.2, 0.1, 0.05), taper=1.0):
    """A bone of 1 m along x with a box of skin around its middle, narrower by `taper` at the bone's tail."""
    armature = make_rig([("bone", (0, 0, 1), (1, 0, 1), None, False)])
    grid = np.stack(np.meshgrid(*3 * [np.linspace(-1, 1, 9)]), axis=-1).reshape(-1, 3)
    grid = grid[np.abs(grid).max(axis=1) == 1] * half
    grid[:, 1:] *= 1 + (taper - 1) * (grid[:, :1] / half[0] + 1) / 2
    mesh = bpy.data.meshes.new("Skin")
    mesh.from_pydata([tuple(point) for point in np.add(grid, (0.5, 0, 1))], [], [])
    skin = bpy.data.objects.new("Skin", mesh)
    bpy.context.collection.objects.link(skin)
    skin.parent, skin.parent_type = armature, "ARMATURE"
    skin.vertex_groups.new(name="bone").add(range(len(grid)), 1.0, "REPLACE")
    return armature


def settings(armature, bone="bone"):
    return armature.pose.bones[bone].armature_dynamics


def shape_of(armature, bone="bone", **options):
    person, _ = character(armature, **options)
    (shape,) = person.linkage[bone].shapes
    return shape


def test_what_hangs_from_a_bone_is_where_it_is_at_rest():
    """A mannequin of loose parts, each parented to a bone: a pose must not move its flesh away from its bones."""
    armature = make_rig([("upper", (0, 0, 1), (1, 0, 1), None, False), ("lower", (1, 0, 1), (2, 0, 1), "upper", True)])
    mug = cube(size=0.4)
    mug.parent, mug.parent_type, mug.parent_bone = armature, "BONE", "lower"
    bpy.context.view_layer.update()
    at_rest = read_skin(armature, read_rig(armature))[1]
    assert np.allclose(np.ptp(at_rest, axis=0), 0.4, atol=1e-6)
    armature.location, armature.rotation_euler = (3, 1, 0.5), (0, 0, 1)
    for bone in armature.pose.bones:
        bone.rotation_mode, bone.rotation_euler = "XYZ", (0.3, 0.2, 1.2)
    bpy.context.view_layer.update()
    posed, place = read_skin(armature, read_rig(armature))[1], np.array(armature.matrix_world)
    assert np.allclose(posed, at_rest @ place[:3, :3].T + place[:3, 3], atol=1e-5)


def test_a_skin_with_vertices_that_are_nowhere_is_refused_by_its_name():
    """One broken vertex of a coat stopped everything with a word about matrices; wherever skins are read."""
    armature, mesh = clothed(), bpy.data.objects["Skin"].data
    mesh.vertices.add(1)
    mesh.vertices[len(mesh.vertices) - 1].co.x = np.nan
    assert simulate(armature, end=2).bodies == 1, "what no bone moves is nobody's skin"
    bpy.data.objects["Skin"].vertex_groups["bone"].add([len(mesh.vertices) - 1], 1.0, "REPLACE")
    refused = "skin 'Skin' has vertices that are not finite numbers; remove them"
    for work in (simulate, preflight.start):
        with pytest.raises(ValueError, match=refused):
            work(armature)
    bpy.context.view_layer.objects.active = armature
    with pytest.raises(RuntimeError, match=refused):
        bpy.ops.armature_dynamics.make_dynamic()


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("skinned", [True, False])
def test_every_shape_can_be_had_with_and_without_skin(kind, skinned):
    """Rigs without a mesh can be simulated too; a hull needs skin, and is a box without."""
    armature = clothed() if skinned else chain(1, "Rig", length=1.0)
    bone = "bone" if skinned else "bone0"
    settings(armature, bone).shape = kind
    expected = Box if kind == "HULL" and not skinned else SHAPES[kind]
    assert type(shape_of(armature, bone)) is expected


def test_shapes_are_as_large_as_the_skin():
    """Half extents 20, 10 and 5 cm: what collides is what is seen."""
    armature = clothed()
    own = settings(armature)
    own.shape = "BOX"
    box = shape_of(armature)
    assert np.allclose(box.half, (0.2, 0.1, 0.05), rtol=0.05)
    own.shape = "HULL"
    hull = shape_of(armature)
    assert np.allclose(np.sort(np.ptp(hull.vertices, axis=0)), (0.1, 0.2, 0.4), rtol=1e-4)
    assert len(hull.vertices) == 8
    own.shape = "SPHERE"
    assert shape_of(armature).radius == pytest.approx((0.2 + 0.1 + 0.05) / 3, rel=0.05)
    # the link's y axis is along the bone, whose head is at its origin
    assert shape_of(armature).center == pytest.approx((0, 0.5, 0), abs=1e-5)


def test_a_tapered_capsule_is_thick_where_the_skin_is():
    """A forearm is thinner at the wrist, which is at the bone's tail."""
    armature = clothed(taper=0.5)
    settings(armature).shape = "TAPERED"
    shape = shape_of(armature)
    assert np.linalg.norm(shape.start) < np.linalg.norm(shape.end), "it starts at the head"
    assert shape.end_radius < 0.8 * shape.radius


def test_size_factors_stretch_along_and_across():
    """Clothes that are not meant to count, or a coat that is."""
    armature = clothed()
    own = settings(armature)
    own.shape, own.shape_length, own.shape_thickness = "BOX", 2.0, 0.5
    assert np.allclose(shape_of(armature).half, (0.4, 0.05, 0.025), rtol=0.05)
    own.shape = "HULL"
    assert np.allclose(np.sort(np.ptp(shape_of(armature).vertices, axis=0)), (0.05, 0.1, 0.8), rtol=1e-4)
    own.shape, own.shape_length, own.shape_thickness = "AUTO", 1.0, 2.0
    assert shape_of(armature).radius == pytest.approx(0.15, rel=0.05)


def test_no_shape_means_no_contact_but_keeps_the_mass():
    """Hair and cloth bones may pass through everything."""
    armature = chain(2)
    before = character(armature)[0].linkage["bone1"].mass
    settings(armature, "bone1").shape = "NONE"
    link = character(armature)[0].linkage["bone1"]
    assert link.shapes == [] and link.mass == before


def test_bones_have_their_armatures_surface_or_their_own():
    """Rubber soles under a body that slides."""
    armature = chain(2)
    own = settings(armature, "bone1")
    own.use_surface, own.friction, own.restitution, own.rolling = True, 1.25, 0.5, 0.125
    own.use_layers, own.layers = True, [False, True] + 18 * [False]
    person, _ = character(armature, friction=0.25, torsion=0.5, layers=5, family="Rig")
    first, second = (person.linkage[name].shapes[0] for name in ("bone0", "bone1"))
    assert (first.friction, first.torsion, first.layers, first.family) == (0.25, 0.5, 5, "Rig")
    assert (second.friction, second.restitution, second.rolling, second.torsion) == (1.25, 0.5, 0.125, 0.0)
    assert (second.layers, second.family) == (2, "Rig")


def test_without_self_collision_a_character_is_one_family():
    """Members of a family do not meet; two characters are two families."""

    left, right = chain(2, "Left"), chain(2, "Right")
    for armature in (left, right):
        operators.make_dynamic(armature)
        assert casting.options(armature).family == ""
        armature.armature_dynamics.self_collision = False
    assert casting.options(left).family != casting.options(right).family
    left.armature_dynamics.layers = [True, False, True] + 17 * [False]
    assert casting.options(left).layers == 0b101


def test_collision_settings_are_copied_to_selected_bones():
    """Twenty bones are not set one by one."""
    armature = chain(3)
    operators.make_dynamic(armature)
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.pose.select_all(action="SELECT")
    armature.data.bones.active = armature.data.bones["bone1"]
    own = settings(armature, "bone1")
    own.shape, own.shape_thickness, own.use_layers = "BOX", 1.5, True
    own.layers = [False, True] + 18 * [False]
    assert bpy.ops.armature_dynamics.copy_collision() == {"FINISHED"}
    for name in ("bone0", "bone2"):
        other = settings(armature, name)
        assert (other.shape, other.shape_thickness, list(other.layers)[:3]) == ("BOX", 1.5, [False, True, False])


def test_materials_are_known_and_usable():
    """A click on Ice must make things slippery, and every material must be a possible surface."""
    armature = chain(1)
    own = armature.armature_dynamics
    assert {"wood", "ice", "rubber", "mud", "concrete", "metal", "carpet", "grass", "sand"} <= set(surface.materials())
    for name, about in surface.materials().items():
        assert about
        surface.become(own, name)
        Sphere(np.zeros(3), 1.0, **surface.surface_values(own))
        surface.become(own.scenery_surface, name)
        assert own.scenery_surface.friction == own.friction
    slippery, *_, sticky = sorted(surface.materials(), key=lambda name: (surface.become(own, name), own.friction)[1])
    assert (slippery, sticky) == ("ice", "rubber")


def test_the_menu_of_materials_sets_the_surface_that_it_stands_by():
    """The same menu is in the body's, the scene's and the bone's panel."""
    armature = chain(1)
    own = settings(armature, "bone0")
    with bpy.context.temp_override(armature_dynamics_surface=own):
        assert bpy.ops.armature_dynamics.set_surface(material="ice") == {"FINISHED"}
    assert own.friction == pytest.approx(0.03) and armature.armature_dynamics.friction == pytest.approx(0.6)
    assert bpy.ops.armature_dynamics.set_surface(material="ice") == {"CANCELLED"}


def test_wires_are_where_the_shapes_are():
    """What is drawn must be what collides, in any pose, and follow its settings."""
    armature = chain(2, height=1.0)
    operators.make_dynamic(armature)
    settings(armature, "bone0").shape = "BOX"
    armature.location = (0, 0, 3)
    armature.pose.bones["bone1"].rotation_mode = "XYZ"
    armature.pose.bones["bone1"].rotation_euler.x = 1.0
    bpy.context.view_layer.update()
    person, source = character(armature)
    poses = person.link_poses(source)[0]
    box = person.linkage["bone0"].shapes[0].moved(poses[0])
    capsule = person.linkage["bone1"].shapes[0].moved(poses[1])
    lines = overlay.shape_lines(armature)
    corners, rest = lines[:24], lines[24:]
    inside = (corners - box.center) @ box.rotation
    assert np.allclose(np.abs(inside), box.half, atol=1e-5)
    along = np.clip((rest - capsule.start) @ (capsule.end - capsule.start) / 0.09, 0, 1)
    apart = np.linalg.norm(rest - capsule.start - along[:, None] * (capsule.end - capsule.start), axis=1)
    assert np.allclose(apart, capsule.radius, atol=1e-4)
    settings(armature, "bone1").shape = "NONE"
    assert len(overlay.shape_lines(armature)) == 24


@pytest.mark.parametrize("radii", [(0.2, 0.1), (0.1, 0.25), (0.15, 0.15)])
def test_wires_of_a_tapered_capsule_lie_on_it(radii):
    """The lines between the two balls touch both."""
    shape = TaperedCapsule(np.array([1.0, 0, 0]), np.array([1.0, 0.3, 0.4]), *radii)
    lines = wires.lines_of(shape)
    along = np.linspace(0, 1, 2001)
    centers = shape.start + along[:, None] * (shape.end - shape.start)
    sizes = radii[0] + along * (radii[1] - radii[0])
    gaps = (np.linalg.norm(lines[:, None] - centers, axis=2) - sizes).min(axis=1)
    assert len(lines) > 100 and np.abs(gaps).max() < 1e-5


def test_contacts_are_drawn_at_their_frames():
    """Forces are shown for the frame that is looked at, those of each character with it."""
    from types import SimpleNamespace

    armature = chain(2)
    trajectory = SimpleNamespace(
        touch_frame=np.array([2, 0, 2]), touch_link=np.array([3, 0, 5]), touch_other=np.array([-1, 5, 4]),
        touch_point=np.array([(1, 0, 0), (9, 9, 9), (2, 0, 0)], dtype=float),
        touch_force=np.array([(0, 0, 100), (0, 0, 1), (0, 0, 50)], dtype=float),
    )  # fmt: skip
    touches.keep(armature, slice(3, 5), trajectory, 10, weight=100.0, height=2.0)
    points, arrows = touches.kept(armature).at(12)
    assert np.allclose(points, [(1, 0, 0), (2, 0, 0)])
    assert np.allclose(arrows, [(1, 0, 0), (1, 0, 1), (2, 0, 0), (2, 0, -0.5)]), "on the character itself"
    assert len(touches.kept(armature).at(10)[0]) == 0 and len(touches.kept(armature).at(13)[0]) == 0


def test_skin_on_a_bone_that_copies_a_leg_is_the_legs():
    """Models of MMD have their skin on bones that turn along with those that are posed; counted to the hips that both
    hang from, the legs stood in them like poles."""
    down = (0, 0, 1), (0, 0, 0)
    rows = [("hips", (0, 0, 1), (0, 0, 1.2), None, False), ("leg", *down, "hips", False)]
    armature = make_rig([*rows, ("legD", *down, "hips", False), ("toeD", (0, 0, 0), (0, -0.1, 0), "legD", True)])
    constraint = armature.pose.bones["legD"].constraints.new("COPY_ROTATION")
    constraint.target, constraint.subtarget = armature, "leg"
    constraint.owner_space = constraint.target_space = "LOCAL"
    box = cube(location=(0, 0, 0.5), scale=(0.1, 0.1, 0.5))
    box.parent, box.parent_type = armature, "ARMATURE"
    box.vertex_groups.new(name="legD").add(range(8), 1.0, "REPLACE")
    operators.make_dynamic(armature)
    for name, role in (("hips", "SIMULATED"), ("leg", "SIMULATED"), ("legD", "IGNORED"), ("toeD", "IGNORED")):
        settings(armature, name).role = role
    person, _ = character(armature, roles=casting.roles(armature, read_rig(armature)))
    index = person.rig.index
    assert person.carrier[[index["legD"], index["toeD"]]].tolist() == [index["leg"]] * 2
    assert person.linkage["leg"].shapes[0].radius == pytest.approx(0.1, rel=0.05)
    assert person.linkage["hips"].shapes[0].radius < 0.05, "of its own length"
    report = simulate(armature, end=24)
    assert report.ok, report.news()


def test_a_large_skin_is_read_in_pieces_while_the_window_is_drawn(monkeypatch):
    """A film character's has hundreds of thousands of vertices: reading it at once stops the window for a second."""
    armature = clothed()
    operators.make_dynamic(armature)
    vertices = len(bpy.data.objects["Skin"].data.vertices)
    pauses = []
    for piece in (10 * vertices, vertices // 10):
        monkeypatch.setattr(skin, "PIECE", piece)
        told = [progress for name, progress in take.take(armature) if name == "sample"]
        stage.discard(armature)
        assert told == sorted(told)
        pauses.append(len(told))
    assert pauses[1] - pauses[0] == vertices // (vertices // 10)


def test_a_helmet_does_not_sink_into_the_ground(shared_file):
    """CesiumMan's is as wide as it is high: no capsule fits it, and its rim went six centimetres into the ground."""
    intake.open_input(shared_file("CesiumMan.glb"))
    man = next(thing for thing in bpy.data.objects if thing.type == "ARMATURE")
    body = next(thing for thing in bpy.data.objects if thing.find_armature() == man)
    report = simulate(man, end=72)
    assert report.ok, report.news()
    lowest = []
    for frame in range(30, 73, 3):
        bpy.context.scene.frame_set(frame)
        seen = body.evaluated_get(bpy.context.evaluated_depsgraph_get())
        points = np.empty(3 * len(seen.data.vertices), dtype=np.float32)
        seen.data.vertices.foreach_get("co", points)
        lowest.append(float((points.reshape(-1, 3) @ np.array(seen.matrix_world)[2, :3]).min()))
    ground = min(0.0, character(man)[0].lowest)
    assert min(lowest) - ground > -0.025
