"""Reader of YAML of unknown origin: it limits nesting and size, and refuses repeated keys."""

from functools import cache
from itertools import chain
from typing import Any

from noisegen.errors import RecipeError

FILE_BYTES_MAX = 1 << 17
NODES_MAX, DEPTH_MAX = 10_000, 40  # limits of a document; an alias counts as a copy of its node
NUMBER_MAX = 400  # most characters of a number: Python converts at most 4,300 digits
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


def read_yaml(text: str, where: str) -> Any:
    """Return the content of a YAML document.

    Raises RecipeError for invalid YAML; its message begins with `where`, the name of the document.
    """
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
    except (LookupError, AttributeError) as error:  # raised by yaml for `!!bool maybe`
        raise RecipeError(f"{where} is not YAML: a value does not fit its tag") from error


def _check_size(node: Any, where: str) -> None:
    """Raise RecipeError if a document is nested too deep, or has too many nodes or a long number.

    `node` is the root of the document; `where` is its name, with which the message begins. Each
    alias counts as a copy of its node. A node that contains itself is nested too deep.
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
    """Return a subclass of YAML's safe loader that refuses a mapping with a repeated key.

    The loader in C reads a packaged recipe in 20 ms instead of 160; it has a limit of nesting.
    """
    import yaml

    fastest: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class UniqueKeys(fastest):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            if twice := next((key for key in keys if keys.count(key) > 1), None):
                raise yaml.YAMLError(f"{twice!r} is given twice")
            return super().construct_mapping(node, deep)

    return UniqueKeys
