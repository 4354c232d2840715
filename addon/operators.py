"""Operators: read settings, run a take, report."""

import bpy

from . import adaptive_settings, casting, control, intake, lock, preflight, probe, rival, stage, surface, take
from .anatomy import recognise
from .override import refusal
from .problem import ConversionError, refused
from .progress import finished
from .renamed import note_names
from .rig import read_rig, refuse_hidden, refuse_unusable
from .role import IGNORED, SIMULATED, carriers, default_roles, welded
from .skin import of_body, read_skin
from .words import said

SLICE = 0.05
"""Seconds of work between two looks at the keyboard: the window is drawn there, which may take as long."""


def make_dynamic(armature) -> tuple[str, int, int]:
    """Gives every bone its default role, and an armature that was not dynamic its frame range, its scale in life and
    whether constraints are muted; returns the naming that was recognised, the number of simulated bones and of those
    carried along. Raises ConversionError for what cannot be simulated."""
    refuse_unusable(armature)
    refuse_hidden(armature)
    # an armature that has just been linked has no pose yet
    bpy.context.view_layer.update()
    control.write(armature, {}, "", {})
    rig = read_rig(armature, chain=control.is_controlled(armature))
    skin = read_skin(armature, rig)
    anatomy = recognise(rig, skin)
    roles = default_roles(rig, anatomy, of_body(armature, rig, skin))
    if control.is_controlled(armature):
        rig, roles = _map_controls(armature, rig, roles)
    for name, role in zip(rig.names, roles, strict=True):
        armature.pose.bones[name].armature_dynamics.role = role
    settings = armature.armature_dynamics
    if not settings.enabled:  # what the animator set since stays
        settings.enabled = True
        settings.life_scale = intake.life_scale(armature, human=anatomy is not None)
        settings.frame_start, settings.frame_end = casting.default_range(armature)
        simulated = {name for name, role in zip(rig.names, roles, strict=True) if role == SIMULATED}
        if anatomy and rig.controls is None and rival.solvers(armature, simulated):
            settings.mute_constraints = True
    note_names(armature)
    return (
        anatomy.naming if anatomy else "creature",
        roles.count(SIMULATED),
        len(welded(rig, roles, carriers(rig, roles))),
    )


def _map_controls(armature, rig, roles: list[str]) -> tuple:
    """Finds the controls of the bones that are simulated, and of those between them; those without one are ignored.
    Returns the rig and the roles, of the bones themselves where there are no controls."""
    carrier = carriers(rig, roles)
    wanted = {
        above
        for bone, role in enumerate(roles)
        if role == SIMULATED
        for above in rig.ancestors(bone)
        if carrier[above] >= 0 and rig.deforms[above]
    } | {rig.index[name] for name in control.switching(armature) if carrier[rig.index[name]] >= 0}
    found = probe.find(armature, rig, sorted(wanted))
    if not found.controls:
        rig = read_rig(armature, chain=False)
        skin = read_skin(armature, rig)
        return rig, default_roles(rig, recognise(rig, skin), of_body(armature, rig, skin))
    control.write(armature, found.controls, found.root, found.switches)
    return read_rig(armature), [
        IGNORED if is_carried and name not in found.controls else role
        for name, role, is_carried in (
            (name, role, control.is_carried(armature.pose.bones[name])) for name, role in zip(rig.names, roles)
        )
    ]


class OnArmature:
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context):
        armature = context.object
        if armature is None or armature.type != "ARMATURE":
            cls.poll_message_set(said("Select an armature"))
            return False
        if not armature.is_editable:
            cls.poll_message_set(said(refusal(armature.name)))
            return False
        return True


class OnDynamic(OnArmature):
    @classmethod
    def poll(cls, context):
        return super().poll(context) and context.object.armature_dynamics.enabled


