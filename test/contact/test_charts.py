"""Charts of surfaces: metric, curvature and torsion by complex step of c(u); normals out of the body; both charts."""

import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.core.model.surfaces.charts import chart_forms

SURFACES = [rbd.Plane("a"), *(made("a", **sizes, inside=inside) for inside in (False, True) for made, sizes in (
    (rbd.Sphere, {"radius": 0.3}), (rbd.Cylinder, {"radius": 0.2}), (rbd.Ellipsoid, {"semi_axes": (0.5, 0.3, 0.2)}),
    (rbd.Torus, {"major_radius": 0.6, "minor_radius": 0.2})))]
CHARTS = [(surface, index) for surface in SURFACES
          for index in ((0, 1) if isinstance(surface, rbd.Ellipsoid) or type(surface) is rbd.Sphere else (0,))]
each_chart = pytest.mark.parametrize(("surface", "index"), CHARTS, ids=lambda x: str(x))
POINTS = [(0.3, 0.4), (-2.5, -0.9), (1.4, 0.1), (3.0, 0.7)]
H = 1e-30


@each_chart
@pytest.mark.parametrize("u", POINTS)
def test_forms_by_complex_step(surface, index, u):
    """dc = [x y] M du, dz = [x y] K M du, y·dx = T M du; K symmetric, x along ∂c/∂u₁, right-handed."""
    u = np.array(u)
    chart = surface.chart(u, index)
    x, y, z = chart.axes.T
    np.testing.assert_allclose(chart.axes.T @ chart.axes, np.eye(3), atol=1e-14)
    assert np.linalg.det(chart.axes) == pytest.approx(1.0)
    moved = [chart_forms(surface.shape, u + 1j * H * e, bool(index)) for e in np.eye(2)]
    slopes = np.column_stack([part[0].imag / H for part in moved])
    np.testing.assert_allclose(slopes, np.column_stack([x, y]) @ chart.metric, atol=1e-14)
    assert chart.metric[0, 0] > 0.0 and chart.metric[1, 1] > 0.0 and abs(chart.metric[1, 0]) < 1e-15
    bent = np.column_stack([part[1][:, 2].imag / H for part in moved])
    np.testing.assert_allclose(bent, np.column_stack([x, y]) @ chart.curvature @ chart.metric, atol=1e-12)
    np.testing.assert_allclose(chart.curvature, chart.curvature.T, atol=1e-12)
    np.testing.assert_allclose([y @ part[1][:, 0].imag / H for part in moved], chart.torsion @ chart.metric, atol=1e-12)
    np.testing.assert_allclose(z @ slopes, 0.0, atol=1e-14)


@each_chart
@pytest.mark.parametrize("u", POINTS)
def test_coordinates_are_those_of_the_point(surface, index, u):
    """In the chart that is used there, which ends before its poles."""
    point = surface.chart(u, index).point
    found, used = surface.coordinates(point)
    again = surface.chart(found, used)
    np.testing.assert_allclose(again.point, point, atol=1e-14)
    np.testing.assert_allclose(again.axes[:, 2], surface.chart(u, index).axes[:, 2], atol=1e-12)
    if used == index:
        np.testing.assert_allclose(found, u, atol=1e-12)
    poles = np.abs(again.axes[0 if used else 2, 2])
    assert poles <= 0.8 or not (isinstance(surface, rbd.Ellipsoid) or type(surface) is rbd.Sphere)


def test_curvatures_that_are_known():
    assert np.allclose(rbd.Sphere("a", 0.25).chart([0.3, 0.2]).curvature, 4.0 * np.eye(2))
    assert np.allclose(rbd.Sphere("a", 0.25, inside=True).chart([0.3, 0.2]).curvature, -4.0 * np.eye(2))
    assert np.allclose(rbd.Cylinder("a", 0.5).chart([0.3, 9.0]).curvature, np.diag([2.0, 0.0]))
    inner, outer = (rbd.Torus("a", 1.0, 0.25).chart([1.0, v]).curvature for v in (np.pi, 0.0))
    assert np.allclose(outer, np.diag([0.8, 4.0])) and np.allclose(inner, np.diag([-4 / 3, 4.0]))
    a, b, c = 0.5, 0.3, 0.2
    assert np.allclose(rbd.Ellipsoid("a", (a, b, c)).chart([0.0, 0.0], 0).curvature, np.diag([a / b**2, a / c**2]))
