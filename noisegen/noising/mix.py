"""Mixes: the steps of a recipe for one language, their order, strengths and writers.

A mix is made from the dictionaries and lists of a recipe file ("plain data"), and converted back.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeVar

from noisegen.errors import RecipeError, UsageError, did_you_mean
from noisegen.noising import registry
from noisegen.noising.rng import fraction

KINDS = ("sequence", "shuffle", "one_of")
STEPS_MAX = 62  # most steps of a mix: an edit lists its steps as bits of one 64-bit integer
MIX_KEYS = ("strength", "steps", "writers")
_MEMBER_OPTIONS = ("p", "weight")
_STEP_OPTIONS = (*_MEMBER_OPTIONS, "as")
M = TypeVar("M", bound="Mix")


@dataclass(frozen=True)
class Step:
    """One transform in a recipe, with its parameters and the chance `p` that a row gets it.

    `values` has the parameters that the recipe sets. `weight` is the weight of the step among the
    members of a `one_of` group. `alias` is the name that the recipe gives the step, if any. Writers
    and random streams refer to the step by its `label`, which is unique in the mix.
    """

    transform: str
    values: dict[str, Any] = field(default_factory=dict)
    p: Fraction = Fraction(1)
    weight: int = 1
    alias: str = ""
    label: str = ""


@dataclass(frozen=True)
class Group:
    """A group of members, which are steps or further groups.

    In a group of kind `sequence` all members run in order, in a `shuffle` all members run in random
    order. In a `one_of` a single member runs, which is drawn by the weights of the members. `p` is
    the chance that a row gets the group.
    """

    kind: str
    members: tuple["Step | Group", ...]
    p: Fraction = Fraction(1)
    weight: int = 1
    label: str = ""


Member = Step | Group


@dataclass(frozen=True)
class Habit:
    """How a writer uses a step: the chance `p` that a row gets it, and a factor for its rates."""

    p: Fraction
    strength: Fraction = Fraction(1)


@dataclass(frozen=True)
class Writer:
    """A style of writing that a row may draw, with a chance proportional to `weight`.

    `habits` maps the label of a step to a `Habit`: how often and how strongly the writer uses it.
    """

    name: str
    weight: int
    habits: dict[str, Habit]


@dataclass(frozen=True)
class Mix:
    """A named mix of steps for one language.

    `strength` has (factor, weight) pairs. For each rate of a step, each row draws one of these
    factors, by weight, and multiplies the rate by it if the rate is below 1. If there are
    `writers`, each row also draws a writer; the writer's habits replace the chances `p` of steps.
    """

    name: str
    root: Member
    strength: tuple[tuple[Fraction, int], ...] = ((Fraction(1), 1),)
    writers: tuple[Writer, ...] = ()

    def steps(self) -> list[Step]:
        """Return all steps in the order of the recipe file."""
        return [step for step, _ in steps_below(self.root)]

    @cached_property
    def factors(self) -> tuple[Fraction, ...]:
        """All factors that may multiply a rate.

        First come the factors in `strength`, then their products with the factors of all habits.
        """
        drawn = [factor for factor, _ in self.strength]
        strengths = [habit.strength for writer in self.writers for habit in writer.habits.values()]
        products = (factor * strength for strength in strengths for factor in drawn)
        return tuple(dict.fromkeys([*drawn, *products]))

    def with_writers(self, change: Callable[[Writer], Writer]) -> Self:
        """Return a copy of the mix in which each writer is replaced by `change(writer)`."""
        return replace(self, writers=tuple(map(change, self.writers)))

    def with_habits(self, labels: Collection[str]) -> Self:
        """Return a copy of the mix in which writers keep only habits for steps in `labels`."""

        def with_listed(writer: Writer) -> Writer:
            habits = {label: habit for label, habit in writer.habits.items() if label in labels}
            return replace(writer, habits=habits)

        return self.with_writers(with_listed)

    def to_plain(self) -> dict[str, Any]:
        """Return the mix as plain data, from which `read_mix` makes an equal mix."""
        strength = {_number(factor): weight for factor, weight in self.strength}
        content = {"strength": strength, "steps": _plain_member(self.root)["sequence"]}
        if self.writers:
            content["writers"] = {writer.name: _plain_writer(writer) for writer in self.writers}
        return content


def step_values(step: Step) -> dict[str, Any]:
    """Return the values of all parameters of a step, given or default.

    Raises UsageError for an unknown parameter or a wrong value.
    """
    return registry.get(step.transform).values(step.values)


def chance_of(mix: Mix, label: str) -> float:
    """Return the chance that a row gets the step with this label, over all writers of a mix."""
    (p,) = [float(step.p) for step in mix.steps() if step.label == label]
    total = sum(writer.weight for writer in mix.writers)
    if not total:
        return p
    own = (
        (writer.weight, float(writer.habits[label].p) if label in writer.habits else p)
        for writer in mix.writers
    )
    return sum(weight * chance for weight, chance in own) / total


def over_members(member: Member, change: Callable[[Member], Member | None]) -> Member:
    """Return a group with each member replaced by `change(member)`, or dropped if that is None.

    A step, which has no members, is returned as it is.
    """
    if isinstance(member, Step):
        return member
    changed = map(change, member.members)
    return replace(member, members=tuple(part for part in changed if part is not None))


def steps_below(member: Member, p: float = 1.0) -> Iterator[tuple[Step, float]]:
    """Yield the steps in a member, each with the chance that a row gets it.

    The chance is the product of `p`, the step's own chance, and the chances of all groups that
    contain the step, up to `member`. The weights in `one_of` groups are ignored.
    """
    p *= float(member.p)
    if isinstance(member, Step):
        yield member, p
        return
    for part in member.members:
        yield from steps_below(part, p)


def checked(mix: M) -> M:
    """Return the mix with a unique label for each step (fing, fing#2): the name of its streams.

    Raises RecipeError for too many steps and UsageError for a wrong parameter.
    """
    if len(mix.steps()) > STEPS_MAX:
        raise RecipeError(f"recipe {mix.name} has over {STEPS_MAX} steps")
    for step in mix.steps():
        step_values(step)
    seen: Counter[str] = Counter()

    def labelled(member: Member) -> Member:
        name = member.kind if isinstance(member, Group) else member.alias or member.transform
        seen[name] += 1
        label = name if seen[name] == 1 else f"{name}#{seen[name]}"
        return over_members(replace(member, label=label), labelled)

    return replace(mix, root=labelled(mix.root))


def _number(value: Fraction) -> float | int:
    return int(value) if value.denominator == 1 else float(value)


def _plain_member(member: Member) -> dict[str, Any]:
    options: dict[str, Any] = {} if member.p == 1 else {"p": _number(member.p)}
    if member.weight != 1:
        options["weight"] = member.weight
    if isinstance(member, Group):
        return {member.kind: list(map(_plain_member, member.members)), **options}
    if member.alias:
        options["as"] = member.alias
    return {member.transform: {**options, **member.values}}


def _plain_writer(writer: Writer) -> dict[str, Any]:
    habits = {
        label: {"p": _number(habit.p), "strength": _number(habit.strength)}
        for label, habit in writer.habits.items()
    }
    return {"weight": writer.weight, "habits": habits}


def read_mix(content: Mapping[str, Any], name: str, where: str) -> Mix:
    """Read a mix (strength, steps and writers) from plain data; raises RecipeError.

    `where` names the recipe file in errors.
    """
    members = _members(content, "steps", where, " step ")
    try:
        listed = dict(content.get("strength") or {1: 1}).items()
        strength = tuple((fraction(factor), int(weight)) for factor, weight in listed)
    except (TypeError, ValueError, OverflowError) as error:
        raise RecipeError(f"{where}: strength must map factors to whole weights") from error
    if any(factor < 0 or weight < 1 for factor, weight in strength):
        raise RecipeError(f"{where}: strength needs factors of at least 0, weights of at least 1")
    mix = checked(Mix(name, Group("sequence", members), strength))
    return replace(mix, writers=tuple(_writers(content.get("writers"), mix, where)))


def _writers(content: object, mix: Mix, where: str) -> Iterator[Writer]:
    """Yield the writers of a mix, given as plain data; raises RecipeError for an unknown step."""
    if content is not None and (not isinstance(content, dict) or not content):
        raise RecipeError(f"{where}: writers must map names to their weight and habits")
    labels = [step.label for step in mix.steps()]
    for name, given in (content or {}).items():
        yield _writer(str(name), given, labels, f"{where}: writer {name!r}")


def _writer(name: str, given: object, labels: Sequence[str], where: str) -> Writer:
    """Read the writer `name` of a mix; `labels` are the labels of the mix's steps.

    Raises RecipeError, and begins its message with `where`.
    """
    if not isinstance(given, dict) or not isinstance(given.get("habits", {}), dict):
        raise RecipeError(f"{where} needs 'weight: N' and 'habits: {{STEP: p, ...}}'")
    check_keys(given, ("weight", "habits"), f"{where} has no option")
    habits = {}
    for label, value in (given.get("habits") or {}).items():
        if label not in labels:
            near = did_you_mean(str(label), labels) or f"; its steps: {', '.join(labels)}"
            raise RecipeError(f"{where}: no step {label!r}{near}")
        habits[label] = _habit(value, f"{where}, {label}")
    return Writer(name, read_odds(given, where)[1], habits)


def _habit(value: object, where: str) -> Habit:
    """Read a habit from a number (the chance) or a mapping with p and strength.

    Raises RecipeError; its message begins with `where`.
    """
    options = value if isinstance(value, dict) else {"p": value}
    check_keys(options, ("p", "strength"), f"{where}: no option")
    chance, _ = read_odds(options, where)
    return Habit(chance, read_factor(options.get("strength", 1), f"{where}: strength"))


def read_factor(given: object, where: str) -> Fraction:
    """Return a number of at least 0 as a fraction; raises RecipeError for anything else."""
    try:
        factor = fraction(given)  # type: ignore[arg-type]
    except ValueError as error:
        raise RecipeError(f"{where} = {given!r} is not a number") from error
    if factor < 0:
        raise RecipeError(f"{where} = {given} is below 0")
    return factor


def read_odds(options: Mapping[str, Any], where: str) -> tuple[Fraction, int]:
    """Return the chance `p` and the `weight` of a step or group from its options (default: 1).

    Raises RecipeError for a wrong value.
    """
    p, weight = options.get("p", 1), options.get("weight", 1)
    try:
        chance = fraction(p)
    except ValueError as error:
        raise RecipeError(f"{where}: p = {p!r} is not a number") from error
    if not 0 <= chance <= 1:
        raise RecipeError(f"{where}: p = {p} is outside 0 to 1")
    if not str(weight).isdecimal() or int(weight) < 1:
        raise RecipeError(f"{where}: weight = {weight!r} is not a whole number of at least 1")
    return chance, int(weight)


def check_keys(content: Mapping[object, object], known: Collection[str], wrong: str) -> None:
    """Raise RecipeError for a key that is not `known`; its message begins with `wrong`."""
    if unknown := next((key for key in content if key not in known), None):
        raise RecipeError(f"{wrong} {unknown!r}")


def _members(
    content: Mapping[str, Any], kind: str, where: str, joint: str = "."
) -> tuple[Member, ...]:
    listed = content.get(kind)
    if not isinstance(listed, list) or not listed:
        raise RecipeError(f"{where}: {kind} must be a list of transforms")
    return tuple(_member(item, f"{where}{joint}{number}") for number, item in enumerate(listed, 1))


def _member(item: object, where: str) -> Member:
    if isinstance(item, str):
        return _step(item, {}, where)
    entries = item if isinstance(item, dict) else {}
    kind = next((kind for kind in KINDS if kind in entries), None)
    if kind is None:
        ((name, options),) = entries.items() if len(entries) == 1 else [("", None)]
        if not name or not isinstance(options or {}, dict):
            ways = "a transform's name, 'name: {parameter: value}' or a group"
            raise RecipeError(f"{where}: {item!r} is not {ways}")
        return _step(str(name), options or {}, where)
    members = _members(entries, kind, where)
    check_keys(entries, (kind, *_MEMBER_OPTIONS), f"{where}: {kind} has no option")
    return Group(kind, members, *read_odds(entries, where))


def _step(name: str, options: Mapping[str, Any], where: str) -> Step:
    values = {str(key): value for key, value in options.items() if key not in _STEP_OPTIONS}
    name = registry.own_name(name)
    try:
        read = registry.get(name).values(values)
    except UsageError as error:
        raise RecipeError(f"{where}: {error}") from error
    alias = str(options.get("as", ""))
    return Step(name, {key: read[key] for key in values}, *read_odds(options, where), alias)


def parse_step(text: str) -> Step:
    """Read a step from NAME[:k=v,...], as on the command line.

    The name itself may have colons (nlaugmenter:X). Raises UsageError.
    """
    name, _, options = text.rpartition(":") if "=" in text else (text, "", "")
    pairs = [pair.partition("=") for pair in options.split(",") if pair]
    if not name or any(not equals for _, equals, _ in pairs):
        raise UsageError(f"cannot read {text!r}: write NAME or NAME:parameter=value,...")
    values = {key.strip(): value for key, _, value in pairs}
    if len(values) < len(pairs):
        raise UsageError(f"cannot read {text!r}: it gives a parameter twice")
    refuse_folder(name)
    return _step(name, values, f"step {text!r}")


# Files in folders that users take for recipes or transforms, and the steps that read the folders
_FOLDERS = {"profile.json": "channel:profile", "dictionary.parquet": "wiki:dictionary"}


def refuse_folder(name: str) -> None:
    """Raise UsageError if the name of a recipe or transform is a folder of learned noise instead.

    The error names the step that reads the folder. A transform with this name goes first.
    """
    for file, step in _FOLDERS.items():
        if (Path(name) / file).is_file() and not registry.is_name(name):
            raise UsageError(f"{name!r} is a folder with {file}: use it as -t {step}={name}")


def in_order(steps: Sequence[Step | str]) -> Group:
    """Return a group that applies steps in the given order.

    Each step is a Step or a string NAME[:parameter=value,...].
    """
    members = [parse_step(step) if isinstance(step, str) else step for step in steps]
    return Group("sequence", tuple(members))
