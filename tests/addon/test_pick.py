"""What is under the mouse: the skin before the bones, and the nearest of those."""

from __future__ import annotations

from types import SimpleNamespace

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import casting
from armature_dynamics.addon.cast import Cast
from armature_dynamics.addon.grab import armature_of
from armature_dynamics.addon.operators import make_dynamic
from armature_dynamics.addon.pick import pick
from mathutils import Matrix, Vector
from rigs import chain, finished, make_rig
from staging import cube, mesh_object

SIZE = 800
FAR = 5.0


def seen_from(place, *, perspective: bool = True) -> tuple:
    """A region, and a view from a place along the world's y axis, upright."""
    # the eye looks along its own -z, which is the world's y
    view = Matrix(((1, 0, 0, 0), (0, 0, 1, 0), (0, -1, 0, 0), (0, 0, 0, 1))) @ Matrix.Translation(-Vector(place))
    near, far = 0.1, 100.0
    middle, depth = (far + near) / (near - far), 2 / (near - far)
    if perspective:
        projection = Matrix(((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, middle, near * far * depth), (0, 0, -1, 0)))
    else:
        projection = Matrix(((1 / FAR, 0, 0, 0), (0, 1 / FAR, 0, 0), (0, 0, depth, middle), (0, 0, 0, 1)))
    return SimpleNamespace(width=SIZE, height=SIZE), SimpleNamespace(
        view_matrix=view, perspective_matrix=projection @ view, is_perspective=perspective,
        view_perspective="PERSP" if perspective else "ORTHO",
    )  # fmt: skip


def pixel(view, place) -> tuple[float, float]:
    """Where a place in the world is seen."""
    clip = view.perspective_matrix @ Vector((*place, 1.0))
    return tuple(SIZE / 2 * (1 + clip[i] / clip.w) for i in range(2))


def made(armature) -> Cast:
    """The armature's cast."""
    make_dynamic(armature)
    cast, _ = finished(casting.cast_of(armature, [armature], 1, 2, beyond=False))
    return cast


@pytest.mark.parametrize("perspective", [True, False])
def test_the_bone_is_picked_where_it_is_seen(perspective):
    """Each in its middle, and the place is on it; beside all there is nothing."""
    cast = made(chain(count=4, height=1.0))
    region, view = seen_from((0.6, -FAR, 1.0), perspective=perspective)
    for i in range(4):
        middle = (0.3 * i + 0.15, 0.0, 1.0)
        found = pick(cast, region, view, pixel(view, middle))
        assert found.bone == f"bone{i}" and np.allclose(found.place, middle, atol=1e-3)
    assert pick(cast, region, view, pixel(view, (0.6, 0.0, 1.6))) is None


def test_the_nearer_of_two_bones_is_picked():
    """One stands in front of the other."""
    rows = [
        ("root", (0, 0, 0.5), (0, 0, 1), None, False),
        ("far", (-0.5, 1, 1), (0.5, 1, 1), "root", False),
        ("near", (-0.5, -1, 1), (0.5, -1, 1), "root", False),
    ]
    cast = made(make_rig(rows))
    region, view = seen_from((0.0, -FAR, 1.0))
    assert pick(cast, region, view, pixel(view, (0.2, -1.0, 1.0))).bone == "near"


def test_the_skin_tells_which_bone_it_is():
    """Of the bones that carry a face the one that carries it most, whichever is behind; and the skin's own place."""
    armature = chain(count=2, height=1.0)
    skin = mesh_object("Skin", [(0, -0.2, 0.8), (0.3, -0.2, 0.8), (0.3, -0.2, 1.2), (0, -0.2, 1.2)], [(0, 1, 2, 3)])
    for name, weight in (("bone0", 0.3), ("bone1", 0.7)):
        skin.vertex_groups.new(name=name).add(range(4), weight, "REPLACE")
    modifier = skin.modifiers.new("Armature", "ARMATURE")
    modifier.object = armature
    bpy.context.view_layer.objects.active = armature
    cast = made(armature)
    region, view = seen_from((0.15, -FAR, 1.0))
    found = pick(cast, region, view, pixel(view, (0.1, -0.2, 1.1)))
    assert found.bone == "bone1" and np.allclose(found.place, (0.1, -0.2, 1.1), atol=1e-5)
    assert armature_of(skin) == armature and armature_of(armature) == armature
    skin.vertex_groups.clear()
    assert pick(cast, region, view, pixel(view, (0.1, -0.2, 1.1))).bone == "bone0", "without weights the nearest"


