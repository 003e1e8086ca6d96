"""Identification of a model from a recorded motion."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..dynamics.friction import SMOOTHING
from ..errors import RbdError, shown, unknown_name
from ..model.constraints import ConstraintSet, bound_to
from ..model.robot_model import RobotModel
from ..model.scalars import positive
from .base_parameters import BaseParameters, structural_base, with_columns
from .closed_chain import RecordedChain, closed_chain, completed, with_motors
from .consistent_fit import consistent_fit
from .drive_friction import KINDS, DriveFriction, drifting, find_drive_terms
from .effort_checks import check_efforts, checked_gains, estimate_delay
from .identified import Identification, StribeckVelocity, identified_model
from .judging import estimates, residuals, verdict
from .linear_fit import LinearFit, Rows, linear_fit
from .recorded.recording import Recording
from .recorded.signals import REST, Prepared, prepare
from .regressor_columns import columns_of
from .semidefinite_fit import semidefinite_fit
from .stacking import Equations, split
from .stribeck import LawOf, Stribeck, find_stribeck
from .transmission import CoupledMotors, Transmission
from .unknowns import Unknowns, unknowns
from .zeros import LARGEST, ROUNDS, SETTLED, ZeroColumns, Zeros, moved, turned

Array = NDArray[np.float64]
Progress = Callable[[str], None]
DELAY_ROUNDS, SHORTEST_DELAY = 4, 5e-5    # s
SOLVERS = {"newton": consistent_fit, "semidefinite": semidefinite_fit}


def identify(model: RobotModel, recording: Recording, *, mode: str = "full", body: str | None = None,
             constraints: ConstraintSet | None = None, validation: Recording | None = None, holdout: float = 0.2,
             rotors: bool = True, friction: bool = True, stribeck: bool = False, drives: bool = False,
             cutoff: float | None = None,
             smoothing: float = SMOOTHING, delay: float | str = "estimate",
             gains: ArrayLike | dict[str, float] | str | None = None, prior: float = 0.1, solver: str = "newton",
             robust: bool = True, slowest: float = REST, transmission: Transmission | None = None, zeros: bool = False,
             progress: Progress | None = None) -> Identification:
    """Identify the physically consistent model that best explains the recorded efforts.

    mode: "full" (inertias of all bodies, rotors, friction, offsets), "payload" (the ten parameters of a load on `body`,
    and friction), "friction". constraints: closed loops; joints without a column or with constant effort have no motor,
    and unrecorded positions follow from loop closure. validation: another recording for validation; by default the last
    share `holdout` of this one is held out. rotors, friction: whether these are unknown. stribeck: identify friction
    near rest, with a velocity per joint. drives: friction by direction and by load (`Friction`), each term of a joint
    included if held-out motion shows it; not with closed loops. cutoff: of the zero-phase filter, Hz; None: from the
    positions. smoothing: speed (rad/s, m/s) of `friction_effort`. delay (s): of efforts relative to states, or
    "estimate". gains: factors from recorded values to N m or N, per joint, names → factors, or "estimate" (against the
    description). prior: weight of the description for unidentifiable directions, see `consistent_fit`. solver:
    "newton", or "semidefinite" for the same problem by the package Clarabel. robust: reduce the weight of outliers.
    slowest (rad/s, m/s): efforts of slower joints are excluded, because they stick, unless `friction` is False; 0 if
    torque is measured at the link. transmission: of a coupled wrist, whose motors on more than one joint have unknown
    rotors and friction. zeros: also identify zero offsets of the joints and the direction of gravity, as far as gravity
    determines them. progress: called with a line at each step. Raises `RbdError` for invalid data.

        >>> model = rbd.sample("two_link")
        >>> motion, t = rbd.SplineMotion(np.random.default_rng(0).normal(size=(30, 2)), 10.0), np.linspace(0, 10, 2001)
        >>> tau = rbd.inverse_dynamics(model, motion(t).q, motion(t).v, motion(t).a) + motion(t).v * [0.5, 0.2]
        >>> found = rbd.identify(model, rbd.Recording(t, motion(t).q, tau=tau), mode="friction", delay=0.0)
        >>> found.model.damping.round(1)
        array([0.5, 0.2])
    """
    task = _Task(model, mode, body, rotors, friction, positive(smoothing, "smoothing", "speed"), robust,
                 positive(prior, "prior", "weight"), _solver(solver), progress or (lambda line: None),
                 _slowest(slowest) if friction else 0.0, _transmission(transmission))
    share = _share(holdout) if validation is None else 0.0
    given_delay = None if isinstance(delay, str) and delay == "estimate" else _seconds(delay)
    if not model.nv:
        raise RbdError(f"model '{model.name}' has no joints: nothing can be identified")
    if stribeck and not friction:
        raise RbdError("stribeck: not supported if friction is not unknown")
    if drives and (not friction or constraints is not None):
        where = "with closed loops" if friction else "where friction is not unknown"
        raise RbdError(f"drives: not supported {where}")

    task.tell("reading and filtering")
    same = isinstance(recording, Recording) and isinstance(validation, Recording) and validation.same_as(recording)
    chain, recording, findings = task.closed(recording, constraints)
    equations, rows, notes = task.equations(recording, chain, cutoff, given_delay or 0.0, gains)
    findings += notes
    unknown, base = task.unknown(rows, equations)
    findings += [*equations.left_out(rows), *unknown.notes]
    task.tell(f"{base.rank} base parameters of {len(unknown.columns)}, {split(rows, share)[0].y.size} efforts")
    lag = given_delay or 0.0
    if given_delay is None:
        equations, lag, notes = task.aligned(equations, recording, base, unknown)
        findings += notes
        rows = equations.rows()
    zero: Zeros | None = None
    if zeros:
        task, recording, equations, zero = task.with_zeros(equations, recording, lag)
        validation = validation if validation is None else moved(validation, model, zero.position)
        rows = equations.rows()
        unknown, base = task.unknown(rows, equations)
        findings += zero.findings(model)
    check = check_efforts(equations, rows, body)
    findings += check.findings
    near_rest: Stribeck | None = None
    if drives:
        task.tell("friction by direction and by load")
        equations, unknown, base = task.with_drives(equations, rows, unknown, base, share)
        rows = equations.rows()
    if stribeck:
        task.tell("velocities of Stribeck's effect")
        equations, unknown, base, near_rest = task.with_stribeck(equations, rows, unknown, base, share)
        rows = equations.rows()
    fitted, held_out = split(rows, share)
    if held_out is None and share > 0.0:
        findings += ["the recording is too short to keep a part of it that is not fitted: nothing judges the result. "
                     "Record a longer motion, or another one to judge by"]
    linear, part, notes = task.fitted(fitted, unknown, base, near_rest)
    findings += notes
    if same:
        findings += ["validation: this is the recording that was fitted: nothing else is judged"]
    elif validation is not None:
        task.tell("validation")
        held_out, notes = task.judged(validation, equations, lag)
        findings += notes
    result = task.result(equations, unknown, base, near_rest, linear, part, (fitted, held_out), lag, findings,
                         check.reversed)
    return result if zero is None else replace(result, zeros=zero)


@dataclass(frozen=True, eq=False)
class _Task:
    """The identification task and its steps."""

    model: RobotModel
    mode: str
    body: str | None
    rotors: bool
    friction: bool
    smoothing: float
    robust: bool
    weight: float
    solve: Callable[[Rows, Array, Unknowns, float], Array]
    tell: Progress
    slowest: float
    transmission: Transmission | None

    @property
    def coupled(self) -> CoupledMotors:
        """Motors on more than one joint."""
        return CoupledMotors.none(self.model.nv) if self.transmission is None else self.transmission.coupled(self.model)

    def closed(self, recording: Recording, constraints: ConstraintSet | None) -> tuple[RecordedChain | None, Recording,
                                                                                        list[str]]:
        """The closed chain, if there are loops, the completed recording, and notes."""
        if constraints is not None:
            bound_to(self.model, constraints)    # raises for invalid constraints
        if constraints is None or not isinstance(recording, Recording):    # rejected by `prepare`
            return None, recording, []
        chain, filled = closed_chain(self.model, constraints, recording)
        passive = [name for j, name in enumerate(self.model.velocity_names) if j not in chain.motors]
        for motor, row in zip(self.coupled.names, self.coupled.rows, strict=True):
            if silent := [self.model.velocity_names[j] for j in np.setdiff1d(np.flatnonzero(row), chain.motors)]:
                raise RbdError(f"transmission: motor '{motor}' moves {', '.join(silent)}, of which no effort was "
                               "recorded: in closed loops these count as joints without motors")
        return chain, filled, [f"joints without efforts, taken as without motors: {', '.join(passive)}"] * bool(passive)

    def equations(self, recording: Recording, chain: RecordedChain | None, cutoff: float | None, delay: float,
                  gains: Any) -> tuple[Equations, Rows, list[str]]:
        """The recording as equations, with gains, their rows, and findings."""
        coupled = self.coupled
        prepared = prepare(self.model, recording, cutoff, delay, self.smoothing, coupled.rows)
        notes = _notes(prepared, chain)
        unit = Equations(self.model, prepared, np.ones(self.model.nv), coupled, self.slowest, chain)
        check = check_efforts(unit, unit.rows(), self.body) if isinstance(gains, str) else None
        gain, gain_notes = checked_gains(self.model, gains, check)
        equations = replace(unit, gain=gain)
        return equations, equations.rows(), [*notes, *gain_notes]

    def unknown(self, rows: Rows, equations: Equations) -> tuple[Unknowns, BaseParameters]:
        """The unknowns of the fit, and their base parameters."""
        chain, still = equations.chain, equations.prepared.still
        driven, constraints = (None, None) if chain is None else (chain.motors, chain.constraints)
        unknown = unknowns(self.model, rows, self.mode, self.body, self.rotors, self.friction, still, driven,
                           equations.coupled)
        if not len(unknown.columns):
            raise RbdError("nothing is unknown: no body, and rotors and friction are left out")
        return unknown, structural_base(self.model, unknown.columns, constraints, equations.coupled)

    def aligned(self, equations: Equations, recording: Recording, base: BaseParameters,
                unknown: Unknowns) -> tuple[Equations, float, list[str]]:
        """The equations with efforts aligned to states, the delay (s), and findings."""
        known, lag, independent = _known(unknown), 0.0, unknown.columns[base.independent]
        notes: list[str] = []
        for _ in range(DELAY_ROUNDS):    # weights improve as the delay decreases
            rows = equations.rows()
            linear = rows.columns(independent, known)
            further_delay = estimate_delay(equations, linear, rows.X @ known,
                                  linear_fit(linear, self.robust, False).weights)
            if further_delay is None:
                notes = ["efforts fit the states best at the end of the range of delays that is searched: if they are "
                         "late or early by more, give the delay"]
            if further_delay is None or abs(further_delay) < SHORTEST_DELAY:
                break
            lag += further_delay
            self.tell(f"efforts {1e3 * lag:.1f} ms behind the states")
            equations = replace(equations, prepared=self._prepared(recording, equations.prepared, lag))
        if lag:
            notes.append(f"efforts are {1e3 * abs(lag):.1f} ms {'behind' if lag > 0.0 else 'ahead of'} the states: "
                         "taken back")
        return equations, lag, notes

    def with_zeros(self, equations: Equations, recording: Recording,
                   lag: float) -> tuple[_Task, Recording, Equations, Zeros]:
        """The task with the gravity, and the recording and its equations with the positions, that best fit the efforts.
        """
        if equations.chain is not None:
            raise RbdError("zeros: offsets of positions are not identified in closed loops, whose joints share them")
        task, offset, shown = self, np.zeros(self.model.nv), None
        recording = recording.in_order_of(self.model)[0]
        for _ in range(ROUNDS):
            rows = equations.rows()
            unknown, base = task.unknown(rows, equations)
            columns = ZeroColumns(equations, rows, base, unknown, _known(unknown), self.robust)
            step, half = columns.solved(shown)
            shown = np.isfinite(half)
            joints, count = columns.joints, len(columns.joints)
            offset[joints] += step[:count]
            if not np.abs(offset).max(initial=0.0) < LARGEST:
                raise RbdError("zeros: the efforts fit no position near those recorded: are its units radians and its "
                               "signs right?")
            model = task.model.with_(gravity=turned(task.model.gravity, step[count:]))
            task = replace(task, model=model)
            shifted = moved(recording, model, offset)
            equations = replace(equations, model=model, prepared=task._prepared(shifted, equations.prepared, lag))
            self.tell(f"zero offsets up to {np.abs(offset).max(initial=0.0):.4f} (rad or m)")
            if np.abs(step).max(initial=0.0) < SETTLED:
                break
        width = np.full(self.model.nv, np.inf)
        width[joints] = half[:count]
        old, new = self.model.gravity, task.model.gravity
        tilt = float(np.arctan2(np.linalg.norm(np.cross(old, new)), old @ new))
        return task, shifted, equations, Zeros(offset, width, new, tilt, float(max(half[count:], default=np.inf)))

    def _prepared(self, recording: Recording, prepared: Prepared, delay: float) -> Prepared:
        return prepare(self.model, recording, prepared.cutoff, delay, self.smoothing, self.coupled.rows)

    def with_drives(self, equations: Equations, rows: Rows, unknown: Unknowns, base: BaseParameters,
                    share: float) -> tuple[Equations, Unknowns, BaseParameters]:
        """Equations, unknowns and base with the columns of friction by direction and by load that the motion shows."""
        prepared, model = equations.prepared, self.model
        joints = np.setdiff1d(np.flatnonzero(rows.measured.any(axis=0)), prepared.still)
        terms = find_drive_terms(model, split(rows, share)[0], prepared, _known(unknown),
                                 unknown.columns[base.independent], joints, self.smoothing, self.robust)
        return (replace(equations, drive=terms), unknown.with_drive_terms(model, terms),
                with_columns(base, terms.names(model)))

    def with_stribeck(self, equations: Equations, rows: Rows, unknown: Unknowns, base: BaseParameters,
                      share: float) -> tuple[Equations, Unknowns, BaseParameters, Stribeck]:
        """Equations, unknowns and base with a Stribeck column per joint that shows the effect, and its fit."""
        prepared, known = equations.prepared, _known(unknown)
        rows = split(rows, share)[0].columns(unknown.columns[base.independent], known)
        fastest = np.max([np.abs(piece.v).max(axis=0) for piece in prepared.pieces], axis=0)
        joints = np.setdiff1d(np.flatnonzero(rows.measured.any(axis=0)), prepared.still)
        law = LawOf(prepared, self.smoothing, len(rows.y))
        stribeck_fit = find_stribeck(rows, law, fastest, joints, self.smoothing, self.robust)
        names = tuple(f"stribeck({self.model.velocity_names[j]})" for j in stribeck_fit.terms.joints)
        extended = unknown.with_heights(self.model, stribeck_fit.terms.joints)
        return replace(equations, stribeck=stribeck_fit.terms), extended, with_columns(base, names), stribeck_fit

    def fitted(self, rows: Rows, unknown: Unknowns, base: BaseParameters,
               near_rest: Stribeck | None) -> tuple[LinearFit, Array, list[str]]:
        """Least squares of the base parameters, the consistent values of all unknowns, and findings."""
        known, columns = _known(unknown), unknown.columns
        linear = linear_fit(rows.columns(columns[base.independent], known), self.robust)
        if near_rest is not None:    # its intervals include the uncertainty of the velocities
            linear = replace(near_rest.fit, beta=linear.beta, weights=linear.weights, condition=linear.condition,
                             covariance=near_rest.fit.covariance[:base.rank, :base.rank], outliers=linear.outliers)
        self.tell("consistent fit")
        part = self.solve(rows.columns(columns, known), linear.weights, unknown, self.weight)
        return linear, part, [f"{linear.outliers} efforts are more than six standard deviations off: they count "
                              "less"] * bool(linear.outliers)

    def judged(self, validation: Recording, equations: Equations, lag: float) -> tuple[Rows, list[str]]:
        """The rows of another recording, and findings."""
        if equations.chain is not None:
            validation = with_motors(completed(self.model, equations.chain.constraints, validation),
                                     equations.chain.motors)
        prepared = self._prepared(validation, equations.prepared, lag)
        judged = replace(equations, prepared=prepared)
        rows = judged.rows()
        return rows, [f"validation: {note}" for note in (
            *_notes(prepared, equations.chain), *check_efforts(judged, rows, self.body).findings,
            *judged.left_out(rows))]

    def result(self, equations: Equations, unknown: Unknowns, base: BaseParameters, near_rest: Stribeck | None,
               linear: LinearFit, part: Array, rows: tuple[Rows, Rows | None], lag: float,
               findings: list[str], wrong_signs: tuple[str, ...]) -> Identification:
        """The result with residuals, confidence and findings."""
        model, prepared, names = self.model, equations.prepared, self.model.velocity_names
        known = _known(unknown)
        predicted, free, theta = known.copy(), known.copy(), np.array(unknown.theta)
        predicted[unknown.columns] += part
        free[unknown.columns[base.independent]] += linear.beta
        joint_part = slice(10 if unknown.load else 0, None)    # the loaded body keeps its own parameters
        theta[unknown.columns[joint_part]] = part[joint_part]
        residual, shown_rows = residuals(model, *rows, unknown.theta, predicted, free)
        confidence = estimates(unknown, base, linear, part)
        undetermined = [estimate.name for estimate in confidence if not estimate.seen]
        if self.mode != "payload" and self.friction:
            undetermined += [f"{term}({names[j]})" for j in prepared.still for term in ("viscous", "coulomb")]
        velocities: tuple[StribeckVelocity, ...] = ()
        if near_rest is not None:
            undetermined += [f"stribeck({names[j]})" for j in near_rest.unseen]
            law = near_rest.terms
            velocities = tuple(StribeckVelocity(names[j], float(w), float(half)) for j, w, half in
                               zip(law.joints, law.velocities, near_rest.half_width, strict=True))
        transmission, coupled = self.transmission, equations.coupled
        if transmission is not None and coupled.names:
            first = columns_of(model, "offset").stop
            transmission = transmission.identified(theta[first:first + coupled.parameters.size])
            findings = [*findings, f"rotors and friction of motors on more than one joint ({', '.join(coupled.names)}) "
                        "are in no file that is written: no node knows of them"]
        identified, load, offset, heights = identified_model(model, theta, unknown, part, equations.stribeck)
        drives: DriveFriction | None = None
        if equations.drive is not None:
            terms = equations.drive
            first = columns_of(model, "offset").stop + coupled.parameters.size
            drives = terms.values(identified, theta[first:first + len(terms.terms)])
            candidates = {f"{kind}({names[j]})" for kind in KINDS for j in range(model.nv)}
            undetermined += sorted(candidates - set(terms.names(model)))
        if self.friction:
            findings = [*findings, *(
                f"friction of {drift.joint} changes by {drift.change:+.2g} N m (or N) over {drift.duration:.0f} s, as "
                "by temperature: warm the robot up before recording"
                for drift in drifting(model, rows[0], prepared, rows[0].X @ free))]
        return Identification(
            model=identified, smoothing=self.smoothing, offset=offset, load=load, residual=residual,
            confidence=confidence, unidentifiable=tuple(undetermined),
            findings=(*findings, *verdict(model, residual)), base=base, condition=linear.condition, delay=lag,
            gains=equations.gain, cutoff=prepared.cutoff, duration=prepared.duration, prior=model, mode=self.mode,
            validation=shown_rows, stribeck_height=heights, stribeck=velocities, transmission=transmission,
            reversed=wrong_signs, covariance=linear.covariance, drives=drives)


def _share(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 0.8:
        raise RbdError(f"holdout must be a share from 0 to 0.8, got {shown(value)}")
    return float(value)


def _seconds(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not abs(number) <= 1.0:
        raise RbdError(f"delay must be \"estimate\" or seconds within ±1, got {shown(value)}")
    return number


def _slowest(value: Any) -> float:
    return 0.0 if isinstance(value, int | float) and value == 0.0 else positive(value, "slowest", "speed, or 0")


def _transmission(value: Any) -> Transmission | None:
    if value is not None and not isinstance(value, Transmission):
        raise RbdError(f"transmission: expected rbd.Transmission, got {shown(value)}")
    return value


def _solver(name: str) -> Callable[[Rows, Array, Unknowns, float], Array]:
    if name not in SOLVERS:
        raise unknown_name("solver", name, SOLVERS)
    return SOLVERS[name]


def _notes(prepared: Prepared, chain: RecordedChain | None) -> list[str]:
    """The notes, without the one on constant efforts if it concerns joints without motors only, already reported."""
    reported = chain is not None and not np.isin(prepared.unmeasured, chain.motors).any()
    return [note for note in prepared.notes if not (reported and note.startswith("efforts that are constant"))]


def _known(unknown: Unknowns) -> Array:
    """θ with zeros at the unknowns; a loaded body keeps its own parameters."""
    known = np.array(unknown.theta)
    known[unknown.scalars if unknown.load else unknown.columns] = 0.0
    return known
