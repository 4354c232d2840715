"""Surfaces: how bodies and scenery behave where they touch, and what common materials are like."""

from bpy.props import FloatProperty

from .preset import preset

VALUES = ("friction", "restitution", "rolling", "torsion")

LAYERS = 20
"""Collision groups, as many as Blender's rigid bodies have."""


# without get=, update= and the like, which make Blender 4.2 crash at exit
class SurfaceSettings:
    """Settings of a surface, for property groups."""

    friction: FloatProperty(
        name="Friction",
        description="Coulomb's friction coefficient; two surfaces rub with the geometric mean of theirs [no unit]",
        default=0.6,
        min=0.0,
        soft_max=2.0,
    )
    restitution: FloatProperty(
        name="Bounciness",
        description="Part of the impact speed that comes back; of two surfaces the larger counts [0 to 1]",
        default=0.0,
        min=0.0,
        max=1.0,
    )
    rolling: FloatProperty(
        name="Rolling",
        description="Resistance to rolling: the lever arm of the normal force; of two surfaces the larger counts [m]",
        default=0.0,
        min=0.0,
        soft_max=0.1,
        precision=4,
    )
    torsion: FloatProperty(
        name="Spinning",
        description="Resistance to spinning on the spot: the lever arm of the normal force; of two surfaces the larger "
        "counts [m]",
        default=0.0,
        min=0.0,
        soft_max=0.1,
        precision=4,
    )


def materials() -> dict[str, str]:
    """The names of the materials that are known, and what each of them is."""
    return {name: row["about"] for name, row in preset("surface")["surfaces"].items()}


def become(settings, material: str) -> None:
    """Gives the settings of a surface the values of a material."""
    for value in VALUES:
        setattr(settings, value, preset("surface")["surfaces"][material][value])


def surface_values(settings) -> dict[str, float]:
    """The fields of a core Surface that a material has."""
    return {value: getattr(settings, value) for value in VALUES}


def layer_bits(flags) -> int:
    """Collision groups, one flag each, as the bits of a number."""
    return sum(1 << bit for bit, on in enumerate(flags) if on)
