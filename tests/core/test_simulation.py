"""Simulations and their trajectories: repeatable, kept, honest about failure, and true to the source motion."""

from __future__ import annotations

import numpy as np
import pytest

from core import system as system_module
from core.adaptive import Adaptive
from core.field import Wind
from core.joint import Joint
from core.linkage import Closure, Link, Linkage, LinkageError
from core.mechanisms import chain, frame_of, free_body, humanoid, pendulum, random_tree, rod
from core.mechanisms_large import pendulum_chain
from core.model import State, compile_model
from core.motion import Motion
from core.shape import Plane, Sphere
from core.simulation import Simulation, SimulationError
from core.trajectory import Trajectory

FIELDS = ("q", "v", "contacts", "penetration", "limit_violation", "energy")


def finished(simulation: Simulation, frames: int) -> Trajectory:
    assert list(simulation.run(frames)) == list(range(frames))
    return simulation.trajectory


def fall(frames: int = 20) -> Trajectory:
    linkage = humanoid()
    linkage["pelvis"].position = np.array([0.0, 0.0, 1.0])
    model = compile_model(linkage)
    start = State(model.rest_state().q, 0.2 * np.random.default_rng(0).normal(size=model.nv))
    return finished(Simulation(model, scenery=[Plane()], state=start), frames)


def moved(position: np.ndarray, turn: np.ndarray | None = None) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, 3] = position
    if turn is not None:
        pose[:3, :3] = turn
    return pose


