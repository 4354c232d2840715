"""Armature Dynamics: ragdoll physics for armatures, given back as keyframes."""


def register() -> None:
    from . import addon

    addon.register()


def unregister() -> None:
    from . import addon

    addon.unregister()
