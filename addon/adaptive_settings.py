"""How much of a simulation moves: the scene's settings, as all characters that are simulated together share them."""

from __future__ import annotations

import bpy
import numpy as np
from bpy.props import BoolProperty, EnumProperty, FloatProperty, IntProperty

from ..core import Adaptive, Model
from .problem import NOTE, Problem

OFF, THRESHOLD, JOINTS, BUDGET = "OFF", "THRESHOLD", "JOINTS", "BUDGET"

SETTING = {THRESHOLD: "threshold", JOINTS: "joints", BUDGET: "budget"}
"""The setting that each mode has."""

LOOK = 4
"""Frames after which it is looked at anew which joints move, as automatic steps of slow motion have it."""


class ARMATURE_DYNAMICS_PG_scene(bpy.types.PropertyGroup):
    """Settings of all simulations of a scene."""

    adaptive: EnumProperty(
        name="Adaptive",
        description="Which joints move: long chains and crowds are faster where few do. All characters "
        "that are simulated together share it",
        items=(
            (OFF, "Off", "All of them"),
            (THRESHOLD, "Error Threshold", "As many as an error needs"),
            (JOINTS, "Joint Budget", "Those that matter most, so many at most"),
            (BUDGET, "Time Budget", "As many as there is time for: a preview, which no second run repeats exactly"),
        ),
        default=OFF,
    )
    threshold: FloatProperty(
        name="Error",
        description="How far what does not move may be left behind until it is looked at again, a few frames later; 0 "
        "moves all joints [part of the character's length]",
        default=1e-3,
        min=0.0,
        soft_max=0.1,
        max=1.0,
        precision=5,
        step=0.1,
    )
    joints: IntProperty(
        name="Joints",
        description="Most joints that move at a time, of all characters together; what floats moves besides [joints]",
        default=100,
        min=1,
        soft_max=10000,
    )
    budget: FloatProperty(
        name="Time",
        description="Simulating a frame of all characters takes about so long. A simulation made with it is a preview: "
        "Keep refuses it unless Also When Baking is on [ms per frame]",
        default=20.0,
        min=0.1,
        soft_max=1000.0,
        precision=1,
    )
    budget_when_baking: BoolProperty(
        name="Also When Baking",
        description="Let a simulation be kept that was made with a time budget, though another run or computer would "
        "give another one. The command line too ignores the time budget of a file without this",
        default=False,
    )
    record: BoolProperty(
        name="Record",
        description="When Play Live ends by Enter, what was seen is written as keyframes, one on every frame of the "
        "scene. Without, nothing is",
        default=True,
    )


def chosen(model: Model, substeps: int, warnings: list[Problem], *, final: bool) -> Adaptive | None:
    """What the scene's settings ask of the simulation of a model in so many `substeps`, 0 for automatic ones; adds to
    `warnings`. A `final` bake has no time budget unless the settings want it there too."""
    settings = bpy.context.scene.armature_dynamics
    # an error is left behind again at each look: as many looks a second, however many steps
    interval = max(Adaptive.interval, LOOK * substeps)
    if settings.adaptive == BUDGET:
        if final and not settings.budget_when_baking:
            text = "the time budget is for previews, and was ignored"
            warnings.append(Problem("adaptive", (), text, "turn on Also When Baking if you want it here"))
            return None
        if not settings.budget_when_baking:
            text = "this is a preview, as it was made with a time budget"
            remedy = "before Keep, simulate it without, or turn on Also When Baking"
            warnings.append(Problem("adaptive", (), text, remedy, NOTE))
        return Adaptive(budget=1e-3 * settings.budget, interval=interval)
    if settings.adaptive == JOINTS:
        most = int(movable(model).sum())
        if settings.joints > most:
            text = f"{settings.joints} joints were to move, and there are {most}: all of them do"
            warnings.append(Problem("adaptive", (), text, "give fewer, or turn Adaptive off"))
        return Adaptive(joints=min(settings.joints, most), interval=interval)
    return Adaptive(threshold=settings.threshold, interval=interval) if settings.adaptive == THRESHOLD else None


def live(model: Model, substeps: int, warnings: list[Problem], *, budget: float) -> Adaptive | None:
    """As `chosen`, for what is simulated in real time: in every mode so many joints move as there is a `budget` [s] for
    each frame."""
    if bpy.context.scene.armature_dynamics.adaptive == OFF:
        return None
    return Adaptive(budget=budget, interval=max(Adaptive.interval, LOOK * substeps))


def movable(model: Model) -> np.ndarray:
    """Which links (n,) have a joint that can move."""
    return np.diff(model.coordinates.v_start) > 0


def is_preview(armature) -> bool:
    """Whether an armature's simulation is none to keep."""
    return armature.armature_dynamics.preview and not bpy.context.scene.armature_dynamics.budget_when_baking