def about_z(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def test_the_same_simulation_gives_the_same_bits():
    """A bake must be repeatable, or nobody can trust what they previewed."""
    first, second = fall(), fall()
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    np.testing.assert_array_equal(first.poses(), second.poses())


def test_a_frame_is_taken_in_steps_and_changes_nothing_until_it_is_reached():
    """A landing may take hundreds of steps: whoever draws or stops in the middle sees the frame before."""
    model = compile_model(pendulum())
    simulation = Simulation(model, substeps=5)
    whole = finished(Simulation(model, substeps=5), 3)
    found, seen = [], []
    for frame in simulation.steps(3):
        found.append(frame)
        seen.append((simulation.state.time, len(simulation.trajectory.q), simulation.poses[0, 0, 1]))
    assert found == [0, *[None] * 5, 1, *[None] * 5, 2]
    reached = [0] * 6 + [1] * 6 + [2]
    np.testing.assert_allclose(seen, [(k / 24, k + 1, whole.poses()[k, 0, 0, 1]) for k in reached], atol=1e-15)


def test_a_frame_that_is_taken_again_is_not_reached_either(monkeypatch):
    """What a first attempt has cut holds until the frame is reached."""
    monkeypatch.setattr(Simulation, "_hurried", lambda self, state, substeps, strayed: substeps < 16)
    simulation = Simulation(compile_model(chain(3)), cuts=[(0.01, "link.1")])
    before, seen = simulation.model, []
    for frame in simulation.steps(2):
        seen.append((frame, len(simulation.events), simulation.model is before))
    assert len(seen) > 2 + 4 + 16
    assert seen == [(0, 0, True), *[(None, 0, True)] * (len(seen) - 2), (1, 1, False)]


@pytest.mark.parametrize("substeps", [2, 300, 499, 500, 700, 999, 1000])
def test_what_is_left_in_the_midst_of_a_frame_is_taken_again(substeps):
    """A frame of 1/24 s may have 1,000 steps. What spins beyond all measure is left after the first of fewer, but where
    twice as many are more than there may be, to its end."""
    spinning = State(np.zeros(1), np.array([1e6]))
    simulation = Simulation(compile_model(chain(1)), state=spinning, gravity=(0.0, 0.0, 0.0))
    simulation._record()

    def attempt():
        result.extend((yield from simulation._attempt(simulation.system, substeps)))

    result: list = []
    assert len(list(attempt())) == (1 if substeps < 500 else substeps)
    _, state, strayed = result
    assert state.time == pytest.approx(1 / 24) or simulation._hurried(state, substeps, strayed)


def test_a_trajectory_has_one_row_per_frame():
    """Bake and preview index frames by their number."""
    path = fall(8)
    assert len(path.q) == 8
    assert path.q.shape == (8, 18 * 4 + 7 - 2 * 3 - 2 * 3)
    assert path.v.shape == (8, 52)
    assert path.poses().shape == (8, 19, 4, 4)
    for name in FIELDS[2:]:
        assert getattr(path, name).shape == (8,)
    assert path.frame_time == 1 / 24
    np.testing.assert_array_equal(path.poses()[:, :, 3], np.broadcast_to([0, 0, 0, 1], (8, 19, 4)))


def test_a_trajectory_says_what_the_solver_left():
    """Who doubts a contact looks at its residual: nothing in the air, and little where something lies."""
    path = fall(30)
    assert path.residual[0] == 0.0 and (path.residual >= 0.0).all()
    assert 0.0 < path.residual.max() < 0.01


def test_saving_and_loading_keeps_every_bit(tmp_path):
    """A cache that rounds would make the preview differ from the bake."""
    path, file = fall(6), tmp_path / "fall.npz"
    path.save(file)
    loaded = Trajectory.load(file)
    for name in FIELDS:
        kept, found = getattr(path, name), getattr(loaded, name)
        assert kept.dtype == found.dtype
        np.testing.assert_array_equal(kept, found)
    assert list(loaded.names) == list(path.names) and loaded.frame_time == path.frame_time
    np.testing.assert_array_equal(loaded.poses(), path.poses())
    assert [entry.name for entry in tmp_path.iterdir()] == ["fall.npz"]


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    """A full disk must not cost the result that was there before."""
    path, file = fall(2), tmp_path / "fall.npz"
    path.save(file)
    before = file.read_bytes()

    def fail(*_args, **_kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        path.save(file)
    assert file.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["fall.npz"]


@pytest.mark.parametrize("content", [b"", b"not a zip file", None])
def test_loading_something_else_is_refused_in_one_line(tmp_path, content):
    """A damaged cache must say so."""
    file = tmp_path / "broken.npz"
    if content is None:
        np.savez(file, something=np.zeros(3))
    else:
        file.write_bytes(content)
    with pytest.raises(ValueError, match=r"broken\.npz") as caught:
        Trajectory.load(file)
    assert "\n" not in str(caught.value)


def test_a_simulation_that_turns_non_finite_names_the_link_and_keeps_the_frames_before(monkeypatch):
    """Half a simulation is worth keeping, and the culprit worth knowing."""
    real_step = system_module.step

    def spoiling_step(world, state, h):
        after = real_step(world, state, h)
        if after.time > 0.25:
            after.v[1] = np.nan
        return after

    monkeypatch.setattr(system_module, "step", spoiling_step)
    simulation = Simulation(compile_model(chain(3)), frame_time=0.1, substeps=4)
    frames = simulation.run(10)
    assert [next(frames) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(SimulationError, match=r"link\.1") as caught:
        next(frames)
    assert len(simulation.trajectory.q) == 3
    assert np.isfinite(simulation.trajectory.q).all()
    assert "\n" not in str(caught.value)


def test_a_matrix_that_turns_singular_is_a_simulation_error(monkeypatch):
    def singular_step(world, state, h):
        raise np.linalg.LinAlgError("Singular matrix")

    monkeypatch.setattr(system_module, "step", singular_step)
    with pytest.raises(SimulationError, match="no longer finite"):
        finished(Simulation(compile_model(chain(3)), frame_time=0.1), 3)


def hooked() -> Simulation:
    """A ball that is caught on its way, between steps."""
    linkage = Linkage()
    linkage.add(Link("ball", Joint("free"), position=np.array([0.0, 0.0, 1.0])))
    closure = Closure(closed=False, grab_distance=0.3)
    linkage.connect(None, linkage["ball"], "fixed", at=np.zeros(3), seat=np.zeros(3), name="hook", closure=closure)
    return Simulation(compile_model(linkage), substeps=20)


def landed() -> Simulation:
    """A few joints of a pendulum, which are chosen anew when it meets a ball on its way down."""
    model, ball = compile_model(pendulum_chain(20)), Sphere(np.array([0.0, 0.0, -0.8]), 0.1)
    return Simulation(model, scenery=[ball], substeps=20, adaptive=Adaptive(joints=5))


@pytest.mark.parametrize("make", [hooked, landed])
def test_a_step_that_is_taken_again_may_fail_as_well(monkeypatch, make):
    """Up to an event, or after joints were chosen anew, from where one was taken already."""
    taken, begun = system_module.step, []

    def step(world, state, h):
        if state.time in begun:
            raise np.linalg.LinAlgError("Singular matrix")
        begun.append(state.time)
        return taken(world, state, h)

    monkeypatch.setattr(system_module, "step", step)
    simulation = make()
    with pytest.raises(SimulationError, match="no longer finite"):
        list(simulation.run(48))
    assert np.isfinite(simulation.trajectory.q).all()
    assert len(simulation.trajectory.q) > 1


@pytest.mark.parametrize("adaptive", [None, Adaptive(joints=40)])
def test_what_is_flung_among_thousands_of_others_is_a_simulation_error(adaptive):
    """So fast it may meet all 10,000 pairs in a step: 24 GB of rows for longer chains, which ended Blender itself."""
    model = compile_model(chain(100, radius=0.01))
    v = np.zeros(model.nv)
    v[0] = 1e6
    scenery = [Sphere(np.array([50.0 + k, 0.0, 0.0]), 0.1) for k in range(100)]
    simulation = Simulation(model, scenery=scenery, state=State(model.rest_state().q, v), substeps=1, adaptive=adaptive)
    with pytest.raises(SimulationError, match="no longer finite at frame 1; use more substeps"):
        list(simulation.run(3))
    assert len(simulation.trajectory.q) == 1


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_absurd_numbers_end_in_a_simulation_error():
    """What overflows is reported in our words, not as an error from inside numpy."""
    model = compile_model(chain(3, "spherical"))
    v = np.zeros(model.nv)
    v[3:] = 1e200
    simulation = Simulation(model, state=State(model.rest_state().q, v))
    with pytest.raises(SimulationError, match=r"link\.\d"):
        list(simulation.run(5))
    assert len(simulation.trajectory.q) == 1


@pytest.mark.parametrize(
    "settings",
    [
        {"frame_time": 0.0}, {"frame_time": np.nan}, {"substeps": 0}, {"substeps": 1.5}, {"gravity": (0, 0)},
        {"gravity": (0, 0, np.inf)}, {"gravity": ("a", "b", "c")}, {"follow": True}, {"law": "nonsense"},
        {"frame_time": "short"}, {"substeps": "many"}, {"cuts": [("rod", 0.1)]},
        {"state": State(np.array([np.nan]), np.zeros(1))}, {"state": State(np.zeros(1), np.array([np.inf]))},
        {"state": State(np.zeros(1), np.zeros(1), np.nan)}, {"state": State(np.zeros(2), np.zeros(1))},
        {"state": State(np.zeros((1, 1)), np.zeros(1))},
        {"scenery": Plane()}, {"scenery": None}, {"fields": Wind()}, {"cuts": 1.0}, {"cuts": (1.0, "rod")},
        {"adaptive": 1e-3},
    ],
)  # fmt: skip
def test_settings_that_make_no_sense_are_refused(settings):
    """A typing error in a panel must not become a strange motion."""
    with pytest.raises(ValueError, match="give") as caught:
        Simulation(compile_model(pendulum()), **settings)
    assert "\n" not in str(caught.value)


def test_a_state_turns_links_by_unit_quaternions_and_may_be_of_whole_numbers():
    """Others would scale what they turn."""
    model = compile_model(free_body())
    with pytest.raises(ValueError, match="the state turns link 'body' by a quaternion of length 2; give unit ones"):
        Simulation(model, state=State(np.array([2.0, 0, 0, 0, 0, 0, 0]), np.zeros(6)))
    simulation = Simulation(model, state=State([1, 0, 0, 0, 0, 0, 3], [0] * 6, 1), substeps=2.0, gravity=(0, 0, 0))
    np.testing.assert_array_equal(finished(simulation, 2).q[-1], [1, 0, 0, 0, 0, 0, 3])


@pytest.mark.parametrize("time", [0.0, -1.0, np.nan, None])
def test_a_motion_takes_time(time):
    """Frames without an interval have no velocity."""
    with pytest.raises(ValueError, match=r"the motion's frame time is .*; give a positive number of seconds"):
        Motion(np.eye(4)[None, None], time)


@pytest.mark.parametrize("turn", [2.0 * np.eye(3), np.diag([1.0, 1.0, -1.0]), np.zeros((3, 3))])
def test_the_poses_of_a_motion_turn_and_nothing_else(turn):
    """Scale in an animation must be named where it is."""
    poses = np.tile(np.eye(4), (3, 2, 1, 1))
    poses[2, 1, :3, :3] = turn
    with pytest.raises(ValueError, match="frame 2 of link number 1 is no rotation; remove scale"):
        Motion(poses, 1 / 24)


def test_the_place_of_a_link_that_is_not_there_is_refused():
    """By its name."""
    with pytest.raises(LinkageError, match="no link is called 'zz'; name one of the model's"):
        Simulation(compile_model(pendulum())).moving("zz")


@pytest.mark.parametrize("frames", [0, -1, 2.5, np.inf, np.nan, "a"])
def test_a_number_of_frames_that_makes_no_sense_is_refused(frames):
    """An empty or fractional range has no result."""
    with pytest.raises(ValueError, match="whole number"):
        next(Simulation(compile_model(pendulum())).run(frames))


@pytest.mark.parametrize("substeps", [1, 7])
def test_frames_are_frame_time_apart_whatever_the_substeps(substeps):
    """Keyframes land on frames: after n of them n frame times have passed."""
    linkage = free_body()
    path = finished(Simulation(compile_model(linkage), frame_time=0.04, substeps=substeps), 11)
    times = 0.04 * np.arange(11)
    np.testing.assert_allclose(path.q[:, 6], -0.5 * 9.81 * times**2, atol=1e-12)
    np.testing.assert_allclose(path.v[:, 5], -9.81 * times, atol=1e-12)


def test_the_start_is_the_source_motions_first_pose_and_velocity():
    """A character that was running when the ragdoll begins goes on running into the fall."""
    velocity, spin, dt = np.array([1.0, -2.0, 0.5]), 1.5, 1 / 24
    poses = np.array([[moved(velocity * k * dt, about_z(spin * k * dt))] for k in range(3)])
    simulation = Simulation(compile_model(free_body()), motion=Motion(poses, dt), gravity=(0, 0, 0))
    path = finished(simulation, 12)
    expected = [moved(velocity * k * dt, about_z(spin * k * dt)) for k in range(12)]
    np.testing.assert_allclose(path.poses()[:, 0], expected, atol=1e-9)


def cart(kind: str) -> Linkage:
    """A keyed base with a rod that hangs from it."""
    linkage = Linkage()
    base = linkage.add(Link("base", Joint("fixed"), keyed=True))
    hanging = rod("rod", Joint(kind), length=0.8)
    hanging.rotation = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]).T
    linkage.add(hanging, base)
    return linkage


def hang(kind: str, base_poses: list[np.ndarray], frame_time: float, frames: int, q, v, **settings) -> Trajectory:
    """The rod's motion under a base that goes through the given poses, from joint coordinates q and velocities v."""
    model = compile_model(cart(kind))
    rest = moved(np.zeros(3), cart(kind)["rod"].rotation)
    motion = Motion(np.array([[pose, pose @ rest] for pose in base_poses]), frame_time)
    start = State(np.array(q, dtype=float), np.array(v, dtype=float))
    return finished(Simulation(model, motion=motion, frame_time=frame_time, state=start, **settings), frames)


@pytest.mark.parametrize("kind", ["hinge", "spherical"])
def test_a_base_in_uniform_motion_is_as_good_as_one_at_rest(kind):
    """Galilei: a character on a train swings its arms as at home."""
    q = [0.4] if kind == "hinge" else np.array([1.0, 0.2, 0.1, -0.3]) / np.linalg.norm([1.0, 0.2, 0.1, -0.3])
    v = [1.0] if kind == "hinge" else [1.0, 0.3, -0.7]
    dt = 1 / 24
    still = hang(kind, [np.eye(4)] * 13, dt, 12, q, v)
    riding = hang(kind, [moved(np.array([3.0, -1.0, 0.5]) * k * dt) for k in range(13)], dt, 12, q, v)
    np.testing.assert_allclose(riding.q, still.q, atol=1e-9)


def test_keyed_links_follow_the_motion_and_hold_its_last_pose():
    """Bones that stay animated must not leave their animation."""
    dt = 1 / 24
    poses = [moved(np.array([0.1 * k, 0.0, 0.02 * k * k]), about_z(0.2 * k)) for k in range(6)]
    path = hang("spherical", poses, dt, 9, [1.0, 0, 0, 0], [0.0, 0, 0])
    np.testing.assert_allclose(path.poses()[:6, 0], poses, atol=1e-9)
    np.testing.assert_allclose(path.poses()[6:, 0], [poses[-1]] * 3, atol=1e-9)


def test_a_shaken_base_drives_what_hangs_from_it():
    """Keyed bones drive their simulated children: the pendulum's equation with a moving pivot, integrated here."""
    dt, size, rate = 1 / 240, 0.15, 6.0
    frames = 241
    poses = [moved(np.array([size * (1 - np.cos(rate * k * dt)), 0.0, 0.0])) for k in range(frames)]
    path = hang("hinge", poses, dt, frames, [0.0], [0.0], substeps=2)
    axis = cart("hinge")["rod"].rotation[:, 0]
    bone = cart("hinge")["rod"].rotation[:, 1]
    angle = speed = 0.0
    length, inertia, mass = 0.4, (0.8**2 / 3 + 3e-4 / 12), 1.0
    angles, n = [0.0], 20
    for k in range(frames - 1):
        for j in range(n):
            h, t = dt / n, k * dt + j * dt / n
            push = -np.array([size * rate**2 * np.cos(rate * (t + h / 2)), 0.0, 9.81]) * mass
            middle = angle + h / 2 * speed
            arm = length * (np.cos(middle) * bone + np.sin(middle) * np.cross(axis, bone))
            speed += h * np.cross(arm, push) @ axis / inertia
            angle = middle + h / 2 * speed
        angles.append(angle)
    assert np.abs(angles).max() > 0.2
    np.testing.assert_allclose(path.q[:, 0], angles, atol=2e-3)


def test_drives_follow_a_moving_target_without_exploding():
    """Stiff pose matching is what an animator dials up until it holds."""
    linkage = chain(4, "spherical", length=0.3, mass=1.0, stiffness=5e4, drive_damping=500.0)
    model = compile_model(linkage)
    still = State(model.rest_state().q, np.zeros(model.nv))
    turn = np.tile([0.0, 0.0, 0.8], 4) / 24
    states = [model.coordinates.integrate(still.q, min(k, 24) * turn, 1.0) for k in range(49)]
    poses = [finished(Simulation(model, state=State(q, still.v)), 1).poses()[0] for q in states]
    motion = Motion(np.array(poses), 1 / 24)
    path = finished(Simulation(model, motion=motion, follow=True, substeps=4), 49)
    assert np.abs(path.poses()[-1] - poses[-1]).max() < 5e-3
    assert np.abs(path.poses() - poses).max() < 5e-2


def test_results_do_not_depend_on_the_assembly_tree():
    """Dense leaves are for speed only, through a whole simulation with drives and limits."""
    linkage = random_tree(12, 3, branching=0.4, drives=True)
    ends = []
    for leaf_freedoms in (1, None):
        model = compile_model(linkage, leaf_freedoms=leaf_freedoms)
        ends.append(finished(Simulation(model, substeps=20), 6).poses())
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-9)


