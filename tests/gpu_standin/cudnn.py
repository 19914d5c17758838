"""nvidia-cudnn-frontend as the stand-in for CuPy needs it: tests/fake_cudnn.py, whose graphs can be
captured."""

import cupy
import fake_cudnn
from fake_cudnn import *  # noqa: F403


class _Graph(fake_cudnn.Graph):
    def launch(self, work):
        cupy.launch(f"cudnn {'+'.join(self.nodes)}", work)


class _Library(fake_cudnn.Library):
    def pygraph(self, **options):
        return _Graph(self, **options)


_library = _Library()
# Which is the fastest is up to chance, and what each gives differs: whoever does not go by what was
# chosen before is found out.
_library.offers = [
    fake_cudnn.Offer("eng0", notes=("NONDETERMINISTIC",)),
    *(fake_cudnn.Offer(f"eng1_k2={i}", off=i * 2e-7) for i in range(3)),
]
pygraph, create_handle, set_stream = _library.pygraph, _library.create_handle, _library.set_stream
destroy_handle, backend_version = _library.destroy_handle, _library.backend_version
