"""Which deform bone another hangs from, where rigs hold them together by helpers that stand in their places."""

import pytest
from armature_dynamics.addon import control
from rigs import make_rig


@pytest.mark.parametrize("height", [0.3, 0.0045, 0.0005, 1.2345])
@pytest.mark.parametrize("off", [-2e-7, 0.0, 2e-7])
def test_what_stands_in_one_place_is_found_wherever_that_is(height, off):
    """Helpers and deform bones differ by rounding. A bird's toes were taken to hang from its shins where a foot stood
    4.5 mm high, and kept their place on those."""
    place = [(0, 0, height + z) for z in (0.5, 0.2, 0.0)]
    near = [(0, 0, z + off) for _, _, z in place]
    armature = make_rig(
        [
            ("ORG-shin", place[0], place[1], None, False),
            ("ORG-foot", place[1], place[2], "ORG-shin", True),
            ("ORG-toes", place[2], (0, -0.1, height), "ORG-foot", False),
            ("DEF-shin", near[0], near[1], None, False),
            ("DEF-foot", near[1], near[2], "DEF-shin", True),
            ("DEF-toe", place[2], (0, -0.2, height), "ORG-toes", False),
        ]
    )
    for bone in armature.data.bones:
        bone.use_deform = bone.name.startswith("DEF")
    copy = armature.pose.bones["ORG-foot"].constraints
    copy.new("COPY_TRANSFORMS"), copy.new("COPY_TRANSFORMS")
    assert control.deform_parents(armature)["DEF-toe"] == "DEF-foot"
    assert control.switching(armature) == {"DEF-foot"}
