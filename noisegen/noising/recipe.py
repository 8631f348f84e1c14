"""Recipes: which transforms a row gets, in which order, how strong; YAML both ways."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from noisegen.errors import RecipeError, UsageError, did_you_mean
from noisegen.noising import registry
from noisegen.noising.rng import fraction
from noisegen.text.languages import normalize_language
from noisegen.text.resources import RECIPES

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = ("sequence", "shuffle", "one_of")
STEPS_MAX = 62  # the makers of an edit are bits of a 64-bit integer
FILE_BYTES_MAX, NODES_MAX, DEPTH_MAX = 1 << 17, 10_000, 40  # of a recipe file, its aliases followed
NUMBER_MAX = 400  # characters of a number: Python prints one of 4,300 digits at most
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
FILE_ENDINGS = (".yaml", ".yml")
_MIX = ("strength", "steps", "writers", "languages")
_KEYS = ("name", "extends", "set", "scale", *_MIX)
_OPTIONS = ("p", "weight")
RATE_MAX = 0.9999  # a rate of 1 would be a rule, which the strengths of a recipe do not change
DIGITS = 6  # significant digits of a chance in a recipe file


@dataclass(frozen=True)
class Step:
    """One transform: the chance `p` that a row gets it, and its parameters where given."""

    transform: str
    values: dict[str, Any] = field(default_factory=dict)
    p: Fraction = Fraction(1)
    weight: int = 1
    alias: str = ""  # a name of its own, by which writers call it
    label: str = ""


@dataclass(frozen=True)
class Group:
    """Members run in order (sequence), in uniform order (shuffle), or only one of them (one_of)."""

    kind: str
    members: tuple["Step | Group", ...]
    p: Fraction = Fraction(1)
    weight: int = 1
    label: str = ""


Member = Step | Group


@dataclass(frozen=True)
class Habit:
    """How a writer has a step: with chance `p`, and with so many times its rates."""

    p: Fraction
    strength: Fraction = Fraction(1)


@dataclass(frozen=True)
class Writer:
    """A style of a recipe, which `weight` makes frequent: what it does to the steps it names."""

    name: str
    weight: int
    habits: dict[str, Habit]


class NoiseOptions(TypedDict, total=False):
    """How text is noised, see `engine.noise`."""

    lang: str
    protect: str
    tagger: str


@dataclass(frozen=True)
class Recipe:
    """A named mix. `strength` maps factors of the rates below 1 to weights; each row draws one.

    Where there are `writers`, each row draws one of them too, and has the steps that this writer
    names as `Habit` says, the others as they stand. `languages` have a mix of their own instead.
    """

    name: str
    root: Member
    strength: tuple[tuple[Fraction, int], ...] = ((Fraction(1), 1),)
    writers: tuple[Writer, ...] = ()
    languages: dict[str, "Recipe"] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash(self.key)

    @classmethod
    def of(cls, steps: Sequence["Step | str"], name: str = "steps") -> "Recipe":
        """Return a recipe that applies steps in order, each a Step or NAME[:parameter=value]."""
        members = tuple(parse_step(step) if isinstance(step, str) else step for step in steps)
        return _checked(cls(name, Group("sequence", members)))

    @classmethod
    def from_yaml(cls, path: str | Path, extended_by: Sequence[str] = ()) -> "Recipe":
        """Read a recipe file; raises RecipeError saying which part is wrong."""
        try:
            with Path(path).open("rb") as file:
                content = file.read(FILE_BYTES_MAX + 1)
            if len(content) > FILE_BYTES_MAX:
                raise ValueError(f"it is over {FILE_BYTES_MAX >> 10} KiB")
            return parse(content.decode(), str(path), extended_by)
        except (OSError, ValueError) as error:
            raise RecipeError(f"cannot read recipe {str(path)!r}: {error}") from error

    @classmethod
    def named(cls, name: str | Path) -> "Recipe":
        """Return a packaged recipe, that of a YAML file, or that of one NAME[:parameter=value]."""
        name = str(name) if isinstance(name, Path) else name
        if not isinstance(name, str):
            ways = "give a name, a .yaml file, NAME:parameter=value or a Recipe"
            raise UsageError(f"{name!r:.60} is not a recipe: {ways}")
        if name.endswith(FILE_ENDINGS):
            return cls.from_yaml(name)
        if name in recipe_names():
            return _packaged(RECIPES / f"{name}.yaml")
        if ":" in name or registry.is_name(name):
            return cls.of([parse_step(name)], name)
        near = did_you_mean(name, recipe_names() + registry.names())
        known = near or f"; recipes: {', '.join(recipe_names())}, or give a .yaml file"
        raise UsageError(f"no recipe or transform named {name!r}{known}")

    @classmethod
    def from_dict(cls, content: object, where: str = "recipe") -> "Recipe":
        """Return the recipe of plain data, as `to_dict` gives it; raises RecipeError."""
        return _of_plain(content, where, ())

    def to_yaml(self) -> str:
        """Return the recipe as YAML that `from_yaml` reads."""
        import yaml

        return yaml.safe_dump(self.to_dict(), sort_keys=False, allow_unicode=True)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as in the YAML file."""

        def number(value: Fraction) -> float | int:
            return int(value) if value.denominator == 1 else float(value)

        def plain(member: Member) -> dict[str, Any]:
            options: dict[str, Any] = {} if member.p == 1 else {"p": number(member.p)}
            options |= {} if member.weight == 1 else {"weight": member.weight}
            if isinstance(member, Step):
                options |= {"as": member.alias} if member.alias else {}
                return {member.transform: {**options, **member.values}}
            return {member.kind: [plain(part) for part in member.members], **options}

        def of_writer(writer: Writer) -> dict[str, Any]:
            habits = {
                name: {"p": number(habit.p), "strength": number(habit.strength)}
                for name, habit in writer.habits.items()
            }
            return {"weight": writer.weight, "habits": habits}

        strength = {number(factor): weight for factor, weight in self.strength}
        content = {"name": self.name, "strength": strength, "steps": plain(self.root)["sequence"]}
        if self.writers:
            content["writers"] = {writer.name: of_writer(writer) for writer in self.writers}
        if self.languages:
            content["languages"] = {lang: mix.to_dict() for lang, mix in self.languages.items()}
            for mix in content["languages"].values():
                del mix["name"]
        return content

    def steps(self) -> list[Step]:
        """Return all steps, in the order of the file, but not those of `languages`."""
        return [step for step, _ in _reached(self.root, 1.0)]

    @property
    def mixes(self) -> list["Recipe"]:
        """The mix of all languages, then those that some have of their own."""
        return [self, *self.languages.values()]

    @property
    def factors(self) -> tuple[Fraction, ...]:
        """The factors of `strength`, then those that writers make of them."""
        drawn = [factor for factor, _ in self.strength]
        strengths = [habit.strength for writer in self.writers for habit in writer.habits.values()]
        products = (factor * strength for strength in strengths for factor in drawn)
        return tuple(dict.fromkeys([*drawn, *products]))

    def with_values(self, settings: Mapping[str, object]) -> "Recipe":
        """Return the recipe with parameters set, a p for all writers: {'leet.rate': 0.05}."""
        steps = [step for mix in self.mixes for step in mix.steps()]
        known = [name for step in steps for name in (step.transform, step.label)]
        values: dict[str, dict[str, Any]] = {}
        for key, value in settings.items():
            name, dot, parameter = key.rpartition(".")
            if not dot or name not in known:
                labels = ", ".join(dict.fromkeys(step.label for step in steps))
                near = did_you_mean(name or key, known) or f"; its steps: {labels}"
                raise UsageError(f"cannot set {key!r}: recipe {self.name} has no such step{near}")
            values.setdefault(name, {})[parameter] = value

        def given_for(step: Step) -> dict[str, Any]:
            return values.get(step.transform, {}) | values.get(step.label, {})

        def updated(member: Member) -> Member:
            if isinstance(member, Group):
                return _over_members(member, updated)
            if not (of_step := given_for(member)):
                return member
            given = {"p": member.p, **of_step}
            p, _ = _odds(given, f"{member.transform}.p")
            del given["p"]
            read = registry.get(member.transform).values(given)
            return replace(member, p=p, values=member.values | {key: read[key] for key in given})

        def changed(mix: Recipe) -> Recipe:
            mix = replace(mix, root=updated(mix.root))
            chances = {step.label: step.p for step in mix.steps() if "p" in given_for(step)}

            def with_chances(writer: Writer) -> Writer:
                habits = {
                    label: replace(habit, p=chances.get(label, habit.p))
                    for label, habit in writer.habits.items()
                }
                return replace(writer, habits=habits)

            return _checked(replace(mix, writers=tuple(map(with_chances, mix.writers))))

        return self.each_mix(changed)

    def with_habits(self, labels: Collection[str]) -> "Recipe":
        """Return the mix with writers who have habits of these steps alone."""
        return replace(self, writers=tuple(
            replace(one, habits={key: one.habits[key] for key in one.habits if key in labels})
            for one in self.writers
        ))  # fmt: skip

    def each_mix(self, change: Callable[["Recipe"], "Recipe"]) -> "Recipe":
        """Return the recipe with its mix and those of its languages changed."""
        languages = {lang: change(mix) for lang, mix in self.languages.items()}
        return replace(change(self), languages=languages)

    def mix_of(self, lang: str) -> "Recipe":
        """Return what the recipe is for a language: a mix of its own, or that of all others."""
        own = self.languages.get(normalize_language(lang)) if self.languages else None
        return own or replace(self, languages={})

    def for_language(self, lang: str) -> tuple["Recipe", list[str]]:
        """Return `mix_of` a language without the steps that lack data for it, and their names."""
        mix = self.mix_of(lang)
        names = [step.transform for step in mix.steps()]
        left_out = [name for name in names if not registry.get(name).has_language(lang)]
        if len(left_out) == len(names):
            registry.get(left_out[0]).check_language(lang)

        def kept(member: Member) -> Member | None:  # labels stay, so the others keep their noise
            dropped = isinstance(member, Step) and member.transform in left_out
            return None if dropped else _over_members(member, kept)

        recipe = replace(mix, root=_over_members(mix.root, kept))
        return recipe.with_habits({step.label for step in recipe.steps()}), left_out

    def note_on(self, lang: str) -> str:
        """Return one line on the transforms without data for a language; '' if all have some."""
        names = dict.fromkeys(step.transform for step in self.mix_of(lang).steps())
        missing = [name for name in names if not registry.get(name).has_language(lang)]
        if not missing:
            return ""
        share = f"{len(missing)} of its {len(names)} transforms"
        return f"{self.name} leaves out {share} in {lang!r} (no data): {', '.join(missing)}"

    @cached_property
    def key(self) -> str:
        """The recipe as JSON, of which `from_dict` makes it again."""
        return json.dumps(self.to_dict(), default=str)

    @property
    def digest(self) -> str:
        """A hash of all that decides the noise: steps with every parameter, order, strengths."""
        full = {**self.to_dict(), "values": [step_values(step) for step in self.steps()]}
        if self.languages:
            full["languages"] = {lang: mix.digest for lang, mix in self.languages.items()}
        del full["name"]
        content = json.dumps(full, sort_keys=True, default=str)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    if TYPE_CHECKING:  # engine.py, which runs recipes, adds it

        def noise_batch(
            self, table: "pa.Table", seed: int = 0, *, edits: bool = False,
            **options: Unpack[NoiseOptions],
        ) -> "pa.Table":  # fmt: skip
            """Return the table with noisy and transforms (and edits) added."""


