"""What grabbed links feed back: against Newton's and Euler's equations link by link, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import newton_euler
import numpy as np
import pytest
from test_inverse import closed_tree
from test_packing import pair_of_chains

from core.activity import Activity
from core.dynamics import GRAVITY, Solution, closed_dynamics, free_forces, respond, solution
from core.feedback import Feedback, Grab
from core.grip import Aim, Grip
from core.hybrid_model import HybridModel
from core.integration import step
from core.joint import Joint
from core.kinematics import kinematics, link_poses, motions
from core.linkage import Linkage
from core.mechanisms import chain, free_body, random_coordinates, random_tree, rod
from core.mechanisms_large import molecule
from core.model import Model, State, compile_model
from core.quasi_statics import QuasiStatics
from core.shape import Plane
from core.spatial import pose, shift_force
from core.structure import cut
from core.world import World

KINDS = ("hinge", "prismatic", "universal", "spherical", "free", "fixed")


def tree(seed: int) -> tuple[Model, State]:
    """A random linkage with branches, welds and keyed links, in clusters of many sizes."""
    rng = np.random.default_rng(seed)
    linkage = random_tree(
        int(rng.integers(1, 25)), seed, kinds=KINDS, branching=rng.uniform(0.0, 0.8), drives=bool(seed % 2)
    )
    q, v = random_coordinates(linkage, seed)
    model = compile_model(linkage, (None, 1, 6)[seed % 3])
    if seed % 5 == 0:
        for link in linkage.links():
            link.keyed = bool(rng.random() < 0.2)
        model = compile_model(linkage, (None, 1, 6)[seed % 3])
        q = model.coordinates.integrate(model.coordinates.zero(), rng.normal(size=model.nv), 1.0)
        v = rng.normal(size=model.nv)
    return model, State(q, v)


def grabs_of(model: Model, rng: np.random.Generator, most: int = 4) -> list[Grab]:
    """Grabs of any links, some twice."""
    links = rng.integers(0, model.n, int(rng.integers(1, most + 1)))
    return [Grab(model.names[i], rng.normal(size=3) * 0.2, int(rng.choice([3, 6]))) for i in links]


def pulled(feedback: Feedback, f_u: np.ndarray, links: list[newton_euler.Link]) -> tuple[np.ndarray, np.ndarray]:
    """Wrenches (n, 6) of the users about the links' origins, and (k, 6) about the grabs' points."""
    own = np.zeros(6 * len(feedback.grabs))
    own[feedback.held] = f_u
    own, total = own.reshape(-1, 6), np.zeros((feedback.model.n, 6))
    for i, grab, wrench in zip(feedback.links, feedback.grabs, own):
        arm = links[i].R @ np.asarray(grab.point)
        total[i] += np.concatenate((wrench[:3] + np.cross(arm, wrench[3:]), wrench[3:]))
    return total, own


def fed_back(
    feedback: Feedback, state: State, accelerations: np.ndarray, f_u: np.ndarray, outer: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The forces f_ext + Σ f_i of all grabs by the oracle, their points' accelerations, and what joints do along their
    freedoms (nv,); `outer` (n, 6): all other wrenches on the links about their origins."""
    model = feedback.model
    links = newton_euler.links_of(model, state, accelerations)
    users, own = pulled(feedback, f_u, links)
    joint, handles = newton_euler.joint_forces(model, links, outer + users, GRAVITY)
    forces, moves = [], []
    for i, grab, wrench in zip(feedback.links, feedback.grabs, own):
        link = links[i]
        c, arm, weight = link.R @ model.center[i], link.R @ np.asarray(grab.point), model.mass[i] * GRAVITY
        total = handles[i] + outer[i] + users[i] + np.concatenate((np.cross(c, weight), weight))
        forces.append(np.concatenate((total[:3] - np.cross(arm, total[3:]), total[3:])) - wrench)
        turning = np.cross(link.alpha, arm) + np.cross(link.w, np.cross(link.w, arm))
        moves.append(np.concatenate((link.alpha, link.a + turning)))
    return np.ravel(forces)[feedback.held], np.ravel(moves)[feedback.held], newton_euler.powers(links, joint)


