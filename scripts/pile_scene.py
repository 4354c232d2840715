"""Three people fall down a mesh staircase onto a platform that moves, and onto each other."""

from __future__ import annotations

import bpy
from demo_scene import START, STRIDE, box, dress, studio
from stage_scene import RATE, human, make_dynamic, mirrored, simulate, spread

STEPS, TREAD, RISE, HALF_WIDTH = 3, 0.3, 0.17, 1.1
EDGE = -0.28
"""Where the landing ends [m]; the stairs go down from there toward -y."""
END = 115
PEOPLE = {  # name: place of the feet (x, y) [m] at START, speed toward the stairs [m/s], color
    "Ann": ((-0.5, 0.0), 3.0, (0.85, 0.23, 0.06)),
    "Ben": ((0.5, 0.1), 3.2, (0.06, 0.32, 0.75)),
    "Cas": ((0.0, 0.7), 4.0, (0.25, 0.5, 0.1)),
}
RIDE = {1: (0, 0), 40: (0, 0), 72: (-0.3, 0.4), END: (-0.3, 0.4)}
"""Frames, and how far aside and away from the stairs the platform is then [m]."""


def pile() -> list[int]:
    """All walk off the landing at once; those behind fall onto those in front."""
    people = []
    for number, (name, ((x, y), speed, _)) in enumerate(PEOPLE.items()):
        rig = human(name, mirrored(STRIDE) if number % 2 else STRIDE)
        for frame in (1, START + 1):
            rig.location = (x, y + speed * (START - frame) / RATE, -0.07)
            rig.keyframe_insert("location", frame=frame)
        people.append(rig)
    place = bpy.data.collections.new("Scenery")
    bpy.context.scene.collection.children.link(place)
    foot = -STEPS * RISE
    stairs(place)
    box(place, "Floor", (-8, -9, foot - 0.5), (8, 9, foot - 0.3))
    front = EDGE - (STEPS - 1) * TREAD
    box(place, "Platform", (-1.5, front - 3.2, foot - 0.1), (1.5, front - 0.02, foot))
    platform = bpy.data.objects["Platform"]
    start = platform.location.copy()
    for frame, (aside, away) in RIDE.items():
        platform.location = start.x + aside, start.y - away, start.z
        platform.keyframe_insert("location", frame=frame)
    for rig in people:
        make_dynamic(rig, meets=True)
    first = people[0]
    make_dynamic(first, frame_start=START, frame_end=END, scenery=place, use_ground=False)
    simulate(first)
    for rig in people:
        dress(rig, PEOPLE[rig.name][2])
    studio(place, eye=(5.6, -6.0, 2.4), aim=(-0.1, -1.5, 0.15))
    return spread(START, END)


def stairs(collection: bpy.types.Collection) -> None:
    """One mesh: the right half of the stairs in steps of 1 by 1, scaled to size and mirrored."""
    profile = [(-6.0, -STEPS - 1.5), (-6.0, 0.0)]
    for step in range(STEPS):
        profile += [(step, -step), (step, -step - 1)]
    profile[-1] = (STEPS - 1, -STEPS - 1.5)
    count = len(profile)
    corners = [(x, -y, z) for x in (0, 1) for y, z in profile]
    faces = [(i, (i + 1) % count, count + (i + 1) % count, count + i) for i in range(count)]
    mesh = bpy.data.meshes.new("Stairs")
    mesh.from_pydata(corners, [], [*faces, tuple(range(count, 2 * count))])
    thing = bpy.data.objects.new("Stairs", mesh)
    thing.location, thing.scale = (0, EDGE, 0), (HALF_WIDTH, TREAD, RISE)
    thing.modifiers.new("Mirror", "MIRROR")
    collection.objects.link(thing)