def recipe_names() -> list[str]:
    """Return the names of the packaged recipes."""
    return sorted(path.stem for path in RECIPES.glob("*.yaml"))


def step_values(step: Step) -> dict[str, Any]:
    """Return every parameter of a step, defaults included; raises UsageError for unknown ones."""
    return registry.get(step.transform).values(step.values)


def parse_step(text: str) -> Step:
    """Read NAME[:k=v,...] of the command line; a name may hold colons itself (nlaugmenter:X)."""
    name, _, options = text.rpartition(":") if "=" in text else (text, "", "")
    pairs = [pair.partition("=") for pair in options.split(",") if pair]
    if any(not equals for _, equals, _ in pairs):
        raise UsageError(f"cannot read {text!r}: write NAME or NAME:parameter=value,...")
    values = {key.strip(): value for key, _, value in pairs}
    if len(values) < len(pairs):
        raise UsageError(f"cannot read {text!r}: it gives a parameter twice")
    return _step(name, values, f"step {text!r}")


@cache
def _packaged(path: Path) -> Recipe:
    return Recipe.from_yaml(path)


def parse(text: str, where: str, extended_by: Sequence[str] = ()) -> Recipe:
    """Read the YAML of a recipe; raises RecipeError saying which part is wrong.

    `extended_by` names the recipes that extend this one, which it may not extend itself.
    """
    return _of_plain(read_yaml(text, where), where, extended_by)


