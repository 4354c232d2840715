"""Objects as shapes: Blender's rules for their size, whatever their scale."""

import bpy
import numpy as np
import pytest
from armature_dynamics.addon.hull import convex_hull
from armature_dynamics.core import Box, Capsule, Cylinder, Hull, Mesh, Sphere
from mathutils import Matrix
from staging import body, collected, cube, mesh_object, surveyed


def shape_of(thing):
    return surveyed(collected(thing)).shapes[thing]


def enclosed(shape):
    """The volume [m³] that a closed shape's triangles enclose; negative where they are inside out."""
    a, b, c = np.moveaxis(np.asarray(shape.vertices)[shape.triangles], 1, 0)
    return float((a * np.cross(b, c)).sum() / 6)


def bent(scale=(1, 1, 1)):
    """A closed mesh that is no box: the tetrahedron between the axes, of volume 1/6 before it is scaled."""
    thing = mesh_object(
        "Wedge", [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    )
    thing.scale = scale
    return thing


def test_a_mesh_that_is_a_box_becomes_one():
    """Boxes are solid, exact and fast; scale, rotation and an off-center mesh all count."""
    thing = cube(location=(1, 2, 3), scale=(1, 2, -0.5), rotation=(0, 0, np.pi / 2))
    for vertex in thing.data.vertices:
        vertex.co.x += 1
    box = shape_of(thing)
    assert isinstance(box, Box)
    assert np.allclose(box.center, (1, 3, 3), atol=1e-6)
    assert np.allclose(np.abs(box.rotation) @ box.half, (2, 1, 0.5), atol=1e-6)
    assert np.linalg.det(box.rotation) == pytest.approx(1)


def test_an_open_box_is_a_mesh():
    """A character can stand in a crate without a lid."""
    thing = cube()
    vertices = [tuple(vertex.co) for vertex in thing.data.vertices]
    faces = [tuple(face.vertices) for face in thing.data.polygons if face.normal.z < 0.5]
    crate = mesh_object("Crate", vertices, faces)
    assert isinstance(shape_of(crate), Mesh)


@pytest.mark.parametrize("scale", [(2, 3, 4), (-2, 3, 4), (-2, -3, -4)])
@pytest.mark.parametrize("kind", ["MESH", "CONVEX_HULL"])
def test_scale_is_baked_in_and_mirroring_turns_nothing_inside_out(kind, scale):
    """Unapplied, uneven and negative scales are everywhere in real scenes."""
    thing = bent(scale)
    body(thing, "PASSIVE", kind)
    shape = shape_of(thing)
    assert isinstance(shape, Mesh if kind == "MESH" else Hull)
    assert enclosed(shape) == pytest.approx(4.0, rel=1e-5)
    assert np.allclose(np.ptp(shape.vertices, axis=0), (2, 3, 4), atol=1e-5)


def test_round_shapes_have_blenders_sizes():
    """Sphere: the largest half extent. Capsule and cylinder: upright along z, as thick as x and y are."""
    thing = cube(location=(5, 0, 0), scale=(0.5, 1, 3))
    rigid = body(thing, "PASSIVE", "SPHERE")
    sphere = shape_of(thing)
    assert isinstance(sphere, Sphere) and sphere.radius == pytest.approx(3) and np.allclose(sphere.center, (5, 0, 0))
    rigid.collision_shape = "CAPSULE"
    capsule = shape_of(thing)
    assert isinstance(capsule, Capsule) and capsule.radius == pytest.approx(1)
    assert np.allclose([capsule.start, capsule.end], [(5, 0, -2), (5, 0, 2)], atol=1e-6)
    rigid.collision_shape = "CYLINDER"
    cylinder = shape_of(thing)
    assert isinstance(cylinder, Cylinder) and cylinder.radius == pytest.approx(1)
    assert np.allclose([cylinder.start, cylinder.end], [(5, 0, -3), (5, 0, 3)], atol=1e-6)
    rigid.collision_shape = "CONE"
    cone = shape_of(thing)
    # a pyramid of sixteen sides under a cone of π r² h / 3, with r = 1 and h = 6
    assert enclosed(cone) == pytest.approx(8 * np.sin(np.pi / 8) * 6 / 3, rel=1e-5)
    assert cone.vertices[np.argmax(cone.vertices[:, 2])] == pytest.approx((5, 0, 3))


def test_a_sheared_box_is_the_hull_of_its_corners():
    """A rotated child of an unevenly scaled parent is no box any more."""
    parent, thing = cube(scale=(1, 1, 3)), cube(rotation=(0.5, 0, 0))
    thing.parent = parent
    body(thing, "PASSIVE", "BOX")
    shape = shape_of(thing)
    assert isinstance(shape, Hull) and len(shape.vertices) == 8
    assert enclosed(shape) == pytest.approx(8 * 3, rel=1e-5)
    corners = np.array([(thing.matrix_world @ vertex.co)[:] for vertex in thing.data.vertices])
    apart = np.linalg.norm(corners[:, None] - shape.vertices, axis=2)
    assert np.allclose(apart.min(axis=1), 0, atol=1e-5)


def test_modifiers_count_as_the_rigid_body_says():
    """Final is what is seen; Deform, Blender's default, leaves out what makes new faces, and that is said."""
    thing = bent()
    thing.modifiers.new("Stretch", "DISPLACE").strength = 0.5
    thing.modifiers.new("Array", "ARRAY").count = 3
    assert len(shape_of(thing).vertices) == 12, "without a rigid body, as it is seen"
    rigid = body(thing, "PASSIVE", "MESH")
    rigid.mesh_source = "FINAL"
    assert len(shape_of(thing).vertices) == 12
    rigid.mesh_source = "DEFORM"
    found = surveyed()
    assert len(found.shapes[thing].vertices) == 4
    assert [warning.code for warning in found.warnings] == ["scenery_source"]
    assert np.ptp(found.shapes[thing].vertices, axis=0).min() > 1.1, "it is displaced"
    assert all(modifier.show_viewport for modifier in thing.modifiers)
    rigid.mesh_source = "BASE"
    assert np.allclose(np.ptp(shape_of(thing).vertices, axis=0), 1, atol=1e-6)


@pytest.mark.parametrize("kind", ["MESH", "CONVEX_HULL"])
def test_a_margin_grows_meshes_and_hulls(kind):
    """Where Blender puts its margin around the shape, so do we; every face moves out by it."""
    thing = bent(scale=(1, 1, 1))
    rigid = body(thing, "PASSIVE", kind)
    rigid.use_margin, rigid.collision_margin = True, 0.05
    shape = shape_of(thing)
    # the faces are those of x, y, z >= 0 and x + y + z <= 1; each is still flat, 5 cm farther out
    places = np.array(shape.vertices)
    assert np.allclose(np.sort(places, axis=0)[:3], -0.05, atol=1e-5)
    corner = np.argmin(places.sum(axis=1))
    assert np.allclose(np.delete(places.sum(axis=1), corner), 1 + 0.05 * np.sqrt(3), atol=1e-5)
    rigid.collision_shape = "BOX"
    box = shape_of(thing)
    assert np.allclose(box.half, 0.5, atol=1e-6), "Bullet keeps a box's margin inside"


def test_curves_and_text_collide_as_they_are_drawn():
    """A path with a bevel is a railing."""
    curve = bpy.data.curves.new("Rail", "CURVE")
    curve.dimensions, curve.bevel_depth = "3D", 0.1
    spline = curve.splines.new("POLY")
    spline.points.add(1)
    spline.points[1].co = (2, 0, 0, 1)
    rail = bpy.data.objects.new("Rail", curve)
    bpy.context.collection.objects.link(rail)
    shape = shape_of(rail)
    assert isinstance(shape, Mesh)
    assert np.allclose(np.ptp(shape.vertices, axis=0), (2, 0.2, 0.2), atol=1e-3)


def test_a_flat_mesh_is_a_mesh_even_as_a_hull():
    """A plane is the first thing that people make a passive rigid body of, and Convex Hull is the default shape."""
    bpy.ops.mesh.primitive_plane_add(size=4)
    thing = bpy.context.object
    body(thing, "PASSIVE", "CONVEX_HULL")
    shape = shape_of(thing)
    assert isinstance(shape, Mesh) and len(shape.triangles) == 2


def test_a_hull_has_few_corners_and_keeps_its_size():
    """Thousands of corners cost time and add nothing to be seen."""
    bpy.ops.mesh.primitive_uv_sphere_add(segments=64, ring_count=48, radius=1)
    ball = bpy.context.object
    ball.matrix_world = Matrix.Diagonal((1, 1, 5, 1))
    body(ball, "PASSIVE", "CONVEX_HULL")
    shape = shape_of(ball)
    assert 30 < len(shape.vertices) <= 64
    assert enclosed(shape) == pytest.approx(4 / 3 * np.pi * 5, rel=0.12)


def test_hulls_face_outward_and_contain_their_points():
    """An inside-out face would suck a body in."""
    points = np.random.default_rng(3).normal(size=(200, 3)) * (1, 0.1, 10)
    corners, triangles = convex_hull(points, 1000)
    a, b, c = np.moveaxis(corners[triangles], 1, 0)
    normals = np.cross(b - a, c - a)
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    assert (((points[None] - a[:, None]) * normals[:, None]).sum(axis=2)).max() < 1e-5
    assert convex_hull(points * (1, 1, 0), 32) is None, "flat points have no hull"


def test_a_mesh_of_many_triangles_is_taken_with_a_word():
    """It works, only slowly to prepare."""
    count = 600
    x, y = np.meshgrid(np.arange(count), np.arange(count))
    mesh = bpy.data.meshes.new("Terrain")
    corner = (y[:-1, :-1] * count + x[:-1, :-1]).ravel()
    quads = np.stack([corner, corner + 1, corner + count + 1, corner + count], axis=1)
    mesh.vertices.add(count * count)
    mesh.vertices.foreach_set("co", np.stack([x, y, 0.1 * np.sin(x + y)], axis=2).astype(np.float32).ravel())
    mesh.loops.add(quads.size)
    mesh.polygons.add(len(quads))
    mesh.loops.foreach_set("vertex_index", quads.astype(np.int32).ravel())
    mesh.polygons.foreach_set("loop_start", np.arange(0, quads.size, 4, dtype=np.int32))
    mesh.update(calc_edges=True)
    thing = bpy.data.objects.new("Terrain", mesh)
    bpy.context.collection.objects.link(thing)
    found = surveyed(collected(thing))
    assert len(found.shapes[thing].triangles) == 2 * 599 * 599
    assert [warning.code for warning in found.warnings] == ["scenery_large"]
