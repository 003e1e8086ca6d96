"""Sample robots of the package (URDF files) and their constraints."""
from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from ..errors import RbdError, RbdWarning, unknown_name
from .constraints import ConstraintSet
from .files.constraint_yaml import load_constraints, load_contacts
from .files.urdf import load_urdf
from .robot_model import RobotModel
from .surfaces.compliant import CompliantContact
from .surfaces.unilateral import UnilateralContact

_DATA = Path(__file__).parent / "data"


def sample_names() -> tuple[str, ...]:
    """Valid names for `sample`.

        >>> rbd.sample_names()[:3]
        ('ball_on_plate', 'biped', 'delta')
    """
    return tuple(sorted(path.stem for path in _DATA.glob("*.urdf")))


def sample_path(name: str) -> Path:
    """The URDF file of a sample robot.

        >>> rbd.sample_path("iiwa").name
        'iiwa.urdf'
    """
    path = _DATA / f"{name}.urdf"
    if name not in sample_names():
        raise unknown_name("sample", name, sample_names())
    return path


def sample(name: str, **options: Any) -> RobotModel:
    """A sample robot; options as in `load_urdf`.

    "iiwa": KUKA LBR iiwa 14 of M Table 1; "two_link": a planar 2R arm of rods; "two_link_mueller": the 2R arm of point
    masses of M §6.1. With constraints (`sample_constraints`), closed at zero: "four_bar", "five_bar" (planar),
    "stewart", "delta", "gripper", and "biped" (root="floating"). With a contact: "ball_on_plate", an arm that carries
    a ball. Without warnings about implausible inertias: those identified for the iiwa, and M's point masses.

        >>> rbd.sample("iiwa").joint_names[:2]
        ('joint_1', 'joint_2')
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RbdWarning)
        return load_urdf(sample_path(name), **options)


def sample_constraints(name: str, model: RobotModel) -> ConstraintSet:
    """Constraints of a sample robot, for `model = sample(name)`; an empty set for a tree.

        >>> rbd.sample_constraints("five_bar", rbd.sample("five_bar")).names
        ('closure',)
    """
    path = sample_path(name).with_suffix(".constraints.yaml")
    return load_constraints(path, model) if path.is_file() else ConstraintSet()


def constraints_from(name_or_path: str, model: RobotModel) -> ConstraintSet:
    """Constraints of a sample's name or a YAML file's path; an empty set for an empty text."""
    if not name_or_path:
        return ConstraintSet()
    if name_or_path not in sample_names():
        return load_constraints(Path(name_or_path), model)
    try:
        constraints = sample_constraints(name_or_path, model)
        constraints.bound(model)
    except RbdError as error:
        raise RbdError(f"the constraints of sample '{name_or_path}' do not fit robot '{model.name}': {error}") from None
    if not constraints.size:
        raise RbdError(f"sample '{name_or_path}' has no constraints")
    return constraints


def contacts_from(name_or_path: str, model: RobotModel) -> tuple[UnilateralContact | CompliantContact, ...]:
    """Unilateral and compliant contacts of a YAML file, with the argument of `constraints_from`; none for samples."""
    if not name_or_path or name_or_path in sample_names():
        return ()
    return load_contacts(Path(name_or_path), model)
