"""The device that policies and priors are learned on. PyTorch is imported when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyarms._base.validate import describe
from manyarms.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    import torch


def usable_device(device: str | torch.device | None, argument: str = "device") -> torch.device:
    """A device of PyTorch that is there and can hold numbers; where none is named, a GPU if there is one."""
    try:
        import torch
    except ModuleNotFoundError as error:
        raise MissingExtra("torch", "torch", "learning policies from logs") from error
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    expected = "a device of PyTorch that this machine has, such as cpu or cuda"
    if not isinstance(device, str | torch.device):
        raise InvalidInput(argument, describe(device), expected)
    try:
        made = torch.device(device)
        torch.zeros(1, device=made).item()  # "cuda" may be known and not there, "meta" holds nothing
    except (RuntimeError, AssertionError) as error:
        raise InvalidInput(argument, describe(device), expected) from error
    return made


__all__ = ["usable_device"]
