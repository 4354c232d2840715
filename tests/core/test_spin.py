"""The products of an angular velocity against cross products."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.spatial import exponential, quaternion_matrix
from core.spin import centripetal, gyroscopic, products, turned_products

vectors = st.tuples(*[st.floats(-3.0, 3.0)] * 3).map(np.array)


@given(vectors, vectors, vectors)
def test_products_say_what_an_angular_velocity_does(spin, arm, turn):
    """Rigid zones know their velocity terms by these maps alone."""
    w, rotation = products(spin[None])[0], quaternion_matrix(exponential(turn))
    moments = rotation @ np.diag([1.0, 2.0, 4.0]) @ rotation.T
    assert centripetal(arm) @ w[1:] == pytest.approx(np.cross(spin, np.cross(spin, arm)), abs=1e-12)
    assert gyroscopic(moments) @ w[1:] == pytest.approx(np.cross(spin, moments @ spin), abs=1e-12)
    assert turned_products(rotation) @ w == pytest.approx(products((rotation.T @ spin)[None])[0], abs=1e-12)


def test_products_in_numbers():
    """Their order, which the columns of coefficients keep."""
    assert products(np.array([[2.0, 3.0, 5.0]]))[0].tolist() == [1.0, 4.0, 9.0, 25.0, 6.0, 15.0, 10.0]
