"""How commands without runs end."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Iterator

from chainer_jo.errors import UserError


@contextlib.contextmanager
def ending() -> Iterator[None]:
    """Ends the process with 2 and one line for bad input, with 130 if interrupted."""
    logging.basicConfig(level=logging.WARNING, format="note: %(message)s")
    try:
        yield
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
