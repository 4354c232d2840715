"""Short ways to set up scenery."""

import bpy
from armature_dynamics.addon import scenery
from rigs import finished


def cube(location=(0, 0, 0), scale=(1, 1, 1), rotation=(0, 0, 0), size=2.0):
    bpy.ops.mesh.primitive_cube_add(size=size, location=location, rotation=rotation)
    bpy.context.object.scale = scale
    bpy.context.view_layer.update()
    return bpy.context.object


def mesh_object(name, vertices, faces):
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata(vertices, [], faces)
    thing = bpy.data.objects.new(name, mesh)
    bpy.context.collection.objects.link(thing)
    return thing


def body(thing, kind="PASSIVE", shape="MESH"):
    """Makes a rigid body of an object; returns its settings."""
    bpy.context.view_layer.objects.active = thing
    if bpy.context.scene.rigidbody_world is None:
        bpy.ops.rigidbody.world_add()
    bpy.ops.rigidbody.object_add(type=kind)
    thing.rigid_body.collision_shape = shape
    return thing.rigid_body


def collected(*things):
    """A collection with these objects."""
    collection = bpy.data.collections.new("Stage")
    for thing in things:
        collection.objects.link(thing)
    return collection


def surveyed(collection=None, members=(), start=1, end=10, **surface):
    """What there is to land on."""
    bpy.context.view_layer.update()
    return finished(scenery.survey(collection, list(members), start, end, surface))
