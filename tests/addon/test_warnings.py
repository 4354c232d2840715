"""Warnings are short enough to be read, and nothing of what they leave out is lost."""

import bpy
import numpy as np
import pytest
from armature_dynamics.addon import words
from armature_dynamics.addon.problem import Problem, gathered, listed
from armature_dynamics.addon.report import Report, motion_energy
from armature_dynamics.addon.scenery import Surroundings
from armature_dynamics.core import Joint, Link, Linkage, Simulation, compile_model
from rigs import make_rig, simulate

FINGERS = 40


@pytest.fixture
def hand():
    """A bone that carries forty others, which physics does not move by themselves."""
    rows = [("arm", (0, 0, 1), (1, 0, 1), None, False)]
    rows += [(f"finger{i}", (1, 0.1 * i, 1), (1.1, 0.1 * i, 1), "arm", False) for i in range(FINGERS)]
    armature = make_rig(rows)
    bpy.ops.armature_dynamics.make_dynamic()
    for bone in armature.pose.bones:
        bone.armature_dynamics.role = "SIMULATED" if bone.name == "arm" else "IGNORED"
    return armature


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["head"], "head"),
        (list("abcdef"), "a, b, c, d, e, f"),
        (list("abcdefgh"), "a, b, c, d, e, f and 2 more"),
    ],
)
def test_a_long_list_is_cut_short(names, text):
    """Six names say what is meant."""
    assert listed(names) == text


def test_bones_that_are_carried_along_are_counted(hand):
    """The panel has one line, the report all of them, and a button selects them."""
    report = simulate(hand, end=3)
    (line,) = (line for line in report.news() if "carried along" in line)
    assert line == ("40 bones are carried along: finger0, finger1, finger2, finger3, finger4, finger5 and 34 more")
    told = [warning["bone"] for warning in report.as_dict()["warnings"] if warning["code"].startswith("welded_")]
    assert sorted(told) == sorted(f"finger{i}" for i in range(FINGERS))
    assert words.said(line, "de").endswith("finger5 und 34 weitere")
    assert bpy.ops.armature_dynamics.select_carried() == {"FINISHED"}
    assert {bone.name for bone in bpy.context.selected_pose_bones} == set(told)


def test_nothing_is_selected_where_nothing_is_carried():
    """A button that finds nothing changes nothing."""
    armature = make_rig([("arm", (0, 0, 1), (1, 0, 1), None, False)])
    bpy.ops.armature_dynamics.make_dynamic()
    assert bpy.ops.armature_dynamics.select_carried() == {"CANCELLED"}
    assert armature.mode == "OBJECT"


def test_every_list_is_cut_short():
    """Scenery, pairs that pass each other, and bones with the same problem."""
    surroundings = Surroundings()
    things = [bpy.data.objects.new(f"Rock{i}", None) for i in range(9)]
    surroundings.ignore("it has no surface", things)
    assert surroundings.warnings[0].text.endswith("'Rock5' and 3 more") and len(surroundings.warnings[0].things) == 9
    ((_, line),) = gathered([Problem("locked", (f"bone{i}",), "it is locked") for i in range(9)])
    assert line == "bone0: it is locked. Also bone1, bone2, bone3, bone4, bone5, bone6 and 2 more"
    passing = [(f"a{i}", f"b{i}") for i in range(8)]
    lines = Report.landing(type("Told", (), {"scenery": {}, "contacts_max": 0, "passing": passing})())
    assert lines[-1].endswith("a5 and b5 and 2 more")
    assert words.said(lines[-1], "de").endswith(" und 2 weitere")


@pytest.mark.parametrize(
    ("weight", "motion", "most"), [(98.1, 0.0, 0.1962), (0.0, 4652.0, 0.93), (98.1, 4652.0, 1.127)]
)
def test_the_energy_that_may_be_gained_grows_with_what_there_is(weight, motion, most):
    """What tumbles without weight has nothing else that rounding errors could be compared with."""
    for gained, is_ok in ((2e-12, True), (0.99 * most, True), (1.01 * most, False)):
        measured = dict.fromkeys(("joint_separation_max_m", "bake_error_max_m", "bake_error_max_deg"), 0.0)
        measured |= {"penetration_max_m": 0.0, "limit_violation_max_deg": 0.0, "energy_gain_max_J": gained}
        report = Report("", "", "", 1, 6, 2, 1, {}, {}, **measured)
        report.judge(2.0, 2.0, weight, motion, 1.0, driven=False, exact=(), allowed=(0.0, 0.0), controlled=False)
        assert report.ok == is_ok
        assert [warning.code for warning in report.warnings] == ([] if is_ok else ["energy"])


def test_the_energy_of_motion_leaves_out_that_of_height():
    """Literal: 10 kg that fall for a second; where zero height is means nothing."""
    linkage = Linkage()
    linkage.add(Link("stone", Joint("free"), np.array([0.0, 0.0, 50.0]), mass=10.0, center_of_mass=[0.0, 0.1, 0.0]))
    simulation = Simulation(compile_model(linkage))
    list(simulation.run(25))
    assert motion_energy(simulation) == pytest.approx(0.5 * 10.0 * 9.81**2, rel=1e-6)