def off(found: np.ndarray, expected: np.ndarray) -> float:
    """The relative error."""
    return float(np.abs(found - expected).max(initial=0.0) / max(np.abs(expected).max(initial=0.0), 1e-3))


def exact(seed: int) -> float:
    """The error of an exact body, and that of the joints' own forces, which the oracle must find again."""
    model, state = tree(seed)
    rng = np.random.default_rng(seed)
    feedback, outer = Feedback(model, grabs_of(model, rng)), rng.normal(size=(model.n, 6))
    found = feedback.prepare(solution(model, state, {}, wrenches=outer))
    f_u = 10.0 * rng.normal(size=len(found.F_0))
    users, _ = pulled(feedback, f_u, newton_euler.links_of(model, state, np.zeros(model.nv)))
    accelerations = closed_dynamics(model, state, wrenches=outer + users)[0]
    force, move, powers = fed_back(feedback, state, accelerations, f_u, outer)
    strain = model.coordinates.difference(model.coordinates.zero(), state.q)
    passive = -model.coordinates.spring_force(strain, model.stiffness * strain) - model.armature * accelerations
    passive -= (model.damping + model.drive_damping + model.rubbing(state.v)) * state.v
    return max(off(found.force(f_u), force), off(found.acceleration(f_u), move), off(powers, passive))


def hybrid(seed: int) -> float:
    """The error of a hybrid body, whose links are grabbed within its zones."""
    model, state = tree(seed)
    rng = np.random.default_rng(seed)
    movable = np.flatnonzero(np.diff(model.coordinates.v_start) > 0)
    if not len(movable):
        return 0.0
    active = movable[rng.random(len(movable)) < 0.4]
    active = active if len(active) else movable[:1]
    moving = np.isin(np.repeat(np.arange(model.n), np.diff(model.coordinates.v_start)), active)
    state = State(state.q, np.where(moving, state.v, 0.0))
    activity = Activity(model)
    activity.place(state.q)
    poses = link_poses(model, state.q)[0][model.assembly.slot] if seed % 2 else None
    body = HybridModel.of(model, activity.zones(active), state, poses)
    feedback, inner = Feedback(body, grabs_of(model, rng)), body.enter(state)
    found = feedback.prepare(solution(body.reduced, inner, {}))
    f_u = 10.0 * rng.normal(size=len(found.F_0))
    links = newton_euler.links_of(model, state, np.zeros(model.nv))
    users, _ = pulled(feedback, f_u, links)
    zones = np.zeros((body.reduced.n, 6))
    for i in set(feedback.links.tolist()):
        if (zone := body.zone[i]) >= 0:
            arm = links[i].p - links[body.root[zone]].p
            zones[zone] += np.concatenate((users[i, :3] + np.cross(arm, users[i, 3:]), users[i, 3:]))
    accelerations = np.zeros(model.nv)
    accelerations[body.v] = closed_dynamics(body.reduced, inner, wrenches=zones)[0]
    force, move, _ = fed_back(feedback, state, accelerations, f_u, np.zeros((model.n, 6)))
    return max(off(found.force(f_u), force), off(found.acceleration(f_u), move))


def still(seed: int) -> float:
    """The error of quasi-statics."""
    model, state = tree(seed)
    rng = np.random.default_rng(seed)
    state, outer = State(state.q, np.zeros(model.nv)), rng.normal(size=(model.n, 6))
    quasi = QuasiStatics(model, state.q)
    quasi.apply(np.arange(model.n), outer)
    feedback = Feedback(quasi, grabs_of(model, rng))
    found = feedback.prepare(quasi)
    f_u = 10.0 * rng.normal(size=len(found.F_0))
    users, _ = pulled(feedback, f_u, newton_euler.links_of(model, state, np.zeros(model.nv)))
    accelerations = closed_dynamics(model, state, wrenches=outer + users)[0]
    force, move, _ = fed_back(feedback, state, accelerations, f_u, outer)
    return max(off(found.force(f_u), force), off(found.acceleration(f_u), move))


BLOCKS = [(hybrid, block) for block in range(20)] + [(error, block) for error in (exact, still) for block in range(6)]


