"""What characters land on: which objects are taken, and what moves."""

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import instances, scenery
from armature_dynamics.core import Box, Mesh
from connecting import carry
from rigs import chain, simulate, world_heads
from staging import body, collected, cube, mesh_object, surveyed


def test_a_character_lands_on_a_box_of_its_scenery():
    """The steps of a stair hold."""
    armature = chain(2, height=2.0)
    thing = cube(location=(0, 0, 0.5), scale=(2, 2, 0.5))
    report = simulate(armature, end=48, scenery=collected(thing), use_ground=False)
    bpy.context.scene.frame_set(48)
    heights = [head[2] for head in world_heads(armature).values()]
    assert min(heights) > 1.0 and max(heights) < 1.2
    assert report.penetration_max_m < 0.01
    assert report.scenery == {"taken": ["Cube"], "ignored": []} and report.contacts_max > 0


def test_passive_animated_and_switched_off_rigid_bodies_are_scenery():
    """What Blender's physics does not move stands still for us too; what it moves is listed."""
    things = [cube(location=(3 * i, 0, 0)) for i in range(4)]
    body(things[0], "PASSIVE")
    body(things[1], "ACTIVE").kinematic = True
    body(things[2], "ACTIVE").enabled = False
    body(things[3], "ACTIVE")
    found = surveyed()
    assert [thing.name for thing in found.shapes] == ["Cube", "Cube.001", "Cube.002"]
    assert found.ignored == ["Cube.003"] and "Cube.003" in found.warnings[0].message


def test_a_rigid_body_brings_its_surface_and_its_groups():
    """A stage set up for Blender's own physics works as it is; its settings win over the panel's."""
    thing = cube()
    rigid = body(thing, "PASSIVE", "BOX")
    rigid.friction, rigid.restitution = 0.25, 0.75
    rigid.collision_collections = [False, True, False, True] + 16 * [False]
    (shape,) = surveyed(collected(thing), friction=0.9, rolling=0.01).shapes.values()
    assert shape.friction == pytest.approx(0.25) and shape.restitution == pytest.approx(0.75)
    assert shape.layers == 0b1010
    assert shape.rolling == 0.01, "Blender has none of its own"


def test_objects_of_the_collection_have_the_surface_of_the_panel():
    """Ice is ice without setting up a rigid body."""
    (shape,) = surveyed(collected(cube()), friction=0.03, torsion=0.002).shapes.values()
    assert (shape.friction, shape.torsion, shape.layers) == (0.03, 0.002, 1)


@pytest.mark.parametrize("how", ["excluded", "disabled collection", "nested in one", "disabled object"])
def test_hidden_scenery_is_ignored_and_listed(how):
    """What the view layer does not evaluate cannot be landed on, and somebody will wonder why."""
    thing, seen = cube(), cube(location=(4, 0, 0))
    collection = bpy.data.collections.new("Stage")
    inner = bpy.data.collections.new("Inner")
    bpy.context.scene.collection.children.link(collection)
    collection.children.link(inner)
    for moved in (thing, seen):
        bpy.context.scene.collection.objects.unlink(moved)
    inner.objects.link(thing)
    bpy.context.scene.collection.objects.link(seen)
    collection.objects.link(seen)
    if how == "excluded":
        bpy.context.view_layer.layer_collection.children["Stage"].exclude = True
    elif how == "disabled object":
        thing.hide_viewport = True
    else:
        (inner if how == "disabled collection" else collection).hide_viewport = True
    found = surveyed(collection)
    assert found.ignored == ["Cube"]
    assert [warning.code for warning in found.warnings] == ["scenery_ignored"]
    assert "hidden" in found.warnings[0].message and "'Cube'" in found.warnings[0].message
    assert list(found.shapes) == [seen], "it is in a collection that is shown too"


@pytest.mark.parametrize("by", ["keys", "strip", "driver"])
def test_no_button_shows_scenery_that_would_be_hidden_again(by):
    """Keys, strips and drivers have the last word at the start frame."""
    thing = cube()
    thing.hide_viewport = True
    if by == "driver":
        thing.driver_add("hide_viewport").driver.expression = "1"
    else:
        thing.keyframe_insert("hide_viewport", frame=1)
    animation = thing.animation_data
    if by == "strip":
        action, animation.action = animation.action, None
        animation.nla_tracks.new().strips.new("Hide", 1, action)
    (warning,) = surveyed(collected(thing)).warnings
    assert "hidden by keys, a strip or a driver" in warning.message and not warning.fix