def _of_plain(content: object, where: str, extended_by: Sequence[str]) -> Recipe:
    if not isinstance(content, dict):
        raise RecipeError(f"{where}: a recipe is a mapping with name and steps")
    _check_keys(content, _KEYS, f"{where}: unknown key")
    name = str(content.get("name") or Path(where).stem)
    if "extends" in content:
        return _extended(content, name, where, [*extended_by, where])
    if alone := sorted({"set", "scale"} & set(content)):
        raise RecipeError(f"{where}: {' and '.join(alone)}: only in a recipe that extends another")
    recipe = _mix(content, name, where)
    return replace(recipe, languages=dict(_languages(content, name, where)))


def _languages(content: Mapping[str, Any], name: str, where: str) -> Iterator[tuple[str, Recipe]]:
    """Yield the languages that have a mix of their own, with it; raises RecipeError."""
    listed = content.get("languages", {})
    if not isinstance(listed, dict) or ("languages" in content and not listed):
        raise RecipeError(f"{where}: languages must map codes to their steps and writers")
    codes = set[str]()
    for lang, own in listed.items():
        place = f"{where}: language {lang!r}"
        if not isinstance(own, dict):
            raise RecipeError(f"{place} needs 'steps: [...]', as a recipe")
        _check_keys(own, _MIX[:-1], f"{place} has no option")
        try:
            code = normalize_language("no" if lang is False else str(lang))  # as YAML reads no
        except UsageError as error:
            raise RecipeError(f"{where}: {error}") from error
        if code in codes:
            raise RecipeError(f"{place} is {code!r}, which has a mix already; drop one of them")
        codes.add(code)
        inherited = {"strength": content.get("strength"), **own}
        yield code, _mix(inherited, name, f"{where}: {lang}")


