"""What characters land on."""

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import scenery
from armature_dynamics.addon.rig import ConversionError
from rigs import chain, simulate, world_heads


def cube(location=(0, 0, 0), scale=(1, 1, 1), rotation=(0, 0, 0), size=2.0):
    bpy.ops.mesh.primitive_cube_add(size=size, location=location, rotation=rotation)
    bpy.context.object.scale = scale
    bpy.context.view_layer.update()
    return bpy.context.object


def test_a_mesh_is_the_box_around_it():
    """Scale, rotation and an off-center mesh all count."""
    thing = cube(location=(1, 2, 3), scale=(1, 2, 0.5), rotation=(0, 0, np.pi / 2))
    for vertex in thing.data.vertices:
        vertex.co.x += 1
    bpy.context.view_layer.update()
    collection = bpy.data.collections.new("Stage")
    collection.objects.link(thing)
    (box,) = scenery.boxes(collection, 0.7, 0.1)
    assert np.allclose(box.center, (1, 3, 3), atol=1e-6)
    assert np.allclose(np.abs(box.rotation) @ box.half, (2, 1, 0.5), atol=1e-6)
    assert np.linalg.det(box.rotation) == pytest.approx(1)
    assert (box.friction, box.restitution) == (0.7, 0.1)


def test_a_character_lands_on_a_box_of_its_scenery():
    """The steps of a stair hold."""
    armature = chain(2, height=2.0)
    thing = cube(location=(0, 0, 0.5), scale=(2, 2, 0.5))
    collection = bpy.data.collections.new("Stage")
    bpy.context.scene.collection.children.link(collection)
    collection.objects.link(thing)
    report = simulate(armature, end=48, scenery=collection, use_ground=False)
    bpy.context.scene.frame_set(48)
    heights = [head[2] for head in world_heads(armature).values()]
    assert min(heights) > 1.0 and max(heights) < 1.2
    assert report.penetration_max_m < 0.01


def test_passive_rigid_bodies_are_scenery():
    """A stage set up for Blender's own physics works as it is."""
    thing = cube(location=(0, 0, 0.5))
    bpy.context.view_layer.objects.active = thing
    bpy.ops.rigidbody.world_add()
    bpy.ops.rigidbody.object_add(type="PASSIVE")
    thing.rigid_body.friction = 0.25
    (box,) = scenery.boxes(None, 0.7, 0.0)
    assert box.friction == pytest.approx(0.25)


def test_scenery_without_size_is_refused_by_name():
    """One line that names the object."""
    thing = cube()
    thing.scale = (0, 1, 1)
    bpy.context.view_layer.update()
    collection = bpy.data.collections.new("Stage")
    collection.objects.link(thing)
    with pytest.raises(ConversionError, match="'Cube'"):
        scenery.boxes(collection, 0.7, 0.0)


def test_the_ground_is_where_the_user_says_or_under_the_character():
    """A character that starts in the ground would be thrown out of it."""
    plane, warnings = scenery.ground(0.0, 0.3, 0.6, 0.0)
    assert plane.point[2] == 0.0 and not warnings
    plane, warnings = scenery.ground(0.0, -0.4, 0.6, 0.0)
    assert plane.point[2] == pytest.approx(-0.4) and warnings[0].code == "ground_lowered"


def test_without_ground_and_gravity_a_body_floats():
    """Scenes in space stay in space."""
    bpy.context.scene.use_gravity = False
    armature = chain(2, height=2.0)
    before = world_heads(armature)
    simulate(armature, end=25, use_ground=False)
    bpy.context.scene.frame_set(25)
    for name, head in world_heads(armature).items():
        assert np.allclose(head, before[name], atol=1e-5)
