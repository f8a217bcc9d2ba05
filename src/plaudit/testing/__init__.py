"""For tests, ours and yours: virtual time and scripted transports."""

from plaudit.testing.scripted import ScriptedTransport
from plaudit.testing.virtual_time import Deadlock, VirtualLoop, run

__all__ = ["Deadlock", "ScriptedTransport", "VirtualLoop", "run"]