def test_the_eye_in_the_outliner_hides_nothing_from_physics():
    """Blender's rigid bodies do not mind it either, and a take must not depend on a look."""
    thing = cube()
    thing.modifiers.new("Subdivision", "SUBSURF").levels = 1
    before = surveyed(collected(thing)).shapes[thing]
    thing.hide_set(True)
    after = surveyed(collected(thing)).shapes[thing]
    assert np.array_equal(before.vertices, after.vertices) and len(after.vertices) == 26


def test_what_has_no_surface_is_ignored_and_listed():
    """Lights and empties are in every stage; a flat scale or an empty mesh is said in one line."""
    lamp = bpy.data.objects.new("Lamp", bpy.data.lights.new("Lamp", "POINT"))
    empty = bpy.data.objects.new("Empty", None)
    bare, flat = mesh_object("Bare", [], []), cube()
    edges = mesh_object("Edges", [(0, 0, 0), (1, 0, 0)], [])
    cards = mesh_object("Hair cards", [(0, 0, 0), (1, 0, 0), (2, 0, 0), (1, 1e-9, 0)], [(0, 1, 2), (0, 2, 3)])
    flat.scale = (0, 1, 1)
    for thing in (lamp, empty):
        bpy.context.collection.objects.link(thing)
    copies = copies_of(collected())
    found = surveyed(collected(lamp, empty, bare, flat, edges, cards, copies))
    assert not found.shapes
    assert sorted(found.ignored) == ["Bare", "Copies", "Cube", "Edges", "Empty", "Hair cards", "Lamp"]
    lines = [warning.message for warning in found.warnings]
    assert any("no surface" in line and "'Empty', 'Lamp'" in line for line in lines)
    assert any("no mesh" in line and "'Bare'" in line for line in lines)
    assert any("no mesh" in line and "'Copies'" in line for line in lines)
    assert any("scale is zero" in line and "'Cube'" in line for line in lines)
    assert any("no faces" in line and "'Edges'" in line for line in lines)
    assert any("no area" in line and "'Hair cards'" in line for line in lines)


def copies_of(collection):
    """An object that shows a collection, as Add > Collection Instance makes it."""
    copies = bpy.data.objects.new("Copies", None)
    bpy.context.collection.objects.link(copies)
    copies.instance_type, copies.instance_collection = "COLLECTION", collection
    return copies


def test_instances_of_a_collection_are_where_they_are_seen():
    """Sets are put together of assets: what is seen holds, also mirrored, and an instance within an instance."""
    corners = [(1, 2, 0.5), (-1, -2, 0.5), (-1, 2, -0.5), (1, -2, -0.5)]
    rock = mesh_object("Rock", corners, [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)])
    rock.location.z = 1
    bpy.context.collection.objects.unlink(rock)
    inner = copies_of(collected(rock))
    bpy.context.collection.objects.unlink(inner)
    inner.location.x = 3
    outer = copies_of(collected(inner))
    outer.scale, outer.location = (-2, 2, 2), (1, 0, 5)
    (shape,) = surveyed(collected(outer)).shapes.values()
    low, high = shape.vertices.min(axis=0), shape.vertices.max(axis=0)
    assert np.allclose(low, (-7, -4, 6)) and np.allclose(high, (-3, 4, 8))
    a, b, c = np.moveaxis(shape.vertices[shape.triangles], 1, 0)
    assert (np.cross(b - a, c - a) * ((a + b + c) / 3 - (low + high) / 2)).sum(axis=1).min() > 0, "faces look out"


def test_instances_of_geometry_nodes_hold_a_character():
    """Scattered stones are instances: the character lies on them, not in them, and rides along with their object."""
    stone = cube(location=(0, 0, -50))
    bpy.context.collection.objects.unlink(stone)
    nodes = bpy.data.node_groups.new("Scatter", "GeometryNodeTree")
    nodes.interface.new_socket("Geometry", in_out="OUTPUT", socket_type="NodeSocketGeometry")
    info, out = nodes.nodes.new("GeometryNodeObjectInfo"), nodes.nodes.new("NodeGroupOutput")
    info.inputs["Object"].default_value = stone
    info.inputs["As Instance"].default_value = True
    nodes.links.new(info.outputs["Geometry"], out.inputs[0])
    field = mesh_object("Field", [], [])
    field.modifiers.new("Scatter", "NODES").node_group = nodes
    field.location.z = 1.0
    armature = chain(2, height=2.5)
    report = simulate(armature, end=48, scenery=collected(field), use_ground=False)
    assert report.scenery == {"taken": ["Field"], "ignored": []}
    bpy.context.scene.frame_set(48)
    heights = [head[2] for head in world_heads(armature).values()]
    assert min(heights) > 2.0 and max(heights) < 2.2, "on the stone, which is seen in the field's place"


