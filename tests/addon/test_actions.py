"""From a rig to kept keys by three buttons, with nothing typed: Make Dynamic, Simulate, Keep."""

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import preflight
from armature_dynamics.addon.collider import balls
from armature_dynamics.addon.joint_range import hinge_angle, swing_twist
from armature_dynamics.addon.rig import rigid
from armature_dynamics.addon.source import evaluated_poses
from armature_dynamics.core.spatial import matrix_quaternion
from rigs import curves, named

pytestmark = pytest.mark.slow

RIGS = ["metarig", "generated", "CesiumMan.glb", "cmu_131_01.bvh", "mixamo", "vrm", "mmd", "Fox.glb"]

NAMINGS = ["Rigify", "Rigify", "glTF sample", "Motion capture (BVH)", "Mixamo", "VRM", "MMD", "creature"]

SLOW = 0.05
"""Part of the speed of a fall from its own height at which a character's joints may still move at the end."""

PATIENCE = 180
"""The frame by which all of them lie still."""

SKIN = 0.05
"""Part of its height by which skin may reach out of the capsules that stand for it."""


@pytest.fixture(params=zip(RIGS, NAMINGS, strict=True), ids=RIGS)
def rig(request, shared_file):
    """Each rig as Blender itself brings it into an empty file, and how it is to be recognised."""
    kind, naming = request.param
    if kind == "metarig":
        armature = request.getfixturevalue("metarig")
    elif kind == "generated":
        armature = request.getfixturevalue("generated_rig")
    elif kind.endswith(".glb"):
        bpy.ops.import_scene.gltf(filepath=str(shared_file(kind)))
        armature = next(thing for thing in bpy.data.objects if thing.type == "ARMATURE")
    elif kind.endswith(".bvh"):
        bpy.ops.import_anim.bvh(filepath=str(shared_file(kind)))
        armature = bpy.context.object
    else:
        armature = named(kind)
    bpy.context.view_layer.objects.active = armature
    bpy.context.view_layer.update()
    return armature, naming


def _keys(action):
    return (
        {
            (c.data_path, c.array_index): [
                (tuple(k.co), tuple(k.handle_left), tuple(k.handle_right)) for k in c.keyframe_points
            ]
            for c in curves(action)
        }
        if action
        else None
    )


class _Watched:
    """A character's links, followed on the evaluated rig."""

    def __init__(self, armature):
        self.armature, self.character = armature, preflight.start(armature).character
        self.links = self.character.links
        self.parents = [self.links.index(link.parent) if link.parent in self.links else -1 for link in self.links]

    def poses(self, frame):
        bpy.context.scene.frame_set(frame)
        bones, world = evaluated_poses(self.armature, self.character.rig)
        poses = rigid(world @ bones[self.character.bones])
        poses[:, :3, :3] = poses[:, :3, :3] @ self.character.offsets
        return poses

    def gap(self, poses):
        """How far joints are from where the bones above them have them [m]."""
        away = [
            np.linalg.norm(poses[i, :3, 3] - (poses[above] @ [*link.position, 1.0])[:3])
            for i, (link, above) in enumerate(zip(self.links, self.parents))
            if above >= 0
        ]
        return max(away)

    def bent(self, poses):
        """How far joints are beyond their limits, and which the most [degrees]."""
        found = [(0.0, "")]
        for i, (link, above) in enumerate(zip(self.links, self.parents)):
            if above < 0:
                continue
            turn = matrix_quaternion(np.array(link.rotation).T @ poses[above, :3, :3].T @ poses[i, :3, :3])
            lower, upper = np.asarray(link.joint.lower), np.asarray(link.joint.upper)
            if link.joint.kind == "hinge":
                angle, beyond = hinge_angle(turn)
                off = max(lower[0] - angle, angle - upper[0], np.arccos(np.clip((np.trace(beyond) - 1) / 2, -1, 1)))
            else:
                angles = swing_twist(turn)
                ends = np.where(angles < 0, -lower, upper)
                ratio = np.hypot(angles[0] / ends[0], angles[2] / ends[2])
                swung = np.hypot(angles[0], angles[2]) * (1 - 1 / ratio) if ratio > 1 else 0.0
                off = max(swung, lower[1] - angles[1], angles[1] - upper[1])
            found.append((float(np.degrees(off)), link.name))
        return max(found)

    def lowest(self, poses):
        """The lowest point of all that collides [m]."""
        return min(
            float((points[:, 2] - radii).min())
            for placed, link in zip(poses, self.links)
            for shape in link.shapes
            for points, radii in [balls(shape.moved(placed))]
        )

    def skin(self):
        """The lowest point of the meshes that the armature moves, as they are drawn now [m]; infinite without."""
        graph, lowest = bpy.context.evaluated_depsgraph_get(), np.inf
        for thing in bpy.data.objects:
            if thing.type == "MESH" and (thing.parent == self.armature or thing.find_armature() == self.armature):
                seen = thing.evaluated_get(graph)
                points = np.empty(3 * len(seen.data.vertices), dtype=np.float32)
                seen.data.vertices.foreach_get("co", points)
                world = np.array(seen.matrix_world)
                lowest = min(lowest, float((points.reshape(-1, 3) @ world[:3, :3].T + world[:3, 3])[:, 2].min()))
        return lowest


def test_three_actions_lead_to_keys_that_can_be_kept(rig):
    """Select, press three buttons: limp on the ground, in one piece, no limb broken, and the source as it was."""
    armature, naming = rig
    animation = armature.animation_data
    source = animation.action if animation else None
    before, name = _keys(source), source.name if source else ""

    assert bpy.ops.armature_dynamics.make_dynamic() == {"FINISHED"}
    # who lands on his knees topples late
    armature.armature_dynamics.frame_end = max(armature.armature_dynamics.frame_end, PATIENCE)
    watched = _Watched(armature)
    assert (watched.character.anatomy.naming if watched.character.anatomy else "creature") == naming
    assert bpy.ops.armature_dynamics.simulate() == {"FINISHED"}
    assert bpy.ops.armature_dynamics.keep() == {"FINISHED"}

    settings = armature.armature_dynamics
    assert settings.state == "KEPT" and armature.animation_data.action == settings.action
    assert _keys(bpy.data.actions[name] if name else None) == before
    height, ground = watched.character.height, min(0.0, watched.character.lowest)
    frames = range(settings.frame_start, settings.frame_end + 1)
    heads = []
    for frame in frames:
        poses = watched.poses(frame)
        heads.append(poses[:, :3, 3])
        assert watched.gap(poses) * settings.life_scale <= 1e-4, f"joints apart at frame {frame}"
        bent, bone = watched.bent(poses)
        assert bent <= 1.0, f"{bone} bends {bent:.2f}° too far at frame {frame}"
        assert watched.lowest(poses) >= ground - 0.01 * height, f"in the ground at frame {frame}"
    heads = np.array(heads)
    trunk = heads[:, 0, 2] - ground
    assert trunk[-1] < 0.6 * trunk[0], "it fell"
    rate = bpy.context.scene.render.fps / bpy.context.scene.render.fps_base
    speed = np.linalg.norm(heads[-1] - heads[-6], axis=1).max() * rate / 5
    assert speed <= SLOW * np.sqrt(2 * 9.81 / settings.life_scale * height), "it lies still"
    assert watched.skin() >= ground - SKIN * height
