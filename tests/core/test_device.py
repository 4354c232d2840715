"""Devices: one protocol for a mouse, a simulated hand and a vendor's driver, with the same checks for all."""

from __future__ import annotations

import math
import socket
import struct
import time

import numpy as np
import pytest

from core.coupling import sizes
from core.device import DeviceLoop, Mouse
from core.device_simulated import SimulatedDevice
from core.device_udp import UdpDevice
from core.mailbox import Mailboxes
from core.port import Limits

TICK = 1e-3


class Scripted:
    """A device that tells poses from a list."""

    rate, limits = 1000.0, Limits(force=5.0, slew=1000.0)

    def __init__(self, poses: list) -> None:
        self.poses, self.forces = list(poses), []

    def pose(self, now):
        return self.poses.pop(0) if self.poses else None

    def push(self, force, now):
        self.forces.append(tuple(force))

    def close(self):
        self.forces.append("closed")


def pose(x: float, y: float = 0.0, z: float = 0.0) -> tuple:
    return (x, y, z, 1.0, 0.0, 0.0, 0.0)


def wanting(boxes: Mailboxes, now: float, *force: float) -> None:
    boxes["forces"].write(memoryview(np.array([now, 0.0, 0.0, 0.0, *force, 1.0])))


def test_a_device_tells_where_it_is_and_exerts_what_is_wanted_within_its_limits():
    """Every device goes through the same port: 5 N at most, and 1 N more in each millisecond."""
    with Mailboxes(sizes()) as boxes:
        device, told = Scripted([pose(-4e-4 * k) for k in range(400)]), boxes.reader("pose.0")
        loop = DeviceLoop(device, boxes)
        for k in range(400):
            wanting(boxes, k * TICK, 0.0, 20.0, 0.0)
            wanting(boxes, k * TICK, 20.0, 0.0, 0.0)
            loop.turn(k * TICK)
            assert told.fresh()
            assert told.message.tolist() == [k * TICK, 0.0, *pose(-4e-4 * k)]
        forces = np.array(device.forces)
        assert forces[-1].tolist() == [0.0, 0.0, 0.0, 5.0, 0.0, 0.0]
        assert np.abs(np.diff(forces, axis=0)).max() <= 1.0 + 1e-9
        loop.close()
        assert device.forces[-2:] == [(0.0,) * 6, "closed"]


@pytest.mark.parametrize("wrong", [pose(math.nan), pose(1.0), (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), (1.0, 2.0)])
def test_a_pose_that_is_none_is_not_told_and_its_hand_is_lost(wrong):
    """Not a number, a metre in a millisecond, no rotation, too few numbers: one line, and a hand that has to grip
    anew."""
    said: list[str] = []
    with Mailboxes(sizes()) as boxes:
        told = boxes.reader("pose.0")
        poses = [pose(0.0)] * 5 + [wrong] * 3 + [pose(0.0)] * 5
        loop = DeviceLoop(Scripted(poses), boxes, say=said.append)
        for k in range(len(poses)):
            loop.turn(k * TICK)
            if told.fresh():
                assert told.message.tolist()[2:] == list(pose(0.0)) or wrong == pose(1.0)
                assert math.isfinite(sum(told.message))
        lost = told.message[1]
        assert lost >= 1.0
        assert said[0] == "the device's pose has jumped or is not finite; it holds nothing any more"
        # there and back are two jumps
        assert len(said) == lost == (2 if wrong == pose(1.0) else 1)


def test_a_device_whose_coupling_is_silent_exerts_less_and_less():
    """A coupling loop that dies is noticed within 0.2 s; its last force must not last."""
    said: list[str] = []
    with Mailboxes(sizes()) as boxes:
        device = Scripted([pose(-4e-4 * k) for k in range(2000)])
        loop = DeviceLoop(device, boxes, say=said.append)
        for k in range(900):
            if k < 500:
                wanting(boxes, k * TICK, 3.0, 0.0, 0.0)
            loop.turn(k * TICK)
        force = np.array(device.forces)[:, 3]
        assert force[500:640].min() > 2.9
        assert np.abs(force[700:]).max() == 0.0
        assert np.abs(np.diff(force[500:])).max() < 0.2
        assert said == ["the coupling has stalled; the device's force fades until it goes on"]