def test_skins_that_are_subdivided_or_curves_are_picked():
    """The face that is hit is one of what is seen, not of the mesh or the curve that was modelled."""
    armature = chain(count=3, height=1.0)
    corners = [(0.3 * i, -0.2, 0.8 + 0.4 * j) for i in range(4) for j in range(2)]
    skin = mesh_object("Skin", corners, [(2 * i, 2 * i + 2, 2 * i + 3, 2 * i + 1) for i in range(3)])
    for i in range(3):
        skin.vertex_groups.new(name=f"bone{i}").add([2 * i, 2 * i + 1, 2 * i + 2, 2 * i + 3], 1.0, "REPLACE")
    skin.modifiers.new("Armature", "ARMATURE").object = armature
    subdivision = skin.modifiers.new("Subdivision", "SUBSURF")
    subdivision.subdivision_type, subdivision.levels = "SIMPLE", 3
    line = bpy.data.curves.new("Tail", "CURVE")
    line.dimensions, line.bevel_depth = "3D", 0.05
    spline = line.splines.new("POLY")
    spline.points.add(1)
    for point, x in zip(spline.points, (0.0, 0.9)):
        point.co = x, -0.3, 1.5, 1.0
    tail = bpy.data.objects.new("Tail", line)
    bpy.context.collection.objects.link(tail)
    tail.modifiers.new("Armature", "ARMATURE").object = armature
    bpy.context.view_layer.objects.active = armature
    cast = made(armature)
    region, view = seen_from((0.45, -FAR, 1.0))
    for i, x in enumerate((0.1, 0.45, 0.8)):
        assert pick(cast, region, view, pixel(view, (x, -0.2, 1.1))).bone == f"bone{i}"
        assert pick(cast, region, view, pixel(view, (x, -0.35, 1.5))).bone == f"bone{i}"


def test_what_is_parented_to_a_bone_is_its_skin():
    """Hats and armour are not deformed. What is no part of the character is looked through."""
    armature = chain(count=2, height=1.0)
    hat = cube((0.45, -0.5, 1.0), (0.05, 0.05, 0.05))
    hat.parent, hat.parent_type, hat.parent_bone = armature, "BONE", "bone1"
    hat.matrix_world = Matrix.LocRotScale((0.45, -0.5, 1.3), None, (0.05, 0.05, 0.05))
    wall = cube((0.0, -1.0, 1.0), (0.1, 0.01, 0.1))
    bpy.context.view_layer.objects.active = armature
    cast = made(armature)
    region, view = seen_from((0.3, -FAR, 1.0))
    assert pick(cast, region, view, pixel(view, (0.45, -0.5, 1.3))).bone == "bone1"
    assert pick(cast, region, view, pixel(view, (0.1, 0.0, 1.0))).bone == "bone0"
    assert armature_of(wall) is None


def test_the_skin_is_picked_through_what_is_before_it():
    """A coat that follows the skin has no bones of its own, and cages are drawn as wires: far from all bones, nothing
    was picked there."""
    armature = chain(count=2, height=1.0)
    skin = cube((0.3, 0.0, 1.0), (0.3, 0.5, 0.5))
    skin.modifiers.new("Armature", "ARMATURE").object = armature
    for scale in (0.55, 0.8):
        cube((0.3, 0.0, 1.0), (scale,) * 3)
    bpy.context.view_layer.objects.active = armature
    cast = made(armature)
    region, view = seen_from((0.3, -FAR, 1.0))
    for x, bone in ((0.1, "bone0"), (0.5, "bone1")):
        found = pick(cast, region, view, pixel(view, (x, -0.5, 1.4)))
        assert found.bone == bone and np.allclose(found.place, (x, -0.5, 1.4), atol=1e-4)


def test_without_a_window_grab_says_so():
    """Batch scripts get one line."""
    make_dynamic(chain())
    with pytest.raises(RuntimeError, match="Grab is done by hand, in a window; without one, use Simulate"):
        bpy.ops.armature_dynamics.grab()