@pytest.mark.parametrize(("error", "block"), BLOCKS)
def test_the_fed_back_force_is_that_of_a_full_pass(error, block):
    """What a hand feels must be what the handles do: of 500 linkages with branches, rigid zones and several grabs."""
    assert max(error(seed) for seed in range(25 * block, 25 * block + 25)) < 1e-9


def test_a_free_body_feeds_back_its_weight_alone():
    """In flight nothing but gravity acts besides the user, whatever he does."""
    model = compile_model(free_body(mass=3.0))
    found = Feedback(model, [Grab("body", (0.1, 0.0, 0.2))]).prepare(solution(model, model.rest_state(), {}))
    force = found.force(np.array([1.0, -2.0, 3.0, 4.0, 5.0, -6.0]))
    assert force == pytest.approx([0.0, -0.1 * 3.0 * 9.81, 0.0, 0.0, 0.0, -3.0 * 9.81], abs=1e-9)


def test_the_pivot_of_a_rod_pushes_along_with_half_of_a_pull_at_its_end():
    """A uniform rod pulled across at its end turns so fast that its pivot must help: by f/2, as texts on the center of
    percussion have it."""
    linkage = Linkage()
    linkage.add(rod("rod", Joint("hinge"), length=2.0, mass=3.0, radius=1e-3))
    model = compile_model(linkage)
    state = solution(model, model.rest_state(), {}, gravity=np.zeros(3))
    found = Feedback(model, [Grab("rod", (0.0, 2.0, 0.0), 3)]).prepare(state)
    assert found.force(np.array([0.0, 0.0, 8.0])) == pytest.approx([0.0, 0.0, 4.0], abs=1e-5)
    assert found.force(np.array([7.0, 5.0, 0.0])) == pytest.approx([-7.0, -5.0, 0.0], abs=1e-9)


def test_a_keyed_link_gives_back_what_it_gets():
    """Keys do not yield: the handle answers with the opposite of the pull, and the link's weight is borne."""
    linkage = chain(3)
    next(iter(linkage.links())).keyed = True
    model = compile_model(linkage)
    found = Feedback(model, [Grab("link.0")]).prepare(solution(model, model.rest_state(), {}))
    pull = np.arange(6.0)
    assert found.force(pull) == pytest.approx(-pull, abs=1e-12)
    assert not found.B.any()


@pytest.mark.parametrize("seed", range(8))
def test_closed_loops_answer_too(seed):
    """Loops hold a grabbed link while it is pulled: their rows' forces are part of what its handles do."""
    model = compile_model(closed_tree(seed), (None, 1)[seed % 2])
    rng = np.random.default_rng(seed)
    state, grabs = State(model.coordinates.zero(), np.zeros(model.nv)), grabs_of(model, rng)
    quasi = QuasiStatics(model)
    for found, feedback in (
        (Feedback(model, grabs).prepare(solution(model, state, {})), Feedback(model, grabs)),
        (Feedback(quasi, grabs).prepare(quasi), Feedback(quasi, grabs)),
    ):
        f_u = rng.normal(size=len(found.F_0))
        links = newton_euler.links_of(model, state, np.zeros(model.nv))
        users, own = pulled(feedback, f_u, links)
        accelerations = closed_dynamics(model, state, wrenches=users)[0]
        links = newton_euler.links_of(model, state, accelerations)
        total = []
        for i, grab, wrench in zip(feedback.links, grabs, own):
            link, r = links[i], links[i].R @ np.asarray(grab.point)
            about = link.R @ model.inertia[i, :3, :3] @ link.R.T
            c = link.R @ model.center[i]
            force = model.mass[i] * (link.a + np.cross(link.alpha, c))
            torque = about @ link.alpha + model.mass[i] * np.cross(c, link.a) - np.cross(r, force)
            total.append(np.concatenate((torque, force)) - wrench)
        assert off(found.force(f_u), np.ravel(total)[feedback.held]) < 1e-7