def _mix(content: Mapping[str, Any], name: str, where: str) -> Recipe:
    """Read strength, steps and writers; raises RecipeError."""
    members = _members(content, "steps", where, " step ")
    try:
        listed = dict(content.get("strength") or {1: 1}).items()
        strength = tuple((fraction(factor), int(weight)) for factor, weight in listed)
    except (TypeError, ValueError, OverflowError) as error:
        raise RecipeError(f"{where}: strength must map factors to whole weights") from error
    if any(factor < 0 or weight < 1 for factor, weight in strength):
        raise RecipeError(f"{where}: strength needs factors of at least 0, weights of at least 1")
    recipe = _checked(Recipe(name, Group("sequence", members), strength))
    return replace(recipe, writers=tuple(_writers(content.get("writers"), recipe, where)))


def _writers(content: object, recipe: Recipe, where: str) -> Iterator[Writer]:
    """Yield the writers of a recipe; raises RecipeError."""
    if content is not None and (not isinstance(content, dict) or not content):
        raise RecipeError(f"{where}: writers must map names to their weight and habits")
    labels = [step.label for step in recipe.steps()]
    for name, given in (content or {}).items():
        place = f"{where}: writer {name!r}"
        if not isinstance(given, dict) or not isinstance(given.get("habits", {}), dict):
            raise RecipeError(f"{place} needs 'weight: N' and 'habits: {{STEP: p, ...}}'")
        _check_keys(given, ("weight", "habits"), f"{place} has no option")
        habits = {}
        for label, value in (given.get("habits") or {}).items():
            if label not in labels:
                near = did_you_mean(str(label), labels) or f"; its steps: {', '.join(labels)}"
                raise RecipeError(f"{place}: no step {label!r}{near}")
            options = value if isinstance(value, dict) else {"p": value}
            _check_keys(options, ("p", "strength"), f"{place}, {label}: no option")
            chance, _ = _odds(options, f"{place}, {label}")
            strength = _factor(options.get("strength", 1), f"{place}, {label}: strength")
            habits[label] = Habit(chance, strength)
        yield Writer(str(name), _odds(given, place)[1], habits)