def test_too_many_instances_are_said_in_one_line(monkeypatch):
    """A forest does not fill the memory."""
    monkeypatch.setattr(instances, "MOST_TRIANGLES", 20)
    copies = copies_of(collected(cube(), cube()))
    found = surveyed(collected(copies))
    assert found.ignored == ["Copies"]
    assert "its instances have more than 20 triangles" in found.warnings[0].message


def test_a_meadow_is_its_ground_where_its_grass_is_too_much(monkeypatch):
    """What was taken without its instances before is not lost for having many."""
    monkeypatch.setattr(instances, "MOST_TRIANGLES", 20)
    ground, blades = cube(), [cube(location=(k, 0, 0)) for k in range(2)]
    for blade in blades:
        blade.parent = ground
    ground.instance_type = "VERTS"
    found = surveyed(collected(ground))
    assert list(found.shapes) == [ground] and isinstance(found.shapes[ground], Box)
    assert "'Cube' is taken without what it shows besides" in found.warnings[0].message


def test_the_characters_own_meshes_are_no_scenery():
    """A character must not be pushed out of its own skin, or off what it holds."""
    armature = chain(2)
    skin, sword = cube(), cube()
    skin.modifiers.new("Armature", "ARMATURE").object = armature
    sword.parent, sword.parent_type, sword.parent_bone = armature, "BONE", "bone1"
    found = surveyed(collected(skin, sword, armature), members=[armature])
    assert not found.shapes and not found.warnings


@pytest.mark.parametrize("hold", ["CHILD_OF", "COPY_LOCATION", "COPY_ROTATION", "COPY_TRANSFORMS", "ARMATURE"])
def test_what_a_constraint_puts_in_a_characters_hand_is_no_scenery(hold):
    """However a sword is held, and though it is drawn later, it does not push its bearer away."""
    armature, sword = chain(2), cube()
    body(sword)
    constraint = carry(sword, armature, "bone1", hold)
    assert not surveyed(members=[armature]).shapes
    constraint.influence = 0.0
    assert list(surveyed(members=[armature]).shapes) == [sword], "nothing holds it"
    constraint.keyframe_insert("influence", frame=1)
    constraint.influence = 1.0
    constraint.keyframe_insert("influence", frame=5)
    assert not surveyed(members=[armature]).shapes
    constraint.mute = True
    assert list(surveyed(members=[armature]).shapes) == [sword]


def test_an_object_that_moves_becomes_a_keyed_link():
    """A platform carries what lies on it: its surface has the velocity of its animation."""
    lift = cube(location=(0, 0, 1), scale=(-2, 1, 0.1))
    for frame, height in ((1, 1.0), (25, 2.0)):
        lift.location.z = height
        lift.keyframe_insert("location", frame=frame)
    armature = chain(2, height=1.3)
    report = simulate(armature, end=25, scenery=collected(lift), use_ground=False)
    bpy.context.scene.frame_set(25)
    heights = [head[2] for head in world_heads(armature).values()]
    assert min(heights) > 2.09, "it has been lifted with the platform"
    assert report.penetration_max_m < 0.01 and report.bodies == 2


def test_what_deforms_is_taken_as_it_is_at_the_start():
    """Meshes that bend are no rigid bodies: it is said, once for each."""
    thing = cube()
    thing.shape_key_add(name="Basis")
    key = thing.shape_key_add(name="Wide")
    key.data[0].co.x -= 1.0
    for frame, value in ((1, 0.0), (10, 1.0)):
        key.value = value
        key.keyframe_insert("value", frame=frame)
    growing = cube()
    for frame, scale in ((1, 1.0), (10, 2.0)):
        growing.scale = (scale, scale, scale)
        growing.keyframe_insert("scale", frame=frame)
    armature = chain(2, height=5.0)
    report = simulate(armature, end=10, scenery=collected(thing, growing))
    deforms = [warning.message for warning in report.warnings if warning.code == "scenery_deforms"]
    assert len(deforms) == 2 and "'Cube'" in deforms[0] and "'Cube.001'" in deforms[1]


