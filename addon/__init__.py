"""Everything that knows Blender."""

import bpy

from . import (
    command,
    connection_list,
    curtain,
    directing_panel,
    grab,
    grab_tool,
    manual,
    motion,
    operators,
    overlay,
    override,
    panel,
    preflight_list,
    properties,
    rig_menu,
    setup_panel,
    words,
)

CLASSES = (
    *properties.CLASSES, *operators.CLASSES, *panel.CLASSES, *preflight_list.CLASSES, *directing_panel.CLASSES,
    *connection_list.CLASSES, *motion.CLASSES, *rig_menu.CLASSES, *manual.CLASSES, *setup_panel.CLASSES,
    *grab.CLASSES, *grab_tool.CLASSES,
)  # fmt: skip

_commands: list = []
"""Handles of the registered command lines, for unregistering."""


def register() -> None:
    words.mark(properties.CLASSES, properties.DIRECTED.values())
    for cls in CLASSES:
        bpy.utils.register_class(cls)
    properties.attach()
    motion.attach()
    manual.attach()
    curtain.attach()
    override.attach()
    grab_tool.attach()
    words.register(CLASSES)
    overlay.register()
    _commands.append(bpy.utils.register_cli_command("armature_dynamics", command.run_in_blender))


def unregister() -> None:
    bpy.utils.unregister_cli_command(_commands.pop())
    overlay.unregister()
    words.unregister()
    override.detach()
    curtain.detach()
    grab_tool.detach()
    manual.detach()
    motion.detach()
    properties.detach()
    for cls in reversed(CLASSES):
        bpy.utils.unregister_class(cls)
