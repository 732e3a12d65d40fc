"""What a nonlinearity and a loss have in common: a name, run-time numbers, and equality by both."""

from __future__ import annotations

from typing import ClassVar


class ModelPart:
    """A nonlinearity or a loss.

    Attributes
    ----------
    name : str
        The word that selects it.
    parameters : tuple of float
        Numbers that the compiled functions receive at run time: changing one compiles nothing
        anew.
    """

    name: ClassVar[str]
    parameters: tuple[float, ...] = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{p:g}' for p in self.parameters)})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.parameters == getattr(other, "parameters", None)

    def __hash__(self) -> int:
        return hash((type(self), self.parameters))
