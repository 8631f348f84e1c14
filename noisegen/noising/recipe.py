"""Recipes: mixes of transforms, read from YAML files or packaged with noisegen.

A recipe has a mix for all languages, and may have other mixes for some languages. An engine adds
the noise of one mix in one language; it is made once per process.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noisegen.errors import RecipeError, UsageError, did_you_mean
from noisegen.noising import mix as mixes
from noisegen.noising import registry, scaling
from noisegen.noising.bounded_yaml import FILE_BYTES_MAX, read_yaml
from noisegen.noising.engine import Engine, check_options, noise_table, warn_once
from noisegen.noising.mix import (
    MIX_KEYS,
    Group,
    Member,
    Mix,
    Step,
    Writer,
    check_keys,
    checked,
    over_members,
    parse_step,
    refuse_folder,
    step_values,
)
from noisegen.noising.registry import Settings
from noisegen.options import Strings, listed
from noisegen.text.languages import normalize_language
from noisegen.text.notebook import folded
from noisegen.text.resources import RECIPES
from noisegen.text.spans import PROTECTED, protect_kinds

if TYPE_CHECKING:
    import pyarrow as pa

FILE_ENDINGS = (".yaml", ".yml")
ENGINES_MAX = 64  # most engines in the cache, each for one recipe and language
_KEYS = ("name", "extends", "set", "scale", *MIX_KEYS, "languages")
_NOT_EXTENDED = ("languages", "steps", "strength")


@dataclass(frozen=True)
class Recipe(Mix):
    """A mix of transforms; `languages` maps the codes of some languages to other mixes for them.

    `named`, `from_yaml` and `of` make a recipe. Users see its `name`; its group `root` has all
    steps; `strength` and `writers` are explained in `Mix`.
    """

    languages: dict[str, "Recipe"] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        """Return one line: the recipe's name, and how many steps, writers and languages it has."""
        counts = {"step": self.steps(), "writer": self.writers, "language": self.languages}
        parts = [f"{len(parts)} {name}{'s'[: len(parts) != 1]}" for name, parts in counts.items()]
        return f"<Recipe {self.name}: {', '.join(part for part in parts if part[0] != '0')}>"

    def _repr_html_(self) -> str:
        return folded(repr(self), self.to_yaml())

    @classmethod
    def of(cls, steps: Sequence[Step | str], name: str = "steps") -> "Recipe":
        """Return a recipe that applies steps in the given order.

        Each step is a Step or a string NAME[:parameter=value].
        """
        return checked(cls(name, mixes.in_order(steps)))

    @classmethod
    def from_yaml(cls, path: str | Path, extended_by: Sequence[str] = ()) -> "Recipe":
        """Read a recipe file; raises RecipeError, which says where the file is wrong.

        `extended_by` names the recipes that extend this one. RecipeError is raised if this recipe
        extends one of them in turn.
        """
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
        """Return a recipe, given as a packaged name, a YAML file or a step NAME[:parameter=value].

        Raises UsageError for an unknown name, RecipeError for a wrong file.
        """
        name = str(name) if isinstance(name, Path) else name
        if not isinstance(name, str):
            ways = "give a name, a .yaml file, NAME:parameter=value or a Recipe"
            raise UsageError(f"{name!r:.60} is not a recipe: {ways}")
        if name.endswith(FILE_ENDINGS):
            return cls.from_yaml(name)
        if name in recipe_names():
            return _packaged(RECIPES / f"{name}.yaml")
        if ":" in name or registry.is_name(registry.own_name(name)):
            return cls.of([parse_step(name)], name)
        refuse_folder(name)
        near = did_you_mean(name, [*recipe_names(), *registry.names(), *registry.OTHER_NAMES])
        known = near or f"; recipes: {', '.join(recipe_names())}, or give a .yaml file"
        raise UsageError(f"no recipe or transform named {name!r}{known}")

    @classmethod
    def chosen(
        cls,
        recipe: "str | Path | Recipe",
        transforms: Strings = (),
        values: Mapping[str, object] | None = None,
        lang: str | None = None,
    ) -> "Recipe":
        """Return the recipe that a user chose: one of `transforms` (-t), or without them `recipe`.

        `values` change parameters of its steps (--set). Raises UsageError for an unknown name, and
        for a transform without data for `lang`.
        """
        if transforms:
            try:
                steps = [parse_step(str(text)) for text in listed(transforms)]
            except RecipeError as error:  # the steps come from the command line: wrong usage
                raise UsageError(str(error)) from error
            for step in steps if lang else ():
                registry.get(step.transform).check_language(lang or "")
            made = cls.of(steps, "+".join(step.transform for step in steps))
        else:
            made = recipe if isinstance(recipe, Recipe) else cls.named(recipe)
        return made.with_values(values) if values else made

    @classmethod
    def from_dict(cls, content: object, where: str = "recipe") -> "Recipe":
        """Return the recipe in a dictionary such as `to_dict` returns; raises RecipeError.

        `where` names the dictionary in errors.
        """
        return _of_plain(content, where, ())

    def to_yaml(self) -> str:
        """Return the recipe as YAML text. `from_yaml` reads a file that contains this text."""
        return file_text(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return the recipe as a dictionary with the keys of a recipe file."""
        content = {"name": self.name, **self.to_plain()}
        if self.languages:
            content["languages"] = {lang: mix.to_plain() for lang, mix in self.languages.items()}
        return content

    @property
    def mixes(self) -> list["Recipe"]:
        """All mixes of the recipe: first the one for all languages, then those for one language."""
        return [self, *self.languages.values()]

    def each_mix(self, change: Callable[["Recipe"], "Recipe"]) -> "Recipe":
        """Return a copy of the recipe in which each mix is replaced by `change(mix)`."""
        languages = {lang: change(mix) for lang, mix in self.languages.items()}
        return replace(change(self), languages=languages)

    def scaled(self, factor: float) -> "Recipe":
        """Return the recipe with `factor` times the noise, see `scaling.scaled`."""
        return self.each_mix(lambda mix: scaling.scaled(mix, factor))

    def with_factors(self, factors: Mapping[str, float]) -> "Recipe":
        """Return the recipe with factors for the noise of some steps, such as {'clip': 1.5}.

        A key is the label or the transform of a step. Raises UsageError for an unknown step.
        """
        for name in factors:
            self._step_and_parameter(f"{name}.p")
        return self.each_mix(lambda mix: scaling.with_factors(mix, factors))

    @property
    def factor_max(self) -> float:
        """Factor beyond which `scaled` adds no further noise; 0 for a recipe without noise."""
        return scaling.factor_max(self.mixes)

    def with_values(self, settings: Mapping[str, object]) -> "Recipe":
        """Return the recipe with parameters of its steps set, such as {'leet.rate': 0.05}.

        The chance of a step, such as 'leet.p', is set for all writers. Raises UsageError for an
        unknown step or parameter, or a wrong value.
        """
        values: dict[str, dict[str, Any]] = {}
        for key, value in settings.items():
            step, parameter = self._step_and_parameter(key)
            values.setdefault(step, {})[parameter] = value
        return self.each_mix(lambda mix: _with_values(mix, values))

    def _step_and_parameter(self, key: str) -> tuple[str, str]:
        """Split a key such as 'leet.rate' into transform or label of a step, and parameter.

        Raises UsageError if the recipe has no such step.
        """
        name, dot, parameter = key.rpartition(".")
        steps = [step for mix in self.mixes for step in mix.steps()]
        known = [known for step in steps for known in (step.transform, step.label)]
        if not dot or name not in known:
            labels = dict.fromkeys(step.label for step in steps)
            near = did_you_mean(name or key, known) or f"; its steps: {', '.join(labels)}"
            raise UsageError(f"cannot set {key!r}: recipe {self.name} has no such step{near}")
        return name, parameter

    def mix_of(self, lang: str) -> "Recipe":
        """Return the mix for a language: its own mix, or else the mix for all languages."""
        own = self.languages.get(normalize_language(lang)) if self.languages else None
        return own or replace(self, languages={})

    def has_language(self, lang: str) -> bool:
        """Tell whether any transform of the recipe has data for a language."""
        steps = self.mix_of(lang).steps()
        return any(registry.get(step.transform).has_language(lang) for step in steps)

    def for_language(self, lang: str) -> tuple["Recipe", list[str]]:
        """Return the mix for a language, and the names of the transforms left out of it.

        Transforms without data for the language are left out. Raises UsageError if none is left.
        """
        mix = self.mix_of(lang)
        names = [step.transform for step in mix.steps()]
        left_out = [name for name in names if not registry.get(name).has_language(lang)]
        if len(left_out) == len(names):
            registry.get(left_out[0]).check_language(lang)

        def kept(member: Member) -> Member | None:  # kept steps keep their labels and streams
            dropped = isinstance(member, Step) and member.transform in left_out
            return None if dropped else over_members(member, kept)

        recipe = replace(mix, root=over_members(mix.root, kept))
        return recipe.with_habits({step.label for step in recipe.steps()}), left_out

    def note_on(self, lang: str) -> str:
        """Return a note of one line that names the transforms without data for a language.

        It is '' if all transforms have data.
        """
        names = dict.fromkeys(step.transform for step in self.mix_of(lang).steps())
        missing = [name for name in names if not registry.get(name).has_language(lang)]
        if not missing:
            return ""
        share = f"{len(missing)} of its {len(names)} transforms"
        return f"{self.name} leaves out {share} in {lang!r} (no data): {', '.join(missing)}"

    @cached_property
    def key(self) -> str:
        """The recipe as JSON text; equal recipes have equal texts."""
        return json.dumps(self.to_dict(), default=str)

    @property
    def digest(self) -> str:
        """Hash of everything that determines the noise: steps, all parameters, order, strengths."""
        full = {**self.to_dict(), "values": [step_values(step) for step in self.steps()]}
        if self.languages:
            full["languages"] = {lang: mix.digest for lang, mix in self.languages.items()}
        del full["name"]
        content = json.dumps(full, sort_keys=True, default=str)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def engine(self, lang: str = "en", tagger: str = "rule") -> Engine:
        """Return the engine that adds the noise for a language; it is made once per process."""
        return _engine(self, normalize_language(lang), tagger)

    def noise_batch(
        self,
        table: "pa.Table",
        seed: int = 0,
        *,
        copy: int = 0,
        edits: bool = False,
        lang: str = "en",
        protect: str = PROTECTED,
        tagger: str = "rule",
    ) -> "pa.Table":
        """Add noise to the texts of a table, and return it with columns `noisy` and `transforms`.

        `table` has a column `clean` or `text`, and optionally a column `id` (default: rows are
        numbered from 0). `transforms` lists the transforms applied to each row. With `edits`, a
        column `edits` lists the changes. `copy` numbers the noisy copies of the same data. `lang`,
        `protect` and `tagger` are the options of `noisegen.noise`.
        """
        check_options(lang, protect, tagger)
        engine = self.engine(lang, tagger)
        warn_once(engine.note)
        return noise_table(engine, table, seed, copy, protect_kinds(protect), edits)


@lru_cache(ENGINES_MAX)
def _engine(recipe: Recipe, lang: str, tagger: str) -> Engine:
    mix, left_out = recipe.for_language(lang)
    note = recipe.note_on(lang) if left_out else ""
    return Engine(mix, Settings(lang, tagger=tagger), note)


def file_text(content: Mapping[str, Any], about: Sequence[str] = ()) -> str:
    """Return the text of a recipe file: comment lines `about`, then its `content` as YAML."""
    import yaml

    head = "".join(f"# {line}\n" for line in about)
    return head + yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True)


def recipe_names() -> list[str]:
    """Return the names of the packaged recipes."""
    return sorted(path.stem for path in RECIPES.glob("*.yaml"))


@cache
def _packaged(path: Path) -> Recipe:
    return Recipe.from_yaml(path)


def parse(text: str, where: str, extended_by: Sequence[str] = ()) -> Recipe:
    """Read a recipe from YAML text; raises RecipeError, whose message begins with `where`."""
    return _of_plain(read_yaml(text, where), where, extended_by)


def _of_plain(content: object, where: str, extended_by: Sequence[str]) -> Recipe:
    if not isinstance(content, dict):
        raise RecipeError(f"{where}: a recipe is a mapping with name and steps")
    check_keys(content, _KEYS, f"{where}: unknown key")
    name = str(content.get("name") or Path(where).stem)
    if "extends" in content:
        return _extended(content, name, where, [*extended_by, where])
    if alone := sorted({"set", "scale"} & set(content)):
        raise RecipeError(f"{where}: {' and '.join(alone)}: only in a recipe that extends another")
    recipe = _read(content, name, where)
    return replace(recipe, languages=dict(_languages(content, name, where)))


def _read(content: Mapping[str, Any], name: str, where: str) -> Recipe:
    """Read a recipe with a single mix from a dictionary; raises RecipeError."""
    mix = mixes.read_mix(content, name, where)
    return Recipe(mix.name, mix.root, mix.strength, mix.writers)


def _languages(content: Mapping[str, Any], name: str, where: str) -> Iterator[tuple[str, Recipe]]:
    """Yield the code and the mix of each language under `languages`; raises RecipeError.

    A mix without `strength` gets the `strength` of the mix for all languages.
    """
    listed = content.get("languages", {})
    if not isinstance(listed, dict) or ("languages" in content and not listed):
        raise RecipeError(f"{where}: languages must map codes to their steps and writers")
    codes = set[str]()
    for lang, own in listed.items():
        place = f"{where}: language {lang!r}"
        if not isinstance(own, dict):
            raise RecipeError(f"{place} needs 'steps: [...]', as a recipe")
        check_keys(own, MIX_KEYS, f"{place} has no option")
        try:
            # YAML reads `no`, the code of Norwegian, as False.
            code = normalize_language("no" if lang is False else str(lang))
        except UsageError as error:
            raise RecipeError(f"{where}: {error}") from error
        if code in codes:
            raise RecipeError(f"{place} is {code!r}, which has a mix already; drop one of them")
        codes.add(code)
        inherited = {"strength": content.get("strength"), **own}
        yield code, _read(inherited, name, f"{where}: {lang}")


def _extended(
    content: Mapping[str, Any], own_name: str, where: str, extended_by: Sequence[str]
) -> Recipe:
    """Load the recipe named by `extends` in `content`, and return a changed copy.

    `content` is a recipe file. Its key `scale` is a factor for the noise (see `Recipe.scaled`), or
    maps steps to such factors (`Recipe.with_factors`). `set` has new values of parameters, and
    `writers` has new weights of writers.
    """
    if own := sorted({*_NOT_EXTENDED} & content.keys()):
        raise RecipeError(f"{where}: a recipe that extends another has no {' or '.join(own)}")
    name, settings = content["extends"], content.get("set") or {}
    if not isinstance(name, str):
        raise RecipeError(f"{where}: extends = {name!r} is not the name of a recipe or file")
    if name in extended_by:
        raise RecipeError(f"{where}: extends {name!r}, which extends it in turn")
    if not isinstance(settings, dict):
        raise RecipeError(f"{where}: set must map TRANSFORM.PARAM to values")
    settings = {str(key): value for key, value in settings.items()}
    scale = content.get("scale", 1)
    of_steps = scale if isinstance(scale, dict) else {}
    factor = float(mixes.read_factor(1 if of_steps else scale, f"{where}: scale"))
    factors = {
        str(step): float(mixes.read_factor(given, f"{where}: scale of {step!r}"))
        for step, given in of_steps.items()
    }
    try:
        is_file = name.endswith(FILE_ENDINGS)
        base = Recipe.from_yaml(name, extended_by) if is_file else Recipe.named(name)
        base = base.scaled(factor).with_factors(factors).with_values(settings)
        base = _with_weights(base, content.get("writers") or {}, where)
        return base.each_mix(lambda mix: replace(mix, name=own_name))
    except UsageError as error:
        raise RecipeError(f"{where}: {error}") from error


def _with_weights(recipe: Recipe, weights: Mapping[str, object], where: str) -> Recipe:
    """Return a recipe with new weights of some writers, in the mixes of all languages.

    Raises RecipeError for an unknown writer or a wrong weight.
    """
    if not isinstance(weights, dict):
        raise RecipeError(f"{where}: writers must map names to weights")
    names = dict.fromkeys(writer.name for mix in recipe.mixes for writer in mix.writers)
    if unknown := next((name for name in weights if name not in names), None):
        near = did_you_mean(str(unknown), names) or f"; its writers: {', '.join(names)}"
        raise RecipeError(f"{where}: {recipe.name} has no writer {unknown!r}{near}")
    read = {
        name: mixes.read_odds({"weight": weight}, f"{where}: writer {name!r}")[1]
        for name, weight in weights.items()
    }

    def weighted(writer: Writer) -> Writer:
        return replace(writer, weight=read.get(writer.name, writer.weight))

    return recipe.each_mix(lambda mix: mix.with_writers(weighted))


def _with_values(mix: Recipe, values: Mapping[str, Mapping[str, Any]]) -> Recipe:
    """Return a mix with parameters set.

    `values` maps a transform, or the label of a step, to a dictionary: parameter -> new value.
    """

    def given_for(step: Step) -> dict[str, Any]:
        return {**values.get(step.transform, {}), **values.get(step.label, {})}

    def updated(member: Member) -> Member:
        if isinstance(member, Group):
            return over_members(member, updated)
        if not (of_step := given_for(member)):
            return member
        given = {"p": member.p, **of_step}
        p, _ = mixes.read_odds(given, f"{member.transform}.p")
        del given["p"]
        read = registry.get(member.transform).values(given)
        return replace(member, p=p, values=member.values | {key: read[key] for key in given})

    mix = replace(mix, root=updated(mix.root))
    chances = {step.label: step.p for step in mix.steps() if "p" in given_for(step)}

    def with_chances(writer: Writer) -> Writer:
        habits = {
            label: replace(habit, p=chances.get(label, habit.p))
            for label, habit in writer.habits.items()
        }
        return replace(writer, habits=habits)

    return checked(mix.with_writers(with_chances))