class ARMATURE_DYNAMICS_OT_make_dynamic(OnArmature, bpy.types.Operator):
    """Find out which bones physics should move, and prepare the armature for simulating"""

    bl_idname = "armature_dynamics.make_dynamic"
    bl_label = "Make Dynamic"

    def execute(self, context):
        try:
            naming, simulated, carried = make_dynamic(context.object)
        except ConversionError as error:
            preflight.keep(context.object, [error.problem])
            self.report({"ERROR"}, said(str(error)))
            return {"CANCELLED"}
        found = preflight.check(context.object)
        self.report({"INFO"}, said(f"{naming}: {simulated} bones are simulated, {carried} are carried along"))
        if context.object.armature_dynamics.mute_constraints:
            self.report({"INFO"}, "Constraints that move them are turned off while the simulation plays")
        if found:
            self.report({"WARNING"}, said(f"Problems found: {found}; see Pre-flight in the sidebar"))
        return {"FINISHED"}


class ARMATURE_DYNAMICS_OT_remove(OnArmature, bpy.types.Operator):
    """Play the source animation again, remove the simulation that was not kept, and forget the bones' roles"""

    bl_idname = "armature_dynamics.remove"
    bl_label = "Remove Dynamics"

    def execute(self, context):
        armature = context.object
        settings = armature.armature_dynamics
        give_up = {stage.SIMULATED: stage.discard, stage.KEPT: stage.restore_source}.get(settings.state)
        for member in stage.together(armature) if give_up else ():
            give_up(member)
        for bone in armature.pose.bones:
            bone.armature_dynamics.role = IGNORED
            lock.relock(bone)
        control.write(armature, {}, "", {})
        settings.enabled = False
        settings.problems.clear()
        return {"FINISHED"}


class ARMATURE_DYNAMICS_OT_simulate(OnArmature, bpy.types.Operator):
    """Let physics move the armature over its frame range and write the result as keyframes of an action of its own.
    Esc stops and leaves everything as it was"""

    bl_idname = "armature_dynamics.simulate"
    bl_label = "Simulate"

    def execute(self, context):
        try:
            return self._finish(finished(take.take(context.object)))
        except ValueError as error:
            return self._refuse(context, error)

    def invoke(self, context, event):
        if bpy.app.background:
            return self.execute(context)
        self._steps = take.take(context.object)
        self._timer = context.window_manager.event_timer_add(0.001, window=context.window)
        context.window_manager.progress_begin(0, 100)
        context.window_manager.modal_handler_add(self)
        return {"RUNNING_MODAL"}

    def modal(self, context, event):
        if event.type == "ESC":
            self.cancel(context)
            self.report({"INFO"}, "Simulation stopped; nothing was changed")
            return {"CANCELLED"}
        if event.type == "TIMER":
            try:
                stage_name, progress = take.advance(self._steps, SLICE)
            except StopIteration as stop:
                self._leave(context)
                return self._finish(stop.value)
            except ValueError as error:
                self._leave(context)
                return self._refuse(context, error)
            context.window_manager.progress_update(round(100 * progress))
            text = f"Armature Dynamics: {stage_name} {100 * progress:.0f} %   Esc: stop"
            context.workspace.status_text_set(said(text))
        # every event is ours: an undo in the middle would take the data away that the take works on
        return {"RUNNING_MODAL"}

    def cancel(self, context):
        self._steps.close()
        self._leave(context)

    def _leave(self, context):
        context.window_manager.event_timer_remove(self._timer)
        context.window_manager.progress_end()
        context.workspace.status_text_set(None)

    def _refuse(self, context, error):
        preflight.keep(context.object, [refused(error)])
        self.report({"ERROR"}, said(str(error)))
        return {"CANCELLED"}

    def _finish(self, report):
        if not report.ok:
            self.report({"WARNING"}, "The simulation breaks a promise: see Warnings in the sidebar")
        self.report({"INFO"}, said("; ".join(report.lines())))
        return {"FINISHED"}


class _OnTake(OnArmature):
    states = (stage.SIMULATED, stage.KEPT)

    @classmethod
    def poll(cls, context):
        return super().poll(context) and context.object.armature_dynamics.state in cls.states


