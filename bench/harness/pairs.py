"""Two programs, measured in turn in one run, so that other work of the machine affects both."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

TOLERANCE = 0.05


@dataclass(frozen=True)
class Figure:
    """What is measured, and how a value is written."""

    name: str
    form: str
    more_is_better: bool = False


Figures = dict[Figure, float]


@dataclass(frozen=True)
class Scenario:
    """What both programs do."""

    name: str
    measure_old: Callable[[], Figures]
    measure_new: Callable[[], Figures]


@dataclass(frozen=True)
class Comparison:
    """The values of one figure by pair: first the old program's."""

    scenario: str
    figure: Figure
    pairs: Sequence[tuple[float, float]]

    @property
    def ratios(self) -> list[float]:
        """New by old, of each pair."""
        return [new / old for old, new in self.pairs]

    @property
    def ratio(self) -> float:
        """The median of the ratios, which the speed of the machine does not change, even if it is different in each pair."""
        return statistics.median(self.ratios)

    @property
    def is_outside(self) -> bool:
        return abs(self.ratio - 1) > TOLERANCE

    @property
    def is_worse(self) -> bool:
        return self.is_outside and (self.ratio < 1) == self.figure.more_is_better

    @property
    def mark(self) -> str:
        """Whether the new program is better or worse by more than the tolerance, and whether it is so in each pair."""
        if not self.is_outside:
            return ""
        is_uniform = min(self.ratios) > 1 or max(self.ratios) < 1
        return ("**worse**" if self.is_worse else "better") + ("" if is_uniform else ", not in each pair")

    def row(self) -> list[str]:
        old, new = (self.figure.form.format(statistics.median(values)) for values in zip(*self.pairs, strict=True))
        spread = f"{min(self.ratios):.2f} – {max(self.ratios):.2f}"
        return [f"{self.scenario}: {self.figure.name}", old, new, f"{self.ratio:.3f}", spread, self.mark]


HEADER = ["old, median", "new, median", "new by old, median", "spread", f"outside {TOLERANCE * 100:g} %"]


def in_turn(scenarios: Sequence[Scenario], count: int) -> list[Comparison]:
    """Measures each scenario `count` times with both programs; each begins every second pair."""
    measured: dict[tuple[str, Figure], list[tuple[float, float]]] = {}
    for number in range(count):
        for scenario in scenarios:
            if number % 2:
                new, old = scenario.measure_new(), scenario.measure_old()
            else:
                old, new = scenario.measure_old(), scenario.measure_new()
            for figure, value in old.items():
                measured.setdefault((scenario.name, figure), []).append((value, new[figure]))
    return [Comparison(scenario, figure, pairs) for (scenario, figure), pairs in measured.items()]
