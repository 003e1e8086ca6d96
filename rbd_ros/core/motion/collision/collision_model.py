"""`CollisionModel`: signed distances between links, and from links to obstacles, with gradients.

With nearest points a, b and the normal n from a to b: `∂d/∂q = nᵀ (J_b(b) − J_a(a))`.
"""
from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...dynamics.kinematics import forward_kinematics, jacobian
from ...errors import RbdError, shown, unknown_name
from ...model.files.srdf_pairs import disabled_pairs
from ...model.files.xml_tree import file_of, parse_xml, read_text
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from ...model.scalars import at_least
from ...model.state import not_a_model, shaped
from .clearance import NONE, Clearance, Sweeper, certify
from .closest import Closest
from .obstacles import Obstacles, read_obstacles
from .pair_distances import PairDistances, Posed
from .pairs import adjacent_links, pairs_of, rigid_parts
from .pieces import Piece, load_coal, pieces_of_links, pieces_of_shapes

MOST_PIECES = 1000    # of a robot: pairs are as many as the square of it


class CollisionModel:
    """Convex pieces of a robot and of its surroundings, and the pairs of them that are compared.

    Made by `from_urdf`; changed copies come from `with_obstacles`, `with_shapes` and `without_pairs`. `piece_names`
    names the pieces, `pairs` the pairs in the order of the distances. Needs the package coal.

        >>> model = rbd.sample("ball_on_plate")
        >>> floor = {"name": "floor", "shape": "plane", "frame": [0.0, 0.0, -1.0]}
        >>> collisions = rbd.CollisionModel.from_urdf(rbd.sample_path("ball_on_plate"), model, obstacles=[floor])
        >>> collisions.pairs
        (('plate', 'ball'), ('plate', 'floor'), ('ball', 'floor'))
        >>> collisions.distances(model.neutral())[1:].round(3)
        array([1.715, 1.725])
    """

    def __init__(self, model: RobotModel, pieces: Sequence[Piece], allowed: Iterable[frozenset[str]]) -> None:
        self.model, self.pieces, self.allowed = model, tuple(pieces), frozenset(allowed)
        self.piece_names = tuple(piece.name for piece in pieces)
        if len(set(self.piece_names)) < len(pieces):
            twice = next(name for i, name in enumerate(self.piece_names) if name in self.piece_names[:i])
            raise RbdError(f"the name '{twice[:80]}' is given twice: obstacles and shapes need names of their own")
        indices = pairs_of(model, pieces, self.allowed)
        self.pairs = tuple((pieces[i].name, pieces[j].name) for i, j in indices)
        self._distances = PairDistances(pieces, indices)
        self._indices = np.array(indices, dtype=np.int64).reshape(-1, 2)
        self._offsets = np.array([piece.shape.pose for piece in pieces]).reshape(-1, 4, 4)
        self._bodies = np.array([piece.body for piece in pieces], dtype=np.int64)
        self._middles = np.array([piece.middle for piece in pieces]).reshape(-1, 3)
        self._radii = np.array([piece.radius for piece in pieces])
        self._parts = [*rigid_parts(model), -1]

    def __reduce__(self) -> tuple[Any, ...]:
        return CollisionModel, (self.model, self.pieces, self.allowed)

    def __repr__(self) -> str:
        return f"CollisionModel of '{self.model.name}': {len(self.pieces)} pieces, {len(self.pairs)} pairs"

    @classmethod
    def from_urdf(cls, path_or_xml: str | os.PathLike[str], model: RobotModel,
                  srdf: str | os.PathLike[str] | None = None, obstacles: Obstacles = (),
                  pieces: Mapping[str, Sequence[ArrayLike]] | None = None) -> CollisionModel:
        """Collision model of a URDF's `<collision>` shapes: boxes, spheres, cylinders, capsules, and of each mesh its
        convex hull, or those of slices if the hull has more than 1.4 times the mesh's volume.

        model: of the same description. pieces: {link: convex pieces}, each as points (N, 3) in the link's frame (m),
        instead of the shapes of a link. srdf: file or text whose `<disable_collisions>` names the pairs of links that
        are not compared. Without it these are neighbours: links with shapes, and the next ones with shapes on their way
        to the root. Links without relative motion are never compared. obstacles: as of `with_obstacles`. Raises
        `RbdError` for invalid input, unreadable meshes, and without the package coal.
        """
        load_coal()
        if not isinstance(model, RobotModel):
            raise not_a_model(model)
        if not isinstance(pieces, Mapping | None):
            raise RbdError(f"pieces: expected {{link: [points (N, 3), …]}}, got {shown(pieces)}")
        text, source = read_text(path_or_xml)
        found = pieces_of_links(parse_xml(text, source), file_of(path_or_xml), source, model, pieces or {})
        if not found:
            raise RbdError(f"{source} has no <collision> shapes: give `pieces`")
        if len(found) > MOST_PIECES:
            raise RbdError(f"{source} has {len(found)} collision shapes, expected at most {MOST_PIECES}")
        allowed = adjacent_links(model, found) if srdf is None else disabled_pairs(srdf, model.body_names)
        return cls(model, [*found, *_fixed(obstacles)], allowed)

    def with_obstacles(self, obstacles: Obstacles, trusted: bool = True) -> CollisionModel:
        """A copy with more obstacles, fixed in the world (the root frame of a fixed base), compared with all links that
        move.

        A list of mappings, or a YAML file or text with the same list under `obstacles:`. Each has `shape`, optional
        `name` and `frame`, and sizes in m: box `size` (x, y, z); sphere `radius`; cylinder and capsule `radius` and
        `length` along z (of a capsule without caps); plane nothing, all below its xy plane is solid; mesh `file` and
        `scale`, or `points` (N, 3), of which it is the convex hull; points likewise, and `voxel_size`: boxes
        `name/0`, `name/1`, … of the cells that hold points. frame: xyz, (xyz, rpy), {xyz: …, rpy: …} or a pose (4, 4),
        m and rad. trusted: False for YAML text of strangers, which is then never a path, names no files, and has at
        most 200 obstacles, 2000 points of meshes, and lengths from 1e-6 to 1000 m.
        """
        return self._with(_fixed(obstacles, trusted))

    def with_shapes(self, body: str, shapes: Obstacles, touching: Sequence[str] = ()) -> CollisionModel:
        """A copy with shapes attached to a link: a tool or load. Given as obstacles, with frames in the link's frame;
        compared with all that moves relative to the link, whatever an SRDF says of it, but the link's neighbours and
        the links, obstacles, tools or loads `touching`.
        """
        index = self.model.body_index(body)
        names = {piece.link for piece in self.pieces} | set(self.model.body_names)
        attached = read_obstacles(shapes, body)
        for name in [touching] if isinstance(touching, str) else touching:
            if name not in names:
                raise unknown_name("link in touching", name, sorted(names))
        more = pieces_of_shapes(attached, index)
        adjacent = adjacent_links(self.model, [*self.pieces, *more])
        free = (*{name for pair in adjacent if body in pair for name in pair},
                *([touching] if isinstance(touching, str) else touching))
        return self._with(replace(piece, touching=free) for piece in more)

    def without_pairs(self, pairs: Iterable[Sequence[str]]) -> CollisionModel:
        """A copy that does not compare these pairs of links, obstacles, tools or loads, by name."""
        names = {piece.link for piece in self.pieces}
        more = set()
        for pair in pairs:
            if isinstance(pair, str) or len(pair) != 2:
                raise RbdError(f"pairs: expected two names of links or obstacles, got {shown(pair)}")
            for name in pair:
                if name not in names:
                    raise unknown_name("link or obstacle", name, sorted(names))
            more.add(frozenset(pair))
        return CollisionModel(self.model, self.pieces, self.allowed | more)

    def _with(self, more: Iterable[Piece]) -> CollisionModel:
        return CollisionModel(self.model, (*self.pieces, *more), self.allowed)

    # ---- answers

    def distances(self, q: ArrayLike) -> Array:
        """Signed distances (pairs,) or (N, pairs), m, of the pairs in `pairs`; negative: depth of penetration."""
        places, batch = self._places(q)
        out = np.empty((len(places), len(self.pairs)))
        every = range(len(self.pairs))
        for place, row in zip(places, out, strict=True):
            posed = Posed(self._distances, place)
            row[:] = [posed.exact(k) for k in every]
        return out if batch else out[0]

    def collides(self, q: ArrayLike, margin: float = 0.0) -> Any:
        """Whether any pair touches or is nearer than `margin` (m): bool, or (N,) of a batch."""
        margin = at_least(0.0, margin, "margin", "m")
        places, batch = self._places(q)
        out = np.zeros(len(places), dtype=bool)
        for s, (place, near) in enumerate(zip(places, self._bounds(places) <= margin, strict=True)):
            posed = Posed(self._distances, place)
            out[s] = any(posed.distance(k) <= margin for k in np.flatnonzero(near).tolist())
        return out if batch else bool(out[0])

    def touching(self, q: ArrayLike, margin: float = 0.0) -> NDArray[np.bool_]:
        """Which pairs (pairs,) or (N, pairs) touch or are nearer than `margin` (m)."""
        margin = at_least(0.0, margin, "margin", "m")
        places, batch = self._places(q)
        out = self._bounds(places) <= margin
        for place, row in zip(places, out, strict=True):
            posed = Posed(self._distances, place)
            for k in np.flatnonzero(row).tolist():
                row[k] = posed.distance(k) <= margin
        return out if batch else out[0]    # type: ignore[no-any-return]

    def closest(self, q: ArrayLike, within: float | None = None) -> Closest:
        """Nearest points of all pairs, or of those `within` a distance (m) at any configuration of the batch."""
        places, batch = self._places(q)
        index = np.arange(len(self.pairs))
        if within is not None:
            within = at_least(0.0, within, "within", "m")
            index = np.flatnonzero((self._bounds(places) <= within).any(axis=0))
        distances, points, normals = self._closest(places, index)
        if within is not None:
            kept = (distances <= within).any(axis=0)
            index, distances, points, normals = index[kept], distances[:, kept], points[:, kept], normals[:, kept]
        gradients = self._gradients(q, index, points, normals)
        arrays = [array if batch else array[0] for array in (distances, points, normals, gradients)]
        distances, points, normals, gradients = arrays
        return Closest(distances, points, normals, gradients, tuple(self.pairs[k] for k in index), index)

    def certify(self, motion: Any, clearance: float = 0.0) -> Clearance:
        """Whether no pair comes nearer than the clearance (m), at any time of a motion: of splines, of a Fourier
        series, or positions (N, nq), connected by straight lines. Not by samples: by bounds of how far pieces move.
        """
        return certify(self, motion, at_least(0.0, clearance, "clearance", "m"))

    # ---- computation; `sweeper` and `_near` are for this folder

    @cached_property
    def sweeper(self) -> Sweeper:
        return Sweeper(self.model, self.pieces, self._indices)

    def _near(self, q: Array, within: float, index: NDArray[np.int64] | None = None,
              gradients: bool = False, contacts: Array = NONE) -> tuple[Array, Array]:
        """Distances (N, pairs) at q (N, nq), at most `within` (m), of all pairs or those of `index`, and, if asked for,
        gradients (N, pairs, nv), 0 beyond `within`, and contacts. By `separation`; as `distances` where cores overlap.
        """
        pairs = np.arange(len(self.pairs)) if index is None else index
        distances, slopes = self.sweeper.near(q, within, pairs, gradients, contacts)
        deep = distances == -np.inf
        rows, some = np.flatnonzero(deep.any(axis=1)), np.flatnonzero(deep.any(axis=0))
        if len(rows):
            places = self._places(q[rows])[0]
            points, normals = np.zeros((len(rows), len(some), 2, 3)), np.zeros((len(rows), len(some), 3))
            for r, s in enumerate(rows.tolist()):
                posed = Posed(self._distances, places[r])
                for c in np.flatnonzero(deep[s, some]).tolist():
                    pair = int(pairs[some[c]])
                    distances[s, some[c]] = (posed.closest(pair, points[r, c], normals[r, c]) if gradients
                                             else posed.exact(pair))
            if gradients:
                chosen = deep[np.ix_(rows, some)]
                slopes[deep] = self._gradients(q[rows], pairs[some], points, normals)[chosen]
        return distances, slopes

    def _closest(self, places: Array, index: NDArray[np.int64]) -> tuple[Array, Array, Array]:
        """Distances (N, pairs), points (N, pairs, 2, 3) and normals (N, pairs, 3) of these pairs."""
        distances, points, normals = (np.empty((len(places), len(index), *shape)) for shape in ((), (2, 3), (3,)))
        for s, place in enumerate(places):
            posed = Posed(self._distances, place)
            for k, pair in enumerate(index.tolist()):
                distances[s, k] = posed.closest(pair, points[s, k], normals[s, k])
        return distances, points, normals

    def _places(self, q: ArrayLike) -> tuple[Array, bool]:
        """Poses (N, pieces, 4, 4) in the world, and whether q is a batch."""
        poses = forward_kinematics(self.model, q)
        batch = poses.ndim == 4
        poses = poses if batch else poses[None]
        world = np.broadcast_to(np.eye(4), (len(poses), 1, 4, 4))
        return np.concatenate([poses, world], axis=1)[:, self._bodies] @ self._offsets, batch

    def _bounds(self, places: Array) -> Array:
        """Lower bounds (N, pairs) of the distances, by spheres about the pieces; −∞ for planes."""
        centres = np.einsum("npij,pj->npi", places[..., :3, :3], self._middles) + places[..., :3, 3]
        first, second = self._indices.T
        return (np.linalg.norm(centres[:, first] - centres[:, second], axis=-1)    # type: ignore[no-any-return]
                - self._radii[first] - self._radii[second])

    def _gradients(self, q: ArrayLike, index: NDArray[np.int64], points: Array, normals: Array) -> Array:
        """∂d/∂q (N, pairs, nv) from the nearest points and normals."""
        positions = np.atleast_2d(shaped(self.model, positions={"q": q}).arrays[0])
        gradients = np.zeros((len(points), len(index), self.model.nv))
        bodies = self._bodies[self._indices[index]]
        lines = np.empty((2, len(points), len(index), 6))    # −, + (p × n, n) of the first and the second piece
        for side, sign in ((0, -1.0), (1, 1.0)):
            p, n = np.moveaxis(points[:, :, side], -1, 0), np.moveaxis(sign * normals, -1, 0)
            lines[side] = np.stack([p[1] * n[2] - p[2] * n[1], p[2] * n[0] - p[0] * n[2], p[0] * n[1] - p[1] * n[0],
                                    *n], axis=-1)
        for body in set(bodies.ravel().tolist()):
            if self._parts[body] >= 0:
                J = jacobian(self.model, positions, self.model.body_names[body], "world")
                for side in (0, 1):
                    rows = np.flatnonzero(bodies[:, side] == body)
                    gradients[:, rows] += lines[side][:, rows] @ J
        return gradients


def _fixed(obstacles: Obstacles, trusted: bool = True) -> list[Piece]:
    return pieces_of_shapes(read_obstacles(obstacles, trusted=trusted), -1)