def test_the_playhead_changes_nothing():
    """A take is the same from wherever it is started (field case 6), also with scenery that moves and bends."""
    lift = cube(location=(0, 0, 1), scale=(2, 1, 0.1))
    lift.modifiers.new("Bend", "SIMPLE_DEFORM").deform_method = "TAPER"
    lift.modifiers["Bend"].driver_add("factor").driver.expression = "frame / 100"
    for frame, height, disabled in ((1, 1.0, False), (25, 2.0, True)):
        lift.location.z, lift.hide_viewport = height, disabled
        lift.keyframe_insert("location", frame=frame)
        lift.keyframe_insert("hide_viewport", frame=frame)
    shapes = []
    for frame in (1, 25):
        bpy.context.scene.frame_set(frame)
        found = surveyed(collected(lift), start=3, end=20)
        assert bpy.context.scene.frame_current == frame
        shapes.append(found.shapes[lift])
    assert isinstance(shapes[0], Mesh)
    assert np.array_equal(shapes[0].vertices, shapes[1].vertices)


def test_the_ground_is_where_the_user_says_or_under_the_character():
    """A character that starts in the ground would be thrown out of it."""
    surface = {"friction": 0.3, "rolling": 0.02}
    plane, warnings = scenery.ground(0.0, 0.3, surface)
    assert plane.point[2] == 0.0 and not warnings
    assert (plane.friction, plane.rolling) == (0.3, 0.02)
    assert plane.layers & (1 << 19), "it meets every group"
    plane, warnings = scenery.ground(0.0, -0.4, surface)
    assert plane.point[2] == pytest.approx(-0.4) and warnings[0].code == "ground_lowered"


def test_a_compound_is_made_of_its_parts():
    """Its parts have its surface, and it has no shape itself."""
    whole, part = cube(), cube(location=(0, 0, 3))
    part.parent = whole
    rigid = body(whole, "PASSIVE", "COMPOUND")
    rigid.friction = 0.125
    body(part, "ACTIVE", "BOX").friction = 0.9
    found = surveyed()
    assert list(found.shapes) == [part] and isinstance(found.shapes[part], Box)
    assert found.shapes[part].friction == pytest.approx(0.125) and not found.warnings


def test_the_winds_of_the_scene_blow():
    """Force fields that move Blender's rigid bodies move characters."""
    bpy.context.scene.use_gravity = False
    armature = chain(1, height=2.0)
    bpy.ops.object.effector_add(type="WIND", location=(0, 0, 0), rotation=(0, np.pi / 2, 0))
    bpy.context.object.field.strength = 200.0
    before = world_heads(armature)["bone0"]
    report = simulate(armature, end=25, use_ground=False)
    bpy.context.scene.frame_set(25)
    blown = world_heads(armature)["bone0"] - before
    assert blown[0] > 0.1 and np.abs(blown[1:]).max() < 0.2 * blown[0]
    assert report.ok, "the energy comes from outside"


def test_without_ground_and_gravity_a_body_floats():
    """Scenes in space stay in space."""
    bpy.context.scene.use_gravity = False
    armature = chain(2, height=2.0)
    before = world_heads(armature)
    simulate(armature, end=25, use_ground=False)
    bpy.context.scene.frame_set(25)
    for name, head in world_heads(armature).items():
        assert np.allclose(head, before[name], atol=1e-5)


@pytest.mark.parametrize(("degrees", "told"), [(100, False), (170, True)])
def test_what_whirls_too_fast_for_the_frames_is_told(degrees, told):
    """A fan that turns by half a turn a frame has no direction: nobody should wonder why it blows the other way."""
    fan = cube(location=(0, 0, 0.5), scale=(1, 0.1, 0.1))
    fan.rotation_mode = "XYZ"
    for frame in range(1, 8):
        fan.rotation_euler.z = np.radians(degrees * (frame - 1))
        fan.keyframe_insert("rotation_euler", frame=frame)
    report = simulate(chain(2, height=3.0), end=6, scenery=collected(fan))
    found = [warning.message for warning in report.warnings if warning.code == "whirl"]
    assert bool(found) == told
    assert not told or ("'Cube' turns by 170°" in found[0] and "shorter way" in found[0])
