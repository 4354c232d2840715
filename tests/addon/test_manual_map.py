"""Online Manual and the help buttons lead to the parts of the manual that are there."""

import re

import bpy
import pytest
from armature_dynamics import addon
from armature_dynamics.addon import manual, setup
from bl_operators.wm import WM_OT_doc_view_manual
from conftest import ROOT
from shown import NEVER_DRAWN

HEADINGS = re.findall(r"^## (.+)$", (ROOT / "docs" / "manual.md").read_text(encoding="utf-8"), re.MULTILINE)
PARTS = {manual.slug(heading) for heading in HEADINGS}


def found(rna_id):
    """Where Blender's own Online Manual goes."""
    return WM_OT_doc_view_manual._lookup_rna_url(rna_id, verbose=False)


@pytest.mark.parametrize(
    ("rna_id", "part"),
    [
        ("bpy.types.ARMATURE_DYNAMICS_PG_armature.key_mode", "keys"),
        ("bpy.types.ARMATURE_DYNAMICS_PG_armature.use_ground", "scene"),
        ("bpy.types.ARMATURE_DYNAMICS_PG_armature.mass", "body"),
        ("bpy.types.ARMATURE_DYNAMICS_PG_connection.break_force", "connections"),
        ("bpy.types.ARMATURE_DYNAMICS_PG_scene.threshold", "adaptive"),
        ("bpy.types.PoseBone.armature_dynamics_follow", "directing"),
        ("bpy.ops.armature_dynamics.simulate", "three-actions"),
        ("bpy.ops.armature_dynamics.mirror_settings", "setup"),
    ],
)
def test_settings_and_buttons_lead_to_their_part(rna_id, part):
    """The menu of the right mouse button has Online Manual."""
    assert found(rna_id) == manual.address(part)


def test_everything_that_is_drawn_leads_to_a_part_that_is_there():
    """No help ends at the top of the page."""
    ids = [f"bpy.types.PoseBone.{name}" for name in setup.DIRECTED]
    for cls in addon.CLASSES:
        if issubclass(cls, bpy.types.Operator):
            ids.append(f"bpy.ops.{cls.bl_idname}")
        elif issubclass(cls, bpy.types.PropertyGroup) and not cls.__name__.endswith(("_problem", "_partner")):
            names = [prop.identifier for prop in cls.bl_rna.properties]
            ids += [f"bpy.types.{cls.__name__}.{name}" for name in names if name not in NEVER_DRAWN | {"rna_type"}]
    assert len(ids) > 80
    for rna_id in ids:
        assert found(rna_id), rna_id
        assert found(rna_id).rpartition("#")[2] in PARTS, rna_id


def test_the_help_button_opens_the_page(monkeypatch):
    """In the browser, at the heading."""
    import webbrowser

    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    assert bpy.ops.armature_dynamics.help(part="keys") == {"FINISHED"}
    assert opened == [manual.PAGE.as_uri() + "#keys"] and manual.PAGE.exists()
