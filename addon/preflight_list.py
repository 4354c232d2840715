"""The list of problems in the sidebar, with a button that mends each, where one can, or selects what it is about."""

import bpy

from . import compat, preflight
from .operators import OnArmature
from .panel import SidebarPart, write
from .problem import ERROR, ConversionError
from .remedy import FIXES
from .role import IGNORED
from .words import said


class ARMATURE_DYNAMICS_OT_check(OnArmature, bpy.types.Operator):
    """Look for everything that would spoil a simulation of this armature. Nothing is changed"""

    bl_idname = "armature_dynamics.check"
    bl_label = "Check"

    def execute(self, context):
        found = preflight.check(context.object)
        self.report({"INFO"}, said(f"Problems found: {found}"))
        return {"FINISHED"}


class _OnProblem(OnArmature):
    index: bpy.props.IntProperty(
        name="Problem",
        description="Which of the problems [number in the list]",
        default=0,
        options={"HIDDEN", "SKIP_SAVE"},
    )

    @classmethod
    def poll(cls, context):
        return super().poll(context) and bool(context.object.armature_dynamics.problems)

    def problem(self, context):
        """The problem that is meant, or None."""
        problems = context.object.armature_dynamics.problems
        return problems[self.index] if 0 <= self.index < len(problems) else None


class ARMATURE_DYNAMICS_OT_fix(_OnProblem, bpy.types.Operator):
    """Mend this problem, and look again. Undo takes it back; what a simulation turns off comes back with its source"""

    bl_idname = "armature_dynamics.fix"
    bl_label = "Fix"

    def execute(self, context):
        armature, problem = context.object, self.problem(context)
        if problem is None or problem.fix not in FIXES:
            return {"CANCELLED"}
        try:
            FIXES[problem.fix].apply(armature, problem.bones.splitlines(), problem.things.splitlines())
        except ConversionError as error:
            self.report({"ERROR"}, said(str(error)))
            return {"CANCELLED"}
        preflight.check(armature)
        return {"FINISHED"}


class ARMATURE_DYNAMICS_OT_select_problem(_OnProblem, bpy.types.Operator):
    """Select the bones that this problem is about"""

    bl_idname = "armature_dynamics.select_problem"
    bl_label = "Select"

    def execute(self, context):
        armature, problem = context.object, self.problem(context)
        names = [name for name in (problem.bones.splitlines() if problem else ()) if name in armature.pose.bones]
        return _select(armature, names)


class ARMATURE_DYNAMICS_OT_select_carried(OnArmature, bpy.types.Operator):
    """Select the bones that are ignored: physics does not move them by themselves, others carry them along"""

    bl_idname = "armature_dynamics.select_carried"
    bl_label = "Select Carried Bones"

    def execute(self, context):
        armature = context.object
        return _select(armature, [bone.name for bone in armature.pose.bones if bone.armature_dynamics.role == IGNORED])


def _select(armature, names: list[str]) -> set[str]:
    """Selects these bones and no others, in Pose Mode; returns what an operator does."""
    if not names:
        return {"CANCELLED"}
    if armature.mode != "POSE":
        bpy.ops.object.mode_set(mode="POSE")
    meant = set(names)
    for bone in armature.pose.bones:
        compat.select_bone(bone, bone.name in meant)
    armature.data.bones.active = armature.data.bones[names[0]]
    return {"FINISHED"}


class ARMATURE_DYNAMICS_PT_preflight(SidebarPart, bpy.types.Panel):
    bl_label = "Pre-flight"
    bl_order = 0

    @classmethod
    def poll(cls, context):
        armature = context.object
        # what keeps it from being made dynamic is shown, too
        return super().poll(context) or bool(
            armature and armature.type == "ARMATURE" and armature.armature_dynamics.problems
        )

    def draw(self, context):
        layout = self.layout
        layout.operator("armature_dynamics.check", icon="VIEWZOOM")
        for index, problem in enumerate(context.object.armature_dynamics.problems):
            box = layout.box()
            box.alert = problem.severity == ERROR
            write(box, context, problem.text)
            row = box.row()
            if problem.fix in FIXES:
                row.operator("armature_dynamics.fix", text=FIXES[problem.fix].label, icon="CHECKMARK").index = index
            if problem.bones:
                row.operator("armature_dynamics.select_problem", icon="RESTRICT_SELECT_OFF").index = index


CLASSES = (
    ARMATURE_DYNAMICS_OT_check,
    ARMATURE_DYNAMICS_OT_fix,
    ARMATURE_DYNAMICS_OT_select_problem,
    ARMATURE_DYNAMICS_OT_select_carried,
    ARMATURE_DYNAMICS_PT_preflight,
)