def test_to_feel_changes_nothing():
    """Quasi-statics move as they would if nobody felt them, and what is felt after a step is of where that led."""
    model = compile_model(closed_tree(3))
    alone, felt = QuasiStatics(model), QuasiStatics(model)
    grabs = [Grab(model.names[4], (0.1, 0.0, 0.0))]
    feedback = Feedback(felt, grabs)
    for _ in range(3):
        alone.step(0.0, 0.01)
        felt.step(0.0, 0.01)
        found = feedback.prepare(felt)
    assert np.abs(alone.q - felt.q).max() < 1e-12
    fresh = QuasiStatics(model, felt.q)
    expected = Feedback(fresh, grabs).prepare(fresh)
    for name in ("F_0", "K", "A_0", "B", "frames"):
        assert off(getattr(found, name), getattr(expected, name)) < 1e-9


def test_grabs_come_move_and_go():
    """A hand takes hold, slips and lets go between steps: each time the map is that of grabs made so at once."""
    model, state = tree(7)
    solved = solution(model, state, {})
    one, two = Grab(model.names[0]), Grab(model.names[-1], (0.1, 0.0, 0.0), 3)
    feedback = Feedback(model, [one]).holding(two).moved(0, (0.0, 0.2, 0.0))
    expected = Feedback(model, [replace(one, point=(0.0, 0.2, 0.0)), two]).prepare(solved)
    assert (feedback.prepare(solved).K == expected.K).all()
    alone = feedback.released(0).prepare(solved)
    assert off(alone.B, expected.B[6:, 6:]) < 1e-12
    nothing, quasi = feedback.released(0).released(0), QuasiStatics(model, state.q)
    assert len(nothing.prepare(solved).F_0) == len(nothing.on(quasi).prepare(quasi).F_0) == 0
    with pytest.raises(ValueError, match="there is no grab 2"):
        feedback.released(2)


def test_a_grab_stays_on_a_link_that_is_cut_away():
    """What is cut away while it is held is its own body then: the same grab feels that."""
    model = compile_model(chain(6, horizontal=True))
    feedback = Feedback(model, [Grab("link.5", (0.0, 0.1, 0.0))])
    loose, state = cut(model, model.rest_state(), 3)
    before = feedback.prepare(solution(model, model.rest_state(), {}))
    after = feedback.on(loose).prepare(solution(loose, state, {}))
    light, heavy = (1.0 / np.linalg.eigvalsh(found.B[3:, 3:])[-1] for found in (after, before))
    assert after.A_0[3:] == pytest.approx(GRAVITY, abs=1e-9)
    assert light < heavy


def test_what_a_step_has_put_there_is_taken_out():
    """Steps make the user's spring implicit by an inertia at the grab; the map is that of the link without."""
    model, state = tree(12)
    rng = np.random.default_rng(0)
    grab = Grab(model.names[-1], (0.1, 0.2, 0.0))
    feedback = Feedback(model, [grab])
    plain = feedback.prepare(solution(model, state, {}))
    kin, f_u = kinematics(model, state.q), rng.normal(size=6)
    root = rng.normal(size=(6, 6))
    Z, slot = root @ root.T, feedback.slots[0]
    shift = shift_force(kin.poses[slot, :3, :3] @ grab.point + kin.offset[slot])
    moving, wrench = motions(model, kin, state.v), np.zeros((model.assembly.links, 6))
    wrench[slot] = shift @ f_u
    natural, links, across = free_forces(model, state, kin, moving, GRAVITY, None, wrench)
    heavy = kin.inertia.copy()
    heavy[slot] += shift @ Z @ shift.T
    kept: dict = {}
    answer = respond(model, replace(kin, inertia=heavy), model.armature, natural[:, None], links, across, kept)
    found = feedback.prepare(Solution(model, kin, moving, answer[:, 0], links, kept), f_u, Z)
    for name in ("F_0", "K", "A_0", "B"):
        assert off(getattr(found, name), getattr(plain, name)) < 1e-9


