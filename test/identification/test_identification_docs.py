"""The example of docs/identification.md runs as shown."""
import re
from pathlib import Path

import numpy as np
import pytest

import rbd_ros as rbd

PAGE = (Path(__file__).parents[2] / "docs" / "identification.md").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
def test_the_example_finds_the_parameters(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(code, names)
    found, truth = names["found"], names["truth"]
    assert found.residual.overall < 0.01 and not found.unidentifiable
    np.testing.assert_allclose(found.model.damping, 0.5, rtol=0.02)
    again = rbd.load_urdf(tmp_path / "new.urdf")
    q = truth.random_configuration(0)
    np.testing.assert_allclose(rbd.gravity_effort(again, q), rbd.gravity_effort(truth, q), rtol=0.01, atol=0.02)
