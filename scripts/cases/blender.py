"""Our ragdoll and hanging chain against Blender's own rigid bodies, in one process: `python -m scripts.cases.blender`.

Both get the same links for 250 frames at 24 frames a second, each with its own defaults: ours takes the steps that a
frame needs, Blender 10 substeps. `*_equal_ratio` is ours with 10 steps a frame too. Blender's are set up as an animator
would: capsules, hinges for hinges, generic constraints with angular limits for spherical joints, the default solver and
damping. The ragdoll is dropped, with little damping in its joints as Blender damps its bodies; the chain hangs and is
let go 30° aside.
"""

from __future__ import annotations

import json
import time

import bpy
import numpy as np
from mathutils import Matrix

from core import Linkage, Plane, Simulation, compile_model
from core.mechanisms import chain, humanoid

FRAMES, SUBSTEPS, RATE = 250, 10, 24
DROP = 1.0
"""How far above the ground the ragdoll's soles start [m]."""
DAMPING = 0.1
"""Of the ragdoll's joints [N m s/rad]."""
TILT = np.radians(30.0)


def rest_poses(linkage: Linkage) -> dict[str, np.ndarray]:
    """World pose (4, 4) of each link at rest."""
    poses = {"world": np.eye(4)}
    for link in linkage.links():
        own = np.eye(4)
        own[:3, :3], own[:3, 3] = link.rotation, link.position
        poses[link.name] = poses[link.parent.name] @ own
    return poses


def ours(linkage: Linkage, scenery: list, substeps: int | None = None) -> tuple[float, float]:
    """Seconds, and the largest distance [m] between the two sides of any joint."""
    start = time.perf_counter()
    simulation = Simulation(compile_model(linkage), scenery=scenery, frame_time=1 / RATE, substeps=substeps)
    for _ in simulation.run(FRAMES):
        pass
    seconds = time.perf_counter() - start
    poses = simulation.trajectory.poses()
    index = {name: i for i, name in enumerate(simulation.trajectory.names)}
    gaps = [0.0]
    for link in linkage.links():
        if link.joint.kind in ("hinge", "spherical") and link.parent is not linkage.world:
            carrier = poses[:, index[link.parent.name]]
            anchor = carrier[:, :3, :3] @ link.position + carrier[:, :3, 3]
            gaps.append(np.linalg.norm(anchor - poses[:, index[link.name], :3, 3], axis=1).max())
    return seconds, float(max(gaps))


def theirs(linkage: Linkage, ground: bool) -> tuple[float, float]:
    """The same of Blender's rigid bodies."""
    scene = empty_scene()
    poses = rest_poses(linkage)
    bodies = {link.name: body_of(link, poses[link.name]) for link in linkage.links()}
    for number, body in enumerate(bodies.values()):
        # links touch the ground only, as ours do: two bodies meet where they share one of the twenty layers
        body.rigid_body.collision_collections = [ground and number == layer for layer in range(20)]
    if ground:
        bpy.ops.mesh.primitive_cube_add(size=1, location=(0, 0, -0.5), scale=(20, 20, 1))
        bpy.ops.rigidbody.object_add(type="PASSIVE")
        bpy.context.object.rigid_body.collision_collections = [True] * 20
    else:
        bpy.ops.object.empty_add()
    anchors = []
    for link in linkage.links():
        if link.joint.kind != "free":
            carrier = bodies.get(link.parent.name) or fixture()
            constrain(link, poses[link.name], carrier, bodies[link.name])
            point = Matrix(poses[link.name]).to_translation()
            anchors.append([(body, body.matrix_world.inverted() @ point) for body in (carrier, bodies[link.name])])
    scene.rigidbody_world.substeps_per_frame = SUBSTEPS
    scene.rigidbody_world.point_cache.frame_end = FRAMES
    seconds, gap = 0.0, 0.0
    for frame in range(1, FRAMES + 1):
        start = time.perf_counter()
        scene.frame_set(frame)
        seconds += time.perf_counter() - start
        for (one, here), (other, there) in anchors:
            gap = max(gap, (one.matrix_world @ here - other.matrix_world @ there).length)
    return seconds, gap


def empty_scene() -> bpy.types.Scene:
    bpy.ops.wm.read_factory_settings(use_empty=True)
    scene = bpy.context.scene
    scene.render.fps, scene.frame_start, scene.frame_end = RATE, 1, FRAMES
    bpy.ops.rigidbody.world_add()
    return scene