def test_a_step_tells_how_large_bodies_answer():
    """Clusters of large bodies have bases, which joint velocities do not tell of: two chains on the ground, both held,
    must accelerate at the grabs as their velocities say."""
    model, h = compile_model(pair_of_chains()), 1 / 240
    world, grips = World(model, (Plane(),)), [Grip("0.0.20", (0.0, 0.1, 0.0)), Grip("2.0.3", freedoms=6)]
    for number, grip in enumerate(grips):
        aim = Aim(stiffness=np.array([300.0, 5.0]), damping=np.array([1.0, 0.1]))
        aim.pose = pose(np.eye(3), np.array([2.0 * number, 0.5, 0.3]))
        world = world.gripped(grip, aim)
    after = step(world, model.rest_state(), h)
    solved, feedback = world.grips.last["solved"], Feedback(model, [Grab(x.link, x.point) for x in grips])
    found, slots = feedback.prepare(solved), model.assembly.slot[feedback.links]
    twist = motions(model, solved.kin, after.v).links[slots]
    arm = found.frames[:, :3, 3] - solved.kin.origins[slots]
    twist[:, 3:] += np.cross(twist[:, :3], arm)
    assert len(after.memory.contacts) > 20
    assert off(found.A_0, twist.reshape(-1) / h) < 1e-9


def test_far_up_nothing_is_felt():
    """Of large bodies the passes end where nothing is left to feel; that must not be seen in what they find."""
    model = compile_model(molecule(1500))
    state = State(model.coordinates.zero(), 0.1 * np.random.default_rng(0).standard_normal(model.nv))
    feedback = Feedback(model, [Grab("atom.1400"), Grab("atom.1380", (0.1, 0.0, 0.0)), Grab("atom.200", freedoms=3)])
    found = feedback.prepare(solution(model, state, {}))
    f_u = np.linspace(-1.0, 1.0, len(found.F_0))
    users, _ = pulled(feedback, f_u, newton_euler.links_of(model, state, np.zeros(model.nv)))
    accelerations = closed_dynamics(model, state, wrenches=users)[0]
    force, move, _ = fed_back(feedback, state, accelerations, f_u, np.zeros((model.n, 6)))
    assert off(found.force(f_u), force) < 1e-9
    assert off(found.acceleration(f_u), move) < 1e-9


def test_many_grabs_visit_few_nodes():
    """n_f grabs cost O(n_f log(n / n_f)): what their paths share is passed once."""
    model = compile_model(molecule(3000))
    rng = np.random.default_rng(0)
    links = rng.permutation(model.n)
    sizes = [Feedback(model, [Grab(model.names[i]) for i in links[:count]]).region.size for count in (1, 30, 300)]
    each = [size / count for size, count in zip(sizes, (1, 30, 300))]
    assert sizes[0] <= 2.0 * np.log2(model.n)
    assert sizes[2] < model.assembly.nodes
    assert each[2] < each[1] < 2.0 * np.log2(model.n / 30)


@pytest.mark.parametrize(
    ("grabs", "problem"),
    [
        ([Grab("nobody")], "no link is called 'nobody'"),
        ([Grab("link.0", (np.nan, 0.0, 0.0))], "give a point of 3 finite numbers"),
        ([Grab("link.0", (0.0, 0.0))], "give a point of 3 finite numbers"),
        ([Grab("link.0", freedoms=4)], "give it 3 or 6"),
        ([Grab("link.0"), Grab("link.0", (0.0, 0.0, -0.0), 3)], "at the same point"),
    ],
)
def test_what_cannot_be_grabbed_is_refused(grabs, problem):
    """One line that names the link and the remedy."""
    with pytest.raises(ValueError, match=problem) as caught:
        Feedback(compile_model(chain(2)), grabs)
    assert "\n" not in str(caught.value)


def test_forces_that_are_none_are_refused():
    """A device may send NaN: it must not get into the map's answer."""
    model = compile_model(chain(2))
    feedback = Feedback(model, [Grab("link.1", freedoms=3)])
    solved = solution(model, model.rest_state(), {})
    found = feedback.prepare(solved)
    for f_u in (np.zeros(6), np.array([0.0, np.nan, 0.0]), 1.0):
        with pytest.raises(ValueError, match="give 3 finite numbers"):
            found.force(f_u)
    with pytest.raises(ValueError, match="give 3 finite numbers"):
        feedback.prepare(solved, applied=np.full(3, np.inf))
    with pytest.raises(ValueError, match="of another body"):
        feedback.on(compile_model(chain(2))).prepare(solved)
    with pytest.raises(ValueError, match="nothing of the tree is kept"):
        feedback.prepare(replace(solved, kept=None))