def test_a_mouse_is_where_it_is_moved_to():
    """Blender's viewport knows the place; there is nothing to feel."""
    with Mailboxes(sizes()) as boxes:
        mouse, told = Mouse(), boxes.reader("pose.0")
        loop = DeviceLoop(mouse, boxes)
        loop.turn(0.0)
        assert not told.fresh()
        mouse.moves((1.0, 2.0, 3.0))
        loop.turn(0.008)
        assert told.fresh()
        assert told.message.tolist() == [0.008, 0.0, *pose(1.0, 2.0, 3.0)]


def test_a_simulated_hand_has_the_faults_that_it_is_given():
    """Tests stand on it: noise of the size it has, dropouts when they are, delays as long, and nothing else."""
    path = lambda t: (0.1 * t, 0.0, 0.0)  # noqa: E731
    times = np.arange(2000) * TICK
    plain, late, noisy, broken = (
        SimulatedDevice(path, **fault)
        for fault in ({}, {"delay": 0.05}, {"noise": 1e-4}, {"dropouts": [(0.5, 0.55), (1.0, 1.001)]})
    )
    told = [[device.pose(t) for t in times] for device in (plain, late, noisy, broken)]
    assert np.allclose([each[0] for each in told[0]], 0.1 * times)
    assert [each is None for each in told[1]] == (times < 0.05 - 1e-9).tolist()
    assert np.allclose([each[0] for each in told[1][50:]], 0.1 * times[:-50])
    assert np.std(np.array(told[2])[:, 1:3]) == pytest.approx(1e-4, rel=0.1)
    assert sum(each is None for each in told[3]) == 51


def test_a_simulated_hand_with_a_mass_gives_way():
    """Its energies are those of the motion: the work of a constant force along the way that it has moved."""
    device = SimulatedDevice(lambda t: (0.0, 0.0, 0.0), mass=0.3, arm=200.0, damping=4.0)
    for k in range(3000):
        device.pose(k * TICK)
        device.push((0.0, 0.0, 0.0, 2.0, 0.0, 0.0), k * TICK)
    assert device.place[0] == pytest.approx(0.01, rel=1e-3)
    assert device.given_back - device.put_in == pytest.approx(2.0 * device.place[0], rel=1e-6)


def test_a_driver_is_plugged_in_by_datagrams():
    """A vendor's program of its own sends poses over the loopback and gets forces; what is no datagram of it, or comes
    too late, does nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as driver, Mailboxes(sizes()) as boxes:
        driver.bind(("127.0.0.1", 0))
        driver.settimeout(10.0)
        device = UdpDevice(limits=Limits(force=3.0))
        loop, told = DeviceLoop(device, boxes), boxes.reader("pose.0")
        address = ("127.0.0.1", device.port)

        def arrives(datagram: bytes, now: float) -> bool:
            driver.sendto(datagram, address)
            # the loopback takes a moment, on some systems
            for _ in range(200):
                loop.turn(now)
                if told.fresh():
                    return True
                time.sleep(1e-4)
            return False

        loop.turn(0.0)
        assert arrives(struct.pack("<8d", 1.0, *pose(0.01)), 0.001)
        assert told.message.tolist()[2:] == list(pose(0.01))
        torque_and_force = struct.unpack("<6d", driver.recv(100))
        assert torque_and_force == (0.0,) * 6
        assert not arrives(b"hello", 0.002)
        assert device.refused == 1
        assert arrives(struct.pack("<8d", 3.0, *pose(0.02)), 0.003)
        assert not arrives(struct.pack("<8d", 2.0, *pose(0.9)), 0.004)
        assert told.message.tolist()[2] == 0.02
        loop.close()
