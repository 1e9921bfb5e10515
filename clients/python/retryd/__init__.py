"""Repeats a failed call when retryd says so."""

from .calls import call
from .client import Client
from .settings import Operation, OwnRules

__all__ = ["Client", "Operation", "OwnRules", "call"]
