"""`python -m bench [name ...] [options]`: the named benchmarks, or all of them, one after the other."""

import importlib
import pkgutil
import sys
import time
import traceback
from collections.abc import Callable, Sequence

from rich.console import Console

import bench

BUDGET_SECONDS = 300
USAGE = """python -m bench [name ...] [options]

Runs the named benchmarks, all of them without a name. Options go to each: `python -m bench ledger --events 1000000`.
  --list   the names"""

Benchmark = Callable[[Sequence[str]], int]


def discover() -> list[str]:
    """The modules beside this one, without those that begin with an underscore."""
    return sorted(module.name for module in pkgutil.iter_modules(bench.__path__) if not module.name.startswith("_"))


def load(name: str) -> Benchmark | None:
    """The benchmark's `main`; None when the module is something that benchmarks share."""
    found: Benchmark | None = getattr(importlib.import_module(f"bench.{name}"), "main", None)
    return found


def main(argv: Sequence[str]) -> int:
    """Run what is named; the highest exit code, 2 for a name that is none."""
    cut = next((place for place, word in enumerate(argv) if word.startswith("-")), len(argv))
    names, options = list(argv[:cut]), list(argv[cut:])
    if options[:1] in (["-h"], ["--help"]) and not names:
        print(USAGE)
        return 0
    if options[:1] == ["--list"]:
        print("\n".join(name for name in discover() if load(name)))
        return 0
    unknown = [name for name in names if name not in discover() or not load(name)]
    if unknown:
        known = ", ".join(name for name in discover() if load(name))
        print(f"There is no benchmark {', '.join(unknown)}. There are: {known}.", file=sys.stderr)
        return 2
    console, began, worst = Console(), time.monotonic(), 0
    for name in names or discover():
        worst = max(worst, _run(name, options, console))
    seconds = time.monotonic() - began
    console.print(f"\n{seconds:.0f} s in all")
    if not names and not options and seconds > BUDGET_SECONDS:
        console.print(f"[yellow]The default sizes are meant to end within {BUDGET_SECONDS} s.")
    return worst


def _run(name: str, options: Sequence[str], console: Console) -> int:
    try:
        benchmark = load(name)
        if benchmark is None:
            return 0
        console.rule(name)
        return benchmark(options)
    except Exception:  # one that breaks is shown and counted, and the others still run
        traceback.print_exc()
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
