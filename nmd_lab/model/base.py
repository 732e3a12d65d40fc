"""The common base class of nonlinearities and losses."""

from __future__ import annotations

from typing import Any, ClassVar


class ModelPart:
    """A nonlinearity or a loss.  Two of them are equal if class and parameters are.

    Attributes
    ----------
    name : str
        Name by which functions select the class.
    label : str
        Short text for menus and legends; `name` by default.
    parameters : tuple of float
        Numbers that compiled functions receive at run time.  Other numbers need no new compilation.
    parameter_names : tuple of str
        Names of the arguments that set them; none by default.
    degree : int or None
        Degree of homogeneity.  A loss of degree q has d(s x, s y) = s^q d(x, y) for s > 0.  A
        nonlinearity of degree p has f(s t) = s^p f(t), if `scaled` changes its parameters.  None
        (default): data of any size are fitted as they are.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    parameter_names: ClassVar[tuple[str, ...]] = ()
    parameters: tuple[float, ...] = ()
    degree: ClassVar[int | None] = None

    def __init_subclass__(cls, **options: Any) -> None:
        """Set the label of a class with a name, and no degree for one with formulas of its own."""
        super().__init_subclass__(**options)
        own = vars(cls)
        if "name" in own and "label" not in own:
            cls.label = own["name"]
        if "degree" not in own and own.keys() & {"forward", "value", "proximal", "pieces"}:
            cls.degree = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{p:g}' for p in self.parameters)})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.parameters == getattr(other, "parameters", None)

    def __hash__(self) -> int:
        return hash((type(self), self.parameters))