def body_of(link, pose: np.ndarray) -> bpy.types.Object:
    """An active capsule for a link: a cylinder of its shape's bounds, along z as Blender's capsules lie."""
    shape = link.shapes[0]
    along = shape.end - shape.start
    length = float(np.linalg.norm(along))
    bpy.ops.mesh.primitive_cylinder_add(vertices=12, radius=shape.radius, depth=length + 2 * shape.radius)
    body = bpy.context.object
    turn = np.eye(4)
    axis = along / length if length else np.array([0.0, 0.0, 1.0])
    side = np.cross(axis, np.eye(3)[np.argmin(abs(axis))])
    side /= np.linalg.norm(side)
    turn[:3, :3] = np.column_stack([side, np.cross(axis, side), axis])
    turn[:3, 3] = (shape.start + shape.end) / 2
    body.matrix_world = Matrix(pose @ turn)
    bpy.ops.rigidbody.object_add(type="ACTIVE")
    body.rigid_body.collision_shape = "CAPSULE"
    body.rigid_body.mass = link.mass
    return body


def fixture() -> bpy.types.Object:
    """A passive body that a chain hangs from."""
    bpy.ops.mesh.primitive_cube_add(size=0.02)
    bpy.ops.rigidbody.object_add(type="PASSIVE")
    bpy.context.object.rigid_body.collision_collections = [False] * 20
    return bpy.context.object


def constrain(link, pose: np.ndarray, carrier: bpy.types.Object, body: bpy.types.Object) -> None:
    """Blender's constraint for a link's joint; a hinge turns about z of the empty that carries it."""
    hinge = link.joint.kind == "hinge"
    turn = np.eye(4)
    turn[:3, :3] = np.eye(3)[:, [1, 2, 0]] if hinge else np.eye(3)
    bpy.ops.object.empty_add()
    empty = bpy.context.object
    empty.matrix_world = Matrix(pose @ turn)
    bpy.ops.rigidbody.constraint_add(type="HINGE" if hinge else "GENERIC")
    constraint = empty.rigid_body_constraint
    constraint.object1, constraint.object2, constraint.disable_collisions = carrier, body, True
    lower, upper = (np.broadcast_to(bound, 1 if hinge else 3) for bound in (link.joint.lower, link.joint.upper))
    if hinge:
        constraint.use_limit_ang_z = bool(np.isfinite(lower[0]))
        constraint.limit_ang_z_lower, constraint.limit_ang_z_upper = np.clip([lower[0], upper[0]], -3.1, 3.1)
        return
    for axis, low, high in zip("xyz", lower, upper):
        setattr(constraint, f"use_limit_lin_{axis}", True)
        setattr(constraint, f"limit_lin_{axis}_lower", 0.0)
        setattr(constraint, f"limit_lin_{axis}_upper", 0.0)
        setattr(constraint, f"use_limit_ang_{axis}", bool(np.isfinite(low)))
        setattr(constraint, f"limit_ang_{axis}_lower", max(low, -3.1))
        setattr(constraint, f"limit_ang_{axis}_upper", min(high, 3.1))


def main() -> None:
    metrics = {}
    ragdoll, rope = humanoid(damping=DAMPING), chain(200)
    ragdoll["pelvis"].position[2] += DROP
    top = next(rope.links())
    turn = np.eye(3)
    turn[1:, 1:] = [[np.cos(TILT), -np.sin(TILT)], [np.sin(TILT), np.cos(TILT)]]
    top.rotation = turn @ top.rotation
    for name, linkage, scenery in (("ragdoll", ragdoll, [Plane()]), ("chain", rope, [])):
        their_seconds, their_gap = theirs(linkage, bool(scenery))
        our_seconds, our_gap = ours(linkage, scenery)
        metrics |= {
            f"{name}_ratio": our_seconds / their_seconds,
            f"{name}_equal_ratio": ours(linkage, scenery, SUBSTEPS)[0] / their_seconds,
            f"{name}_s": our_seconds,
            f"{name}_blender_s": their_seconds,
            f"{name}_separation_m": our_gap,
            f"{name}_blender_separation_m": their_gap,
        }
    print(json.dumps({"metrics": metrics, "blender": bpy.app.version_string}))


if __name__ == "__main__":
    main()