def _factor(given: object, where: str) -> Fraction:
    try:
        factor = fraction(given)  # type: ignore[arg-type]
    except ValueError as error:
        raise RecipeError(f"{where} = {given!r} is not a number") from error
    if factor < 0:
        raise RecipeError(f"{where} = {given} is below 0")
    return factor


def _extended(
    content: Mapping[str, Any], own_name: str, where: str, extended_by: Sequence[str]
) -> Recipe:
    """Return the recipe that another extends, with the factor and the numbers that this one has."""
    if own := sorted(({*_MIX} - {"writers"}) & content.keys()):
        raise RecipeError(f"{where}: a recipe that extends another has no {' or '.join(own)}")
    name, settings = content["extends"], content.get("set") or {}
    if not isinstance(name, str):
        raise RecipeError(f"{where}: extends = {name!r} is not the name of a recipe or file")
    if name in extended_by:
        raise RecipeError(f"{where}: extends {name!r}, which extends it in turn")
    if not isinstance(settings, dict):
        raise RecipeError(f"{where}: set must map TRANSFORM.PARAM to values")
    settings = {str(key): value for key, value in settings.items()}
    factor = float(_factor(content.get("scale", 1), f"{where}: scale"))
    try:
        is_file = name.endswith(FILE_ENDINGS)
        base = Recipe.from_yaml(name, extended_by) if is_file else Recipe.named(name)
        base = scaled(base, factor).with_values(settings)
        base = _weighted(base, content.get("writers") or {}, where)
        return base.each_mix(lambda mix: replace(mix, name=own_name))
    except UsageError as error:
        raise RecipeError(f"{where}: {error}") from error


def _weighted(recipe: Recipe, weights: Mapping[str, object], where: str) -> Recipe:
    """Return a recipe with other weights of its writers, those of languages too."""
    if not isinstance(weights, dict):
        raise RecipeError(f"{where}: writers must map names to weights")
    names = dict.fromkeys(writer.name for mix in recipe.mixes for writer in mix.writers)
    if unknown := next((name for name in weights if name not in names), None):
        near = did_you_mean(str(unknown), names) or f"; its writers: {', '.join(names)}"
        raise RecipeError(f"{where}: {recipe.name} has no writer {unknown!r}{near}")
    odds = {name: _odds({"weight": n}, f"{where}: writer {name!r}") for name, n in weights.items()}

    def weighted(writer: Writer) -> Writer:
        return replace(writer, weight=odds[writer.name][1]) if writer.name in odds else writer

    return recipe.each_mix(
        lambda mix: replace(mix, writers=tuple(weighted(writer) for writer in mix.writers))
    )