@pytest.mark.parametrize("kind", ["hinge", pytest.param("spherical", marks=pytest.mark.slow)])
def test_automatic_steps_keep_the_energy_of_a_whip(kind):
    """A rope let go from the horizontal cracks like a whip; steps chosen by its start would explode."""
    linkage = chain(20, kind, length=0.1, mass=0.1, horizontal=True)
    path = finished(Simulation(compile_model(linkage)), 49)
    depth = 20 * 0.1 * 9.81 * 2.0
    assert (path.energy - np.minimum.accumulate(path.energy)).max() < 5e-3 * depth
    assert path.substeps.max() > path.substeps[1]


def test_what_has_just_been_let_go_is_not_asleep():
    """A first frame at rest, however long, is a beginning and no end."""
    linkage = Linkage()
    linkage.add(Link("ball", Joint("free"), position=np.array([0.0, 0.0, 10.0]), shapes=[Sphere(np.zeros(3), 0.1)]))
    path = finished(Simulation(compile_model(linkage), scenery=[Plane()], frame_time=0.6), 5)
    assert path.poses()[1, 0, 2, 3] == pytest.approx(10.0 - 0.5 * 9.81 * 0.36)
    assert path.poses()[-1, 0, 2, 3] == pytest.approx(0.1, abs=1e-3)


