"""The examples of docs/elastic_joints.md run as shown."""

import re
from pathlib import Path

import numpy as np

import rbd_ros as rbd

PAGE = (Path(__file__).parents[2] / "docs" / "elastic_joints.md").read_text(encoding="utf-8")


def test_the_examples_of_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.actuation.yaml").write_text(re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[0])
    names: dict = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(code, names)
    actuation, motors, law = names["actuation"], names["motors"], names["law"]
    assert actuation.motor_names == ("shoulder", "elbow", "elbow/stiffness")
    assert isinstance(motors, rbd.MotorReference) and motors.effort.shape == (3,)
    np.testing.assert_allclose(motors.stiffness, [900.0, 250.0])
    assert names["change"].effort.shape == (2, 3) and names["change"].position[0, 0] != 0.0
    # the deflection is that of the steady motion here, which the law does not know: it reads spring and damper
    np.testing.assert_allclose(law.effort, motors.effort, rtol=1e-3, atol=1e-2)
    assert names["robot"].time > 0.0