def _check_keys(content: Mapping[object, object], known: Collection[str], wrong: str) -> None:
    """Raise RecipeError, beginning with `wrong`, for the first unknown key."""
    if unknown := next((key for key in content if key not in known), None):
        raise RecipeError(f"{wrong} {unknown!r}")


def read_yaml(text: str, where: str) -> Any:
    """Return the content of a YAML document of bounded size; raises RecipeError."""
    import yaml

    try:
        loader = _loader()(text)
        node = loader.get_single_node()
        _check_size(node, where)
        return node and loader.construct_document(node)
    except RecursionError as error:
        raise RecipeError(f"{where} is nested over {DEPTH_MAX} deep") from error
    except (yaml.YAMLError, ValueError) as error:
        raise RecipeError(f"{where} is not YAML: {' '.join(str(error).split())}") from error
    except (LookupError, AttributeError) as error:  # !!bool maybe
        raise RecipeError(f"{where} is not YAML: a value does not fit its tag") from error


def _check_size(node: Any, where: str) -> None:
    """Raise RecipeError for a document too deep, of too many nodes or with endless numbers.

    A node counts as often as aliases refer to it; one that contains itself has no end of depth.
    """
    nodes = [(node, 1)] if node else []
    for _ in range(NODES_MAX):
        if not nodes:
            return
        node, depth = nodes.pop()
        if depth > DEPTH_MAX:
            raise RecipeError(f"{where} is nested over {DEPTH_MAX} deep, or contains itself")
        if node.tag in _NUMBERS and len(node.value) > NUMBER_MAX:
            raise RecipeError(f"{where} has a number of {len(node.value):,} characters")
        content = [] if isinstance(node.value, str) else node.value
        below = chain.from_iterable(item if isinstance(item, tuple) else [item] for item in content)
        nodes += [(child, depth + 1) for child in below]
    raise RecipeError(f"{where} has over {NODES_MAX:,} nodes, aliases followed")