def test_what_begins_to_topple_is_not_asleep():
    """A pole that leans by a hair's breadth moves slower than the eye sees, and falls all the same."""
    linkage = pendulum()
    path_of = Simulation(compile_model(linkage), state=State(np.array([np.pi / 2 + 5e-4]), np.zeros(1)))
    assert np.ptp(finished(path_of, 121).q[:, 0]) > 1.0


@pytest.mark.parametrize("shapes", [[], [Sphere(np.zeros(3), 0.1)]])
@pytest.mark.parametrize("gravity", [(0.0, 0.0, 0.0), (0.0, 0.0, -9.81)])
def test_what_turns_in_place_is_not_asleep(shapes, gravity):
    """A flywheel without friction turns for ever, though no point of its axis moves."""
    linkage = Linkage()
    linkage.add(Link("wheel", Joint("hinge"), inertia=0.01 * np.eye(3), shapes=shapes))
    simulation = Simulation(compile_model(linkage), gravity=gravity, state=State(np.zeros(1), np.array([20.0])))
    path = finished(simulation, 49)
    np.testing.assert_allclose(path.v[:, 0], 20.0, rtol=1e-12)
    assert path.q[-1, 0] == pytest.approx(40.0)


def test_a_limb_that_twists_about_its_length_is_not_asleep():
    linkage = Linkage()
    limb = rod("limb", Joint("spherical"), length=0.5, radius=0.05)
    limb.rotation = frame_of(along=np.array([0.0, 0.0, -1.0]), hinge=np.array([1.0, 0.0, 0.0]))
    linkage.add(limb)
    model = compile_model(linkage)
    simulation = Simulation(model, state=State(model.rest_state().q, np.array([0.0, 10.0, 0.0])))
    np.testing.assert_allclose(finished(simulation, 49).v[:, 1], 10.0, rtol=1e-9)


