"""What the actor's output means to the environment: every action space as one vector.

The actor outputs ``u`` in [-1, 1]^m. A :class:`Layout` says which entries of ``u`` stand for what:

| part of the space | entries of ``u`` | executed action, as the critic sees it |
| --- | --- | --- |
| ``Box`` | one per number | the number, scaled to [-1, 1] |
| ``Discrete(2)``, each bit of ``MultiBinary`` (a gate) | one | 1 where ``u > 0``, else -1 |
| ``Discrete(k)``, each entry of ``MultiDiscrete`` (a choice) | k | one-hot, 1 at the largest entry |

The executed action has as many entries as ``u``. ``Tuple`` and ``Dict`` put their parts one after the other.
:func:`to_env` turns executed actions into actions of the environment, and :func:`from_env` inverts it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from softdpg.replay.spaces import check_action_space

Kind = Literal["box", "gate", "choice"]
Path = tuple[Any, ...]
ActiveIf = Mapping[Any, Any]


class Block(NamedTuple):
    """Entries ``start`` to ``stop`` of a vector of actions: numbers, gates, or the options of one choice."""

    kind: Kind
    start: int
    stop: int


class Mask(NamedTuple):
    """Entry ``target`` reaches the critic times ``offset + slope * (executed action at entry source)``."""

    target: int
    source: int
    offset: float
    slope: float


@dataclass(frozen=True)
class Layout:
    """How the entries of the actor's output decode into an executed action; hashable, so that it is static in a jit.

    :param blocks: the entries by kind, in order and without gaps
    :param masks: parameters that reach the critic only together with the option that they belong to
    """

    blocks: tuple[Block, ...]
    masks: tuple[Mask, ...] = ()

    @property
    def size(self) -> int:
        """m, the number of entries."""
        return self.blocks[-1].stop

    @cached_property
    def decoded(self) -> np.ndarray:
        """Whether each entry belongs to a gate or a choice, ``(m,)``."""
        return np.concatenate([np.full(block.stop - block.start, block.kind != "box") for block in self.blocks])

    def of_kind(self, kind: Kind) -> list[Block]:
        """Return the blocks of one kind."""
        return [block for block in self.blocks if block.kind == kind]

    def execute(self, u: Any, axis: int = -1) -> Any:
        """Decode the actor's output, perturbed or not, into executed actions. Numbers are clipped to [-1, 1].

        :param u: array of JAX or NumPy, ``(..., m, ...)``
        :param axis: the axis of size m
        :return: the same shape and type
        """
        xp: Any = np if isinstance(u, np.ndarray) else jnp
        parts = []
        for kind, start, stop in self.blocks:
            part = u[_at(u.ndim, axis, slice(start, stop))]
            if kind == "box":
                parts.append(xp.clip(part, -1, 1))
            elif kind == "gate":
                parts.append(xp.where(part > 0, 1, -1).astype(u.dtype))
            else:
                options = xp.arange(stop - start)[_at(u.ndim, axis, slice(None), None)]
                parts.append((options == xp.argmax(part, axis=axis, keepdims=True)).astype(u.dtype))
        return xp.concatenate(parts, axis=axis)

    def masked(self, executed: Any, axis: int = -1) -> Any:
        """Set the parameters of options that are not taken to 0: what the critic sees and the replay buffer stores.

        :param executed: array of JAX or NumPy, ``(..., m, ...)``
        :param axis: the axis of size m
        """
        if not self.masks:
            return executed
        xp: Any = np if isinstance(executed, np.ndarray) else jnp
        entries = [executed[_at(executed.ndim, axis, i)] for i in range(self.size)]
        sources = list(entries)
        for target, source, offset, slope in self.masks:
            entries[target] = entries[target] * (offset + slope * sources[source])
        return xp.stack(entries, axis=axis)

    def decode(self, u: Any, axis: int = -1) -> Any:
        """Decode the actor's output into what the critic sees: :meth:`execute`, then :meth:`masked`."""
        return self.masked(self.execute(u, axis), axis)

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Sample executed actions uniformly, ``(n, m)``."""
        u = rng.uniform(-1, 1, (n, self.size)).astype(np.float32)
        return self.execute(u)


def make_layout(space: spaces.Space, active_if: ActiveIf | None = None) -> Layout | None:
    """Return the layout of an action space; None for a Box, which needs no decoding.

    :param space: any space that :func:`~softdpg.replay.spaces.check_action_space` accepts
    :param active_if: which parts are parameters of an option: see
        :class:`~softdpg.algorithms.policies.DDPGPolicy`; None for those of ``Tuple(Discrete(n), Tuple(Box, ..., Box))``
    """
    check_action_space(space)
    if isinstance(space, spaces.Box):
        return None
    blocks: list[Block] = []
    for leaf in leaves(space).values():
        for block in leaf.blocks:
            last = blocks[-1] if blocks else None
            if last is not None and last.kind == block.kind != "choice":  # one block for neighbours of a kind
                blocks[-1] = Block(last.kind, last.start, block.stop)
            else:
                blocks.append(block)
    return Layout(tuple(blocks), _masks(space, active_if))


def flat_space(space: spaces.Space) -> spaces.Box:
    """Return the space of the actions in the replay buffer: the Box itself, or executed actions in [-1, 1]^m."""
    if isinstance(space, spaces.Box):
        return space
    size = sum(leaf.stop - leaf.start for leaf in leaves(space).values())
    return spaces.Box(-1, 1, (size,), np.float32)


class Leaf(NamedTuple):
    """A part of an action space that is neither Tuple nor Dict, and where its entries are.

    :param space: the part
    :param start: its first entry
    :param stop: the entry after its last
    :param blocks: its entries by kind
    """

    space: Any
    start: int
    stop: int
    blocks: tuple[Block, ...]


def leaves(space: spaces.Space) -> dict[Path, Leaf]:
    """Return the parts of a space by their path, in order; the path of a space without parts is empty."""
    found: dict[Path, Leaf] = {}
    start = 0
    for path, part in _spaces(space).items():
        blocks = []
        stop = start
        for kind, size in _kinds(part):
            blocks.append(Block(kind, stop, stop + size))
            stop += size
        found[path] = Leaf(part, start, stop, tuple(blocks))
        start = stop
    return found


def to_env(space: spaces.Space, executed: np.ndarray) -> Any:
    """Turn executed actions into a batch of actions of the environment.

    :param space: the action space
    :param executed: ``(batch, m)``
    :return: an array ``(batch, ...)``, or for Tuple and Dict a list of tuples or dicts
    """
    parts = {path: _leaf_to_env(leaf, executed[:, leaf.start : leaf.stop]) for path, leaf in leaves(space).items()}
    if () in parts:
        return parts[()]
    return [_nested(space, (), {path: part[i] for path, part in parts.items()}) for i in range(len(executed))]


def from_env(space: spaces.Space, actions: Any) -> np.ndarray:
    """Turn a batch of actions of the environment into executed actions ``(batch, m)``; the inverse of :func:`to_env`.

    :param space: the action space
    :param actions: an array ``(batch, ...)``, or a list of tuples or dicts
    """
    columns = []
    for path, leaf in leaves(space).items():
        values = np.stack([np.asarray(_part(action, path)) for action in actions])
        columns.append(_leaf_from_env(leaf, values))
    return np.concatenate(columns, axis=1)


def _spaces(space: spaces.Space) -> dict[Path, Any]:
    """Return the parts of a space that are neither Tuple nor Dict, by path."""
    if isinstance(space, spaces.Tuple | spaces.Dict):
        items = space.items() if isinstance(space, spaces.Dict) else enumerate(space)
        return {(key, *path): part for key, inner in items for path, part in _spaces(inner).items()}
    return {(): space}


def _kinds(space: Any) -> list[tuple[Kind, int]]:
    if isinstance(space, spaces.Box):
        return [("box", int(np.prod(space.shape)))]
    if isinstance(space, spaces.MultiBinary):
        return [("gate", int(np.prod(space.shape)))]
    sizes = [space.n] if isinstance(space, spaces.Discrete) else space.nvec.ravel()
    return [("gate", 1) if size == 2 else ("choice", int(size)) for size in sizes]


def _leaf_to_env(leaf: Leaf, executed: np.ndarray) -> np.ndarray:
    """Executed actions ``(batch, size)`` of one part as a batch of its actions."""
    space = leaf.space
    if isinstance(space, spaces.Box):
        actions = space.low + 0.5 * (executed.reshape(-1, *space.shape) + 1) * (space.high - space.low)
        if not np.issubdtype(space.dtype, np.floating):
            actions = np.rint(actions)
        return np.clip(actions, space.low, space.high).astype(space.dtype)
    if isinstance(space, spaces.MultiBinary):
        return (executed > 0).reshape(-1, *space.shape).astype(space.dtype)
    columns = []
    for kind, start, stop in leaf.blocks:
        part = executed[:, start - leaf.start : stop - leaf.start]
        columns.append(part[:, 0] > 0 if kind == "gate" else part.argmax(axis=1))
    options = np.stack(columns, axis=1).astype(np.int64)
    return (options.reshape(-1, *(space.shape or ())) + space.start).astype(space.dtype)


def _leaf_from_env(leaf: Leaf, actions: np.ndarray) -> np.ndarray:
    """A batch of actions of one part as executed actions ``(batch, size)``."""
    space = leaf.space
    if isinstance(space, spaces.Box):
        width = (space.high - space.low).astype(np.float64)
        scaled = 2 * (actions - space.low) / np.where(width > 0, width, 1) - (width > 0)
        return scaled.reshape(len(actions), -1).astype(np.float32)
    flat = actions.reshape(len(actions), -1)
    if isinstance(space, spaces.MultiBinary):
        return np.where(flat > 0, 1, -1).astype(np.float32)
    options = flat - np.asarray(space.start).reshape(1, -1)
    columns = []
    for i, (kind, start, stop) in enumerate(leaf.blocks):
        option = options[:, i, None]
        one_hot = np.where(option > 0, 1, -1) if kind == "gate" else option == np.arange(stop - start)
        columns.append(one_hot.astype(np.float32))
    return np.concatenate(columns, axis=1)


def _nested(space: spaces.Space, path: Path, parts: dict[Path, Any]) -> Any:
    """Put the parts of one action into the tuples and dicts of its space."""
    if isinstance(space, spaces.Dict):
        return {key: _nested(part, (*path, key), parts) for key, part in space.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_nested(part, (*path, i), parts) for i, part in enumerate(space))
    return parts[path]


def _part(action: Any, path: Path) -> Any:
    for key in path:
        action = action[key]
    return action


def _at(ndim: int, axis: int, index: Any, others: Any = slice(None)) -> tuple[Any, ...]:
    """Return the index that applies ``index`` to one axis, and ``others`` to all others."""
    full = [others] * ndim
    full[axis] = index
    return tuple(full)


# Parameters of options


def _masks(space: spaces.Space, active_if: ActiveIf | None) -> tuple[Mask, ...]:
    if active_if is None:
        active_if = _parametrised(space)
    found = leaves(space)
    masks: list[Mask] = []
    for parameters, condition in active_if.items():
        path, option = _path(parameters), None
        source, *options = condition if isinstance(condition, list) else [condition]
        source_path = _path(source)
        option = options[0] if options else None
        targets = [leaf for name, leaf in found.items() if name[: len(path)] == path]
        if not targets or source_path not in found:
            known = ", ".join(map(repr, found))
            raise ValueError(f"active_if must name parts of the action space ({known}), got {parameters!r}: {source!r}")
        entries = [i for leaf in targets for i in range(leaf.start, leaf.stop)]
        masks += [
            Mask(i, *_condition(found[source_path], option, j, len(entries), parameters)) for j, i in enumerate(entries)
        ]
    return tuple(masks)


def _condition(leaf: Leaf, option: Any, j: int, n: int, name: Any) -> tuple[int, float, float]:
    """Return source, offset and slope of the mask of the j-th of n parameters."""
    space = leaf.space
    if isinstance(space, spaces.MultiBinary) and option is None:
        if leaf.stop - leaf.start != n:
            raise ValueError(f"active_if: {name!r} has {n} numbers, but there are {leaf.stop - leaf.start} bits")
        return leaf.start + j, 0.5, 0.5
    if not isinstance(space, spaces.Discrete) or option is None or not 0 <= option - space.start < space.n:
        raise ValueError(
            f"active_if: {name!r} must belong to [part, option] with a Discrete part and one of its options, or to a "
            f"MultiBinary part with one bit for each number, got option {option!r} of {space}"
        )
    if space.n == 2:
        return leaf.start, 0.5, 0.5 if option > space.start else -0.5
    return leaf.start + int(option - space.start), 0.0, 1.0


def _parametrised(space: spaces.Space) -> ActiveIf:
    """Return the conditions of ``Tuple(Discrete(n), Tuple(Box, ..., Box))``: the i-th box belongs to option i."""
    if not isinstance(space, spaces.Tuple) or len(space) != 2:
        return {}
    choice, parameters = space
    boxes = isinstance(parameters, spaces.Tuple) and all(isinstance(part, spaces.Box) for part in parameters)
    if not isinstance(choice, spaces.Discrete) or not boxes or len(parameters) != choice.n:
        return {}
    return {(1, i): [0, int(choice.start) + i] for i in range(int(choice.n))}


def _path(name: Any) -> Path:
    return name if isinstance(name, tuple) else (name,)


def per_entry(value: float | Sequence[float] | np.ndarray, decoded_value: float, layout: Layout) -> np.ndarray:
    """Return a scale for each entry, ``(m,)``.

    :param value: scale of numbers; or one scale for each of the m entries, which then all count
    :param decoded_value: scale of gates and choices
    :param layout: the layout
    """
    if np.ndim(value):
        return np.asarray(value, np.float32)
    return np.where(layout.decoded, decoded_value, value).astype(np.float32)