@cache
def _loader() -> type:
    """Return YAML's safe loader, refusing a key that is given twice."""
    import yaml

    class UniqueKeys(yaml.SafeLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            if twice := next((key for key in keys if keys.count(key) > 1), None):
                raise yaml.YAMLError(f"{twice!r} is given twice")
            return super().construct_mapping(node, deep)

    return UniqueKeys


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
    _check_keys(entries, (kind, *_OPTIONS), f"{where}: {kind} has no option")
    return Group(kind, members, *_odds(entries, where))


def _step(name: str, options: Mapping[str, Any], where: str) -> Step:
    values = {str(key): value for key, value in options.items() if key not in (*_OPTIONS, "as")}
    try:
        read = registry.get(name).values(values)
    except UsageError as error:
        raise RecipeError(f"{where}: {error}") from error
    alias = str(options.get("as", ""))
    return Step(name, {key: read[key] for key in values}, *_odds(options, where), alias)


def _odds(options: Mapping[str, Any], where: str) -> tuple[Fraction, int]:
    """Return the chance and the weight of a member."""
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


def _over_members(member: Member, change: Callable[[Member], Member | None]) -> Member:
    """Return a member with those directly below it changed; None drops one, a step has none."""
    if isinstance(member, Step):
        return member
    changed = map(change, member.members)
    return replace(member, members=tuple(part for part in changed if part is not None))


def _reached(member: Member, p: float) -> Iterator[tuple[Step, float]]:
    """Yield the steps below a member, each with the product of the p on the way to it."""
    p *= float(member.p)
    if isinstance(member, Step):
        yield member, p
        return
    for part in member.members:
        yield from _reached(part, p)


def _checked(recipe: Recipe) -> Recipe:
    """Give every member a label (fing, fing#2: streams must differ) and check the recipe."""
    if len(recipe.steps()) > STEPS_MAX:
        raise RecipeError(f"recipe {recipe.name} has over {STEPS_MAX} steps")
    for step in recipe.steps():
        step_values(step)
    seen: Counter[str] = Counter()

    def labelled(member: Member) -> Member:
        name = member.kind if isinstance(member, Group) else member.alias or member.transform
        seen[name] += 1
        label = name if seen[name] == 1 else f"{name}#{seen[name]}"
        return _over_members(replace(member, label=label), labelled)

    return replace(recipe, root=labelled(recipe.root))


def scaled(recipe: Recipe, factor: float) -> Recipe:
    """Return the recipe with `factor` times the noise, as far as its chances can grow.

    The factor multiplies how much noise a step makes, p times rate. In a fixed order: first the
    chance `p` of what is reached first (a group, then its members) where it is below 1, until it is
    1; what is left of the factor goes to the rates of the step, those above 0 and below 1. A step
    with p = 1 and only rates of 1, which are rules and no chances, has nothing but its p. What
    writers make of a step, and the mixes of languages, are scaled in the same way.
    """
    return recipe if factor == 1 else recipe.each_mix(lambda mix: _scaled_mix(mix, factor))


def _scaled_mix(recipe: Recipe, factor: float) -> Recipe:
    named = {label for writer in recipe.writers for label in writer.habits}
    left: dict[str, float] = {}  # of the factor, for the members named

    def rounded(chance: float) -> float:
        return float(f"{chance:.{DIGITS}g}")

    def scaled_member(member: Member, factor: float) -> Member:
        left[member.label] = factor
        rates = free_rates(member) if isinstance(member, Step) else {}
        if member.label in named:
            rates = {}
        if member.p < 1 or (isinstance(member, Step) and not rates):
            wanted = float(member.p) * factor
            factor = max(1.0, wanted) if member.p else factor  # what is left of it
            member = replace(member, p=Fraction(str(rounded(min(1.0, wanted)))))
        if isinstance(member, Step):
            grown = {name: rounded(min(RATE_MAX, rate * factor)) for name, rate in rates.items()}
            return replace(member, values={**member.values, **grown})
        return _over_members(member, lambda part: scaled_member(part, factor))

    def scaled_habit(habit: Habit, factor: float) -> Habit:
        wanted = float(habit.p) * factor
        p, strength = min(1.0, wanted), float(habit.strength) * max(1.0, wanted)
        return Habit(*(Fraction(str(rounded(number))) for number in (p, strength)))

    root = _over_members(recipe.root, lambda member: scaled_member(member, factor))
    writers = (
        replace(writer, habits={
            name: scaled_habit(habit, left[name]) for name, habit in writer.habits.items()
        }) for writer in recipe.writers
    )  # fmt: skip
    return replace(recipe, root=root, writers=tuple(writers))


def free_rates(step: Step) -> dict[str, float]:
    """Return the rates of a step that are chances: above 0 and below 1; defaults included."""
    values = step_values(step)
    rates = {name: float(values[name] or 0) for name in registry.get(step.transform).rates}
    return {name: rate for name, rate in rates.items() if 0 < rate < 1}


def factor_max(recipe: Recipe) -> float:
    """Return the least factor at which no chance can grow any more; 0 if there is nothing."""
    growths = [
        max((RATE_MAX / (rate * strength) for rate in free_rates(step).values()), default=1.0) / p
        for mix in recipe.mixes
        for step, own in _reached(mix.root, 1.0)
        for p, strength in [(own, 1.0), *_habits_of(step, mix.writers)]
        if p and strength
    ]
    return max(growths, default=0.0)


def _habits_of(step: Step, writers: Sequence[Writer]) -> Iterator[tuple[float, float]]:
    """Yield the chance and the strength that writers give a step."""
    for writer in writers:
        if habit := writer.habits.get(step.label):
            yield float(habit.p), float(habit.strength)