def test_what_sinks_slowly_sinks_on():
    """A metre of 1 kg on a hinge with a damper c: c q̇ = m g l / 2 cos q, so tan(q / 2 + π / 4) = exp(m g l t / 2 c)."""
    linkage = Linkage()
    door = rod("door", Joint("hinge", damping=400.0), length=1.0, mass=1.0)
    door.rotation = frame_of(along=np.array([1.0, 0.0, 0.0]), hinge=np.array([0.0, 1.0, 0.0]))
    linkage.add(door)
    path = finished(Simulation(compile_model(linkage)), 24 * 30 + 1)
    expected = 2.0 * np.arctan(np.exp(0.5 * 9.81 * 30.0 / 400.0)) - 0.5 * np.pi
    assert expected == pytest.approx(0.359848, abs=1e-6)
    assert path.q[-1, 0] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("spin", [(1.0, 5.0, 2.0), (1.0, 30.0, 2.0)])
def test_a_body_without_shape_and_weight_turns_as_with_its_weight(spin):
    """Energy is measured by what turns, too: rounding was called an explosion."""
    model = compile_model(free_body((1.0, 2.0, 3.0)))
    ends = []
    for gravity in ((0.0, 0.0, 0.0), (0.0, 0.0, -9.81)):
        start = State(model.rest_state().q, np.array([*spin, 0.0, 0.0, 0.0]))
        ends.append(finished(Simulation(model, gravity=gravity, state=start), 9))
    np.testing.assert_allclose(ends[0].v[:, :3], ends[1].v[:, :3], atol=1e-12)
    assert ends[0].substeps.tolist() == ends[1].substeps.tolist()