class ARMATURE_DYNAMICS_OT_keep(_OnTake, bpy.types.Operator):
    """Accept the simulation: its keyframes stay. The source animation can still be restored. Armatures that were
    simulated together are kept together"""

    bl_idname = "armature_dynamics.keep"
    bl_label = "Keep"
    states = (stage.SIMULATED,)

    @classmethod
    def poll(cls, context):
        if not super().poll(context):
            return False
        if adaptive_settings.is_preview(context.object):
            cls.poll_message_set(said("A time budget made a preview: simulate without, or turn on Also When Baking"))
            return False
        return True

    def execute(self, context):
        for member in stage.together(context.object):
            stage.keep(member)
        return {"FINISHED"}


class ARMATURE_DYNAMICS_OT_discard(_OnTake, bpy.types.Operator):
    """Remove the simulation and play the source animation again, also on the armatures that were simulated together
    with this one"""

    bl_idname = "armature_dynamics.discard"
    bl_label = "Discard"

    def execute(self, context):
        for member in stage.together(context.object):
            stage.discard(member)
        return {"FINISHED"}


class ARMATURE_DYNAMICS_OT_restore_source(_OnTake, bpy.types.Operator):
    """Play the source animation again, also on the armatures that were simulated together with this one; the actions
    with the simulation stay in the file"""

    bl_idname = "armature_dynamics.restore_source"
    bl_label = "Restore Source"

    def execute(self, context):
        for member in stage.together(context.object):
            stage.restore_source(member)
        return {"FINISHED"}


class _OntoSelectedBones(OnArmature):
    settings: tuple[str, ...]

    def execute(self, context):
        active = context.active_pose_bone.armature_dynamics
        for bone in context.selected_pose_bones or ():
            for name in self.settings:
                setattr(bone.armature_dynamics, name, getattr(active, name))
        return {"FINISHED"}

    @classmethod
    def poll(cls, context):
        return super().poll(context) and context.active_pose_bone is not None


class ARMATURE_DYNAMICS_OT_set_role(_OntoSelectedBones, bpy.types.Operator):
    """Give the selected bones the role of the active one"""

    bl_idname = "armature_dynamics.set_role"
    bl_label = "Copy Role to Selected Bones"
    settings = ("role",)


class ARMATURE_DYNAMICS_OT_copy_collision(_OntoSelectedBones, bpy.types.Operator):
    """Give the selected bones the shape, surface and collision groups of the active one"""

    bl_idname = "armature_dynamics.copy_collision"
    bl_label = "Copy Collision to Selected Bones"
    settings = ("shape", "shape_length", "shape_thickness", "use_surface", *surface.VALUES, "use_layers", "layers")


class ARMATURE_DYNAMICS_OT_set_surface(bpy.types.Operator):
    """Take the values of this material"""

    bl_idname = "armature_dynamics.set_surface"
    bl_label = "Surface"
    bl_options = {"REGISTER", "UNDO", "INTERNAL"}

    material: bpy.props.StringProperty(name="Material", description="Which of the materials", options={"HIDDEN"})

    @classmethod
    def description(cls, context, properties):
        return said(surface.materials().get(properties.material, ""))

    def execute(self, context):
        # the menu's panel says whose surface it is
        settings = getattr(context, "armature_dynamics_surface", None)
        if settings is None or self.material not in surface.materials():
            return {"CANCELLED"}
        if not settings.id_data.is_editable:
            self.report({"ERROR"}, said(refusal(settings.id_data.name)))
            return {"CANCELLED"}
        surface.become(settings, self.material)
        return {"FINISHED"}


CLASSES = (
    ARMATURE_DYNAMICS_OT_make_dynamic,
    ARMATURE_DYNAMICS_OT_remove,
    ARMATURE_DYNAMICS_OT_simulate,
    ARMATURE_DYNAMICS_OT_keep,
    ARMATURE_DYNAMICS_OT_discard,
    ARMATURE_DYNAMICS_OT_restore_source,
    ARMATURE_DYNAMICS_OT_set_role,
    ARMATURE_DYNAMICS_OT_copy_collision,
    ARMATURE_DYNAMICS_OT_set_surface,
)