def test_what_rests_is_not_stepped():
    """Cost follows the motion: a ball that lies costs nothing."""
    linkage = Linkage()
    linkage.add(Link("ball", Joint("free"), position=np.array([0.0, 0.0, 0.1]), shapes=[Sphere(np.zeros(3), 0.1)]))
    path = finished(Simulation(compile_model(linkage), scenery=[Plane()]), 49)
    assert path.substeps[-1] == 0
    assert np.ptp(path.poses()[:, 0, 2, 3]) < 1e-6


def test_what_lies_and_slides_slowly_takes_one_step_a_frame():
    """Cost follows the motion: a block that slides at a tenth of `slow` stops after v / (μ g), whatever the steps."""
    linkage = Linkage()
    feet = [Sphere(np.array([x, y, 0.0]), 0.1) for x in (-0.3, 0.3) for y in (-0.3, 0.3)]
    linkage.add(Link("block", Joint("free"), position=np.array([0.0, 0.0, 0.1]), shapes=feet))
    model = compile_model(linkage)
    start = State(model.rest_state().q, np.array([0.0, 0.0, 0.0, 0.05, 0.0, 0.0]))
    path = finished(Simulation(model, scenery=[Plane(friction=0.01**2 / 0.6)], state=start), 30)
    assert set(path.substeps[2:12].tolist()) == {1}
    assert path.poses()[-1, 0, 0, 3] == pytest.approx(0.05**2 / (2 * 0.01 * 9.81), abs=1e-4)
    assert np.diff(path.energy).max() < 1e-6
